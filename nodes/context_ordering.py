"""Context ordering: the priority of every source, the order in which a budget keeps them, and their place in the input.

Reads: sources, selection, turns. Gives `ordering`, beside the sources.

Note: rules before observations, current before historical, facts before guesses, explicit constraints before hints
(S3.24). A source that is only referenced has the lowest level, whatever it refers to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .context_tables import ORDERING, ContextSources, ContextTurns, Ordering, Selection
from .turns.reading import by_turn
from .turns.words import LEVELS, LOWEST, REQUIRED_PARTS


def ordering(context_sources: ContextSources, selection: Selection, context_turns: ContextTurns) -> Ordering:
    """Level, keep and place of each source, in the order of the sources."""
    sources = context_sources.select(
        ["input_id", "source_id", "position", "source_kind", "part", "seq", "standing"]
    ).to_pylist()
    chosen = selection.select(["referenced", "rank", "decided_by"]).to_pylist()
    trims = dict(zip(*(context_turns[name].to_pylist() for name in ("input_id", "trim_order")), strict=True))
    rows: list[dict[str, Any]] = []
    for part in by_turn(context_sources["input_id"]):
        mine = [{**source, **own} for source, own in zip(sources[part], chosen[part], strict=True)]
        for n, source in enumerate(mine):
            source["level"] = LOWEST if source["referenced"] else LEVELS[source["source_kind"]]
            source["kept"] = _kept(source, trims[source["input_id"]])
            source["placed"] = _placed(source, n)
        keep, place = (_ranks([source[key] for source in mine]) for key in ("kept", "placed"))
        rows += [
            {**{name: source[name] for name in ("input_id", "source_id", "position", "level")}, "keep": keep[n], "place": place[n]}
            for n, source in enumerate(mine)
        ]  # fmt: skip
    return ORDERING.from_rows(rows)


def _kept(source: Mapping[str, Any], trim: Sequence[str]) -> tuple[int, ...]:
    """The required parts first, then by the order in which parts are cut, by level, and by rank."""
    level = source["level"]
    if source["source_kind"] == "older_history":  # a few lines, without which the model does not know of them
        return 1, -1, level, source["rank"]
    part = "references" if level == LOWEST and source["part"] != "tools" else source["part"]
    cut = len(trim) - trim.index(part) if part in trim else 0
    return 0 if source["part"] in REQUIRED_PARTS and not source["referenced"] else 1, cut, level, source["rank"]


def _placed(source: Mapping[str, Any], position: int) -> tuple[int, ...]:
    """Rules and tools as given, files by rank; what happened, and what the user said, in the order of the log."""
    if source["source_kind"] in ("recent_tail", "user_message", "active_constraint"):
        return source["level"], 0, source["seq"], position
    return source["level"], 1, position if source["part"] in ("rules", "tools") else source["rank"]


def _ranks(keys: Sequence[tuple[int, ...]]) -> dict[int, int]:
    return {n: rank for rank, n in enumerate(sorted(range(len(keys)), key=keys.__getitem__))}
