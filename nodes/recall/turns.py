"""Turns: rows that are part of a conversation, in chronological order.

Reads the evidence of a frame and the inputs of every lane. Gives the session of each row, the sessions of a scope as
groups, and the turns adjacent to given ones.

Note: the kind of a row and its session id determine whether it is a turn, not its reader: chat logs, session events and
memories of a session are treated alike. Two turns are neighbors if nothing admissible is between them, no more than
`GAP` passed, and both belong to the same session. So a turn that the request may not see does not exist: it is not a
neighbor and does not separate neighbors.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.kept import OfTable
from ..columns.keys import codes_of, constants, distinct_numbers, distinct_rows, flat, gathered, integers
from ..columns.ragged import slabs, spread
from .group_scores import Groups
from .recall_scope import PAIRS, Bool, Int, RecallTables, ScopeGroup

KINDS = ("memory", "session-event")
"""Kinds of evidence whose rows are turns if they have a session."""
GAP = 2 * 3_600 * 1_000_000
"""Microseconds of silence after which a session counts as another conversation."""
_OF = ("owner_project", "owner_user", "session_id")
"""The columns that are equal for turns of one session, whatever their source."""


def _sessions(evidence: pa.Table) -> Int | None:
    session = evidence["session_id"]
    if session.null_count == len(session):
        return None
    kind = pc.is_in(flat(evidence["evidence_kind"]), value_set=constants(KINDS))
    rows = (np.asarray(kind) & np.asarray(flat(session).is_valid())).nonzero()[0]
    if not len(rows):
        return None
    found = np.full(evidence.num_rows + 1, -1, dtype=np.int64)
    _, found[rows] = distinct_numbers(codes_of([gathered(evidence[name], rows) for name in _OF]))
    return found


sessions_of = OfTable[Int | None](_sessions)
"""The session of each row of a frame, -1 for a row that is not a turn, and a final -1; None if no row is a turn."""


def turn_groups(scope: ScopeGroup) -> Groups | None:
    """The sessions of a scope as groups of its rows; None where there are fewer than two."""
    session = sessions_of(scope.tables.evidence)
    if session is None:
        return None
    own = session[scope.rows]
    groups = Groups.numbered(own, own >= 0)
    return groups if groups.count > 1 else None


def turns_beside(tables: RecallTables, placements: pa.Table, request: Int, row: Int, reach: int) -> Int:
    """The turns before and after each of some turns, as frame rows: int64[2 * reach, turns], -1 where there is none.

    Lines are for -reach, ..., -1, 1, ..., reach. The cost depends on the sessions of the turns.

    Args:
        tables: the inputs every lane reads.
        placements: the frame's placements; lines order turns of one instant.
        request: the contract row of each turn.
        row: the frame row of each turn; an inadmissible one has no adjacent turns.
        reach: the number of turns on each side.
    """
    steps = [step for step in range(-reach, reach + 1) if step]
    beside = np.full((len(steps), len(row)), -1, dtype=np.int64)
    session = sessions_of(tables.evidence)
    if session is None or not len(row):
        return beside
    first, page = distinct_rows(tables.clock[1][request], tables.group[request], session[row])
    group = tables.group[request][first]
    starts, counts, member = _members(tables, session, group, session[row][first])
    clock = tables.clock[1][request][first]
    by_page = page.argsort(kind="stable")
    seeds = page[by_page].searchsorted(np.arange(len(first) + 1))
    width = len(tables.row_index.id_rank)
    for low, high in slabs(counts, PAIRS):
        of, at = spread(starts[low:high], counts[low:high])
        of, member_row, stretch = _in_order(tables, placements, clock[low:high][of], of, member[at])
        code = of * width + member_row
        place = code.argsort()
        seed = by_page[seeds[low] : seeds[high]]
        wanted = (page[seed] - low) * width + row[seed]
        found = np.minimum(code[place].searchsorted(wanted), max(len(code) - 1, 0))
        known = code[place[found]] == wanted if len(code) else np.zeros(len(seed), dtype=bool)
        seed, here = seed[known], place[found[known]]
        for line, step in zip(beside, steps, strict=True):
            there = here + step
            inside = (there >= 0) & (there < len(stretch))
            inside[inside] = stretch[there[inside]] == stretch[here[inside]]
            line[seed[inside]] = member_row[there[inside]]
    return beside


def links_of_turns(
    scope: ScopeGroup, sub: Int, row: Int, placements: pa.Table, reach: int
) -> Iterator[tuple[Int, Int]]:
    """Seed number and position in `scope.rows` of the turns adjacent to seeds that are turns."""
    session = sessions_of(scope.tables.evidence)
    turns = (session[row] >= 0).nonzero()[0] if session is not None else row[:0]
    if not len(turns):
        return
    tables = scope.tables
    for line in turns_beside(tables, placements, tables.sub_request[sub[turns]], row[turns], reach):
        there = line >= 0
        yield turns[there], scope.local(line[there])


def _members(tables: RecallTables, session: Int, group: Int, wanted: Int) -> tuple[Int, Int, Int]:
    """The visible turns of pairs of row group and session: those of pair `i` are `starts[i]`, `counts[i]` of the rows."""
    groups = integers(tables.reachable["scope_group"])
    used = distinct_numbers(group)[0]
    low = groups.searchsorted(used)
    _, at = spread(low, groups.searchsorted(used, side="right") - low)
    asked = np.zeros(int(session.max()) + 2, dtype=bool)
    asked[wanted] = True
    row = integers(tables.reachable["row"])[at]
    kept = asked[session[row]] & (integers(tables.reachable["withheld_by"])[at] == 0)
    row, at = row[kept], at[kept]
    code = groups[at] * len(asked) + session[row]
    order = code.argsort(kind="stable")
    pair = group * len(asked) + wanted
    starts = code[order].searchsorted(pair)
    return starts, code[order].searchsorted(pair, side="right") - starts, row[order]


def _in_order(tables: RecallTables, placements: pa.Table, clock: Int, page: Int, row: Int) -> tuple[Int, Int, Int]:
    """The admissible ones of turns on pages, by page, time, line and id; and the stretch of neighbors of each."""
    index = tables.row_index
    open_, placement = tables.clock[0].judge(index, clock, row)
    page, row, placement = page[open_], row[open_], placement[open_]
    time = index.happened_at(row, placement)
    line = integers(gathered(placements["line_start"], placement).fill_null(0))
    order = np.lexsort((index.id_rank[row], line, time, page))
    page, row, time = page[order], row[order], time[order]
    apart: Bool = np.ones(len(page), dtype=bool)
    apart[1:] = (page[1:] != page[:-1]) | (time[1:] - time[:-1] > GAP)
    return page, row, apart.cumsum()
