"""Identity of tables: SHA-256 over a canonical logical form, never over file bytes.

Reads: any declared table. Gives: one digest per table, or one per request of a table.

The form of a table is its heading (names, types), the number of rows, then column by column: which rows have a value,
the values by bit pattern or the lengths of variable values, and their bytes. The digest of a request is that of a table
of its rows. Single rows have a form of their own: a header of fixed width with the same parts, then the variable values.
Equal tables have equal forms however
they are chunked, sliced or dictionary-encoded, and whatever bytes hide under nulls; null differs from empty, 1 from
"1". Free text enters as its SHA-256, so that a record can be checked after a text was erased.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .errors import SchemaError
from .schema import Table

FORM = "scoped-retrieval/logical-form/2"
"""Version of the canonical form; every digest starts with it."""

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()

Bytes = NDArray[np.uint8]


def text_sha256(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """SHA-256 of each text as UTF-8, 64 hex digits; null where the text is null. Each distinct text is hashed once."""
    array = _combine(texts)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    encoded = array.cast(pa.large_string()).dictionary_encode()
    hashed = pa.array([hashlib.sha256(t.encode()).hexdigest() for t in encoded.dictionary.to_pylist()], pa.string())
    return hashed.take(encoded.indices)


def stored_form(table: pa.Table, declared: Table) -> pa.Table:
    """The table as a run stores it: each free-text column holds SHA-256 hex digits, type string, instead of texts.

    A table that is already in stored form comes back unchanged.
    """
    for index, (name, column) in enumerate(declared.columns.items()):
        if column.free_text and table.schema.field(name).type != pa.string():
            field = pa.field(name, pa.string(), column.nullable)
            table = table.set_column(index, field, text_sha256(table[name]))
    return table


def table_digest(table: pa.Table, declared: Table | None = None) -> str:
    """SHA-256 of a table's logical form, 64 hex digits.

    With `declared`, envelope columns are left out and free text enters by its hash; without, every column counts.
    """
    name, arrays = _digest_columns(table, declared)
    hasher = hashlib.sha256(_heading(name, {column: array.type for column, array in arrays.items()}))
    for _, data in _parts(arrays, np.array([0, table.num_rows])):
        hasher.update(data.data)
    return hasher.hexdigest()


def digests_by_request(table: pa.Table, declared: Table, request_ids: pa.Array) -> list[bytes]:
    """The digest of each request's rows, 32 bytes each, in the order of `request_ids`; rows keep their table order.

    A request without rows has the digest of an empty table. Rows of other requests are ignored.
    """
    if not table.num_rows:
        types = {name: table.schema.field(name).type for name in _covered(table, declared)}
        return [hashlib.sha256(_heading(declared.name, types) + bytes(8)).digest()] * len(request_ids)
    owner = _combine(pc.index_in(table["request_id"], value_set=_combine(request_ids)))
    if owner.null_count:
        keep = pc.is_valid(owner)
        table, owner = table.filter(keep), owner.filter(keep)
    position = owner.to_numpy(zero_copy_only=False).astype(np.int64)
    if np.any(np.diff(position) < 0):
        order = np.argsort(position, kind="stable")
        table, position = table.take(pa.array(order)), position[order]
    name, arrays = _digest_columns(table, declared)
    return _digests(name, arrays, np.searchsorted(position, np.arange(len(request_ids) + 1)))


def _digests(name: str, arrays: dict[str, pa.Array], bounds: NDArray[np.int64]) -> list[bytes]:
    """The digest of each range of rows [bounds[i], bounds[i + 1]) as a table of its own, 32 bytes each."""
    heading = hashlib.sha256(_heading(name, {column: array.type for column, array in arrays.items()}))
    cut = (_ranges(ends.tolist(), data.tobytes()) for ends, data in _parts(arrays, bounds))
    digests = []
    for pieces in zip(*cut, strict=True):
        hasher = heading.copy()
        hasher.update(b"".join(pieces))
        digests.append(hasher.digest())
    return digests


def _parts(arrays: dict[str, pa.Array], bounds: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], Bytes]]:
    """The bytes of the form, part by part, and where those of each range of rows begin and end."""
    yield np.arange(len(bounds)) * 8, _bytes(np.diff(bounds))
    for array in arrays.values():
        yield from _column(array, bounds)


def _ranges(bounds: list[int], data: bytes) -> list[bytes]:
    return [data[a:b] for a, b in itertools.pairwise(bounds)]


def combined_digests(parts: Sequence[tuple[str, Sequence[bytes]]], prefix: str) -> list[str]:
    """Per request, SHA-256 over `prefix` and its digest in every part, 64 hex digits. Parts are taken by name."""
    ordered = sorted(parts, key=lambda part: part[0])
    heading = hashlib.sha256("\n".join((FORM, prefix, *(name for name, _ in ordered))).encode())
    digests = []
    for row in zip(*(values for _, values in ordered), strict=True):
        hasher = heading.copy()
        hasher.update(b"".join(row))
        digests.append(hasher.hexdigest())
    return digests


def named_digest(values: dict[str, str]) -> str:
    """SHA-256 over names and values, in order of names: for settings and provenance."""
    return table_digest(pa.table({"name": sorted(values), "value": [values[name] for name in sorted(values)]}))


def _digest_columns(table: pa.Table, declared: Table | None) -> tuple[str, dict[str, pa.Array]]:
    if declared is None:
        return "", {name: _combine(table[name]) for name in table.column_names}
    covered = _covered(table, declared)
    table = stored_form(table.select(covered), _only(declared, covered))
    return declared.name, {name: _combine(table[name]) for name in covered}


def _covered(table: pa.Table, declared: Table) -> list[str]:
    """The columns that a digest covers."""
    covered = [name for name, column in declared.columns.items() if column.digest]
    if missing := [name for name in covered if name not in table.column_names]:
        raise SchemaError(f"Expected column {missing[0]}, got none - at {declared.name}")
    return covered


def _only(declared: Table, names: list[str]) -> Table:
    columns = {name: declared.columns[name] for name in names}
    return Table(declared.name, declared.doc, declared.key, declared.order, declared.persist, columns)


def _heading(name: str, types: dict[str, pa.DataType]) -> bytes:
    columns = [f"{column}:{_type_name(type_)}" for column, type_ in types.items()]
    text = "\n".join([FORM, name, str(len(columns)), *columns])
    return len(text).to_bytes(4, "little") + text.encode()


def _type_name(type_: pa.DataType) -> str:
    """The logical type: large and dictionary forms read as the plain one."""
    if pa.types.is_dictionary(type_):
        return _type_name(type_.value_type)
    if pa.types.is_large_string(type_):
        return "string"
    if pa.types.is_large_binary(type_):
        return "binary"
    if _is_list(type_):
        return f"list<{_type_name(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{', '.join(f'{f.name}: {_type_name(f.type)}' for f in type_)}>"
    return str(type_)


def _combine(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _column(array: pa.Array, bounds: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], Bytes]]:
    """The parts of a column's form, in order: bytes, and where those of each range of rows begin and end."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    yield bounds, _validity(array, len(array)).reshape(-1)
    type_ = array.type
    if pa.types.is_struct(type_):
        for child in array.flatten():
            yield from _column(child, bounds)
    elif _is_list(type_):
        counts, child = _items(array)
        yield 4 * bounds, _lengths(counts)
        yield from _column(child, np.append(0, np.cumsum(counts))[bounds])
    elif _is_variable(type_):
        offsets, data = _binary(array)
        yield 4 * bounds, _lengths(np.diff(offsets))
        yield offsets[bounds], data
    elif not pa.types.is_null(type_):
        values = _fixed(array)
        yield values.itemsize * bounds, _bytes(values)


