"""What a run stores of its requests: one table with a row per request, and the tables of the line as views of it.

Reads: tables of the line. Gives: `recorded` and `view`, and `snapshot_digests`: everything asked, decided and shown, as one
SHA-256.

A column of the record is named for the node that made it. It has the row of that node's table for the request, as a struct,
null where there is none; or the rows, as a list. Free text is in it by its SHA-256.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.digests import digests, hashed, innermost, table_digest
from ..columns.kept import OfTable
from ..columns.keys import columns_of, flat, is_list, positions
from ..columns.ragged import starts_of
from ..errors import VerificationError
from ..schema import Column, Table
from ..tables import (
    ADMISSIBLE,
    ANCHORS,
    BLOCKS,
    CANDIDATES,
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
    RANKED,
    REQUESTS,
    RERANK_WEIGHTS,
    SCORE_TERMS,
    SESSION_EVENTS,
    SNAPSHOTS,
    STRUCTURED_FACTS,
    SUB_QUERIES,
    TRIMMED,
    TRIMS,
    VERDICTS,
)

RECORD = "record"
VIEWED: Mapping[str, Table] = {
    table.name: table
    for table in (
        REQUESTS, CONTRACTS, ADMISSIBLE, RERANK_WEIGHTS, CONTRACT_BOUNDS, FILTER_LADDER, SESSION_EVENTS, ANCHORS, SUB_QUERIES, HITS,
        CANDIDATES, VERDICTS, DECISIONS, SCORE_TERMS, RANKED, PACKS, TRIMS, TRIMMED, ITEM_DETAILS, CITATIONS, FAILURES, BLOCKS,
        STRUCTURED_FACTS, FACT_CHECKS, CONDITIONS,
    )
}  # fmt: skip
"""The tables of the line that are views of the record, by name, in the order of the line."""
_ONE = {REQUESTS, CONTRACTS, ADMISSIBLE, RERANK_WEIGHTS, FAILURES, BLOCKS}
"""Those with at most one row for a request."""


class Recorded(NamedTuple):
    """The record of some requests; and the free texts of its hashes, by hash: `sha256` and `text`."""

    rows: pa.Table
    texts: pa.Table


class _Fields(NamedTuple):
    """The columns of a table that a record has: their places, and of these the free texts; and their fields."""

    places: list[int]
    texts: list[int]
    fields: list[pa.Field]


@lru_cache(maxsize=256)
def _fields(table: Table, further: tuple[str, ...] = ()) -> _Fields:
    """The stored columns of a table, and those of plugins that it has."""
    found = _Fields([], [], [])
    for place, name in enumerate((*table.columns, *further)):
        column = _declared(table, name)
        if name != "request_id" and column.stored:
            type_ = table.stored_schema.field(name).type if column.free_text else column.type
            found.places.append(place)
            found.fields.append(pa.field(name, type_, column.nullable or table in _ONE))
            if column.free_text:
                found.texts.append(place)
    return found


def _declared(table: Table, name: str) -> Column:
    column = table.columns.get(name, table.extra)
    assert column is not None
    return column


def schema_with(further: Mapping[str, Iterable[str]]) -> pa.Schema:
    """The schema of a record whose tables have `further` columns of plugins."""
    fields = [pa.field("request_id", pa.string(), False)]
    for name, table in VIEWED.items():
        struct = pa.struct(_fields(table, tuple(further.get(name, ()))).fields)
        fields.append(pa.field(name, struct if table in _ONE else pa.list_(struct), table in _ONE))
    return pa.schema(fields)


SCHEMA = schema_with({})
"""The schema of a record without plugins."""


TEXTS = pa.schema([pa.field("sha256", pa.string(), False), pa.field("text", pa.large_string(), False)])


def recorded(request_ids: pa.Array, tables: Mapping[str, pa.Table]) -> Recorded:
    """The record of some requests, in their order, of the tables of `VIEWED`.

    Raises:
        VerificationError: a table has rows of another request, or more than one of a request; or a candidate has not one decision.
    """
    expect_decided(tables["candidates"], tables["decisions"])
    given, count = [tables[name] for name in VIEWED], len(request_ids)
    owners = pa.chunked_array([chunk for table in given for chunk in table["request_id"].chunks], pa.string())
    owner = positions(owners, request_ids)
    starts = starts_of(np.array([table.num_rows for table in given]))
    # A number for each pair of a table and a request, by table: rows are in order of it, but where a table is not.
    cell = owner + (np.arange(len(given)) * count).repeat(np.diff(starts))
    counts = np.bincount(cell[owner >= 0], minlength=len(given) * count).reshape(len(given), count)
    if (owner < 0).any() or counts[[declared in _ONE for declared in VIEWED.values()]].max(initial=0) > 1:
        raise VerificationError("Expected rows of each request, and one where there is one, got others", at=RECORD)
    order = cell.argsort(kind="stable") if (cell[1:] < cell[:-1]).any() else None
    own = [
        _fields(declared, tuple(table.column_names[len(declared.columns) :]) if declared.extra else ())
        for declared, table in zip(VIEWED.values(), given, strict=True)
    ]
    values = [columns_of(table) for table in given]
    free = [(n, place) for n, fields in enumerate(own) for place in fields.texts]
    hashes, texts = hashed([values[n][place] for n, place in free])
    for (n, place), column in zip(free, hashes, strict=True):
        values[n][place] = column
    found, fields = [request_ids], [SCHEMA.field(0)]
    for n, (declared, fields_of) in enumerate(zip(VIEWED.values(), own, strict=True)):
        structs = pa.StructArray.from_arrays([values[n][at] for at in fields_of.places], fields=fields_of.fields)
        if order is not None:
            structs = structs.take(pa.array(order[starts[n] : starts[n + 1]] - starts[n]))
        if many := declared not in _ONE:
            structs = pa.ListArray.from_arrays(pa.array(starts_of(counts[n]), pa.int32()), structs)
        elif len(structs) < count:
            structs = structs.take(pa.array(counts[n].cumsum() - 1, mask=counts[n] == 0))
        found.append(structs)
        fields.append(pa.field(declared.name, structs.type, not many))
    by_hash = pa.table([[*texts.values()], [*texts]], schema=TEXTS).sort_by("sha256")
    return Recorded(pa.Table.from_arrays(found, schema=pa.schema(fields)), by_hash)


def expect_decided(candidates: pa.Table, decisions: pa.Table) -> None:
    """Refuse decisions that are not one for each candidate, in their order.

    Raises:
        VerificationError: they are not.
    """
    if not decisions["evidence_id"].equals(candidates["evidence_id"]):
        raise VerificationError(
            f"Expected one decision for each of {candidates.num_rows} candidates, got others", at="decisions"
        )


def view(record: pa.Table, name: str) -> pa.Table:
    """A table of the line, of a record or of some of its columns; free text is in it by its SHA-256."""
    table, ids, column = VIEWED[name], flat(record["request_id"]), flat(record[name])
    if is_list(column.type):
        ids, column = ids.take(pc.list_parent_indices(column)), column.flatten()
    elif column.null_count:
        ids, column = ids.filter(column.is_valid()), column.drop_null()
    fields = [field.with_nullable(_declared(table, field.name).nullable) for field in column.type]
    schema = pa.schema([SCHEMA.field("request_id"), *fields])
    return pa.Table.from_arrays([ids, *column.flatten()], schema=schema)


def paths_of(name: str, columns: Collection[str] | None = None) -> list[str]:
    """The Parquet paths of a table of the line in a record, or of some of its columns."""
    if columns is None:
        return ["request_id", name]
    table = VIEWED[name]
    first, *_ = fields = [field.name for field in _fields(table).fields]
    chosen = [column for column in fields if column in columns] or [first]
    return ["request_id", *(f"{name}.{'list.element.' if table not in _ONE else ''}{column}" for column in chosen)]


def hashes_in(record: pa.Table) -> Iterator[pa.Array]:
    """The hashes of the free texts of a record."""
    for name, declared in VIEWED.items():
        table = view(record, name)
        for column in declared.names(free_text=True):
            yield innermost(flat(table[column]))


def snapshot_digests(record: pa.Table, snapshots: pa.Table, provenance: pa.Table) -> list[str]:
    """The snapshot digest of each row of a record, 64 hex digits; `snapshots` has the rows of the same requests in stored form.

    The envelope (ids of the capture, `asked_at`, frame rows) is in no digest.
    """
    columns = dict(zip(record.column_names, columns_of(record), strict=True))
    columns |= zip(snapshots.column_names, columns_of(snapshots), strict=True)
    found = digests(columns, np.arange(record.num_rows + 1), _provenance_digest(provenance), _ENVELOPE)
    return [digest.hex() for digest in found]


_ENVELOPE = frozenset(name for name, column in SNAPSHOTS.columns.items() if not column.digest) | {
    f"{table.name}.{name}" for table in VIEWED.values() for name, column in table.columns.items() if not column.digest
}
"""The columns that no digest covers."""
_provenance_digest = OfTable(table_digest)
