"""Identity of tables: SHA-256 over a canonical logical form, never over file bytes.

Reads: any declared table. Gives: one digest per table, or one per request of a table.

The form of a table is its heading (names, types, which columns may be null), the number of rows, then row by row all
that has a fixed width (validity of what may be null, numbers by bit pattern, lengths), then the variable values column
by column; the items of lists follow in the same form. A value longer than `LONG` is replaced by its SHA-256, so that a
length takes one byte. The digest of a request is that of a table of its rows. Equal tables have equal forms however they
are chunked, sliced or dictionary-encoded, and whatever bytes hide under nulls; null differs from empty, 1 from "1". Free
text enters as its SHA-256, so that a record can be checked after a text was erased.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SchemaError
from ..schema import Table
from .array_bytes import (
    Bytes,
    Int,
    as_bytes,
    columns_of,
    filled,
    fixed,
    is_list,
    items,
    layout_of,
    number_forms,
    offsets_and_bytes,
    plain,
    type_name,
    valid,
)
from .kept import OfTable
from .keys import FEW_ROWS, distinct, positions

FORM = "scoped-retrieval/logical-form/3"
"""Version of the canonical form; every digest starts with it."""

LONG = 64
"""Bytes of the longest value that enters as it is; a longer one has length `LONG` + 1 and enters by its SHA-256. Reasons
and lists of gates are longer and repeat: each distinct one is hashed once."""

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()

_BYTE, _COUNT = np.dtype(np.uint8), np.dtype("<u4")
_Column = tuple[pa.Array, bool]
"""An array, and whether it may hold nulls."""


def text_sha256(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """SHA-256 of each text as UTF-8, 64 hex digits; null where the text is null. Each distinct text is hashed once."""
    array = plain(texts)
    if len(array) <= FEW_ROWS:
        values = array.to_pylist()
        return pa.array(
            [None if text is None else hashlib.sha256(text.encode()).hexdigest() for text in values], pa.string()
        )
    encoded = array.cast(pa.large_string()).dictionary_encode()
    hashed = pa.array([hashlib.sha256(t.encode()).hexdigest() for t in encoded.dictionary.to_pylist()], pa.string())
    return hashed.take(encoded.indices)


def is_stored(type_: pa.DataType) -> bool:
    """Whether a free-text column of this type holds hashes, as a run stores it, and not texts."""
    return pa.types.is_string(type_.value_type if is_list(type_) else type_)


def hashed(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A free-text column in stored form: SHA-256 of each text, or of each item of each list; null stays null."""
    array = plain(column)
    if array.null_count == len(array):
        return pa.nulls(len(array), pa.list_(pa.string()) if is_list(array.type) else pa.string())
    if not is_list(array.type):
        return text_sha256(array)
    counts, texts = items(array)
    ends = pa.array(np.append(0, np.cumsum(counts)), pa.int32())
    return pa.ListArray.from_arrays(ends, text_sha256(texts), mask=pc.is_null(array))


def stored_form(table: pa.Table, declared: Table) -> pa.Table:
    """The table as a run stores it: free-text columns hold SHA-256 hex digits, type string, in place of texts.

    A table that is already in stored form comes back unchanged. The form of one in use is cached: the line digests
    it, and the run keeps it.

    Raises:
        SchemaError: it is neither the declared table nor its stored form.
    """
    if not free_texts(declared) or table.schema.equals(declared.stored_schema):
        return table
    return _storing(declared)(declared.check(table))


@lru_cache(maxsize=256)
def _storing(declared: Table) -> OfTable[pa.Table]:
    places = free_texts(declared)

    def stored(table: pa.Table) -> pa.Table:
        columns = table.columns
        for place in places:
            columns[place] = hashed(columns[place])
        return pa.Table.from_arrays(columns, schema=declared.stored_schema)

    return OfTable(stored)


@lru_cache(maxsize=256)
def free_texts(declared: Table) -> tuple[int, ...]:
    """The places of the columns of free text."""
    return tuple(place for place, column in enumerate(declared.columns.values()) if column.free_text)


def table_digest(table: pa.Table, declared: Table | None = None) -> str:
    """SHA-256 of a table's logical form, 64 hex digits.

    With `declared`, envelope columns are left out and free text enters by its hash; without, every column counts.

    Raises:
        SchemaError: a column is missing, has nulls that it may not have, or a type without a form.
    """
    heading, columns = _digest_columns(table, declared)
    hasher = hashlib.sha256(heading)
    for _, data in _parts(columns, np.array([0, table.num_rows])):
        hasher.update(data.data)
    return hasher.hexdigest()


