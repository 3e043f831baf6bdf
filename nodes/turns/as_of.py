"""The facts and events as of an event, for many turns at once: look-ups in runs of a sorted log.

Gives: `Sessions` (the place of a turn among the events of its session), `holding` (which facts hold at which turns) and
`before` (the last events before each turn).

Note: the cost depends on the facts that hold at a turn and the events in its window, never on the length of the log. A
fact has the range of turns at which it holds, and is expanded over those turns only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import Column, flat, integers, positions
from ..columns.ragged import spread

Int = NDArray[np.int64]
FOREVER = np.iinfo(np.int64).max
HORIZON = 48
"""Number of events that a turn considers one by one."""


@dataclass(frozen=True)
class Sessions:
    """The session names of some turns, and the turns sorted by session and event."""

    names: pa.Array
    turn_session: Int
    turn_seq: Int
    order: Int
    """Turns by (session, seq)."""
    keys: Int
    """Their keys, ascending."""
    width: int

    @classmethod
    def of(cls, turns: pa.Table) -> Sessions:
        """Builds it from CONTEXT_TURNS."""
        names = pc.unique(flat(turns["session_id"]))
        session = positions(turns["session_id"], names)
        seq = integers(turns["as_of_seq"])
        width = int(seq.max(initial=0)) + 2
        keys = session * width + seq
        order = np.argsort(keys, kind="stable")
        return cls(names, session, seq, order, keys[order], width)

    def codes(self, column: Column) -> Int:
        """The session of each row, -1 for one without turns."""
        return positions(column, self.names)

    def behind(self, session: Int, seq: Int) -> Int:
        """Position in the sorted turns of the first turn of this session that has seen this event."""
        return self.keys.searchsorted(session * self.width + np.minimum(seq, self.width - 2) + 1, side="left")


def holding(sessions: Sessions, session: Int, start: Int, until: Int) -> tuple[Int, Int]:
    """(fact, turn) pairs, by fact: each fact with each turn at which it holds, from the first turn that has seen the
    event that set it to the last one that has not seen the event that ended it.
    """
    known = session >= 0
    low, high = sessions.behind(session, start), sessions.behind(session, until)
    fact, place = spread(np.where(known, low, 0), np.where(known, np.maximum(high - low, 0), 0))
    return fact, sessions.order[place]


def before(sessions: Sessions, session: Int, seq: Int, most: int) -> tuple[Int, Int]:
    """(turn, row) pairs by turn: the last `most` rows of its session before each turn, in the order of events."""
    known = np.flatnonzero(session >= 0)
    code = session[known] * sessions.width + np.minimum(seq[known], sessions.width - 1)
    order = np.argsort(code, kind="stable")
    known, code = known[order], code[order]
    end = code.searchsorted(sessions.turn_session * sessions.width + sessions.turn_seq, side="left")
    begin = code.searchsorted(sessions.turn_session * sessions.width, side="left")
    low = np.maximum(begin, end - most)
    turn, place = spread(low, end - low)
    return turn, known[place]


def first_seen(turn: Int, seq: Int, turns: int) -> Int:
    """The first event that each turn considers, FOREVER for a turn without any; `turn` and `seq` are of the events."""
    first = np.full(turns, FOREVER, dtype=np.int64)
    np.minimum.at(first, turn, seq)
    return first


def last_by(asked: tuple[Int, Int], turn: Int, seq: Int, created: Int) -> Int:
    """For each (turn, instant) pair the last event of the turn that was recorded at or before it, -1 for none. `turn`,
    `seq` and `created` describe the events that the turns consider.
    """
    instants = np.unique(np.concatenate([created, asked[1]]))
    width = len(instants) + 1
    code = turn * width + instants.searchsorted(created)
    order = np.argsort(code, kind="stable")
    code, span = code[order], int(seq.max(initial=0)) + 2
    so_far = np.maximum.accumulate(turn[order] * span + seq[order])
    place = code.searchsorted(asked[0] * width + instants.searchsorted(asked[1]), side="right") - 1
    found = np.append(so_far, -1)[place]
    return np.where((place >= 0) & (found // span == asked[0]), found % span, -1)


def last_per(group: Int, count: int, order: Int) -> Int:
    """For each of `count` groups the member with the greatest `order` (the last of equals), -1 for a group without members."""
    found = np.full(count, -1, dtype=np.int64)
    by = np.lexsort((order, group))
    found[group[by]] = by
    return found
