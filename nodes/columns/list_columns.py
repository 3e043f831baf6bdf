"""List columns taken apart and put together, for whole tables at once.

A list column is handled as flat values plus the row of each value. Null lists have no values and become empty lists
unless a caller keeps their validity.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .keys import constants, flat, positions, truth


def listed(array: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """The number of values in each list of a column, 0 for null, and the values."""
    missing = array.null_count
    if missing == len(array):
        return np.zeros(missing, dtype=np.int64), array.values.slice(0, 0)
    if missing or pa.types.is_fixed_size_list(array.type):
        lengths = array.value_lengths()
        return (lengths.fill_null(0) if missing else lengths).to_numpy().astype(np.int64), array.flatten()
    offsets = array.offsets.to_numpy().astype(np.int64)
    return offsets[1:] - offsets[:-1], array.values.slice(offsets[0], offsets[-1] - offsets[0])


def flattened(lists: pa.ChunkedArray | pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """The row of each value, ascending, and the values."""
    lengths, values = listed(flat(lists))
    return np.arange(len(lengths)).repeat(lengths), values


def collected(rows: NDArray[np.int64], values: pa.Array, count: int) -> pa.ListArray:
    """For each of `count` rows its sorted distinct values."""
    if not len(values):
        return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, dtype=np.int32)), values)
    encoded = flat(values).dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    width = len(order)
    keys = np.unique(rows * width + place[encoded.indices.to_numpy()])
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.bincount(keys // width, minlength=count).cumsum(out=offsets[1:])
    sorted_values = encoded.dictionary.take(pa.array(order))
    return pa.ListArray.from_arrays(pa.array(offsets), sorted_values.take(pa.array(keys % width)))


def holds(lists: pa.ChunkedArray | pa.Array, value: str) -> NDArray[np.bool_]:
    """Whether each list contains one value, such as a lane in the lanes of a sub-query."""
    rows, found = flattened(lists)
    return np.bincount(rows[truth(pc.equal(found, value))], minlength=len(lists)) > 0


def held(lists: pa.ChunkedArray | pa.Array, values: tuple[str, ...]) -> NDArray[np.bool_]:
    """Whether each list contains each of some values: bool[values, lists]."""
    rows, found = flattened(lists)
    place = positions(found, constants(values))
    known = place >= 0
    result = np.zeros((len(values), len(lists)), dtype=bool)
    result[place[known], rows[known]] = True
    return result
