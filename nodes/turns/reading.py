"""Reading tables row by row: turns with the state as of them, and the sources of each turn.

Gives `as_of_turns`, `with_sources`, `beside`, `first_of_window`, `rows_of` and `escaped_id`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..schema import Table
from .folding import Folded

__all__ = ["as_of_turns", "beside", "escaped_id", "first_of_window", "rows_of", "with_sources"]

WINDOW = 500
"""Most events that a turn looks at one by one."""
WINDOW_CHARACTERS = 600_000
EVENT_CHARACTERS = 24_000
"""Most characters that one event counts towards the window."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = Mapping[str, Any]


def as_of_turns(
    turns: pa.Table, events: Sequence[Row], facts: pa.Table, unread: Sequence[str]
) -> Iterator[tuple[Row, Folded, int]]:
    """Each turn with the state as of it and the number of loaded events before it. Turns are in the order of the log, so
    each event is folded once. Facts before these events of `unread` slots, most of those of a long session, are left out.
    """
    state, done = Folded.of(facts.filter(pc.invert(pc.is_in(facts["slot"], pa.array(unread))))), 0
    for turn in turns.to_pylist():
        while done < len(events) and events[done]["seq"] < turn["as_of_seq"]:
            state.add(events[done])
            done += 1
        yield turn, state, done


def with_sources(turns: pa.Table, sources: pa.Table) -> Iterator[tuple[Row, slice]]:
    """Each turn with the place of its sources, in the order of both tables; every turn has some."""
    runs = pc.run_end_encode(sources["input_id"].combine_chunks())
    ends = runs.run_ends.to_pylist()
    return zip(turns.to_pylist(), map(slice, [0, *ends], ends), strict=True)


def beside(declared: Table, sources: pa.Table, **columns: Any) -> pa.Table:
    """A table beside the sources: their keys, and the given columns."""
    keys = {name: sources[name] for name in ("input_id", "source_id", "position")}
    return declared.build({**keys, **columns})


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """A table as records. Times are made from numbers, at a tenth of the cost of `to_pylist`."""
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    rows = table.drop_columns(times).to_pylist()
    for name in times:
        for row, value in zip(rows, table[name].cast(pa.int64()).to_pylist(), strict=True):
            row[name] = None if value is None else _EPOCH + timedelta(microseconds=value)
    return rows


def escaped_id(snapshot_id: str) -> str:
    """The id of a snapshot inside of another id, where `:` ends it."""
    return snapshot_id.replace("%", "%25").replace(":", "%3A")


def first_of_window(events: Sequence[Row], end: int) -> int:
    """The first event before `end` that a turn looks at: what it shows of earlier ones comes from the state alone."""
    characters, first = 0, end
    while first > 0 and end - first < WINDOW:
        characters += min(events[first - 1]["characters"], EVENT_CHARACTERS)
        if characters > WINDOW_CHARACTERS:
            break
        first -= 1
    return first
