"""From hits to candidates: reciprocal rank fusion over sub-queries and lanes, and the three merge policies.

Reads hits as arrays. Gives one row per (request, evidence).

Note: fusion uses ranks, so ties are common, and every order ends with the evidence id. Withheld rows are merged like
the others but ranked after all of them, outside `pool_k`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import (
    constants,
    distinct_numbers,
    first_of_runs,
    order_by,
    positions,
    rank_within,
)
from ..columns.numbers import quantise
from ..vocabulary import LANES, MERGE_POLICIES
from .recall_scope import Bool, Float, Int
from .recall_selection import VIA

FUSION_K = 60
"""Cormack, Clarke & Buettcher 2009, "Reciprocal rank fusion"."""

_LANES = tuple(sorted(LANES.values))


@dataclass(frozen=True)
class Fusion:
    """Hits grouped by (request, row): `order` sorts the hits, group `g` is `order[starts[g]:starts[g + 1]]`."""

    order: Int
    starts: Int
    request: Int
    row: Int
    score: Float

    @classmethod
    def of(cls, request: Int, row: Int, rank: Int) -> Fusion:
        """Group hits and add 1 / (60 + rank) over sub-queries and lanes, each share a multiple of 2**-30."""
        order = order_by(request, row)
        request, row = request[order], row[order]
        first = first_of_runs(request, row)
        share = quantise(1.0 / (FUSION_K + rank[order]))
        score = np.add.reduceat(share, first) if len(first) else np.empty(0)
        return cls(order, np.concatenate((first, [len(order)])), request[first], row[first], score)

    def best(self, score: Float, chosen: Bool) -> Float:
        """Per group the greatest score among some hits, 0 where they include none of the group."""
        if not len(self.row):
            return np.empty(0)
        masked = np.where(chosen, score, -np.inf)[self.order]
        best = np.maximum.reduceat(masked, self.starts[:-1])
        return np.where(np.isneginf(best), 0.0, best)

    def any_of(self, codes: Int, names: tuple[str, ...]) -> pa.Array:
        """Per group the names of its hits as a sorted list; `names` is sorted."""
        if not len(self.row):
            return pa.array([], pa.list_(pa.string()))
        bits = np.bitwise_or.reduceat((1 << codes)[self.order], self.starts[:-1])
        distinct, of = distinct_numbers(bits)
        lists = [[name for place, name in enumerate(names) if one >> place & 1] for one in distinct.tolist()]
        return pa.array(lists, pa.list_(pa.string())).take(pa.array(of))

    def links(self, via: Int) -> pa.Array:
        """Per group the link that reached it; null where a lane found the row directly."""
        if not len(self.row):
            return pa.array([], pa.string())
        first = np.minimum.reduceat(np.where(via < 0, len(VIA), via)[self.order], self.starts[:-1])
        plain = np.maximum.reduceat((via < 0)[self.order].astype(np.int8), self.starts[:-1]) > 0
        return constants(VIA).take(pa.array(first, mask=plain))


def lane_codes(hits: pa.Table) -> tuple[Int, tuple[str, ...]]:
    """The place of each hit's lane among the lanes in alphabetical order, and these lanes, also of plugins."""
    codes = positions(hits["lane"], constants(_LANES))
    if not (codes < 0).any():
        return codes, _LANES
    names = tuple(sorted({*_LANES, *pc.unique(hits["lane"]).to_pylist()}))
    return positions(hits["lane"], pa.array(names)), names


def merged_order(
    fusion: Fusion, withheld: Bool, policy: Int, authority: Int, kind: Int, id_rank: Int
) -> tuple[Int, Int]:
    """Groups in the order of each request's merge policy, and the 0-based place of each inside its request and half.

    Args:
        fusion: the groups.
        withheld: per group; withheld groups follow all others of their request.
        policy: per group, position in MERGE_POLICIES: interleave-by-relevance is fusion order; authority-first sorts by
            authority rank first; evidence-balanced takes the best of every kind, then the second best, and so on.
        authority: per group, 0 to 3.
        kind: per group, a code of its evidence kind.
        id_rank: per group, ends every tie.
    """
    by_kind = order_by(fusion.request, withheld, kind, -fusion.score, id_rank)
    turn = np.empty(len(by_kind), dtype=np.int64)
    span = (fusion.request * 2 + withheld) * (int(kind.max(initial=0)) + 1) + kind
    turn[by_kind] = rank_within(span[by_kind])
    first = np.where(policy == MERGE_POLICIES.values.index("authority-first"), -authority, 0)
    first = np.where(policy == MERGE_POLICIES.values.index("evidence-balanced"), turn, first)
    order = order_by(fusion.request, withheld, first, -fusion.score, id_rank)
    return order, rank_within((fusion.request * 2 + withheld)[order])
