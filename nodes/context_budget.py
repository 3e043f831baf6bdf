"""Context budget: the hard limit of a model input, messages and tool schemas together, for every limit from 0 up.

Reads: isolated sources, their order, turns, states, phases, counters. Gives `fitted`, beside the sources: the form in
which the input shows each, and which limit bound.

Note: rules, goal, state and the user's words are never cut here. If they alone are over the limit, the turn fails and
shows nothing. Every input is finally rendered as the model reads it, and counted whole; while it is over, the source
that is kept last goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from .blocks.token_counting import Counters
from .context_tables import (
    FITTED,
    ContextSources,
    ContextTurns,
    Fitted,
    Isolated,
    Ordering,
    PhasePolicies,
    TurnStates,
)
from .turns.fitting import (
    BODY,
    FALLBACK,
    LONGER,
    NONE,
    Candidate,
    Filled,
    Room,
    costs_of_frame,
    fill,
    input_limit,
    is_required,
    shown_texts,
    tokens_of,
)
from .turns.frame import PLACE, counted, sealed
from .turns.reading import beside, with_sources
from .turns.words import PARTS, REQUIRED_PARTS

Row = Mapping[str, Any]


def fitted(
    isolated: Isolated,
    context_sources: ContextSources,
    ordering: Ordering,
    context_turns: ContextTurns,
    turn_states: TurnStates,
    phase_policies: PhasePolicies,
    counters: Counters,
) -> Fitted:
    """The form in which every source fits, in the order of the sources."""
    sources = context_sources.select(["source_kind", "part", "text"]).to_pylist()
    lines, order = isolated.to_pylist(), ordering.to_pylist()
    ids = context_sources["input_id"].to_pylist()
    body, longer, fallback = (
        tokens_of([each[name] for each in lines], ids, context_turns, counters)
        for name in ("body", "longer", "fallback")
    )
    tools = [f"{each['text']}\n" if each["source_kind"] == "tool_schema" else None for each in sources]
    schemas = tokens_of(tools, ids, context_turns, counters)
    some = [
        Candidate(
            section=line["section"], part="references" if line["section"] == PLACE["references"] else source["part"], required=is_required(source, line),
            body=int(body[n] + schemas[n]) if line["section"] >= 0 else -1,
            longer=int(longer[n]) if line["longer"] is not None else -1,
            fallback=int(fallback[n]) if line["fallback"] is not None else -1,
        )
        for n, (source, line) in enumerate(zip(sources, lines, strict=True))
    ]  # fmt: skip
    phases = {phase["phase"]: phase for phase in phase_policies.to_pylist()}
    frames: dict[tuple[str, str], Any] = {}
    rows: list[dict[str, Any]] = []
    turns = with_sources(context_turns, context_sources)
    for (turn, part), state in zip(turns, turn_states["phase"].to_pylist(), strict=True):
        counter = counters.get(turn["tokenizer"])
        key = (turn["fences"], turn["tokenizer"])
        frame = frames.setdefault(key, costs_of_frame(turn["fences"], counter))
        mine, own = some[part], order[part]
        keep = sorted(range(len(mine)), key=lambda n, own=own: own[n]["keep"])
        room = _room(turn, phases[state])
        found = fill(mine, keep, room, *frame)
        _counted_whole(found, mine, keep, lines[part], own, tools[part], turn["fences"], room, counter)
        for n, (one, shown) in enumerate(zip(mine, found.shown, strict=True)):
            tokens = {BODY: one.body, LONGER: one.longer + int(schemas[part][n]), FALLBACK: one.fallback}.get(shown, 0)
            if found.failed and one.required:
                tokens = one.body  # nothing is shown, and the input tells how long each part would be
            most = found.part_limits.get(one.part, room.limit)
            rows.append({
                "shown": shown, "tokens": tokens, "part_limit": room.limit if one.required else min(most, room.hard.get(one.part, room.limit)),
                "bound_by": _bound(one, shown, found, room),
            })  # fmt: skip
    columns = ("shown", "tokens", "part_limit", "bound_by")
    return beside(FITTED, context_sources, **{name: [row[name] for row in rows] for name in columns})


def _room(turn: Row, phase: Row) -> Room:
    limit = input_limit(turn)
    hard = {name: int(count) for name, _, count in (each.partition("=") for each in turn["limits"])}
    shares = {part: phase[part] for part in PARTS.values if part not in REQUIRED_PARTS}
    return Room(limit, min(turn["target_tokens"], limit), shares, hard)


def _bound(one: Candidate, shown: str, found: Filled, room: Room) -> str | None:
    if found.failed:
        return "over_budget"
    if one.section < 0 or shown in (BODY, LONGER):
        return None
    return "budget_tokens" if one.body > room.target - found.used else "budget_part"


def _counted_whole(
    found: Filled,
    some: list[Candidate],
    keep: list[int],
    lines: list[Row],
    order: list[Row],
    tools: list[str | None],
    style: str,
    room: Room,
    counter: Any,
) -> None:
    """Count the input as the model reads it; shorten and drop what is kept last until it fits."""
    while not found.failed:
        texts = sealed(*shown_texts(found.shown, lines, order, style))
        places = sorted(range(len(order)), key=lambda n: order[n]["place"])
        schemas = "".join(tools[n] or "" for n in places if found.shown[n] != NONE)
        found.used = int(counter.count(pa.array([*map(counted, texts), schemas], pa.large_string())).sum())
        if found.used <= room.limit:
            return
        cut = next((n for n in reversed(keep) if found.shown[n] == LONGER), None)
        if cut is not None:
            found.shown[cut] = BODY
            continue
        cut = next((n for n in reversed(keep) if found.shown[n] != NONE and not some[n].required), None)
        if cut is None:
            found.failed, found.shown[:] = True, [NONE] * len(some)
            return
        found.shown[cut] = NONE
