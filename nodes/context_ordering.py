"""Context ordering: the priority of every source, the order in which a budget keeps them, and their place in the input.

Reads: a turn with its selected sources. Gives `ordering`, the same with the order of each.

Note: rules before observations, current before historical, facts before guesses, explicit constraints before hints
(S3.24). A source that is only referenced has the lowest level, whatever it refers to.
"""

from __future__ import annotations

from collections.abc import Sequence

from .turns.reading import Row, TurnSources
from .turns.words import LOWEST, REQUIRED_PARTS, SOURCE_KINDS, TRIM_ORDERS


def ordering(selection: TurnSources) -> TurnSources:
    """Of every source `level` (S3.23), `keep` (its place where a binding budget keeps sources) and `place` in the input."""
    levels = [LOWEST if row["referenced"] else SOURCE_KINDS[row["source_kind"]].level for row in selection.sources]
    trim, both = TRIM_ORDERS[selection.turn["trim_order"]], list(zip(selection.sources, levels, strict=True))
    keep, place = _ranks([_kept(*one, trim) for one in both]), _ranks([_placed(*one) for one in both])
    return selection.adding({"level": a, "keep": b, "place": c} for a, b, c in zip(levels, keep, place, strict=True))


def _kept(source: Row, level: int, trim: Sequence[str]) -> tuple[int, ...]:
    """The required parts first, then by the order in which parts are cut, by level, and by rank."""
    if source["source_kind"] == "older_history":  # a few lines, without which the model does not know of them
        return 1, -1, level, source["rank"]
    part = "references" if level == LOWEST and source["part"] != "tools" else source["part"]
    cut = len(trim) - trim.index(part) if part in trim else 0
    return 0 if source["part"] in REQUIRED_PARTS and not source["referenced"] else 1, cut, level, source["rank"]


def _placed(source: Row, level: int) -> tuple[int, ...]:
    """Rules and tools as given, files by rank; what happened, and what the user said, in the order of the log."""
    if source["source_kind"] in ("recent_tail", "user_message", "active_constraint"):
        return level, 0, source["seq"], source["position"]
    return level, 1, source["position"] if source["part"] in ("rules", "tools") else source["rank"]


def _ranks(keys: Sequence[tuple[int, ...]]) -> list[int]:
    """The rank of each key among them."""
    ranks = [0] * len(keys)
    for rank, n in enumerate(sorted(range(len(keys)), key=keys.__getitem__)):
        ranks[n] = rank
    return ranks
