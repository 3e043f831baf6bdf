"""The lanes of plugins: each receives the rows that pass every gate at one instant, and the queries over them.

Reads the inputs every lane reads and the lanes. Gives `Found`, scope group by scope group and instant by instant.

Note: the rows that a plugin returns pass the filters of each sub-query here, and both walls like every other hit.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..columns.keys import codes_of, first_of_runs, gathered_columns, order_by
from ..columns.numbers import array_of, quantise
from ..columns.ragged import expand_ranges
from ..errors import SchemaError, called, kind_of
from ..lanes import Lane
from ..plugins import LaneScope, Scored
from .recall_scope import Float, Int, RecallTables, ScopeGroup
from .recall_selection import Found, best_found

_ASKED = ("query_text", "intent")


def recall_by_plugin(tables: RecallTables, lane: Lane) -> Found:
    """The best rows of a plugin's lane, `lane_k` of each sub-query.

    Raises:
        SchemaError: the lane returns rows or queries that it did not receive, or a query's hits depend on other
            queries.
    """
    scopes = tables.scope_groups(None)
    parts = [_of_line(scope, lane, line) for scope in scopes for line in range(len(scope.lines.clock))]
    return best_found(tables, Found.concat(parts))


def _of_line(scope: ScopeGroup, lane: Lane, line: int) -> Found:
    """The hits of the lane for the sub-queries of a scope with the same open rows."""
    asking, open_ = (scope.line == line).nonzero()[0], scope.open(scope.lines.clock[[line]])
    local = open_[0].nonzero()[0]
    rows = pa.table({name: scope.column(name).take(pa.array(local)) for name in lane.columns})
    asked = pa.table(gathered_columns(scope.tables.sub_queries, _ASKED, scope.sub[asking]))
    _, first, of = np.unique(codes_of([asked[name] for name in _ASKED]), return_index=True, return_inverse=True)
    queries = asked.take(pa.array(first))
    query, row, score = _checked(lane, rows, queries, len(local))
    if len(first) > 1:
        own = query == 0
        alone = _checked(lane, rows, queries.slice(0, 1), len(local))
        if not all(np.array_equal(one[own], other) for one, other in zip((query, row, score), alone, strict=True)):
            hint = "the hits of a query follow from the query and the rows alone, whatever else is asked"
            raise SchemaError(f"Expected the same hits of a query alone, got others - at {lane.name}", hint=hint)
    starts = query.searchsorted(np.arange(len(first) + 1))
    counts = np.diff(starts)[of]
    at = expand_ranges(starts[of], counts)
    sub = asking.repeat(counts)
    gates, gate = scope.gates(asking, open_, np.zeros(len(asking), dtype=np.int64))
    kept = gates[gate.repeat(counts), local[row[at]]]
    sub, at = sub[kept], at[kept]
    return Found.of(scope.sub[sub], scope.rows[local[row[at]]], score[at])


def _checked(lane: Lane, rows: pa.Table, queries: pa.Table, count: int) -> tuple[Int, Int, Float]:
    """The lane's hits by query and row: their queries, rows and scores."""
    assert lane.recall is not None
    found, at = called(lane.name, "recall", lane.recall, LaneScope(rows, queries)), f"{lane.name}.recall"
    if not isinstance(found, Scored):
        raise SchemaError(f"Expected a Scored, got {kind_of(found)} - at {at}")
    query, row = (array_of(each, at, np.int64) for each in (found.query, found.row))
    score = quantise(array_of(found.score, at, np.float64))
    if not query.shape == row.shape == score.shape or query.ndim != 1:
        counts = f"{query.shape}, {row.shape} and {score.shape}"
        raise SchemaError(f"Expected a query, a row and a score of each hit, got shapes {counts} - at {at}")
    for what, given, most in (("queries", query, queries.num_rows), ("rows", row, count)):
        if len(given) and not 0 <= given.min() <= given.max() < most:
            raise SchemaError(f"Expected numbers of {what} from 0 to {most - 1}, got one outside - at {at}")
    if not (np.isfinite(score) & (score > 0)).all():
        raise SchemaError(f"Expected finite scores above 0, got one that is not - at {at}")
    order = order_by(query, row)
    query, row, score = query[order], row[order], score[order]
    if len(first_of_runs(query, row)) < len(query):
        raise SchemaError(f"Expected each row once for a query, got one twice - at {at}")
    return query, row, score
