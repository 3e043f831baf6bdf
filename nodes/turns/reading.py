"""Reading tables row by row: turns with the state as of them, and the rows of each turn.

Gives `as_of_turns`, `first_of_window`, `rows_of` and `by_turn`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .folding import Folded

__all__ = ["as_of_turns", "by_turn", "first_of_window", "rows_of"]

WINDOW = 500
"""Most events that a turn looks at one by one."""
WINDOW_CHARACTERS = 600_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EVENT_CHARACTERS = 24_000
"""Most characters that one event counts towards the window."""

Row = Mapping[str, Any]


def as_of_turns(
    turns: pa.Table, events: pa.Table, facts: pa.Table, *, words: bool = False
) -> Iterator[tuple[Row, Folded, Sequence[Row], int]]:
    """Each turn with the state as of it, the loaded events of its session, and how many of these precede it. Turns of
    a session are in the order of `as_of_seq`, so each event is folded once. The user's words before these events, most
    of the facts of a long session, are left out unless asked for.
    """
    if not words:
        facts = facts.filter(pc.not_equal(facts["slot"], "word"))
    by_session: dict[str, list[dict[str, Any]]] = {}
    for row in rows_of(events):
        by_session.setdefault(row["session_id"], []).append(row)
    folded: dict[str, tuple[Folded, int]] = {}
    for turn in turns.to_pylist():
        session = turn["session_id"]
        rows = by_session.get(session, [])
        if session not in folded:
            own = facts.filter(pc.equal(facts["session_id"], session))
            folded[session] = (Folded.of(own), 0)
        state, done = folded[session]
        while done < len(rows) and rows[done]["seq"] < turn["as_of_seq"]:
            state.add(rows[done])
            done += 1
        folded[session] = (state, done)
        yield turn, state, rows, done


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """A table as records. Times are made from numbers, at a tenth of the cost of `to_pylist`."""
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    rows = table.drop_columns(times).to_pylist()
    for name in times:
        for row, value in zip(rows, table[name].cast(pa.int64()).to_pylist(), strict=True):
            row[name] = None if value is None else _EPOCH + timedelta(microseconds=value)
    return rows


def by_turn(input_ids: pa.ChunkedArray) -> list[slice]:
    """The rows of each model input, in table order; inputs are contiguous."""
    runs = pc.run_end_encode(input_ids.combine_chunks())
    ends = runs.run_ends.to_pylist()
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def first_of_window(events: Sequence[Row], end: int) -> int:
    """The first event before `end` that a turn looks at: what it shows of earlier ones comes from the state alone."""
    characters, first = 0, end
    while first > 0 and end - first < WINDOW:
        characters += min(events[first - 1]["characters"], EVENT_CHARACTERS)
        if characters > WINDOW_CHARACTERS:
            break
        first -= 1
    return first
