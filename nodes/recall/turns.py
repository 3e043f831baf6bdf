"""The rows beside a row: in its conversation by time, in its document by line.

Reads a scope and its placements. Gives the sessions of a scope as groups of its rows, and the rows beside given ones.

Note: the kind of a row and its session id determine whether it is a turn, not its reader: chat logs, session events and
memories of a session are treated alike. Two turns are neighbors if nothing admissible is between them, no more than
`GAP` passed, and both belong to the same session. So a row that the request may not see does not exist: it is not a
neighbor and does not separate neighbors.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import codes_of, constants, distinct_rows, gathered, integers
from ..columns.ragged import slabs, spread
from .group_scores import Groups
from .recall_scope import PAIRS, Int, ScopeGroup

KINDS = ("memory", "session-event")
"""Kinds of evidence whose rows are turns if they have a session."""
GAP = 2 * 3_600 * 1_000_000
"""Microseconds of silence after which a session counts as another conversation."""
_OF = ("owner_project", "owner_user", "session_id")
"""The columns that are equal for turns of one session, whatever their source."""


def sessions(scope: ScopeGroup) -> Groups | None:
    """The sessions of a scope as groups of its rows; None where no row is a turn."""

    def made() -> Groups | None:
        session = scope.column("session_id")
        if session.null_count == len(session):
            return None
        turns = np.asarray(pc.is_in(scope.column("evidence_kind"), value_set=constants(KINDS)))
        turns = turns & np.asarray(session.is_valid())
        return Groups.numbered(codes_of([scope.column(name) for name in _OF]), turns) if turns.any() else None

    return scope.once("sessions", made)


def beside(
    scope: ScopeGroup, placements: pa.Table, request: Int, local: Int, page: Int, reach: int, *, timed: bool
) -> Int:
    """The rows before and after each of some rows on its page, at the clock of its request, as positions in `scope.rows`:
    int64[2 * reach, rows], -1 where there is none.

    Lines are for -reach, ..., -1, 1, ..., reach. Each page is sorted once per clock, however many rows and requests use
    it.

    Args:
        scope: the row group.
        placements: the frame's placements, for lines.
        request: the contract row of each row.
        local: the position of each row; an inadmissible one has no adjacent rows.
        page: the session or document of each row of the scope.
        reach: the number of rows on each side.
        timed: whether rows of a page are in order of time, and silence separates them; else they are in order of lines.
    """
    steps = [step for step in range(-reach, reach + 1) if step]
    found = np.full((len(steps), len(local)), -1, dtype=np.int64)
    by_page = scope.once(("pages", timed), lambda: page.argsort(kind="stable"))
    first, of_row = distinct_rows(scope.tables.clock[1][request], page[local])
    asking, wanted = request[first], page[local[first]]
    starts = page[by_page].searchsorted(wanted)
    counts = page[by_page].searchsorted(wanted, side="right") - starts
    seeds = of_row.argsort(kind="stable")
    edges = of_row[seeds].searchsorted(np.arange(len(first) + 1))
    for low, high in slabs(counts, PAIRS):
        of, at = spread(starts[low:high], counts[low:high])
        of, member, stretch = _in_order(scope, placements, asking[low:high][of], of, by_page[at], timed)
        code = of * len(scope.rows) + member
        place = code.argsort()
        seed = seeds[edges[low] : edges[high]]
        asked = (of_row[seed] - low) * len(scope.rows) + local[seed]
        near = np.minimum(code[place].searchsorted(asked), max(len(code) - 1, 0))
        known = code[place[near]] == asked if len(code) else np.zeros(len(seed), dtype=bool)
        seed, here = seed[known], place[near[known]]
        for line, step in zip(found, steps, strict=True):
            there = here + step
            inside = (there >= 0) & (there < len(stretch))
            inside[inside] = stretch[there[inside]] == stretch[here[inside]]
            line[seed[inside]] = member[there[inside]]
    return found


def _in_order(
    scope: ScopeGroup, placements: pa.Table, request: Int, page: Int, member: Int, timed: bool
) -> tuple[Int, Int, Int]:
    """The admissible ones of rows on pages, by page, time, line and id; and the stretch of neighbors of each."""
    index = scope.tables.row_index
    open_, placement = scope.admitted(request, member)
    page, member, placement = page[open_], member[open_], placement[open_]
    row = scope.rows[member]
    time = index.happened_at(row, placement) if timed else np.zeros(len(row), dtype=np.int64)
    line = integers(gathered(placements["line_start"], placement).fill_null(0))
    order = np.lexsort((index.id_rank[row], line, time, page))
    page, member, time = page[order], member[order], time[order]
    apart = np.ones(len(page), dtype=bool)
    apart[1:] = (page[1:] != page[:-1]) | (time[1:] - time[:-1] > GAP)
    return page, member, apart.cumsum()
