"""The formats of runs: the versions that this one reads, and the conversion of older tables to the current schema.

An older table lacks columns that were added since, may have columns that were dropped, and contains some free text
inline: up to version 2 sections, titles and locators, up to version 6 paths and source references. `adapted` fills,
drops and hashes, so that every reader sees the current schema; `inline_texts` returns the inline texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.digests import text_sha256
from ...nodes.columns.keys import flat
from ...nodes.errors import StoreError, kind_of
from ...nodes.tables import TABLES
from .parts import TEXTS, stored_schema, values_of

__all__ = ["FORMAT", "OLDER", "adapted", "check_format", "inline_texts", "version_of"]

_FAMILY = "scoped-retrieval/run/"
VERSION = 9
"""Raised with every change of a stored column, so that earlier runs are read as older ones."""
FORMAT = f"{_FAMILY}{VERSION}"
"""The format of runs as they are written."""
UPGRADED = f"v{VERSION}"
"""Folder of the parts of a run that was upgraded to this version."""
BETWEEN = tuple(f"v{number}" for number in range(6, VERSION))
"""The same for upgrades to earlier versions; version 6 was the first with one."""
OLDER = tuple(f"{_FAMILY}{number}" for number in range(1, VERSION))
"""Older versions that are read and that `runs upgrade` migrates."""
_SHA256 = "^[0-9a-f]{64}$"
_RENAMED = {("snapshots", "selected_rows"): "selected"}
"""Columns that have another name in an older version."""
_WITHHELD = {("conditions", "audience"): "audit"}
"""Values of columns that an older version lacks, where an empty value would show more."""


class UnknownVersionError(StoreError):
    """A run of an unknown version."""


def version_of(manifest: Mapping[str, Any]) -> str | None:
    """The format that a manifest names; None if it names none."""
    found = manifest.get("format")
    return found if isinstance(found, str) else None


def check_format(manifest: Any, at: str) -> str:
    """The format of a manifest.

    Raises:
        UnknownVersionError: this version does not read it.
        StoreError: the manifest names none.
    """
    if not isinstance(manifest, Mapping):
        raise StoreError(f"Expected an object, got {kind_of(manifest)} - at {at}")
    found = version_of(manifest)
    if found is None:
        raise StoreError(f"Expected format {FORMAT}, got none - at {at}")
    if found != FORMAT and found not in OLDER:
        hint = f"this version reads {OLDER[0]} to {FORMAT}; a later one wrote this run, so read it with that one."
        raise UnknownVersionError(f"Expected format {FORMAT}, got {found} - at {at}", hint=hint)
    return found


def adapted(name: str, table: pa.Table) -> pa.Table:
    """A table of an older version in the current stored schema."""
    schema = stored_schema(name, table.column_names)
    free = set() if name == "texts" else set(TABLES[name].names(free_text=True))
    held = dict(zip(table.column_names, table.columns, strict=True))
    columns = []
    for field in schema:
        column = held.get(field.name if field.name in held else _RENAMED.get((name, field.name), ""))
        if column is None:
            column = _absent(name, field, table.num_rows)
        elif field.name in free:
            column = _hashed(column)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, schema=schema)


def inline_texts(name: str, table: pa.Table) -> pa.Table:
    """The inline free texts of a table of an older version, as rows of the texts of a run."""
    if name == "texts":
        return TEXTS.empty_table()
    found = [values_of(table[c]).drop_null() for c in TABLES[name].names(free_text=True) if c in table.column_names]
    values = [value.filter(pc.invert(pc.match_substring_regex(value, _SHA256))).cast(pa.string()) for value in found]
    text = pc.unique(pa.concat_arrays(values)) if values else pa.array([], pa.string())
    vector = pa.nulls(len(text), TEXTS.field("vector").type)
    return pa.table([text_sha256(text), text.cast(pa.large_string()), vector], schema=TEXTS)


def _absent(name: str, field: pa.Field, rows: int) -> pa.Array:
    if (name, field.name) in _WITHHELD:
        return pa.repeat(pa.scalar(_WITHHELD[name, field.name], field.type), rows)
    if field.nullable:
        return pa.nulls(rows, field.type)
    if pa.types.is_list(field.type):
        return pa.ListArray.from_arrays(pa.array([0] * (rows + 1), pa.int32()), pa.array([], field.type.value_type))
    empty: Any = "" if pa.types.is_string(field.type) or pa.types.is_large_string(field.type) else 0
    if pa.types.is_boolean(field.type):
        empty = False
    return pa.repeat(pa.scalar(empty).cast(field.type), rows)


def _hashed(column: pa.ChunkedArray) -> pa.Array:
    """The column with each text replaced by its SHA-256; values that look like one are kept."""
    array = flat(column)
    values = flat(values_of(column)).cast(pa.string())
    known = pc.fill_null(pc.match_substring_regex(values, _SHA256), False)
    hashed = pc.if_else(known, values, text_sha256(values.cast(pa.large_string())))
    hashed = pc.if_else(values.is_valid(), hashed, pa.scalar(None, pa.string()))
    if not pa.types.is_list(array.type):
        return hashed
    counts = pc.fill_null(pc.list_value_length(array), 0)
    ends = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(counts).cast(pa.int32())])
    return pa.ListArray.from_arrays(ends, hashed, mask=pc.is_null(array))
