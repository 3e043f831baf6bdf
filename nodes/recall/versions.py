"""Versions of a record: which rows an admissible row replaces, decided for each request inside A(r).

Reads pairs of a request and a row. Gives the admissible rows that replace each row.

A row replaces another one of its class and owner that is not newer and that it names in `supersedes`, by entity or
evidence id. A memory also replaces each older memory with its id. A row is as old as its recorded time at `as_of`;
of equally old ones, the one of the later source by name is newer, and of two that name each other the one with the
greater evidence id stays. What a row itself says in `superseded_by` counts from its `superseded_at` on, always if it has
none.

Note: nothing is decided when rows are stored, since a newer row that a request may not see must not change its answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.kept import OfTable
from ..columns.keys import first_of_runs, flat, flattened, gathered, gathered_columns, present, take_or, truth
from ..frames import OPEN_END, PostingIndex, posting_keys
from ..text.index_keys import id_keys
from .recall_scope import Bool, Int, RecallTables, ScopeGroup

_IDS = ("entity", "evidence_id")
_OWNER = ("origin_class", "owner_project", "owner_user")


def replaced_by(tables: RecallTables, request: Int, row: Int, postings: PostingIndex) -> pa.Array:
    """The evidence id of the newest row that replaces the row of each (contract row, frame row) pair; where none does,
    its own id if it names another in `superseded_by`, else null.
    """
    evidence = tables.evidence
    if not len(_able(evidence, row)):
        return pa.nulls(len(row), pa.string())
    stated = np.asarray(gathered(evidence["superseded_by"], row).is_valid())
    newest = np.where(stated & ~_still_stands(tables, request, row), row, -1)
    for scope in tables.scope_groups(None):
        own = np.isin(request, scope.request).nonzero()[0]
        of, local = replacing(scope, request[own], row[own], postings)
        by = scope.rows[local]
        order = np.lexsort((tables.row_index.id_rank[by], _recorded(tables, request[own][of], by), of))[::-1]
        first = order[first_of_runs(of[order])]
        newest[own[of[first]]] = by[first]
    return take_or(evidence["evidence_id"], newest)


def replacing(scope: ScopeGroup, request: Int, row: Int, postings: PostingIndex) -> tuple[Int, Int]:
    """For (contract row, frame row) pairs of a scope: a position among the pairs, and a position in `scope.rows` of a row
    that replaces its row and is admissible for its request.
    """
    tables = scope.tables
    able = _able(tables.evidence, row)
    if not len(able):
        return able, able
    ids = [
        (at, key)
        for column in _IDS
        for at, id_ in zip(able.tolist(), gathered(tables.evidence[column], row[able]).to_pylist(), strict=True)
        for key in posting_keys("id", id_keys(id_ or ""))
    ]
    found = [one[:2] for one in scope.referred(postings, superseding=ids)] or [(able[:0], able[:0])]
    of, local = map(np.concatenate, zip(*found, strict=True))
    for holds in (_of_one_owner, _newer):
        kept = holds(tables, request[of], row[of], scope.rows[local])
        of, local = of[kept], local[kept]
    kept, _ = scope.admitted(request[of], local)
    return of[kept], local[kept]


def _able(evidence: pa.Table, row: Int) -> Int:
    """The positions of rows that another one may replace."""
    replaceable = _replaceable(evidence)
    return np.empty(0, dtype=np.int64) if replaceable is None else replaceable[row].nonzero()[0]


@OfTable
def _replaceable(evidence: pa.Table) -> Bool | None:
    """The rows of a frame that name what replaces them or are named by it, and memories whose id occurs again; None
    for a frame without any. No answer depends on it: it spares the others a look-up.
    """
    names = pc.unique(flattened(evidence["supersedes"])[1])
    memories = pc.if_else(pc.equal(evidence["origin_class"], "memory"), evidence["entity"], None)
    counts = memories.drop_null().value_counts()
    again = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    found = present(evidence["superseded_by"])
    for column, among in ((memories, again), *((evidence[name], names) for name in _IDS)):
        if len(among):
            found = found | np.asarray(pc.is_in(column, value_set=flat(among)))
    return found if found.any() else None


def _of_one_owner(tables: RecallTables, request: Int, row: Int, by: Int) -> Bool:
    """Whether two rows are different rows of one class and owner."""
    old, new = (gathered_columns(tables.evidence, _OWNER, rows) for rows in (row, by))
    alike = row != by
    for name in _OWNER:
        same = pc.or_kleene(pc.equal(old[name], new[name]), pc.and_(pc.is_null(old[name]), pc.is_null(new[name])))
        alike &= truth(same)
    return alike


def _newer(tables: RecallTables, request: Int, row: Int, by: Int) -> Bool:
    """Whether the second row of each pair names the first and is not older, or has the same id and is newer."""
    names = (*_IDS, "source_id", "origin_class", "supersedes")
    old, new = (gathered_columns(tables.evidence, names, rows) for rows in (row, by))
    began, begins = (_recorded(tables, request, rows) for rows in (row, by))
    named, back = _names(new, old), _names(old, new)
    rank = tables.row_index.id_rank
    later = (begins > began) | ((begins == began) & truth(pc.greater(new["source_id"], old["source_id"])))
    stays = (begins > began) | ((begins == began) & (~back | (rank[by] > rank[row])))
    again = truth(pc.equal(old["entity"], new["entity"])) & truth(pc.equal(new["origin_class"], "memory"))
    return (named & stays) | (again & later)


def _names(new: Mapping[str, pa.Array], old: Mapping[str, pa.Array]) -> Bool:
    """Whether each row of `new` names that of `old` in `supersedes`."""
    of, name = flattened(new["supersedes"])
    named = np.zeros(len(new["supersedes"]), dtype=bool)
    for column in _IDS:
        named[of[truth(pc.equal(flat(name), old[column].take(pa.array(of))))]] = True
    return named


def _recorded(tables: RecallTables, request: Int, row: Int) -> Int:
    """When each row was recorded, as it was at the `as_of` of its request."""
    return tables.row_index.recorded_at(_placement(tables, request, row))


def _still_stands(tables: RecallTables, request: Int, row: Int) -> Bool:
    """Whether each row was superseded at a known time after the `as_of` of its request."""
    clock, of_request = tables.clock
    placement = _placement(tables, request, row)
    ends = tables.row_index.superseded[placement]
    return (placement >= 0) & (ends < OPEN_END) & (ends > clock.as_of[of_request[request]])


def _placement(tables: RecallTables, request: Int, row: Int) -> Int:
    clock, of_request = tables.clock
    return clock.judge(tables.row_index, of_request[request], row)[1]