def _lengths(lengths: NDArray[np.int64]) -> Bytes:
    """Lengths as four bytes each."""
    if lengths.max(initial=0) >= 1 << 32:
        raise SchemaError("Expected values of less than 4 GiB, got a longer one - at digest")
    return _bytes(lengths.astype("<u4"))


def _bytes(values: NDArray[np.generic]) -> Bytes:
    return np.ascontiguousarray(values).view(np.uint8)


def _items(array: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """How many items each list has, 0 for null, and all items in one array."""
    counts = np.asarray(_filled(pc.list_value_length(array), 0)).astype(np.int64)
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.large_list(array.type.value_type))
    return counts, _combine(pc.list_flatten(array))


def _is_list(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)


def row_forms(arrays: Sequence[pa.Array], rows: int) -> tuple[NDArray[np.int64], Bytes]:
    """Every row as bytes: offsets int64[rows + 1] into one contiguous buffer."""
    header: list[Bytes] = []
    bodies: list[tuple[NDArray[np.int64], Bytes]] = []
    for array in arrays:
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        header.append(_validity(array, rows))
        fixed, body = _values(array, rows)
        header.extend(fixed)
        if body is not None:
            bodies.append(body)
    matrix = np.hstack(header) if header else np.zeros((rows, 0), np.uint8)
    return _interleave(np.ascontiguousarray(matrix), bodies)


