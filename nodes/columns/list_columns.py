"""List columns taken apart, for whole tables at once.

A list column is handled as flat values plus the row of each value. Null lists have no values and become empty lists
unless a caller keeps their validity.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .keys import flat, truth


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


def holds(lists: pa.ChunkedArray | pa.Array, value: str) -> NDArray[np.bool_]:
    """Whether each list contains one value, such as a lane in the lanes of a sub-query."""
    rows, found = flattened(lists)
    return np.bincount(rows[truth(pc.equal(found, value))], minlength=len(lists)) > 0
