"""Finding rows of one table in another by key, in an order that no join has a say in.

`Table.join` loses row order on chunked tables; these look-ups give positions, and the caller takes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


def flat(column: Column) -> pa.Array:
    """The column as one array; a single chunk comes back as it is."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def gathered(column: Column, rows: Column | NDArray[np.int64]) -> pa.Array:
    """The values of a column at some positions, as one array: `take`, at a cost that follows the positions.

    Arrow joins all chunks of a text column before it takes from them: a frame's whole text for a few rows of it.
    """
    index = pa.array(rows) if isinstance(rows, np.ndarray) else flat(rows)
    if isinstance(column, pa.Array) or column.num_chunks < 2 or index.null_count or not len(index):
        return flat(column).take(index)
    at = np.asarray(index).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum([len(chunk) for chunk in column.chunks])))
    chunk = np.searchsorted(starts, at, side="right") - 1
    order = np.argsort(chunk, kind="stable")
    used, first = np.unique(chunk[order], return_index=True)
    parts = [
        column.chunk(number).take(pa.array(at[own] - starts[number]))
        for number, own in zip(used.tolist(), np.split(order, first[1:]), strict=True)
    ]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(place))


def pair_keys(request_ids: Column, evidence_ids: Column) -> pa.Array:
    """One text per (request, evidence) pair. Evidence ids hold no newline, so pairs stay distinct."""
    pieces = (flat(evidence_ids).cast(pa.large_string()), flat(request_ids).cast(pa.large_string()))
    return pc.binary_join_element_wise(*pieces, pa.scalar("\n", pa.large_string()))


def pair_codes(*pairs: tuple[Column, Column]) -> list[pa.Array]:
    """A number per (request, evidence) pair of several tables, equal where both are; null where one of them is null.

    Numbers are compared many times faster than texts, and each column of ids is read once.
    """
    owners = [flat(request) for request, _ in pairs]
    firsts = [owner.take(pa.array(_run_starts(owner))) for owner in owners]
    names = pc.unique(pa.chunked_array([first.cast(pa.large_string()) for first in firsts]))
    members = pa.chunked_array([flat(evidence).cast(pa.string()) for _, evidence in pairs], pa.string())
    encoded = members.dictionary_encode()
    width = max((len(chunk.dictionary) for chunk in encoded.chunks), default=0) + 1
    codes = [chunk.indices for chunk in encoded.chunks if len(chunk)]
    found = []
    for owner in owners:
        request = positions(owner.cast(pa.large_string()), names)
        code = (
            pc.add(pa.array(request * width), codes.pop(0).cast(pa.int64())) if len(owner) else pa.array([], pa.int64())
        )
        found.append(pc.if_else(owner.is_valid(), code, None) if owner.null_count else code)
    return found


def pair_positions(wanted: tuple[Column, Column], among: tuple[Column, Column]) -> NDArray[np.int64]:
    """`positions` of (request, evidence) pairs."""
    return positions(*pair_codes(wanted, among))


def positions(wanted: Column, among: Column) -> NDArray[np.int64]:
    """Position of each wanted value in `among` (its first), -1 where it does not occur.

    Tables are sorted by request, so equal values lie side by side: of a run of them only the first is looked up.
    """
    values = flat(wanted)
    first = _run_starts(values)
    if 4 * len(first) > len(values):
        found = pc.index_in(values, value_set=flat(among))
        return np.asarray(pc.fill_null(found, -1)).astype(np.int64)
    found = pc.index_in(values.take(pa.array(first)), value_set=flat(among))
    return np.repeat(np.asarray(pc.fill_null(found, -1)).astype(np.int64), np.diff(first, append=len(values)))


def _run_starts(values: pa.Array) -> NDArray[np.int64]:
    """Where a value differs from the one before; a null differs from everything."""
    if len(values) < 2 or not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return np.arange(len(values))
    changes = pc.fill_null(pc.not_equal(values[1:], values[:-1]), True)
    return np.flatnonzero(np.concatenate(([True], np.asarray(changes))))


def first_of_runs(*columns: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where an element differs from the one before in some column."""
    change = np.zeros(len(columns[0]), dtype=bool)
    change[:1] = True
    for column in columns:
        change[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(change)


def rank_within(owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rank from 0 of each element inside its run of equal owners; equal owners lie side by side."""
    if not len(owner):
        return np.empty(0, dtype=np.int64)
    change = np.flatnonzero(np.diff(owner, prepend=owner[:1] - 1))
    return np.arange(len(owner)) - np.repeat(change, np.diff(change, append=len(owner)))


def take_or(column: Column, index: NDArray[np.int64], default: object = None) -> pa.Array:
    """The values at `index`; `default` (or null) where the index is -1 and where the value is null."""
    array = flat(column).take(pa.array(np.where(index < 0, 0, index), mask=index < 0))
    return array if default is None else pc.fill_null(array, pa.scalar(default, array.type))


def flags_at(column: Column, index: NDArray[np.int64]) -> NDArray[np.bool_]:
    """A boolean column at `index`; false where the index is -1 or the value null."""
    return np.asarray(take_or(column, index, False)).astype(bool)


def truth(mask: Column) -> NDArray[np.bool_]:
    """A boolean column, false where it is null."""
    return flat(mask).fill_null(False).to_numpy(zero_copy_only=False)


def among(column: Column, wanted: Collection[str]) -> NDArray[np.bool_]:
    """Where a string column holds one of some values; false where it is null."""
    return np.asarray(pc.is_in(flat(column), value_set=pa.array(sorted(wanted), pa.string())))


def objects(column: Column) -> NDArray[np.object_]:
    """A string column as Python objects, None where null: for element-wise choices."""
    return np.asarray(flat(column).to_numpy(zero_copy_only=False), dtype=object)
