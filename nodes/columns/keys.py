"""Finding rows of one table in another by key, independent of join order; and lists taken apart.

`Table.join` loses row order on chunked tables; these look-ups return positions, and the caller takes rows. A list column
is handled as flat values plus the row of each value; a null list has no values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Column: TypeAlias = "pa.Array | pa.ChunkedArray"
_LISTS = {type_.id for type_ in (pa.list_(pa.null()), pa.large_list(pa.null()), pa.list_(pa.null(), 1))}
_WIDE = {pa.large_string().id, pa.large_binary().id}
TEXTS = {pa.string().id, pa.binary().id, *_WIDE}
"""The ids of string and binary types."""


def flat(column: Column) -> pa.Array:
    """The column as one array; a single chunk is returned as it is."""
    if type(column) is not pa.ChunkedArray:
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def columns_of(table: pa.Table) -> list[pa.Array]:
    """The columns of a table in order, each as one array."""
    batches = table.to_batches()
    return batches[0].columns if len(batches) == 1 else [flat(column) for column in table.columns]


def gathered(column: Column, rows: Column | NDArray[np.int64]) -> pa.Array:
    """The values of a column at some positions, as one array: `take`, at a cost that depends on the positions.

    Arrow would first join all chunks of a text column: a frame's whole text for a few of its rows.
    """
    index = pa.array(rows) if type(rows) is np.ndarray else flat(rows)
    if type(column) is not pa.ChunkedArray or column.num_chunks < 2:
        return flat(column).take(index)
    return gathered_columns(pa.Table.from_arrays([column], ["column"]), ("column",), index)["column"]


def gathered_columns(table: pa.Table, names: Iterable[str], rows: Column | NDArray[np.int64]) -> dict[str, pa.Array]:
    """`gathered` of some columns at the same positions."""
    index = pa.array(rows) if type(rows) is np.ndarray else flat(rows)
    chosen = table.select(list(names))
    batches = chosen.to_batches()
    if len(batches) == 1:
        found = batches[0].take(index)
    elif not batches or index.null_count:
        return {name: flat(chosen[name]).take(index) for name in chosen.column_names}
    else:
        found = _from_batches(batches, np.asarray(index).astype(np.int64))
    return dict(zip(chosen.column_names, found.columns, strict=True))


def _from_batches(batches: Sequence[pa.RecordBatch], index: NDArray[np.int64]) -> pa.RecordBatch:
    """The rows at some positions of consecutive batches, in order of the positions; other batches are not read."""
    starts = np.fromiter(accumulate(map(len, batches), initial=0), np.int64)
    order = index.argsort(kind="stable")
    ascending = index[order]
    cuts = ascending.searchsorted(starts).tolist()
    parts = [
        batch.take(pa.array(ascending[low:high] - start))
        for batch, start, (low, high) in zip(batches, starts.tolist(), pairwise(cuts), strict=False)
        if low < high
    ]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return pa.concat_batches(parts or [batches[0].slice(0, 0)]).take(pa.array(place))


def pair_positions(wanted: tuple[Column, Column], among: tuple[Column, Column]) -> NDArray[np.int64]:
    """`positions` of pairs, such as (request, evidence)."""
    sought, pairs = ([*zip(*(column.to_pylist() for column in pair), strict=True)] for pair in (wanted, among))
    places = {pair: place for place, pair in reversed([*enumerate(pairs)])}
    return np.array([places.get(pair, -1) for pair in sought], dtype=np.int64)


def positions(wanted: Column, among: Column) -> NDArray[np.int64]:
    """Position of each wanted value in `among` (its first), -1 where it does not occur."""
    values = flat(wanted)
    if not len(values):
        return np.empty(0, dtype=np.int64)
    found = pc.index_in(values, value_set=flat(among))
    return (found.fill_null(-1) if found.null_count else found).to_numpy().astype(np.int64)


def places_of(values: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.int64]:
    """Position of each value among distinct ascending numbers, -1 where it does not occur."""
    if not len(ascending):
        return np.full(len(values), -1)
    found = np.minimum(ascending.searchsorted(values), len(ascending) - 1)
    return np.where(ascending[found] == values, found, -1)


def order_by(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """Positions of the rows by the first column, then the second and so on, ascending; equal rows keep their order."""
    return np.lexsort(columns[::-1])


def first_of_runs(*columns: NDArray[np.generic]) -> NDArray[np.int64]:
    """Positions where an element differs from the previous one in any column."""
    return _changes(columns).nonzero()[0]


def _changes(columns: Sequence[NDArray[np.generic]]) -> NDArray[np.bool_]:
    """Whether each element differs from the previous one in any column; true for the first."""
    change = np.zeros(len(columns[0]), dtype=bool)
    change[:1] = True
    for column in columns:
        change[1:] |= column[1:] != column[:-1]
    return change


def rank_within(owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rank from 0 of each element inside its run of equal owners; equal owners must be adjacent."""
    place = np.arange(len(owner))
    return place - np.maximum.accumulate(place * _changes([owner]))


