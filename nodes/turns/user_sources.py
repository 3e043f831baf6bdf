"""Sources of the user's messages: the goal, the last messages before the horizon, and the text pasted into either.

Gives `goals`, `pasted_texts` and `last_messages`, as `session_sources.rows`, and `own_and_pasted` of a goal.

Note: only the user's own words instruct. Pasted text (code, quotations, logs) is a source of its own, and untrusted.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import among, flat, integers
from .as_of import FOREVER, Sessions, holding
from .duties import BOUND, LONG_MESSAGE, apart
from .joining import joined
from .session_sources import named_id, rows

Int = NDArray[np.int64]

_TEXT = pa.large_string()
_OWN = re.compile(r"(?m)^(?!\[pasted, \d+ lines?\]$).*\w")
"""A line of the user's own words."""


def goals(states: pa.Table) -> list[pa.Table]:
    """The goal in the user's own words, and the text pasted into it, which is untrusted; a goal that is all pasted
    stays whole.
    """
    turn = np.flatnonzero(np.asarray(flat(states["user_goal"]).is_valid()))
    at = pa.array(turn)
    texts = flat(states["user_goal"]).take(at).dictionary_encode()
    parts = [own_and_pasted(text) for text in texts.dictionary.to_pylist()]
    own, pasted = (pa.array([each[place] for each in parts], _TEXT).take(texts.indices) for place in (0, 1))
    event = named_id("event", flat(states["goal_event"]).take(at))
    goal = rows(
        turn,
        source_id=named_id("goal", flat(states["goal_event"]).take(at)),
        source_kind="user_goal",
        part="user_goal",
        content_class="rule",
        standing="instruction",
        required=True,
        text=own,
        excerpt=_beginning(own, event),
        reference=event,
        row=turn,
    )
    some = np.flatnonzero(np.asarray(pasted.is_valid()))
    there = pa.array(some)
    return [goal, _of_pasted(turn[some], event.take(there), pasted.take(there), "Pasted with the goal")]


def own_and_pasted(goal: str) -> tuple[str, str | None]:
    """A goal in the user's own words, and the text pasted into it; a goal that is all pasted stays whole."""
    own, pasted = apart(goal)
    return (own, pasted) if _OWN.search(own) else (goal, None)


def pasted_texts(turn: Int, event: Int, events: pa.Table, states: pa.Table) -> pa.Table:
    """The text pasted into the messages of the horizon, except the goal."""
    goal = pc.equal(flat(events["event_id"]).take(pa.array(event)), flat(states["goal_event"]).take(pa.array(turn)))
    there = pc.and_(flat(events["pasted"]).take(pa.array(event)).is_valid(), pc.invert(pc.fill_null(goal, False)))
    some = np.flatnonzero(np.asarray(there))
    at = pa.array(event[some])
    id_, text = named_id("event", flat(events["event_id"]).take(at)), flat(events["pasted"]).take(at)
    return _of_pasted(turn[some], id_, text, "Pasted", event[some])


def _of_pasted(turn: Int, event: pa.Array, text: pa.Array, heading: str, row: Int | None = None) -> pa.Table:
    return rows(
        turn,
        source_id=pc.replace_substring_regex(event, r"^event", "pasted"),
        source_kind="pasted_text",
        part="recent_tail",
        content_class="untrusted_text",
        standing="untrusted",
        heading=heading,
        text=text,
        excerpt=_beginning(text, event, LONG_MESSAGE),
        reference=event,
        row=-1 if row is None else row,
    )


def _beginning(text: pa.Array, reference: pa.Array, longer_than: int = BOUND) -> pa.Array:
    """The beginning of a long text with a reference to the whole; null for a short one."""
    more = pc.subtract(pc.utf8_length(text), LONG_MESSAGE)
    note = joined(" [", pc.cast(more, pa.string()), " more characters: open ", reference, "]")
    return pc.if_else(
        pc.greater(pc.utf8_length(text), longer_than),
        joined(pc.utf8_slice_codeunits(text, 0, LONG_MESSAGE), note),
        None,
    )


def last_messages(sessions: Sessions, facts: pa.Table, first: Int) -> pa.Table:
    """The last messages of the user before `first`, the first event that each turn considers; later ones are events."""
    wanted = np.flatnonzero(among(facts["slot"], ("said",)))
    some = facts.take(pa.array(wanted))
    seq = integers(some["from_seq"])
    until = integers(pc.fill_null(some["until_seq"], FOREVER))
    fact, owner = holding(sessions, sessions.codes(some["session_id"]), seq, until)
    far = seq[fact] < first[owner]
    fact, owner = fact[far], owner[far]
    at = pa.array(fact)
    id_ = named_id("event", flat(some["event_id"]).take(at))
    return rows(
        owner,
        source_id=id_,
        source_kind="user_message",
        part="recent_tail",
        standing="history",
        heading=joined("Earlier, ", pc.replace_substring(flat(some["origin"]).take(at), ".", " ")),
        text=flat(some["value"]).take(at),
        reference=id_,
        seq=seq[fact],
        row=wanted[fact],
    )
