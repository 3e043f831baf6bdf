"""Context budget: the hard limit of a model input, messages and tool schemas together, for every limit from 0 up.

Reads: a turn with the lines of its sources, counters. Gives `fitted`, the same: the form in which the input shows each, and
which limit bound.

Note: rules, goal, state and the user's words are never cut here. If they alone are over the limit, the turn fails and
shows nothing. Every input is finally rendered as the model reads it, and counted whole; while it is over, the source
that is kept last goes.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .blocks.token_counting import Counters
from .turns.fitting import (
    BODY,
    FALLBACK,
    LONGER,
    NONE,
    Filled,
    Room,
    costs_of_frame,
    fill,
    input_limit,
    shown_texts,
    tokens_of,
)
from .turns.frame import PLACE, sealed
from .turns.reading import Row, Rows, TurnSources


def fitted(isolated: TurnSources, counters: Counters) -> TurnSources:
    """Of every source the form in which it fits (`shown`: body, lengthened, fallback or none), its `lines` and `section` in that
    form, `place` (-1: not in the input), the `tokens` that it takes without fences and headings, those that its part may
    have (`token_budget`), and `bound_by` (budget_part, budget_tokens or over_budget).
    """
    turn, sources, room = isolated.turn, isolated.sources, _room(isolated)
    counter = counters.get(turn["tokenizer"])
    forms = {form: tokens_of((row[form] for row in sources), counter) for form in (BODY, LONGER, FALLBACK)}
    schemas = tokens_of(map(_schema, sources), counter)
    some = [
        {
            "section": row["section"], "counts": "references" if row["section"] == PLACE["references"] else row["part"],
            "required": row["required"],
            BODY: forms[BODY][n] + schemas[n] if row["section"] >= 0 else -1,
            LONGER: forms[LONGER][n] + schemas[n] if row[LONGER] is not None else -1,
            FALLBACK: forms[FALLBACK][n] if row[FALLBACK] is not None else -1,
        }
        for n, row in enumerate(sources)
    ]  # fmt: skip
    keep = sorted(range(len(some)), key=lambda n: sources[n]["keep"])
    filled = fill(some, keep, room, *costs_of_frame(turn["fences"], counter))
    _counted_whole(filled, isolated, keep, room, counter)
    rows = [_fit(row, one, form, filled, room) for row, one, form in zip(sources, some, filled.shown, strict=True)]
    return isolated.adding(rows, tokens=filled.used, failed=filled.failed)


def _schema(source: Row) -> str | None:
    return f"{source['text']}\n" if source["source_kind"] == "tool_schema" else None


def _room(given: TurnSources) -> Room:
    limit = input_limit(given.turn)
    hard = {name: int(count) for name, _, count in (each.partition("=") for each in given.turn["limits"])}
    return Room(limit, min(given.turn["target_tokens"], limit), given.phase.shares, hard)


def _fit(source: Row, one: Row, form: str, filled: Filled, room: Room) -> dict[str, Any]:
    """What fits of a source; of a failed turn, how long each required part would be."""
    most = min(filled.part_limits.get(one["counts"], room.limit), room.hard.get(one["counts"], room.limit))
    bound = None
    if filled.failed:
        bound = "over_budget"
    elif one["section"] >= 0 and form not in (BODY, LONGER):
        bound = "budget_tokens" if one[BODY] > room.target - filled.used else "budget_part"
    needed = BODY if filled.failed and one["required"] else form
    return {
        **_in_form(source, form), "shown": form, "tokens": 0 if needed == NONE else one[needed], "bound_by": bound,
        "token_budget": room.limit if one["required"] else most,
    }  # fmt: skip


def _in_form(source: Row, form: str) -> dict[str, Any]:
    """Section, place and lines of a source that an input shows in a form."""
    if form == NONE:
        return {"section": -1, "place": -1, "lines": None}
    section = PLACE["references"] if form == FALLBACK else source["section"]
    return {"section": section, "place": source["place"], "lines": source[form]}


def _counted_whole(filled: Filled, given: TurnSources, keep: list[int], room: Room, counter: Any) -> None:
    """Count the input as the model reads it; shorten and drop what is kept last until it fits. If it cannot, nothing is shown,
    and what it requires is counted.
    """
    sources, shown = given.sources, filled.shown
    while True:
        rows = [{**source, **_in_form(source, form)} for source, form in zip(sources, shown, strict=True)]
        filled.used = _tokens(rows, given.turn, counter)
        if filled.used <= room.limit:
            return
        cut = next((n for n in reversed(keep) if shown[n] == LONGER), None)
        if cut is not None:
            shown[cut] = BODY
            continue
        cut = next((n for n in reversed(keep) if shown[n] != NONE and not sources[n]["required"]), None)
        if cut is None:
            filled.failed, shown[:] = True, [NONE] * len(sources)
            return
        shown[cut] = NONE


def _tokens(rows: Rows, turn: Row, counter: Any) -> int:
    """Tokens of both messages and the schemas of the shown sources."""
    schemas = "".join(_schema(row) or "" for row in sorted(rows, key=lambda row: row["place"]) if row["place"] >= 0)
    return int(counter.count(pa.array([*sealed(*shown_texts(rows, turn["fences"])), schemas], pa.large_string())).sum())
