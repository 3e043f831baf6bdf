"""Identity of tables: SHA-256 over a canonical logical form, never over file bytes.

Reads: any declared table. Gives: one digest per table, or one per request of a table.

The form of a table is its heading (names, types, nullability), the number of rows, then row by row all fixed-width data
(validity of nullable columns, numbers by bit pattern, lengths), then the variable values column by column; the items of
lists follow in the same form. A value longer than `LONG` is replaced by its SHA-256, so that a length takes one byte.
The digest of a request is that of a table of its rows. Equal tables have equal forms however they are chunked, sliced
or dictionary-encoded, and whatever bytes are under nulls; null differs from empty, 1 from "1". Free text enters as its
SHA-256, so that a record can be verified after a text was erased.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SchemaError
from ..schema import Column, Table
from .array_bytes import Int, as_bytes, columns_of, is_list, items, plain, type_name
from .kept import OfTable
from .keys import FEW_ROWS, distinct, positions
from .row_layouts import Part, RowLayout, parts_of, row_layout

FORM = "scoped-retrieval/logical-form/3"
"""Version of the canonical form; every digest starts with it."""

_STRING, _STRINGS = pa.string(), pa.list_(pa.string())

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


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
    """Whether a free-text column of this type contains hashes, as stored in a run, rather than texts."""
    return pa.types.is_string(type_.value_type if is_list(type_) else type_)


def hashed(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A free-text column in stored form: SHA-256 of each text, or of each item of each list; null stays null."""
    array = plain(column)
    if array.null_count == len(array):
        return pa.nulls(len(array), _STRINGS if is_list(array.type) else _STRING)
    if not is_list(array.type):
        return text_sha256(array)
    ends, texts = items(array)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), text_sha256(texts), mask=pc.is_null(array))


def stored_form(table: pa.Table, declared: Table) -> pa.Table:
    """The table as a run stores it: free-text columns contain SHA-256 hex digits, type string, in place of texts.

    A table that is already in stored form is returned unchanged. The stored form is cached while the table is in use:
    the line digests it, and the run stores it.

    Raises:
        SchemaError: it is neither the declared table nor its stored form.
    """
    if not free_texts(declared) or table.schema.equals(declared.widened(declared.stored_schema, table.column_names)):
        return table
    return _storing(declared)(table)[0]


@lru_cache(maxsize=256)
def _storing(declared: Table) -> OfTable[tuple[pa.Table, list[pa.Array]]]:
    """The stored form of a table, and its columns."""
    places = free_texts(declared)

    def stored(table: pa.Table) -> tuple[pa.Table, list[pa.Array]]:
        columns = columns_of(declared.check(table))
        for place in places:
            columns[place] = hashed(columns[place])
        stored_schema = declared.widened(declared.stored_schema, table.column_names)
        return pa.Table.from_arrays(columns, schema=stored_schema), columns

    return OfTable(stored)


@lru_cache(maxsize=256)
def free_texts(declared: Table) -> tuple[int, ...]:
    """The positions of the free-text columns."""
    return tuple(place for place, column in enumerate(declared.columns.values()) if column.free_text)


def table_digest(table: pa.Table, declared: Table | None = None) -> str:
    """SHA-256 of a table's logical form, 64 hex digits.

    With `declared`, envelope columns are left out and free text enters by its hash; without, every column counts.

    Raises:
        SchemaError: a column is missing, has nulls although it is required, or has a type without a canonical form.
    """
    heading, columns, layout = _form(table, declared)
    hasher = hashlib.sha256(heading)
    for (start, end), data in _parts(columns, layout, np.array([0, table.num_rows])):
        hasher.update(data[start:end])
    return hasher.hexdigest()


def digests_by_request(table: pa.Table, declared: Table, request_ids: pa.Array) -> list[bytes]:
    """The digest of each request's rows, 32 bytes each, in the order of `request_ids`; rows keep their table order.

    A request without rows has the digest of an empty table. Rows of other requests are ignored.
    """
    heading, columns, layout = _form(table, declared)
    hasher = hashlib.sha256(heading)
    if not table.num_rows:
        hasher.update(bytes(8))
        return [hasher.digest()] * len(request_ids)
    position = positions(table["request_id"], request_ids)
    if position[0] < 0 or (position[1:] < position[:-1]).any():
        order = np.argsort(position, kind="stable")
        order = order[position[order] >= 0]
        rows, position = pa.array(order), position[order]
        columns = [array.take(rows) for array in columns]
    bounds = position.searchsorted(np.arange(len(request_ids) + 1))
    parts = _parts(columns, layout, bounds)
    digests = []
    for number in range(len(request_ids)):
        own = hasher.copy()
        own.update(b"".join([data[ends[number] : ends[number + 1]] for ends, data in parts]))
        digests.append(own.digest())
    return digests


