"""The last events of a request's own session: input of the line in addition to the request (S0.42).

Reads contracts, the first wall and stored rows. Gives `session_events`, which a run keeps, and `session_texts`, which
query planning reads; planning itself reads no corpus.

Note: an event counts only where it is admissible for the request, by the same gates as any evidence. Observations
outside the request's boundary never affect a query.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import flat, gathered, integers, positions, rank_within
from .columns.ragged import expand_ranges
from .frames import RowIndex
from .tables import (
    SESSION_EVENTS,
    SESSION_TEXTS,
    Contracts,
    Evidence,
    Reachable,
    ScopeGroups,
    SessionEvents,
    SessionTexts,
)
from .walls.time_gates import clocks

EVENTS = 3
"""Events per request: the latest observations, not the session's history."""
CHARACTERS = 4_000
"""Characters read of an event: a tool may have printed megabytes."""
OBSERVED = ("session-event", "tool-output", "test-log")
"""Kinds of evidence that a session observes."""

Int = NDArray[np.int64]


def session_events(
    contracts: Contracts, row_groups: ScopeGroups, reachable: Reachable, evidence: Evidence, row_index: RowIndex
) -> SessionEvents:
    """The `EVENTS` newest admissible events of each request's session, newest first; none without a session."""
    request, row = _latest(contracts, row_groups, reachable, evidence, row_index)
    return SESSION_EVENTS.build(
        {
            "request_id": contracts["request_id"].take(pa.array(request)),
            "rank": (rank_within(request) + 1).astype(np.int32),
            "evidence_id": gathered(evidence["evidence_id"], row),
            "row": row,
        }
    )


def session_texts(session_events: SessionEvents, evidence: Evidence) -> SessionTexts:
    """The texts of the events, in their order; a run stores only the anchors found in them."""
    text = pc.utf8_slice_codeunits(gathered(evidence["text"], session_events["row"]), 0, CHARACTERS)
    return SESSION_TEXTS.build({**{name: session_events[name] for name in ("request_id", "rank")}, "text": text})


def _latest(
    contracts: pa.Table, row_groups: pa.Table, reachable: pa.Table, evidence: pa.Table, row_index: RowIndex
) -> tuple[Int, Int]:
    """(contract, frame row) pairs by contract, newest first."""
    sessions = pc.unique(flat(contracts["session_id"]).drop_null())
    if not len(sessions):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    asked = np.flatnonzero(flat(contracts["session_id"]).is_valid())
    at = positions(contracts["request_id"], row_groups["request_id"])[asked]
    of_contract = np.append(integers(row_groups["scope_group"]), -1)[at]
    asked, of_contract = asked[of_contract >= 0], of_contract[of_contract >= 0]

    # Rows that pass every gate but the clock, by (row group, session); only these rows of the frame are read.
    group, row = integers(reachable["scope_group"]), integers(reachable["row"])
    shown = np.flatnonzero((integers(reachable["withheld_by"]) == 0) & np.isin(group, of_contract))
    row, group = row[shown], group[shown]
    of_row = _sessions_of(evidence, row, sessions)
    kept = np.flatnonzero(of_row[row] >= 0)
    row, key = row[kept], group[kept] * len(sessions) + of_row[row[kept]]
    order = np.argsort(key, kind="stable")
    row, key = row[order], key[order]

    wanted = of_contract * len(sessions) + _codes(contracts["session_id"], sessions)[asked]
    low = np.searchsorted(key, wanted)
    count = np.searchsorted(key, wanted, side="right") - low
    request, row = np.repeat(asked, count), row[expand_ranges(low, count)]

    open_, placement = clocks(contracts).judge(row_index, request, row)
    request, row, placement = request[open_], row[open_], placement[open_]
    order = np.lexsort((row_index.id_rank[row], -row_index.happened_at(row, placement), request))
    order = order[rank_within(request[order]) < EVENTS]
    return request[order], row[order]


def _sessions_of(evidence: pa.Table, rows: Int, sessions: pa.Array) -> Int:
    """For each frame row: its session if it is an event among these rows, else -1."""
    among = np.zeros(evidence.num_rows, dtype=bool)
    among[rows] = True
    rows = np.flatnonzero(among)
    of_row = np.full(evidence.num_rows, -1, dtype=np.int64)
    session = evidence["session_id"]
    of_row[rows] = _codes(session if len(rows) == len(session) else gathered(session, rows), sessions)
    rows = rows[of_row[rows] >= 0]
    observed = np.asarray(pc.is_in(gathered(evidence["evidence_kind"], rows), value_set=pa.array(OBSERVED)))
    of_row[rows[~observed]] = -1
    return of_row


def _codes(column: pa.ChunkedArray | pa.Array, among: pa.Array) -> Int:
    """The position of each value among some distinct values, -1 for other values and null."""
    return np.asarray(pc.index_in(flat(column), value_set=among).fill_null(-1)).astype(np.int64)
