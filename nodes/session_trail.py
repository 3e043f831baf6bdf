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

from .columns.keys import among, flat, gathered, integers, places_of, positions, rank_within
from .frames import RowIndex
from .tables import (
    SESSION_EVENTS,
    SESSION_TEXTS,
    Admissible,
    Contracts,
    Evidence,
    Reachable,
    SessionEvents,
    SessionTexts,
)
from .walls.time_gates import clocks, rows_of_groups

EVENTS = 3
"""Events per request: the latest observations, not the session's history."""
CHARACTERS = 4_000
"""Characters read of an event: a tool may have printed megabytes."""
OBSERVED = ("session-event", "tool-output", "test-log")
"""Kinds of evidence that a session observes."""

Int = NDArray[np.int64]


def session_events(
    contracts: Contracts, admissible: Admissible, reachable: Reachable, evidence: Evidence, row_index: RowIndex
) -> SessionEvents:
    """The `EVENTS` newest admissible events of each request's session, newest first; none without a session."""
    sessions = pc.unique(flat(contracts["session_id"]).drop_null())
    if not len(sessions):
        return SESSION_EVENTS.empty()
    session, asked = (positions(table["session_id"], sessions) for table in (evidence, contracts))
    events = np.flatnonzero(session >= 0)
    events = events[among(gathered(evidence["evidence_kind"], events), OBSERVED)]
    group = integers(admissible["scope_group"])
    reached = rows_of_groups(reachable)
    clock, requests, rows = clocks(contracts), list[int](), list[int]()
    for number in np.flatnonzero((asked >= 0) & (group >= 0)).tolist():
        own = events[session[events] == asked[number]]
        reach = reached[group[number]]
        own = own[places_of(own, reach.rows[~reach.withheld]) >= 0]
        passes, placement = clock.judge(row_index, np.full(len(own), number), own)
        own, happened = own[passes], row_index.happened_at(own, placement)[passes]
        newest = own[np.lexsort((row_index.id_rank[own], -happened))][:EVENTS].tolist()
        requests += [number] * len(newest)
        rows += newest
    request, row = np.array(requests, np.int64), np.array(rows, np.int64)
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
