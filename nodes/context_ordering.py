"""Context ordering: the priority of every source, the order in which a budget keeps them, and their place in the input.

Reads: sources, selection, turns. Gives `ordering`, beside the sources.

Note: rules before observations, current before historical, facts before guesses, explicit constraints before hints
(S3.24). A source that is only referenced has the lowest level, whatever it refers to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .context_tables import ORDERING, ContextSources, ContextTurns, Ordering, Selection
from .turns.reading import beside, with_sources
from .turns.words import LEVELS, LOWEST, REQUIRED_PARTS, TRIM_ORDERS


def ordering(context_sources: ContextSources, selection: Selection, context_turns: ContextTurns) -> Ordering:
    """Level, keep and place of each source, in the order of the sources."""
    sources = context_sources.select(["source_kind", "part", "seq", "position"]).to_pylist()
    chosen = selection.select(["referenced", "rank"]).to_pylist()
    levels = [
        LOWEST if own["referenced"] else LEVELS[source["source_kind"]]
        for source, own in zip(sources, chosen, strict=True)
    ]
    rows = [{**source, **own, "level": level} for source, own, level in zip(sources, chosen, levels, strict=True)]
    keep: list[int] = []
    place: list[int] = []
    for turn, part in with_sources(context_turns, context_sources):
        keep += _ranks([_kept(source, TRIM_ORDERS[turn["trim_order"]]) for source in rows[part]])
        place += _ranks([_placed(source) for source in rows[part]])
    return beside(ORDERING, context_sources, level=levels, keep=keep, place=place)


def _kept(source: Mapping[str, Any], trim: Sequence[str]) -> tuple[int, ...]:
    """The required parts first, then by the order in which parts are cut, by level, and by rank."""
    level = source["level"]
    if source["source_kind"] == "older_history":  # a few lines, without which the model does not know of them
        return 1, -1, level, source["rank"]
    part = "references" if level == LOWEST and source["part"] != "tools" else source["part"]
    cut = len(trim) - trim.index(part) if part in trim else 0
    return 0 if source["part"] in REQUIRED_PARTS and not source["referenced"] else 1, cut, level, source["rank"]


def _placed(source: Mapping[str, Any]) -> tuple[int, ...]:
    """Rules and tools as given, files by rank; what happened, and what the user said, in the order of the log."""
    if source["source_kind"] in ("recent_tail", "user_message", "active_constraint"):
        return source["level"], 0, source["seq"], source["position"]
    return source["level"], 1, source["position"] if source["part"] in ("rules", "tools") else source["rank"]


def _ranks(keys: Sequence[tuple[int, ...]]) -> list[int]:
    """The rank of each key among them."""
    ranks = [0] * len(keys)
    for rank, n in enumerate(sorted(range(len(keys)), key=keys.__getitem__)):
        ranks[n] = rank
    return ranks
