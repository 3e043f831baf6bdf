"""The best rows of a lane: top-k per sub-query of the admissible rows, and the record of the withheld ones.

Reads cells, (sub-query, row) pairs with a score. Gives `Found`, and from it the hits of a lane.

Note: admissible and withheld cells are selected separately. A withheld cell never takes a place, shifts a rank or
breaks a tie of an admissible one: its rank in the record follows after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..columns.keys import constants, distinct_numbers, first_of_runs, integers, order_by, rank_within
from ..tables import LANE_HITS
from .recall_scope import VIA, Bool, Float, Int, RecallTables, ScopeGroup

SPARE = 32
"""Spare keys of a sub-query in addition to its best, so that a selection before sorting is rarely needed."""
SORTED = 1 << 10
"""Cells that are sorted without a selection before."""
_COLUMNS = ("sub", "row", "score", "withheld", "via")


@dataclass(frozen=True)
class Found:
    """Selected cells: `sub` is a row of SUB_QUERIES, `row` a frame row, `via` a position in VIA or -1."""

    sub: Int
    row: Int
    score: Float
    withheld: Bool
    via: Int

    @classmethod
    def of(cls, sub: Int, row: Int, score: Float, *, withheld: bool = False, via: Int | None = None) -> Found:
        """Cells of one outcome."""
        direct = np.zeros(len(sub), dtype=np.int64) - 1
        return cls(sub, row, score, np.zeros(len(sub), dtype=bool) | withheld, direct if via is None else via)

    @classmethod
    def concat(cls, parts: Sequence[Found]) -> Found:
        """Concatenates several sets of cells."""
        if not parts:
            none = np.empty(0, dtype=np.int64)
            return cls.of(none, none, np.empty(0))
        held = [part for part in parts if len(part.sub)] or parts[:1]
        if len(held) == 1:
            return held[0]
        return cls(*(np.concatenate([getattr(part, name) for part in held]) for name in _COLUMNS))


def top(score: Float, id_rank: Int, k: int) -> Int:
    """Positions of the `k` best, by score descending, then id."""
    kept = np.arange(len(score))
    if len(score) > SORTED + 4 * k > 4 * k > 0:
        kept = (score >= np.partition(score, len(score) - k)[len(score) - k]).nonzero()[0]
    return kept[order_by(-score[kept], id_rank[kept])][:k]


def best_found(tables: RecallTables, found: Found) -> Found:
    """The `lane_k` best per sub-query over several parts; for few cells."""
    k = tables.sub_queries["lane_k"].to_numpy()
    order = order_by(found.sub, -found.score, tables.row_index.id_rank[found.row])
    order = order[rank_within(found.sub[order]) < k[found.sub[order]]]
    return Found(*(getattr(found, name)[order] for name in _COLUMNS))


def best_withheld(scope: ScopeGroup, sub: Int, local: Int, score: Float) -> Int:
    """Positions of the withheld cells to record: per request the `withheld_k` best, only the newest row of each
    document.

    Args:
        scope: the group.
        sub: position in `scope.sub`, one per cell.
        local: position in `scope.rows`.
        score: under the statistics of the admissible rows.
    """
    if not len(sub):
        return np.empty(0, dtype=np.int64)
    index = scope.tables.row_index
    clock, of_request = scope.tables.clock
    requests, request = distinct_numbers(scope.request[sub])
    documents, document = distinct_numbers(scope.document[local])
    pair = request * len(documents) + document
    _, placement = clock.judge(index, of_request[scope.request[sub]], scope.rows[local])
    recorded = index.recorded_at(placement)
    newest = np.full(len(requests) * len(documents), np.iinfo(np.int64).min)
    np.maximum.at(newest, pair, recorded)
    kept = (recorded == newest[pair]).nonzero()[0]
    best = np.full(len(requests) * len(documents), -np.inf)
    np.maximum.at(best, pair[kept], score[kept])
    kept = kept[score[kept] == best[pair[kept]]]
    ids = index.id_rank[scope.rows[local]]
    kept = kept[np.lexsort((sub[kept], ids[kept], pair[kept]))]
    kept = kept[first_of_runs(pair[kept])]
    k = integers(scope.tables.contracts["withheld_k"])[requests]
    kept = kept[order_by(request[kept], -score[kept], ids[kept])]
    return kept[rank_within(request[kept]) < k[request[kept]]]


def hit_table(tables: RecallTables, lane: str, found: Found, via: pa.Array | None = None) -> pa.Table:
    """The hits of a lane, by sub-query and rank; withheld ones rank after all others of their sub-query.

    `via` replaces the links of `found`, if they have more detail.
    """
    if not len(found.sub):
        return LANE_HITS.empty()
    ids = tables.row_index.id_rank[found.row]
    order = order_by(found.sub, found.withheld, -found.score, ids)
    links = found.via[order]
    return LANE_HITS.build(
        {
            "sub_query": found.sub[order],
            "lane": pa.repeat(pa.scalar(lane), len(order)),
            "row": found.row[order],
            "rank": (rank_within(found.sub[order]) + 1).astype(np.int32),
            "score": found.score[order],
            "withheld": found.withheld[order],
            "via": constants(VIA).take(pa.array(links, mask=links < 0)) if via is None else via.take(pa.array(order)),
        }
    )
