"""Context ordering: the level of each source, its priority under a tight budget, and its place in the input.

Reads: sources, their selection, turns. Gives `ordering`, one row per source.

Note: these are three orders. The level is the priority of S3.23. The keep order is the turn's trim order reversed. The
place of a text follows the level, and within the tail the order of events.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .columns.keys import among, constants, flat, integers, positions, rank_within, truth
from .context_tables import ORDERING, ContextSources, ContextTurns, Ordering, Selection
from .turns.words import LEVELS, LOWEST, PARTS

HINTS = LEVELS["memory_candidate"]
"""Level of constraints that were not proposed by the user."""
_REFERENCES = "references"


def ordering(context_sources: ContextSources, selection: Selection, context_turns: ContextTurns) -> Ordering:
    """Level, keep order and place of every source, in the order of the sources."""
    turn = positions(context_sources["input_id"], context_turns["input_id"])
    kind = flat(context_sources["source_kind"])
    level = np.array([LEVELS[name] for name in LEVELS])[
        np.asarray(pc.index_in(kind, value_set=constants(tuple(LEVELS))))
    ]
    level[among(kind, ("active_constraint",)) & among(context_sources["standing"], ("hint",))] = HINTS
    referenced = truth(selection["referenced"])
    level = np.where(referenced, LOWEST, level)
    rank, position, seq = (
        integers(t[name]) for t, name in ((selection, "rank"), (context_sources, "position"), (context_sources, "seq"))
    )
    named = truth(context_sources["required"]) & referenced  # rules for other work go first
    required = truth(context_sources["required"]) & ~referenced
    lowest = referenced | among(kind, ("history_summary", "older_history"))
    part = _kept_first(context_sources["part"], lowest, turn, context_turns)
    keep = np.lexsort((position, rank, part, named, ~required, turn))
    happened = among(kind, ("recent_tail", "user_message", "latest_observation"))
    within = np.where(
        happened,
        seq,
        np.where(among(kind, ("retrieval_result", "file_content", "search_match", "memory_candidate")), rank, position),
    )
    place = np.lexsort((position, within, among(kind, ("tool_schema",)), level, turn))
    return ORDERING.build(
        {
            "input_id": context_sources["input_id"],
            "source_id": context_sources["source_id"],
            "position": context_sources["position"],
            "level": level.astype(np.int32),
            "keep": _ranks(keep, turn),
            "place": _ranks(place, turn),
        }
    )


def _kept_first(part: pa.ChunkedArray, lowest: np.ndarray, turn: np.ndarray, turns: pa.Table) -> np.ndarray:
    """The trim rank of each source's part: 0 for the part that is cut last."""
    names = (*PARTS.values, _REFERENCES)
    orders = pc.binary_join(flat(turns["trim_order"]), " ").dictionary_encode()
    table = np.array(
        [[_place(order.split(), name) for name in names] for order in orders.dictionary.to_pylist()]
    ).reshape(-1, len(names))
    code = np.asarray(pc.index_in(flat(part), value_set=constants(names))).astype(np.int64)
    code = np.where(lowest, names.index(_REFERENCES), code)
    return table[np.asarray(orders.indices).astype(np.int64)[turn], code]


def _place(order: list[str], name: str) -> int:
    return len(order) - order.index(name) if name in order else 0


def _ranks(order: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The place of each element in an order that is sorted by turn first."""
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = rank_within(turn[order])
    return ranks
