"""The look-ups of a lane, keys with weights for the sub-queries of a scope, and the resulting weights of the keys.

`Entries` are made by `lane_recall`; `posting_recall` scores the postings of the keys, and returns `Weighed`: the rows
found, and the weights, which `pair_scores` reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..tables import LANE_HITS
from .recall_scope import Bool, Float, Int
from .recall_selection import Found


@dataclass(frozen=True)
class Entries:
    """Look-ups of a scope: `sub` (position in `scope.sub`, ascending), `key` (position in `keys`), `weight`.

    `hop` marks look-ups that do not come from the request itself: they score admissible rows only.
    """

    keys: list[str]
    sub: Int
    key: Int
    weight: Float
    hop: Bool | None = None

    @classmethod
    def of(cls, keys: list[str], found: Sequence[tuple[int, int, float]]) -> Entries:
        """From look-ups one by one: sub-query, key and weight."""
        sub, key, weight = zip(*found, strict=True) if found else ((), (), ())
        return cls(keys, np.array(sub, np.int64), np.array(key, np.int64), np.array(weight, np.float64))


@dataclass(frozen=True)
class TermWeights:
    """The weight of each term of a sub-query: `sub` is a row of SUB_QUERIES, `key` a position in `keys`.

    A term of no admissible row weighs as the rarest: what a question asks for counts, whether or not it is there.
    """

    keys: tuple[str, ...]
    sub: Int
    key: Int
    weight: Float

    @classmethod
    def concat(cls, parts: Sequence[TermWeights]) -> TermWeights:
        """Concatenates several, each distinct key once."""
        if len(parts) == 1:
            return parts[0]
        place = {key: number for number, key in enumerate(dict.fromkeys(key for part in parts for key in part.keys))}
        key = [np.array([place[one] for one in part.keys], dtype=np.int64)[part.key] for part in parts]
        none = np.empty(0, dtype=np.int64)
        return cls(
            tuple(place),
            np.concatenate([none, *(part.sub for part in parts)]),
            np.concatenate([none, *key]),
            np.concatenate([np.empty(0), *(part.weight for part in parts)]),
        )


class LexicalRecall(NamedTuple):
    """The hits of the lexical lane, as LANE_HITS, and the weights of its terms."""

    hits: pa.Table
    weights: TermWeights
    words: Mapping[tuple[str, str], float]
    """The greatest weight of each term among the sub-queries of a request, by request id and term; passages are chosen by
    them."""


NO_LEXICAL = LexicalRecall(LANE_HITS.empty(), TermWeights.concat([]), {})


class Weighed(NamedTuple):
    """The rows that a lane found, and the weights of its terms."""

    found: Found
    weights: TermWeights

    @classmethod
    def concat(cls, parts: Sequence[Weighed]) -> Weighed:
        """Concatenates several."""
        return cls(Found.concat([part.found for part in parts]), TermWeights.concat([part.weights for part in parts]))
