"""Identity of tables: SHA-256 over a canonical logical form, never over file bytes.

Reads: any declared table. Gives: one digest per table, or one per request over several.

The form of some tables is their headings (names, types, nullability), their numbers of rows, then their columns, those of
one type together, by its name: validity, then numbers by bit pattern, or lengths and bytes, or numbers of items and the
form of the items. The digest of a request is that of tables of its rows. Equal tables have equal forms however they are
chunked or sliced, and whatever bytes are under nulls; null differs from empty, 1 from "1". Free text enters as its
SHA-256, so that a record can be verified after a text was erased.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, chain
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import SchemaError
from ..schema import Table
from .array_bytes import (
    OFFSETS,
    WIDTHS,
    Int,
    columns_of,
    fixed,
    is_list,
    items,
    layout_of,
    number_form,
    plain,
    raw_offsets,
    type_name,
    valid,
)
from .kept import OfTable
from .keys import listed, positions
from .ragged import expand_ranges, starts_of

FORM = "scoped-retrieval/logical-form/5"
"""Version of the canonical form; every digest starts with it."""

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


def text_sha256(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """SHA-256 of each text as UTF-8, 64 hex digits; null where the text is null. Each distinct text is hashed once."""
    return _hashed([[plain(texts)]])[0][0][0]


def stored_form(table: pa.Table, declared: Table) -> pa.Table:
    """The table as a run stores it: free-text columns contain SHA-256 hex digits, type string, in place of texts.

    A table that is already in stored form is returned unchanged. The stored form is cached while the table is in use:
    the line digests it, and the run stores it.

    Raises:
        SchemaError: it is neither the declared table nor its stored form.
    """
    return _stored(table, declared).table


def texts_in(table: pa.Table, declared: Table) -> dict[str, bytes]:
    """The free texts of a declared table, UTF-8, by SHA-256."""
    return _stored(table, declared).texts


class _Stored(NamedTuple):
    """A table in stored form, its columns, and its texts."""

    table: pa.Table
    columns: list[pa.Array]
    texts: dict[str, bytes]


def _stored(table: pa.Table, declared: Table) -> _Stored:
    storing = _storing(declared)
    if storing is None or table.schema.equals(declared.widened(declared.stored_schema, table.column_names)):
        return _Stored(table, columns_of(table), {})
    return storing(table)


@lru_cache(maxsize=256)
def _storing(declared: Table) -> OfTable[_Stored] | None:
    """The stored form of a table; None if it has no texts."""
    typed = defaultdict[str, list[int]](list)
    for place, column in enumerate(declared.columns.values()):
        if column.free_text:
            typed[type_name(column.type)].append(place)

    def stored(table: pa.Table) -> _Stored:
        columns = columns_of(declared.check(table))
        found, texts = _hashed([[columns[place] for place in places] for places in typed.values()])
        for places, hashes in zip(typed.values(), found, strict=True):
            for place, column in zip(places, hashes, strict=True):
                columns[place] = column
        stored_schema = declared.widened(declared.stored_schema, table.column_names)
        return _Stored(pa.Table.from_arrays(columns, schema=stored_schema), columns, texts)

    return OfTable(stored) if typed else None


def _hashed(columns: Sequence[Sequence[pa.Array]]) -> tuple[list[list[pa.Array]], dict[str, bytes]]:
    """Texts, or lists of them, by their SHA-256, and the texts by hash; null stays null. Columns of one type go together."""
    every = [pa.concat_arrays(arrays) for arrays in columns]
    given = [innermost(array).to_pylist() for array in every]
    texts = [*{*chain.from_iterable(given)} - {None}]
    data = [*map(str.encode, texts)]
    hashes = [hash_.hexdigest() for hash_ in map(hashlib.sha256, data)]
    known = {None: None, **dict(zip(texts, hashes, strict=True))}
    found = []
    for array, values, arrays in zip(every, given, columns, strict=True):
        stored, ends = (
            relisted(array, pa.array([known[text] for text in values], pa.string())),
            accumulate(map(len, arrays)),
        )
        found.append([stored.slice(end - len(one), len(one)) for one, end in zip(arrays, ends, strict=True)])
    return found, dict(zip(hashes, data, strict=True))


def innermost(array: pa.Array) -> pa.Array:
    """The values in lists, however deep, in order; those of any other array."""
    return innermost(listed(array)[1]) if is_list(array.type) else array


def relisted(lists: pa.Array, values: pa.Array) -> pa.Array:
    """Other values in the lists of `innermost`."""
    if not is_list(lists.type):
        return values
    counts, inner = listed(lists)
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(pa.array(starts_of(counts), pa.int32()), relisted(inner, values), mask=mask)


def table_digest(table: pa.Table, declared: Table | None = None) -> str:
    """SHA-256 of a table's logical form, 64 hex digits.

    With `declared`, envelope columns are left out and free text enters by its hash; without, every column counts.

    Raises:
        SchemaError: a column is missing, has nulls although it is required, or has a type without a canonical form.
    """
    return _digests([_form(table, declared)], np.array([[0, table.num_rows]]))[0].hex()


def digests_by_request(
    tables: Sequence[tuple[pa.Table, Table]], request_ids: pa.Array, prefix: str = ""
) -> list[bytes]:
    """The digest of each request's rows in some tables, 32 bytes each, in the order of `request_ids`; rows keep their
    table order.

    A request without rows has the digest of empty tables. Rows of other requests are ignored.
    """
    starts = starts_of(np.array([table.num_rows for table, _ in tables], np.int64))
    # A row's request as a number of its own in each table; rows of other requests come before those of the table.
    width = len(request_ids) + 1
    owner = positions(pa.concat_arrays([plain(table["request_id"]) for table, _ in tables]), request_ids)
    owner += np.arange(len(tables)).repeat(starts[1:] - starts[:-1]) * width
    order = owner.argsort(kind="stable") if (owner[1:] < owner[:-1]).any() else None
    bounds = (owner if order is None else owner[order]).searchsorted(np.arange(len(tables) * width))
    bounds = bounds.reshape(len(tables), width)
    forms = []
    for (table, declared), start, end, own in zip(tables, starts.tolist(), starts[1:].tolist(), bounds, strict=False):
        heading, groups = _form(table, declared)
        if order is not None or own[0] > start or own[-1] < end:
            rows = pa.array((np.arange(starts[-1]) if order is None else order)[own[0] : own[-1]] - start)
            groups = [(type_, [array.take(rows) for array in arrays]) for type_, arrays in groups]
        forms.append((heading, groups))
    return _digests(forms, bounds - bounds[:, :1], prefix)


def named_digest(values: dict[str, str]) -> str:
    """SHA-256 over names and values, in order of names: for settings and provenance."""
    return table_digest(pa.table({"name": sorted(values), "value": [values[name] for name in sorted(values)]}))


Group: TypeAlias = tuple[str, list[pa.Array]]
"""The name of a type, and the columns that have it."""
TableForm: TypeAlias = tuple[bytes, list[Group]]
"""A heading and the columns below it."""


def _form(table: pa.Table, declared: Table | None) -> TableForm:
    """The heading, and the digested columns in stored form by type; no columns if a declared table is empty."""
    if declared is None:
        if len({*table.column_names}) < table.num_columns:
            raise SchemaError(f"Expected names of their own, got {', '.join(table.column_names)} - at columns")
        heading, _, groups = _form_of("", range(table.num_columns), table.schema.remove_metadata())
        return heading, [(type_, [plain(table[place]) for place in group]) for type_, group in groups]
    heading, required, groups = _declared_form(declared, tuple(table.column_names))
    if not table.num_rows:
        return heading, []
    given = _stored(table, declared).columns
    for place, name in required:
        if given[place].null_count:
            raise SchemaError(f"Expected a value in every row, got nulls - at {name}")
    return heading, [(type_, [given[place] for place in group]) for type_, group in groups]


Form: TypeAlias = tuple[bytes, list[tuple[int, str]], list[tuple[str, list[int]]]]
"""A heading, the positions and names of the required columns, and the positions of the columns of each type."""


@lru_cache(maxsize=256)
def _declared_form(declared: Table, names: tuple[str, ...]) -> Form:
    schema = declared.widened(declared.stored_schema, names)
    if schema.names != [*names]:
        raise SchemaError(f"Expected columns {', '.join(schema.names)}, got {', '.join(names)} - at {declared.name}")
    digested = [name not in declared.columns or declared.columns[name].digest for name in names]
    return _form_of(declared.name, [place for place, counts in enumerate(digested) if counts], schema)


def _form_of(name: str, places: Sequence[int], schema: pa.Schema) -> Form:
    """The form of the columns at some places of a schema."""
    typed: dict[str, list[int]] = {}
    fields = [(place, schema.field(place)) for place in places]
    for place, field in fields:
        typed.setdefault(type_name(field.type), []).append(place)
    lines = [f"{field.name}:{type_name(field.type)}{'?' * field.nullable}" for _, field in fields]
    text = "\n".join([FORM, name, str(len(lines)), *lines])
    required = [(place, f"{name}.{field.name}") for place, field in fields if not field.nullable]
    return len(text).to_bytes(4, "little") + text.encode(), required, list(typed.items())


Part: TypeAlias = tuple[list[int], bytes | memoryview]
"""Where the bytes of each request begin and end, and the bytes."""


MANY = 1 << 20
"""Values of one type from which their bytes may need offsets of 64 bits."""


def _digests(forms: Sequence[TableForm], bounds: Int, prefix: str = "") -> list[bytes]:
    """The digest of each range of rows of some tables; table `t` has the ranges between `bounds[t]`, which are all."""
    start = hashlib.sha256(b"".join([prefix.encode(), *(heading for heading, _ in forms)]))
    typed = defaultdict[str, list[tuple[pa.Array, Int]]](list)
    for (_, groups), own in zip(forms, bounds, strict=True):
        for type_, arrays in groups if own[-1] > own[0] else ():
            typed[type_] += [(array, own) for array in arrays]
    parts: list[Part] = []
    for type_, columns in sorted(typed.items()):
        arrays, ends = [array for array, _ in columns], np.array([own for _, own in columns])
        starts = starts_of(ends[:, -1])
        wide = pa.large_string() if type_ == "string" and starts[-1] > MANY else arrays[0].type
        every = pa.concat_arrays([array if array.type == wide else array.cast(wide) for array in arrays])
        if ends.shape[1] > 2:  # request by request, then column by column: the values of a request lie side by side
            ranges = ends + starts[:-1, None]
            every = every.take(pa.array(expand_ranges(ranges[:, :-1].T.ravel(), np.diff(ranges).T.ravel())))
        _add_parts(parts, every, ends.sum(axis=0))
    counts, found = np.diff(bounds).T.astype("<u8"), []
    for n, rows in enumerate(counts):
        own = start.copy()
        pieces = [data[ends[n] : ends[n + 1]] for ends, data in parts]
        own.update(b"".join([rows.tobytes(), *pieces]))
        found.append(own.digest())
    return found


def _add_parts(parts: list[Part], array: pa.Array, bounds: NDArray[np.integer]) -> None:
    """Add the form of values of one type; `bounds` are those of each request."""
    rows, missing, kind = len(array), array.null_count, array.type.id
    parts.append((bounds.tolist(), valid(array).data if 0 < missing < rows else (b"\0" if missing else b"\1") * rows))
    if kind in WIDTHS:
        parts.append(((bounds * WIDTHS[kind]).tolist(), fixed(array).tobytes()))
    elif kind in OFFSETS:
        places, data = raw_offsets(array)
        parts += [_lengths(places, bounds), (places[bounds].tolist(), data)]
    elif is_list(array.type):
        places, child = items(array)
        parts.append(_lengths(places, bounds))
        if len(child):
            _add_parts(parts, child, places[bounds])
    elif layout_of(array.type) == "struct":
        for child in array.flatten():
            _add_parts(parts, child, bounds)
    else:
        number_form(array.type)


def _lengths(places: NDArray[np.integer], bounds: NDArray[np.integer]) -> Part:
    return (bounds * 4).tolist(), (places[1:] - places[:-1]).astype("<u4").tobytes()