def digests_by_request(table: pa.Table, declared: Table, request_ids: pa.Array) -> list[bytes]:
    """The digest of each request's rows, 32 bytes each, in the order of `request_ids`; rows keep their table order.

    A request without rows has the digest of an empty table. Rows of other requests are ignored.
    """
    heading, columns = _digest_columns(table, declared)
    hasher = hashlib.sha256(heading)
    if not table.num_rows:
        hasher.update(bytes(8))
        return [hasher.digest()] * len(request_ids)
    position = positions(table["request_id"], request_ids)
    if position[0] < 0 or (position[1:] < position[:-1]).any():
        order = np.argsort(position, kind="stable")
        order = order[position[order] >= 0]
        rows, position = pa.array(order), position[order]
        columns = [(array.take(rows), nullable) for array, nullable in columns]
    bounds = position.searchsorted(np.arange(len(request_ids) + 1))
    parts = [(ends.tolist(), data.data) for ends, data in _parts(columns, bounds) if data.size]
    digests = []
    for number in range(len(request_ids)):
        own = hasher.copy()
        own.update(b"".join([data[ends[number] : ends[number + 1]] for ends, data in parts]))
        digests.append(own.digest())
    return digests


def part_digest(table: pa.Table, declared: Table, known: Mapping[str, bytes] | None = None) -> str:
    """The logical digest of a stored part, 64 hex digits: over its requests, by id, and the digest of the rows of each.

    Args:
        table: rows of whole requests; a table that is of no request has the digest of `table_digest`.
        declared: its declaration.
        known: digests by request as `digests_by_request` gives them, if the caller has them already.
    """
    if "request_id" not in declared.columns:
        return table_digest(table, declared)
    ids = distinct(table["request_id"])
    ids = ids.take(pc.array_sort_indices(ids))
    names = ids.to_pylist()
    if known is None or not known.keys() >= set(names):
        known = dict(zip(names, digests_by_request(table, declared, ids), strict=True))
    hasher = hashlib.sha256("\n".join((FORM, "part", declared.name, "")).encode())
    hasher.update(b"".join([_named(name) + known[name] for name in names]))
    return hasher.hexdigest()


@lru_cache(maxsize=4096)
def _named(request_id: str) -> bytes:
    """The bytes before the digest of a request in that of a part; every part of a shard names the same requests."""
    data = request_id.encode()
    return len(data).to_bytes(4, "little") + data


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


def _digest_columns(table: pa.Table, declared: Table | None) -> tuple[bytes, list[_Column]]:
    """The heading, and the columns that count, in stored form."""
    as_declared = declared is not None and table.schema.equals(declared.schema)
    arrays = columns_of(stored_form(table, declared) if declared is not None and as_declared else table)
    if not as_declared:
        arrays = [plain(array) for array in arrays]
        if len(set(table.column_names)) < table.num_columns:
            raise SchemaError(f"Expected names of their own, got {', '.join(table.column_names)} - at columns")
    if declared is None:
        forms = [(name, array.type, True) for name, array in zip(table.column_names, arrays, strict=True)]
        return _heading("", forms), [(array, True) for array in arrays]
    covered = _covered(declared)
    places = range(len(arrays)) if as_declared else _places(table, declared)
    columns = []
    for place, name, nullable, free_text in covered:
        array = arrays[places[place]]
        if free_text and not is_stored(array.type):
            array = hashed(array)
        if not nullable and array.null_count:
            raise SchemaError(f"Expected a value in every row, got nulls - at {declared.name}.{name}")
        columns.append((array, nullable))
    if as_declared:
        return _declared_heading(declared), columns
    further = declared.widened(pa.schema([]), table.column_names) if declared.extra is not None else ()
    if further:
        covered = (*covered, *((-1, field.name, field.nullable, False) for field in further))
        columns += [(plain(table[field.name]), field.nullable) for field in further]
    forms = [(name, array.type, nullable) for (_, name, nullable, _), (array, _) in zip(covered, columns, strict=True)]
    return _heading(declared.name, forms), columns