def part_digest(table: pa.Table, declared: Table, known: Mapping[str, bytes] | None = None) -> str:
    """The logical digest of a stored part, 64 hex digits: over its sorted request ids and the digests of their rows.

    Args:
        table: all rows of its requests; a table without request ids has the digest of `table_digest`.
        declared: its declaration.
        known: digests by request as `digests_by_request` returns them, if the caller already has them.
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
    """The bytes before a request's digest in the digest of a part; all parts of a shard have the same requests."""
    data = request_id.encode()
    return len(data).to_bytes(4, "little") + data


def combined_digests(parts: Sequence[tuple[str, Sequence[bytes]]], prefix: str) -> list[str]:
    """For each request, SHA-256 over `prefix` and its digest in every part, 64 hex digits. Parts are sorted by name."""
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


def _form(table: pa.Table, declared: Table | None) -> tuple[bytes, list[pa.Array], RowLayout]:
    """The heading, the digested columns in stored form, and their layout; no columns if a declared table is empty."""
    if declared is not None and table.schema.equals(declared.schema):
        places, heading, layout = _declared_form(declared)
        if not table.num_rows:
            return heading, [], layout
        given = _storing(declared)(table)[1] if free_texts(declared) else columns_of(table)
        arrays = [given[place] for place in places]
    else:
        named = _columns_by_name(table, declared)
        arrays = [array for _, array, _ in named]
        types = [(name, array.type, nullable) for name, array, nullable in named]
        heading, layout = _form_of("" if declared is None else declared.name, types)
    for place, name in () if declared is None else _required(declared):
        if arrays[place].null_count:
            raise SchemaError(f"Expected a value in every row, got nulls - at {name}")
    return heading, arrays, layout


def _columns_by_name(table: pa.Table, declared: Table | None) -> list[tuple[str, pa.Array, bool]]:
    """The digested columns of a table with other columns or another order: name, values, nullability."""
    names = table.column_names
    if len(set(names)) < len(names):
        raise SchemaError(f"Expected names of their own, got {', '.join(names)} - at columns")
    if declared is None:
        return [(name, plain(table[name]), True) for name in names]
    columns = []
    for _, name, column in _covered(declared):
        if name not in names:
            raise SchemaError(f"Expected column {name}, got none - at {declared.name}")
        array = plain(table[name])
        columns.append(
            (name, hashed(array) if column.free_text and not is_stored(array.type) else array, column.nullable)
        )
    further = declared.widened(pa.schema([]), names)
    return columns + [(field.name, plain(table[field.name]), field.nullable) for field in further]


def _covered(declared: Table) -> list[tuple[int, str, Column]]:
    """The digested columns: position, name and declaration."""
    columns = enumerate(declared.columns.items())
    return [(place, name, column) for place, (name, column) in columns if column.digest]


@lru_cache(maxsize=256)
def _required(declared: Table) -> tuple[tuple[int, str], ...]:
    """The digested columns that are required: position among the digested columns, and name."""
    covered = enumerate(_covered(declared))
    return tuple((place, f"{declared.name}.{name}") for place, (_, name, column) in covered if not column.nullable)


@lru_cache(maxsize=256)
def _declared_form(declared: Table) -> tuple[tuple[int, ...], bytes, RowLayout]:
    """The positions of the digested columns, the heading and the layout."""
    covered, stored = _covered(declared), declared.stored_schema
    columns = [(name, stored.field(place).type, column.nullable) for place, name, column in covered]
    return tuple(place for place, *_ in covered), *_form_of(declared.name, columns)


def _form_of(name: str, columns: Sequence[tuple[str, pa.DataType, bool]]) -> tuple[bytes, RowLayout]:
    """The heading of a table, and the layout of its rows."""
    lines = [f"{column}:{type_name(type_)}{'?' * nullable}" for column, type_, nullable in columns]
    text = "\n".join([FORM, name, str(len(lines)), *lines])
    heading = len(text).to_bytes(4, "little") + text.encode()
    return heading, row_layout((type_, nullable) for _, type_, nullable in columns)


def _parts(columns: Sequence[pa.Array], layout: RowLayout, bounds: Int) -> list[Part]:
    """The form below the heading, part by part, for the ranges of rows between some bounds."""
    parts = parts_of(columns, layout, [bounds])[0] if bounds[-1] else []
    return [((np.arange(len(bounds)) * 8).tolist(), as_bytes(bounds[1:] - bounds[:-1]).data), *parts]
