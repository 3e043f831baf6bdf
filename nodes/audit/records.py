"""What a run stores of its requests: one table with a row per request, and the tables of the line as views of it.

Reads: tables of the line. Gives: `recorded` and `view`, and `snapshot_digests`: everything asked, decided and shown, as one
SHA-256.

A column of the record is named for the node that made it. It has the row of that node's table for the request, as a struct,
null where there is none; or the rows, as a list. Free text is in it by its SHA-256. A value is in it once: rows about a
candidate name it by its rank in the pool, and what another table states, or follows from it, only views have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.digests import digests, hashed, innermost, table_digest
from ..columns.kept import OfTable
from ..columns.keys import columns_of, flat, floats, integers, is_list, places_of, positions, present, take_or
from ..columns.numbers import quantise
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


_POOL_RANK = pa.field("pool_rank", pa.int32(), False)
"""What a record has of a row's place in the pool of a shard: its place among the candidates of its request."""


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
        if name == "place":
            found.places.append(place)
            found.fields.append(_POOL_RANK)
        elif name != "request_id" and column.stored and not column.of:
            type_ = table.stored_schema.field(name).type if column.free_text else column.type
            found.places.append(place)
            found.fields.append(pa.field(name, type_, column.nullable or table in _ONE))
            if column.free_text:
                found.texts.append(place)
    return found


def _declared(table: Table, name: str) -> Column:
    column = table.column(name)
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


def recorded(request_ids: pa.Array, tables: Mapping[str, pa.Table], pool: pa.Table) -> Recorded:
    """The record of some requests, in their order, of the tables of `VIEWED`.

    Raises:
        VerificationError: a table has rows of another request, or more than one of a request.
    """
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
    values, pool_rank = [columns_of(table) for table in given], flat(pool["pool_rank"])
    for declared, columns in zip(VIEWED.values(), values, strict=True):
        if (at := declared.schema.get_field_index("place")) >= 0:
            columns[at] = pool_rank.take(columns[at])
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


class _Rows(NamedTuple):
    """The rows of a record about a table: the place of the request of each, and the stored columns."""

    owner: NDArray[np.int64]
    columns: dict[str, pa.Array]

    def at(self, other: _Rows) -> NDArray[np.int64]:
        """The row about the candidate of each row of another table, or the one of its request; -1 where there is none."""
        rank = _POOL_RANK.name
        if rank not in self.columns:
            return places_of(other.owner, self.owner)
        own, theirs = ((one.owner << 32) + integers(one.columns[rank]) for one in (self, other))
        order = own.argsort()
        return np.append(order, -1)[places_of(theirs, own[order])]


def _rows_of(record: pa.Table, name: str) -> _Rows:
    column = flat(record[name])
    if is_list(column.type):
        owner, column = integers(pc.list_parent_indices(column)), column.flatten()
    else:
        owner, column = present(column).nonzero()[0], column.drop_null()
    return _Rows(owner, dict(zip([field.name for field in column.type], column.flatten(), strict=True)))


def view(record: pa.Table, name: str) -> pa.Table:
    """A table of the line, of a record or of some of its columns; free text is in it by its SHA-256."""
    table, rows = VIEWED[name], _rows_of(record, name)
    columns = {"request_id": record["request_id"].take(pa.array(rows.owner)), **rows.columns}
    read = {name: rows}
    for own, column in table.columns.items():
        source, stated = _stated(own, column)
        if source in record.column_names:
            known = read[source] = read.get(source) or _rows_of(record, source)
            if stated in known.columns:
                columns[own] = take_or(known.columns[stated], known.at(rows))
    if table is RANKED:
        columns |= _contributions(record, rows)
    names = [
        own for own in (*table.columns, *(columns.keys() - table.columns.keys() - {_POOL_RANK.name})) if own in columns
    ]
    fields = [pa.field(own, columns[own].type, _declared(table, own).nullable) for own in names]
    return pa.Table.from_arrays([columns[own] for own in names], schema=pa.schema(fields))


def _stated(name: str, column: Column) -> tuple[str, str]:
    """The table that states a column, and the column there; empty for one that its own table states."""
    source, _, stated = column.of.partition(".")
    return source, stated or name


def _contributions(record: pa.Table, ranked: _Rows) -> dict[str, pa.Array]:
    """The contributions to the score of each ranked row: weight times term; what is left is of diversity. None if the record
    lacks what they follow from.
    """
    if not {"rerank_weights", "score_terms"} <= {*record.column_names} or "final" not in ranked.columns:
        return {}
    weights, terms = (_rows_of(record, name) for name in ("rerank_weights", "score_terms"))
    names = sorted({*RERANK_WEIGHTS.columns, *weights.columns} - {"request_id", "diversity"})
    if not {*names} <= weights.columns.keys() & terms.columns.keys():
        return {}
    weight, term = (
        np.stack([floats(one.columns[name]) for name in names], axis=1)[one.at(ranked)] for one in (weights, terms)
    )
    weighed = quantise(weight * term)
    rest = floats(ranked.columns["final"]) - weighed.sum(axis=1)
    return {**dict(zip(names, map(pa.array, weighed.T), strict=True)), "diversity": pa.array(rest)}


def paths_of(name: str, columns: Collection[str] | None = None) -> list[str]:
    """The Parquet paths of a table of the line in a record, or of some of its columns."""
    table = VIEWED[name]
    found = ["request_id", *([name] if columns is None else _paths(table, columns))]
    for own in table.columns if columns is None else columns:
        source, stated = _stated(own, table.columns[own]) if own in table.columns else ("", own)
        if stated == "*":
            found += [name, source, RERANK_WEIGHTS.name]
        elif source:
            found += _paths(VIEWED[source], [stated])
    return [*dict.fromkeys(found)]


def _paths(table: Table, columns: Collection[str]) -> list[str]:
    """The paths of some stored columns of a table, with what says whose its rows are."""
    stored = [field.name for field in _fields(table).fields]
    chosen = [column for column in stored if column in columns or column == _POOL_RANK.name] or stored[:1]
    return [f"{table.name}.{'list.element.' if table not in _ONE else ''}{column}" for column in chosen]


def hashes_in(record: pa.Table) -> Iterator[pa.Array]:
    """The hashes of the free texts of a record."""
    for name, declared in VIEWED.items():
        rows = _rows_of(record, name)
        for column in declared.names(free_text=True):
            yield innermost(rows.columns[column])


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
