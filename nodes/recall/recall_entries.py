"""What a lane looks up, keys with weights for the sub-queries of a scope, and what the keys turn out to weigh.

`Entries` are made by `lane_recall`; `posting_recall` and `compiled_recall` score the postings that the keys have, and give
`Weighed`: the rows found, and the weights, which `pair_scores` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .recall_scope import Bool, Float, Int
from .recall_selection import Found


@dataclass(frozen=True)
class Entries:
    """Look-ups of a scope: `sub` (position in `scope.sub`, ascending), `key` (position in `keys`), `weight`.

    `hop` marks look-ups that the request did not make itself: they score admissible rows only.
    """

    keys: list[str]
    sub: Int
    key: Int
    weight: Float
    hop: Bool | None = None


@dataclass(frozen=True)
class TermWeights:
    """How much each term of a sub-query weighs: `sub` is a row of SUB_QUERIES, `key` a position in `keys`.

    Terms of no admissible row are left out.
    """

    keys: tuple[str, ...]
    sub: Int
    key: Int
    weight: Float

    @classmethod
    def concat(cls, parts: Sequence[TermWeights]) -> TermWeights:
        """Several as one, each distinct key once."""
        place = {key: number for number, key in enumerate(dict.fromkeys(key for part in parts for key in part.keys))}
        key = [np.array([place[one] for one in part.keys], dtype=np.int64)[part.key] for part in parts]
        none = np.empty(0, dtype=np.int64)
        return cls(
            tuple(place),
            np.concatenate([none, *(part.sub for part in parts)]),
            np.concatenate([none, *key]),
            np.concatenate([np.empty(0), *(part.weight for part in parts)]),
        )


class WantedRows(NamedTuple):
    """Rows that are asked about: those of sub-query `i` of a scope are `row[starts[i]:starts[i + 1]]`, positions in its rows."""

    starts: Int
    row: Int


class EntryScores(NamedTuple):
    """What the keys of sub-queries give rows that are asked about, and what they could give at most."""

    score: Float
    reach: Float
    """Of each sub-query of the scope: the sum of the weights of its keys that some admissible row holds, times the ceiling."""


class Weighed(NamedTuple):
    """What a lane found, and what the terms weigh by which it did."""

    found: Found
    weights: tuple[TermWeights, ...]

    @classmethod
    def concat(cls, parts: Sequence[Weighed]) -> Weighed:
        """Several as one."""
        return cls(Found.concat([part.found for part in parts]), tuple(one for part in parts for one in part.weights))