@lru_cache(maxsize=256)
def _covered(declared: Table) -> tuple[tuple[int, str, bool, bool], ...]:
    """The columns that count: place, name, whether there may be nulls, whether it is free text."""
    columns = enumerate(declared.columns.items())
    return tuple((place, name, c.nullable, c.free_text) for place, (name, c) in columns if c.digest)


def _places(table: pa.Table, declared: Table) -> dict[int, int]:
    """Where a table of other columns, or in another order, has each one that counts."""
    names = table.column_names
    for _, name, *_ in _covered(declared):
        if name not in names:
            raise SchemaError(f"Expected column {name}, got none - at {declared.name}")
    return {place: names.index(name) for place, name, *_ in _covered(declared)}


@lru_cache(maxsize=256)
def _declared_heading(declared: Table) -> bytes:
    return _heading(
        declared.name, [(n, declared.columns[n].type, nullable) for _, n, nullable, _ in _covered(declared)]
    )


def _heading(name: str, columns: Sequence[tuple[str, pa.DataType, bool]]) -> bytes:
    lines = [f"{column}:{type_name(type_)}{'?' * nullable}" for column, type_, nullable in columns]
    text = "\n".join([FORM, name, str(len(lines)), *lines])
    return len(text).to_bytes(4, "little") + text.encode()


def _parts(columns: Iterable[_Column], bounds: Int) -> Iterator[tuple[Int, Bytes]]:
    """The form below the heading, part by part: bytes, and where those of each range of rows begin and end."""
    yield np.arange(len(bounds)) * 8, as_bytes(bounds[1:] - bounds[:-1])
    yield from _rows(columns, bounds)


def _rows(columns: Iterable[_Column], bounds: Int) -> Iterator[tuple[Int, Bytes]]:
    """The form of some columns of equal length: one part of fixed width, then the variable values."""
    numbers: list[tuple[np.dtype[Any], Any]] = []
    """The form of each number, and its values: one per row, the one that all rows have, or None where that is zero."""
    variable: list[tuple[Int, Bytes]] = []
    lists: list[tuple[pa.Array, Int]] = []
    pending = list(columns)[::-1]
    while pending:
        array, nullable = pending.pop()
        layout, missing = layout_of(array.type), array.null_count
        absent = missing == len(array)
        if nullable:
            numbers.append((_BYTE, None if absent else valid(array) if missing else 1))
        if layout == "struct":
            pending.extend((child, True) for child in array.flatten()[::-1])
        elif absent:
            numbers.extend((form, None) for form in number_forms(array.type))
        elif layout == "list":
            counts, child = items(array)
            numbers.append((_COUNT, counts))
            lists.append((child, np.append(0, np.cumsum(counts))[bounds]))
        elif layout == "variable":
            length, offsets, data = _values(array)
            numbers.append((_BYTE, length))
            variable.append((offsets[bounds], data))
        else:
            values = fixed(array)
            numbers.append((values.dtype, values))
    record, names = _record(tuple([form for form, _ in numbers]))
    matrix = np.zeros(bounds[-1], record)
    for name, (_, values) in zip(names, numbers, strict=True):
        if values is not None:
            matrix[name] = values
    yield record.itemsize * bounds, as_bytes(matrix) if record.itemsize else np.empty(0, np.uint8)
    yield from variable
    for child, ends in lists:
        if len(child):
            yield from _rows([(child, True)], ends)


@lru_cache(maxsize=1024)
def _record(forms: tuple[np.dtype[np.generic], ...]) -> tuple[np.dtype[np.void], tuple[str, ...]]:
    """Numbers side by side, without gaps, and what they are called."""
    record = np.dtype([(f"c{place}", form) for place, form in enumerate(forms)])
    return record, record.names or ()


def _values(array: pa.Array) -> tuple[Int, Int, Bytes]:
    """Lengths of strings or binary values, and offsets and bytes of their forms: long ones are replaced by their SHA-256."""
    offsets, data = offsets_and_bytes(array)
    length = offsets[1:] - offsets[:-1]
    if data.size > LONG and length.max() > LONG:
        long = length > LONG
        values = filled(array, "").cast(pa.large_binary())
        encoded = values.filter(pa.array(long)).dictionary_encode()
        hashed = pa.array([hashlib.sha256(v).digest() for v in encoded.dictionary.to_pylist()], pa.large_binary())
        offsets, data = offsets_and_bytes(pc.replace_with_mask(values, pa.array(long), hashed.take(encoded.indices)))
        length = np.minimum(length, LONG + 1)
    return length, offsets, data
