"""Context ordering: the priority of every source, the order in which a budget keeps them, and their place in the input.

Reads: sources, selection, turns. Gives `ordering`, beside the sources.

Note: rules before observations, current before historical, facts before guesses, explicit constraints before hints
(S3.24). A source that is only referenced has the lowest level, whatever it refers to.
"""

from __future__ import annotations

from .context_tables import ORDERING, ContextSources, ContextTurns, Ordering, Selection
from .turns.reading import by_turn
from .turns.words import LEVELS, LOWEST, REQUIRED_PARTS


def ordering(context_sources: ContextSources, selection: Selection, context_turns: ContextTurns) -> Ordering:
    """Level, keep and place of each source, in the order of the sources."""
    sources = context_sources.select(["input_id", "source_id", "position", "source_kind", "part", "seq", "standing"]).to_pylist()
    chosen = selection.select(["referenced", "rank", "decided_by"]).to_pylist()
    trims = dict(zip(*(context_turns[name].to_pylist() for name in ("input_id", "trim_order")), strict=True))
    rows: list[dict[str, object]] = []
    for part in by_turn(context_sources["input_id"]):
        mine = list(zip(sources[part], chosen[part], strict=True))
        trim = trims[mine[0][0]["input_id"]]
        levels = [LOWEST if own["referenced"] else LEVELS[source["source_kind"]] for source, own in mine]

        def kept(n: int) -> tuple[int, int, int, int]:
            source, own = mine[n]
            part = "references" if own["referenced"] or levels[n] == LOWEST and source["part"] != "tools" else source["part"]
            cut = len(trim) - trim.index(part) if part in trim else 0
            return (0 if source["part"] in REQUIRED_PARTS and not own["referenced"] else 1, cut, levels[n], own["rank"])

        def placed(n: int) -> tuple[int, int, int]:
            """Rules and files by rank; what happened, and what the user said, in the order of the log."""
            source, own = mine[n]
            in_time = source["source_kind"] in ("recent_tail", "user_message", "active_constraint")
            return (levels[n], 0 if in_time else 1, source["seq"] if in_time else own["rank"] if source["part"] not in ("rules", "tools") else n)

        keep, place = ({n: rank for rank, n in enumerate(sorted(range(len(mine)), key=key))} for key in (kept, placed))
        rows += [
            {"input_id": source["input_id"], "source_id": source["source_id"], "position": source["position"],
             "level": levels[n], "keep": keep[n], "place": place[n]}
            for n, (source, _) in enumerate(mine)
        ]  # fmt: skip
    return ORDERING.from_rows(rows)
