"""Imported rows as evidence: identity computed, rows of one text and occurrence folded into one with its placements, zones
made effective: a row is at least as sensitive as the rows that contain it.

Note: a parent is named by evidence id or by entity, and looked up only among rows of the same project that belong to the same
user or are shared. An evidence id is an unsalted digest of the text, so a lookup across owners would confirm a guess about
another user's text. A shared row takes no zone from a user's row: all users see it, and it must not change with the rows of
one of them. Zones are resolved at import. A parent that becomes more sensitive later raises its parts when they are imported
again; a lower zone is not inherited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.digests import text_sha256
from ...nodes.columns.keys import flat, positions
from ...nodes.errors import SchemaError
from ...nodes.tables import EVIDENCE, IMPORT_ROWS, PLACEMENTS
from ...nodes.vocabulary import ZONES
from .identity import evidence_ids, row_digests, row_keys
from .parts import STORED_EVIDENCE

PLACEMENT_LIST = "placements"
"""An optional column of import rows: all placements of a row, instead of the one in its own columns."""
_PLACEMENT = pa.struct([field for field in PLACEMENTS.schema if field.name not in ("row", "evidence_id")])
PLACE = ("row", "version", "line_start", "line_end", "byte_start", "byte_end")
"""The columns besides time that distinguish the placements of a row."""
_BY_PATH = ("owner_project", "owner_user", "source_id", "path", "line_start", "evidence_id")


@dataclass(frozen=True)
class Incoming:
    """The rows of an import: `STORED_EVIDENCE` (`length` still 0) and PLACEMENTS, in EVIDENCE order."""

    evidence: pa.Table
    placements: pa.Table


def incoming(rows: pa.Table, now: datetime, stored: pa.Table | None = None) -> Incoming:
    """Fold import rows (normalized and redacted, see IMPORT_ROWS) into evidence and placements (`PLACEMENT_LIST`).

    `stored` are the stored rows that may be parents, whose zones are inherited: `zones.FAMILY`.

    If rows with the same evidence id differ in anything but time and place, the last recorded one wins.

    Raises:
        SchemaError: a column has the wrong type, or a required value is missing.
    """
    lists = None
    if PLACEMENT_LIST in rows.column_names:
        lists, rows = rows[PLACEMENT_LIST].combine_chunks(), rows.drop_columns([PLACEMENT_LIST])
    rows = _complete(rows, now)
    by_id = _order(rows, "evidence_id", "recorded_time", "version", "line_start", "line_end")
    ids = rows["evidence_id"].take(pa.array(by_id)).combine_chunks().dictionary_encode().indices.to_numpy()
    last = by_id[np.flatnonzero(np.diff(ids, append=-1))]
    by_path = _order(rows.select(_BY_PATH).take(pa.array(last)), *_BY_PATH)
    place = np.empty(len(last), dtype=np.int64)
    place[by_path] = np.arange(len(last))
    chosen = rows.take(pa.array(last[by_path])).combine_chunks()
    evidence = chosen.select(EVIDENCE.names())
    evidence = with_effective_zones(evidence, EVIDENCE.empty() if stored is None else stored)
    for name, column in (("occurrence", chosen["occurrence"]), ("row_digest", row_digests(EVIDENCE.check(evidence)))):
        evidence = evidence.append_column(STORED_EVIDENCE.field(name), column)
    evidence_row = np.empty(rows.num_rows, dtype=np.int64)
    evidence_row[by_id] = place[ids]
    placements, row = _placements(rows, lists)
    placements = placements.add_column(0, PLACEMENTS.schema.field("row"), pa.array(evidence_row[row]))
    return Incoming(evidence, PLACEMENTS.check(_distinct(placements)))


def placement_lists(columns: Mapping[str, pa.Array], starts: NDArray[np.int64]) -> pa.ListArray:
    """The column of placements from their columns, those of row `i` at `starts[i]:starts[i + 1]`."""
    arrays = [columns[field.name].cast(field.type) for field in _PLACEMENT]
    return pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), pa.StructArray.from_arrays(arrays, fields=list(_PLACEMENT))
    )


def _placements(rows: pa.Table, lists: pa.Array | None) -> tuple[pa.Table, NDArray[np.int64]]:
    """PLACEMENTS without `row`, and the row of each."""
    names = PLACEMENTS.names()[1:]
    if lists is None or lists.null_count == len(lists):
        return rows.select(names), np.arange(rows.num_rows)
    alone = np.flatnonzero(lists.is_null().to_numpy(zero_copy_only=False))
    row, flat = pc.list_parent_indices(lists), lists.flatten()
    ids = rows["evidence_id"].combine_chunks().take(row)
    columns = [ids if name == "evidence_id" else flat.field(name) for name in names]
    own = rows.select(names)
    listed = pa.Table.from_arrays(columns, schema=own.schema)
    return pa.concat_tables([own.take(pa.array(alone)), listed]), np.concatenate([alone, row.to_numpy()])


def sorted_placements(placements: pa.Table) -> pa.Table:
    """The placements by row, then time, then version."""
    order = _order(placements, "row", "recorded_time", "version", "line_start")
    return placements.take(pa.array(order)).combine_chunks()


def is_open(placements: pa.Table) -> NDArray[np.bool_]:
    """Which placements have not ended."""
    return pc.and_(placements["superseded_at"].is_null(), placements["deleted_at"].is_null()).to_numpy()


def _order(table: pa.Table, *names: str) -> NDArray[np.int64]:
    """The sort order of rows by these columns, as positions; nulls last."""
    keys = table.select(names)
    return pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names]).to_numpy().astype(np.int64)


def _complete(rows: pa.Table, now: datetime) -> pa.Table:
    """The rows with every column of EVIDENCE and PLACEMENTS but `row`."""
    columns = {name: rows[name] for name in rows.column_names}
    for name, column in {**IMPORT_ROWS.columns, "redactions": EVIDENCE.columns["redactions"]}.items():
        values = columns.get(name, pa.nulls(rows.num_rows, column.type))
        if values.type != column.type:
            raise SchemaError(f"Expected {column.type}, got {values.type} - at import_rows.{name}")
        columns[name] = values
    columns["occurrence"] = pc.fill_null(columns["occurrence"], 0)
    columns["text_sha256"] = text_sha256(columns["text"])
    columns["captured_time"] = pa.repeat(pa.scalar(now, EVIDENCE.columns["captured_time"].type), rows.num_rows)
    columns["length"] = pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows)
    columns["evidence_id"] = evidence_ids(pa.table(columns))
    fields = {field.name: field for field in (*STORED_EVIDENCE, *PLACEMENTS.schema) if field.name in columns}
    return pa.table([columns[name] for name in fields], schema=pa.schema(fields.values())).combine_chunks()


def _distinct(placements: pa.Table) -> pa.Table:
    """Sorted by row and time, without duplicates; of open placements in one place only the earliest."""
    if pc.count_distinct(placements["row"]).as_py() == placements.num_rows:
        return sorted_placements(placements)
    names, schema = PLACEMENTS.names(), placements.schema
    placements = sorted_placements(
        placements.group_by(names, use_threads=False).aggregate([]).select(names).cast(schema)
    )
    standing = is_open(placements)
    codes = row_keys(placements.filter(pa.array(standing)), PLACE).dictionary_encode().indices.to_numpy()
    kept = ~standing
    kept[standing] = np.diff(np.maximum.accumulate(codes), prepend=-1) > 0
    return placements.filter(pa.array(kept))


FAMILY = ("evidence_id", "owner_project", "owner_user", "entity", "parent_id", "zone")
"""The columns of EVIDENCE that are read."""


def with_effective_zones(evidence: pa.Table, stored: pa.Table) -> pa.Table:
    """The evidence with effective zones.

    Args:
        evidence: EVIDENCE of an import, and possibly more columns.
        stored: `FAMILY` of the stored rows; those that the import contains again are ignored.
    """
    if evidence["parent_id"].null_count == evidence.num_rows:
        return evidence
    again = pc.is_in(stored["evidence_id"], value_set=flat(evidence["evidence_id"]))
    family = pa.concat_tables([evidence.select(FAMILY), stored.select(FAMILY).filter(pc.invert(again))])
    zone, parent = _ranks(family["zone"]), _parents(family)
    # Each round doubles the distance, so a cycle of parents is covered after as many rounds as its length has bits.
    for _ in range(family.num_rows.bit_length()):
        known = parent >= 0
        if not known.any():
            break
        zone[known] = np.maximum(zone[known], zone[parent[known]])
        parent[known] = parent[parent[known]]
    own = _ranks(evidence["zone"])
    raised = pa.array(zone[: len(own)] > own)
    words = pc.if_else(raised, pa.array(ZONES.values).take(pa.array(zone[: len(own)])), flat(evidence["zone"]))
    index = evidence.schema.get_field_index("zone")
    return evidence.set_column(index, EVIDENCE.schema.field("zone"), words)


def _ranks(zones: pa.ChunkedArray) -> NDArray[np.int64]:
    """Rank of each zone; null and unknown words rank highest."""
    found = pc.index_in(flat(zones), pa.array(ZONES.values)).fill_null(len(ZONES.values) - 1)
    return found.to_numpy().astype(np.int64)


def _parents(family: pa.Table) -> NDArray[np.int64]:
    """The row of each row's parent, -1 if it has none of its owner; a match by id wins over one by entity."""
    named = flat(family["parent_id"])
    parent = np.full(family.num_rows, -1, dtype=np.int64)
    for column in ("evidence_id", "entity"):
        standing = _keys(family, flat(family[column]))
        for shared in (False, True):
            wanted = _keys(family, named, shared=shared)
            found = np.where(np.asarray(wanted.is_valid()), positions(wanted, standing), -1)
            parent = np.where(parent >= 0, parent, found)
    return parent


def _keys(family: pa.Table, names: pa.Array, *, shared: bool = False) -> pa.Array:
    """Project, user and name of each row as one string, null if it has no name; `shared` treats rows as shared."""
    user = flat(family["owner_user"])
    owner = pc.if_else(pa.scalar(shared), "", pc.fill_null(pc.binary_join_element_wise("user", user, ":"), ""))
    return pc.binary_join_element_wise(flat(family["owner_project"]), owner, names, "\0")