def codes_of(columns: Sequence[Column]) -> NDArray[np.int64]:
    """One number per row, equal where all columns are (null equals null)."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        encoded = flat(column).dictionary_encode()
        width = len(encoded.dictionary) + 1
        if width == 1 or (width == 2 and not encoded.null_count):
            continue
        if int(code.max(initial=0)) > np.iinfo(np.int64).max // width - 1:
            code = np.unique(code, return_inverse=True)[1].reshape(-1)
        place = encoded.indices.fill_null(width - 1) if encoded.null_count else encoded.indices
        code = code * width + integers(place)
    return code


def ordered_codes(words: pa.Array) -> NDArray[np.int64]:
    """A code per row of a string column, by alphabetical order of its values, from 0; -1 for null."""
    encoded = words.dictionary_encode()
    place = np.full(len(encoded.dictionary) + 1, -1, dtype=np.int64)
    place[np.asarray(pc.array_sort_indices(encoded.dictionary))] = np.arange(len(encoded.dictionary))
    return place[integers(encoded.indices.fill_null(-1))]


def distinct_numbers(codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct codes, ascending, and the position of each code among them; dense codes need no sort."""
    if not len(codes):
        return codes, codes
    low, high = int(codes.min()), int(codes.max())
    if high - low > 4 * len(codes) + 1024:
        distinct, inverse = np.unique(codes, return_inverse=True)
        return distinct, inverse.reshape(-1)
    used = np.zeros(high - low + 1, dtype=bool)
    used[codes - low] = True
    return used.nonzero()[0] + low, (used.cumsum() - 1)[codes - low]


def distinct_rows(*columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of each group of equal rows, in the order of their values, and the group of each row."""
    order = np.lexsort(columns[::-1])
    change = _changes([column[order] for column in columns])
    code = np.empty(len(order), dtype=np.int64)
    code[order] = change.cumsum() - 1
    return order[change], code


def distinct_values(columns: Sequence[Column]) -> tuple[list[tuple[Any, ...]], NDArray[np.int64]]:
    """The distinct rows of some columns as tuples, and the place of each row among them: what follows from the values of
    a row alone is computed once for each of these.
    """
    first, which = distinct_rows(codes_of(columns))
    index = pa.array(first)
    return [*zip(*(flat(column).take(index).to_pylist() for column in columns), strict=True)], which


def rows_of_runs(table: pa.Table, owner: str) -> dict[Any, list[dict[str, Any]]]:
    """The rows of each run of equal owners as dictionaries, without the owner; runs with equal rows share one list."""
    if not table.num_rows:
        return {}
    ids, batch = flat(table[owner]), table.drop_columns([owner]).combine_chunks().to_batches()[0]
    change = np.asarray(pc.not_equal(ids[1:], ids[:-1])).nonzero()[0] + 1
    known: dict[bytes, list[dict[str, Any]]] = {}
    found = {}
    for low, high in pairwise([0, *change.tolist(), len(ids)]):
        own = batch.slice(low, high - low)
        key = own.serialize().to_pybytes()
        if key not in known:
            known[key] = own.to_pylist()
        found[ids[low].as_py()] = known[key]
    return found


def take_or(column: Column, index: NDArray[np.int64], default: object = None) -> pa.Array:
    """The values at `index`; `default` (or null) where the index is -1 and where the value is null."""
    missing = index < 0
    array = flat(column).take(pa.array(index, mask=missing) if missing.any() else pa.array(index))
    return array.fill_null(default) if default is not None and array.null_count else array


def integers(column: Column) -> NDArray[np.int64]:
    """A column of whole numbers without nulls as int64."""
    return flat(column).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def floats(column: Column) -> NDArray[np.float64]:
    """A numeric column as float64[n]; null is NaN."""
    return np.asarray(flat(column).to_numpy(zero_copy_only=False), dtype=np.float64)


def present(column: Column) -> NDArray[np.bool_]:
    """Whether each row has a value."""
    missing = column.null_count
    if 0 < missing < len(column):
        return np.asarray(flat(column).is_valid())
    return np.full(len(column), not missing)


def filled(array: pa.Array, value: object) -> pa.Array:
    """The array with `value` in place of nulls."""
    return pc.fill_null(array, pa.scalar(value, array.type)) if array.null_count else array


def truth(mask: Column) -> NDArray[np.bool_]:
    """A boolean column, false where it is null."""
    values = flat(mask)
    return (values.fill_null(False) if values.null_count else values).to_numpy(zero_copy_only=False)


def among(column: Column, wanted: Collection[str]) -> NDArray[np.bool_]:
    """Whether each value of a string column is one of some values; false for null."""
    return np.asarray(pc.is_in(flat(column), value_set=constants(tuple(sorted(wanted)))))


@lru_cache(maxsize=1024)
def constants(values: tuple[str | None, ...], type_: pa.DataType | None = None) -> pa.Array:
    """Literal texts as an array, `string` by default; cached per list of values."""
    return pa.array(values, type_ or pa.string())


def is_list(type_: pa.DataType) -> bool:
    """Whether it is a list type: list, large list or fixed-size list."""
    return type_.id in _LISTS


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


def offsets_and_bytes(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets from 0 and bytes of a string or binary column, the bytes read-only from its buffers; nulls have none."""
    if not len(array):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    array = filled(array, "")
    _, ends, data = array.buffers()
    wide = np.dtype(np.int64 if array.type.id in _WIDE else np.int32)
    offsets = np.frombuffer(ends, wide, len(array) + 1, array.offset * wide.itemsize).astype(np.int64)
    start, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    return offsets - start, np.frombuffer(data, np.uint8, size, start) if size else np.empty(0, np.uint8)