def _validity(array: pa.Array, rows: int) -> Bytes:
    """uint8[rows, 1]: 1 where there is a value."""
    if not array.null_count:
        return np.ones((rows, 1), np.uint8)
    return np.asarray(array.is_valid(), dtype=np.uint8).reshape(rows, 1)


def _values(array: pa.Array, rows: int) -> tuple[list[Bytes], tuple[NDArray[np.int64], Bytes] | None]:
    """The fixed-width part of a column, uint8[rows, width] each, and its variable part."""
    type_ = array.type
    if pa.types.is_null(type_):
        return [], None
    if pa.types.is_struct(type_):
        offsets, data = row_forms(array.flatten(), rows)
        return [_bytes_of(np.diff(offsets))], (offsets, data)
    if _is_list(type_):
        counts, child = _items(array)
        starts, data = row_forms([child], len(child))
        ends = np.zeros(rows + 1, np.int64)
        np.cumsum(counts, out=ends[1:])
        offsets = starts[ends]
        return [_bytes_of(counts), _bytes_of(np.diff(offsets))], (offsets, data)
    if _is_variable(type_):
        offsets, data = _binary(array)
        return [_bytes_of(np.diff(offsets))], (offsets, data)
    return [_bytes_of(_fixed(array))], None


def _is_variable(type_: pa.DataType) -> bool:
    return any(
        test(type_)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )


def _fixed(array: pa.Array) -> NDArray[np.generic]:
    """Values of a fixed-width column with zeros under nulls: numbers by bit pattern, times as integers."""
    type_ = array.type
    if pa.types.is_boolean(type_):
        return np.asarray(_filled(array, False)).astype(np.uint8)
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_) or pa.types.is_date64(type_):
        array = array.cast(pa.int64())
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        raise SchemaError(f"Expected a type with a canonical form, got {type_} - at digest")
    values = np.asarray(_filled(array, 0))
    return values.astype(values.dtype.newbyteorder("<"), copy=False)


def _bytes_of(values: NDArray[np.generic]) -> Bytes:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1) if len(values) else _no_bytes(values)


def _no_bytes(values: NDArray[np.generic]) -> Bytes:
    return np.zeros((0, values.dtype.itemsize), np.uint8)


def _binary(array: pa.Array) -> tuple[NDArray[np.int64], Bytes]:
    """Offsets and bytes of a string or binary column, read from its buffers; nothing hides under nulls."""
    type_ = array.type
    array = _filled(array, b"" if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) else "")
    if not len(array):
        return _ZERO, np.empty(0, np.uint8)
    _, offset_buffer, data = array.buffers()
    width = np.int64 if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_) else np.int32
    offsets = np.frombuffer(offset_buffer, width)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    buffer = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return offsets - offsets[0], buffer[int(offsets[0]) : int(offsets[-1])]


def _filled(array: pa.Array, value: object) -> pa.Array:
    """The array with `value` for nulls."""
    return pc.fill_null(array, pa.scalar(value, array.type)) if array.null_count else array


_ZERO = np.zeros(1, np.int64)


def _interleave(header: Bytes, bodies: Sequence[tuple[NDArray[np.int64], Bytes]]) -> tuple[NDArray[np.int64], Bytes]:
    """Rows as bytes: the fixed header, then each variable value."""
    rows, width = header.shape
    if not bodies:
        return np.arange(rows + 1, dtype=np.int64) * width, header.reshape(-1)
    parts = [_binary_array(np.arange(rows + 1, dtype=np.int64) * width, header.reshape(-1))]
    parts += [_binary_array(offsets, data) for offsets, data in bodies]
    joined = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))
    return _binary(joined)


def _binary_array(offsets: NDArray[np.int64], data: Bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
