"""What a run stores of its requests: one wide table per entity, and the tables of the line as views of them.

Reads: tables of the line. Gives: `RECORDS`, `recorded` and `view`, and `snapshot_digests` over them: everything asked,
decided and shown, as one SHA-256.

A record has a row for each request, candidate or answer. Its key columns keep their names; every other column is
`<node>.<column>`, so its name says which node made it. A table that has a row for some of these rows is null in the
others; one with many rows per request becomes lists. Values that two tables share are stored once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.array_bytes import columns_of
from ..columns.digests import digests_by_request, table_digest
from ..columns.kept import OfTable
from ..columns.keys import flat, positions
from ..columns.ragged import starts_of
from ..errors import VerificationError
from ..schema import Column, Table, float64
from ..tables import (
    ADMISSIBLE,
    ANCHORS,
    BLOCKS,
    CANDIDATES,
    CAPTURES,
    CITATIONS,
    CONDITIONS,
    CONTRACT_BOUNDS,
    CONTRACTS,
    DECISIONS,
    FACT_CHECKS,
    FAILURES,
    FILTER_LADDER,
    HITS,
    ITEM_DETAILS,
    PACKS,
    PROVENANCE,
    RANKED,
    REQUESTS,
    RERANK_WEIGHTS,
    SAME_AS_ASKED,
    SCORE_TERMS,
    SESSION_EVENTS,
    SNAPSHOTS,
    STRUCTURED_FACTS,
    SUB_QUERIES,
    TRIMMED,
    TRIMS,
    VERDICTS,
)

Kind = Literal["full", "some", "many"]
"""How many rows a table has for a row of its record: one, at most one, or any number."""


@dataclass(frozen=True)
class Member:
    """A table of the line in a record: `columns` maps each of its columns that are stored to the one that stores it."""

    table: Table
    kind: Kind
    columns: Mapping[str, str]
    marker: str
    """A stored column that is null, or an empty list, where the table has no row."""

    def own(self, stored: Collection[str]) -> dict[str, str]:
        """Its columns, those of plugins included, among some stored ones."""
        found = {own: name for own, name in self.columns.items() if name in stored}
        if self.table.extra is not None:
            mine, known = f"{self.table.name}.", {*self.columns.values()}
            found |= {name.removeprefix(mine): name for name in stored if name.startswith(mine) and name not in known}
        return found


@dataclass(frozen=True, eq=False)
class Record(Table):
    """The declaration of a record. The first of its members has its rows, in their order."""

    members: tuple[Member, ...] = ()


def _record(
    name: str,
    first: Table,
    *,
    doc: str,
    key: Collection[str],
    beside: Iterable[tuple[Kind, Iterable[Table]]],
    shared: Collection[str] = (),
) -> Record:
    """A record of a table and those `beside` it, in the order of the line. The columns in `shared` have the values of the
    first member that has them, but in tables of many rows.
    """
    kinds: list[tuple[Table, Kind]] = [(first, "full"), *((table, kind) for kind, tables in beside for table in tables)]
    stored: dict[str, Column] = {}
    members, known = list[Member](), dict[str, str]()
    for table, kind in kinds:
        given_before = {} if kind == "many" else known
        kept = {c: declared for c, declared in table.columns.items() if declared.stored}
        columns = {c: c if c in key else given_before.get(c, f"{table.name}.{c}") for c in kept}
        new = {columns[c]: declared for c, declared in kept.items() if columns[c] not in stored}
        marker = next(columns[c] for c, declared in kept.items() if columns[c] in new and not declared.nullable)
        stored |= {c: _stored_column(declared, kind) for c, declared in new.items()}
        known |= {c: columns[c] for c in columns if c in shared}
        members.append(Member(table, kind, columns, marker))
    extended = any(table.extra is not None for table, _ in kinds)
    extra = float64("a column of a plugin", nullable=True) if extended else None
    return Record(name, doc, first.key, first.order, stored, extra, tuple(members))


def _stored_column(column: Column, kind: Kind) -> Column:
    if kind == "many":
        return replace(column, type=pa.list_(column.type), nullable=False)
    return replace(column, nullable=column.nullable or kind == "some")


REQUEST_RECORD = _record(
    "request_record",
    REQUESTS,
    doc="What was asked under which contract, the plan, what could be read, and what the lanes recalled, by request.",
    key=("request_id",),
    beside=(
        ("some", (CONTRACTS, ADMISSIBLE, RERANK_WEIGHTS)),
        ("many", (CONTRACT_BOUNDS, FILTER_LADDER, SESSION_EVENTS, ANCHORS, SUB_QUERIES, HITS)),
    ),
    shared=(*SAME_AS_ASKED, "asked_at"),
)
CANDIDATE_RECORD = _record(
    "candidate_record",
    CANDIDATES,
    doc="Every candidate: how it was recalled, judged, scored, ranked, packed and cut, and its one outcome.",
    key=("request_id", "evidence_id", "pool_rank"),
    beside=(("full", (VERDICTS, DECISIONS)), ("some", (SCORE_TERMS, RANKED, PACKS, TRIMS))),
    shared=("would_reject_by", "evidence_kind", "rank", "final", "position"),
)
ANSWER_RECORD = _record(
    "answer_record",
    replace(CAPTURES, columns={"request_id": CAPTURES.columns["request_id"]}),
    doc="Every answer: its items with their citations, its block, its conditions and the facts it was checked against, or why "
    "the request failed.",
    key=("request_id",),
    beside=(
        ("many", (TRIMMED, ITEM_DETAILS, CITATIONS)),
        ("some", (FAILURES, BLOCKS)),
        ("many", (STRUCTURED_FACTS, FACT_CHECKS, CONDITIONS)),
    ),
)

RECORDS = (REQUEST_RECORD, CANDIDATE_RECORD, ANSWER_RECORD)
VIEWED = {m.table.name: (record, m) for record in RECORDS for m in record.members if m.table.name != CAPTURES.name}
"""The tables of the line that are views, each with its record."""
COVERED = (*RECORDS, SNAPSHOTS)
"""What a run stores of its requests. A snapshot digest covers the rows of its request in them."""

RequestRecord = REQUEST_RECORD.annotation
CandidateRecord = CANDIDATE_RECORD.annotation
AnswerRecord = ANSWER_RECORD.annotation

Rows = NDArray[np.int64]
_INT32 = pa.int32()


def recorded(record: Record, *tables: pa.Table, rows: Mapping[str, Rows] | None = None) -> pa.Table:
    """A record of the tables of its members, in their order; `rows` has the row of the record for each row of a table. By
    default that is the same row of a table that is `full`, else that of its request.

    Raises:
        VerificationError: a table has rows of no row of the record, too many, or too few.
    """
    ids, given, found = tables[0]["request_id"], rows or {}, dict[str, pa.Array]()
    count = len(ids)
    for member, table in zip(record.members, tables, strict=True):
        name, many = member.table.name, member.kind == "many"
        at = given[name] if name in given else None if member.kind == "full" else positions(table["request_id"], ids)
        wrong = member.kind == "full" and table.num_rows != count
        if at is not None and len(at) > 1:
            step = (at[1:] - at[:-1]).min()
            if step < 0:
                order = at.argsort(kind="stable")
                table, at = table.take(pa.array(order)), at[order]
                step = (at[1:] - at[:-1]).min()
            wrong |= step < 1 and not many
        if wrong or (at is not None and len(at) > 0 and at[0] < 0):
            expected = {"full": "one row for each", "some": "at most one row for each", "many": "rows"}[member.kind]
            raise VerificationError(f"Expected {expected} of {count} rows of {record.name}, got others", at=name)
        declared = member.table.columns
        stored = {**member.columns} | {own: f"{name}.{own}" for own in table.column_names if own not in declared}
        new = {own: column for own, column in stored.items() if column not in found}
        table = table.select([*new])
        if at is not None and not many and len(at) < count:
            index = np.full(count, -1)
            index[at] = np.arange(len(at))
            table = table.take(pa.array(index, mask=index < 0))
        columns = columns_of(table)
        if many and at is not None:
            ends = pa.array(starts_of(np.bincount(at, minlength=count)), _INT32)
            columns = [pa.ListArray.from_arrays(ends, column) for column in columns]
        found |= zip(new.values(), columns, strict=True)
    schema = record.widened(record.schema, found)
    return pa.Table.from_arrays([found[name] for name in schema.names], schema=schema)


def view(record: pa.Table, name: str) -> pa.Table:
    """A table of the line, of a record or of some of its columns, which include the marker; rows are in the order of the
    table.
    """
    home, member = VIEWED[name]
    own = member.own(record.column_names)
    columns = dict(zip(own, columns_of(record.select([*own.values()])), strict=True))
    marker = flat(record[member.marker])
    if member.kind == "many":
        owner = pc.list_parent_indices(marker)
        columns = {c: a.take(owner) if c == "request_id" else pc.list_flatten(a) for c, a in columns.items()}
    declared = member.table.columns
    fields = [
        pa.field(c, a.type, declared[c].nullable) if c in declared else member.table.extra_field(c)
        for c, a in columns.items()
    ]
    found = pa.Table.from_arrays([*columns.values()], schema=pa.schema(fields))
    if member.kind == "some" and marker.null_count:
        found = found.filter(marker.is_valid()).combine_chunks()
    if member.kind != "many" and member.table.order != home.order and {*member.table.order} <= {*columns}:
        found = found.sort_by([(column, "ascending") for column in member.table.order])
    return found


def snapshot_digests(tables: Mapping[str, pa.Table], provenance: pa.Table, request_ids: pa.Array) -> list[str]:
    """The snapshot digest of each request, 64 hex digits, in the order of `request_ids`.

    `tables` maps the names of `COVERED` to tables or to their stored forms. The envelope (ids of the capture,
    `asked_at`, frame rows) is in no digest.
    """
    covered = [(tables[table.name], table) for table in COVERED]
    return [digest.hex() for digest in digests_by_request(covered, request_ids, _provenance_digest(provenance))]


_provenance_digest = OfTable(lambda provenance: table_digest(provenance, PROVENANCE))
