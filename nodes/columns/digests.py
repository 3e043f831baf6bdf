"""Identity of tables: SHA-256 over a canonical logical form, never over file bytes.

Reads: any declared table. Gives: one digest per table, or one per request over several.

The form of some tables is their headings (names, types, nullability), their numbers of rows, then their columns, those of
one type together, by its name: validity, then numbers by bit pattern, or lengths and bytes,
or numbers of items and the form of the items. The digest of a request is that of tables of its rows. Equal tables have equal forms however they are chunked, sliced
or dictionary-encoded, and whatever bytes are under nulls; null differs from empty, 1 from "1". Free text enters as its
SHA-256, so that a record can be verified after a text was erased.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
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
    as_bytes,
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
from .keys import positions
from .ragged import expand_ranges, starts_of

FORM = "scoped-retrieval/logical-form/5"
"""Version of the canonical form; every digest starts with it."""

_STRING, _STRINGS = pa.string(), pa.list_(pa.string())

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


def text_sha256(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """SHA-256 of each text as UTF-8, 64 hex digits; null where the text is null. Each distinct text is hashed once."""
    return hashed([plain(texts)])[0][0]


def is_stored(type_: pa.DataType) -> bool:
    """Whether a free-text column of this type contains hashes, as stored in a run, rather than texts."""
    return pa.types.is_string(type_.value_type if is_list(type_) else type_)


def stored_form(table: pa.Table, declared: Table) -> pa.Table:
    """The table as a run stores it: free-text columns contain SHA-256 hex digits, type string, in place of texts.

    A table that is already in stored form is returned unchanged. The stored form is cached while the table is in use:
    the line digests it, and the run stores it.

    Raises:
        SchemaError: it is neither the declared table nor its stored form.
    """
    if not free_texts(declared) or table.schema.equals(declared.widened(declared.stored_schema, table.column_names)):
        return table
    return _storing(declared)(table).table


def texts_in(table: pa.Table, declared: Table) -> dict[str, bytes]:
    """The free texts of a declared table, UTF-8, by SHA-256."""
    return _storing(declared)(table).texts if free_texts(declared) else {}


class _Stored(NamedTuple):
    """A table in stored form, its columns, and its texts."""

    table: pa.Table
    columns: list[pa.Array]
    texts: dict[str, bytes]


@lru_cache(maxsize=256)
def _storing(declared: Table) -> OfTable[_Stored]:
    """The stored form of a table."""

    def stored(table: pa.Table) -> _Stored:
        columns, places = columns_of(declared.check(table)), free_texts(declared)
        found, texts = hashed([columns[place] for place in places])
        for place, column in zip(places, found, strict=True):
            columns[place] = column
        stored_schema = declared.widened(declared.stored_schema, table.column_names)
        return _Stored(pa.Table.from_arrays(columns, schema=stored_schema), columns, texts)

    return OfTable(stored)


def hashed(columns: Sequence[pa.Array]) -> tuple[list[pa.Array], dict[str, bytes]]:
    """Free-text columns in stored form, SHA-256 of each text or of each item of each list, and the texts by hash; null
    stays null.
    """
    given = [(is_list(column.type), column.to_pylist()) for column in columns]
    every = {text for lists, values in given for one in values for text in ((one or ()) if lists else (one,))}
    texts = {text: text.encode() for text in every if text is not None}
    known = {None: None} | {text: hashlib.sha256(data).hexdigest() for text, data in texts.items()}
    columns_of_hashes = [
        [one and [known[text] for text in one] for one in values] if lists else [known[one] for one in values]
        for lists, values in given
    ]
    stored = pa.struct([pa.field(str(place), _STRINGS if lists else _STRING) for place, (lists, _) in enumerate(given)])
    found = pa.array([*zip(*columns_of_hashes, strict=True)], stored).flatten()
    return found, {sha256: texts[text] for text, sha256 in known.items() if text is not None and sha256 is not None}


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
    if declared is not None and table.schema.equals(declared.schema):
        heading, places, groups = _declared_form(declared)
        if not table.num_rows:
            return heading, []
        given = _storing(declared)(table).columns if free_texts(declared) else columns_of(table)
    else:
        given, fields = _columns_by_name(table, declared)
        heading, places, groups = _form_of("" if declared is None else declared.name, fields)
    for place, name in places:
        if given[place].null_count:
            raise SchemaError(f"Expected a value in every row, got nulls - at {name}")
    return heading, [(type_, [given[place] for place in group]) for type_, group in groups]


def _columns_by_name(table: pa.Table, declared: Table | None) -> tuple[list[pa.Array], list[Field]]:
    """The digested columns of a table with other columns or another order, and what they are."""
    names = table.column_names
    if len(set(names)) < len(names):
        raise SchemaError(f"Expected names of their own, got {', '.join(names)} - at columns")
    if declared is None:
        arrays = [plain(column) for column in table.columns]
        return arrays, [(place, name, arrays[place].type, True) for place, name in enumerate(names)]
    arrays, fields = [], []
    for name, column in declared.columns.items():
        if column.digest and name not in names:
            raise SchemaError(f"Expected column {name}, got none - at {declared.name}")
        if column.digest:
            array = plain(table[name])
            arrays.append(hashed([array])[0][0] if column.free_text and not is_stored(array.type) else array)
            fields.append((len(fields), name, arrays[-1].type, column.nullable))
    for field in declared.widened(pa.schema([]), names):
        arrays.append(plain(table[field.name]))
        fields.append((len(fields), field.name, arrays[-1].type, field.nullable))
    return arrays, fields


Field: TypeAlias = tuple[int, str, pa.DataType, bool]
"""A digested column: its position among the arrays, its name, type and nullability."""
Form: TypeAlias = tuple[bytes, list[tuple[int, str]], list[tuple[str, list[int]]]]
"""A heading, the positions and names of the required columns, and the positions of the columns of each type."""


@lru_cache(maxsize=256)
def _declared_form(declared: Table) -> Form:
    stored = declared.stored_schema
    columns = enumerate(declared.columns.items())
    fields = [(place, name, stored.field(place).type, c.nullable) for place, (name, c) in columns if c.digest]
    return _form_of(declared.name, fields)


def _form_of(name: str, fields: Sequence[Field]) -> Form:
    typed: dict[str, list[int]] = {}
    for place, _, type_, _ in fields:
        typed.setdefault(type_name(type_), []).append(place)
    lines = [f"{column}:{type_name(type_)}{'?' * nullable}" for _, column, type_, nullable in fields]
    text = "\n".join([FORM, name, str(len(lines)), *lines])
    required = [(place, f"{name}.{column}") for place, column, _, nullable in fields if not nullable]
    return len(text).to_bytes(4, "little") + text.encode(), required, list(typed.items())


Part: TypeAlias = tuple[list[int], int, bytes | memoryview]
"""The bounds of each request's values, the bytes of one value, and the values."""


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
        pieces = [data[ends[n] * width : ends[n + 1] * width] for ends, width, data in parts]
        own.update(b"".join([rows.tobytes(), *pieces]))
        found.append(own.digest())
    return found


def _add_parts(parts: list[Part], array: pa.Array, bounds: NDArray[np.integer]) -> None:
    """Add the form of values of one type; `bounds` are those of each request."""
    rows, missing, kind = len(array), array.null_count, array.type.id
    ends = bounds.tolist()
    parts.append((ends, 1, valid(array).data if 0 < missing < rows else (b"\0" if missing else b"\1") * rows))
    if kind in WIDTHS:
        parts.append((ends, WIDTHS[kind], as_bytes(fixed(array)).data))
    elif kind in OFFSETS:
        places, data = raw_offsets(array)
        parts += [(ends, 4, _lengths(places)), (places[bounds].tolist(), 1, data)]
    elif is_list(array.type):
        places, child = items(array)
        parts.append((ends, 4, _lengths(places)))
        if len(child):
            _add_parts(parts, child, places[bounds])
    elif layout_of(array.type) == "struct":
        for child in array.flatten():
            _add_parts(parts, child, bounds)
    else:
        number_form(array.type)


def _lengths(places: NDArray[np.integer]) -> memoryview:
    return as_bytes((places[1:] - places[:-1]).astype("<u4")).data
