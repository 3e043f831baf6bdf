"""BM25 by name: the variants, their weights and their parameters, over integer statistics of the admissible rows.

Reads: document frequencies, row counts and lengths, counted by the caller. Gives: one weight per term (`idf`) and one
factor per posting (`saturation`); a contribution is their product.

Note: `lucene` (Kamphuis et al. 2020, "Which BM25 do you mean?") has positive weights for any size of scope; the others
match the classes of rank_bm25, quirks included, with statistics of A(r).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

VARIANTS = ("lucene", "okapi", "bm25l", "bm25plus")

EPSILON = 0.25
"""okapi: the weight of a term in more than half of the rows, as a share of the vocabulary's average idf (rank_bm25)."""
DELTA = {"bm25l": 0.5, "bm25plus": 1.0}
"""Lower bounds of the term frequency factor (Lv & Zhai 2011); rank_bm25's defaults."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Bm25:
    """A variant with its parameters; k1 and b as in Robertson & Zaragoza 2009, eq. 3.15."""

    variant: str = "lucene"
    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise InputError.one_of(VARIANTS, self.variant, "bm25.variant")
        if not 0 <= self.k1 < math.inf:
            raise InputError.expected("a finite number of 0 or more", self.k1, "bm25.k1")
        if not 0 <= self.b <= 1:
            raise InputError.expected("a number from 0 to 1", self.b, "bm25.b")

    @property
    def needs_vocabulary(self) -> bool:
        """Whether `idf` needs the average idf of every term of the admissible rows, not only the query's."""
        return self.variant == "okapi"

    @property
    def baseline(self) -> float:
        """The amount, times its idf, that a term of the vocabulary adds to every row, with or without the term."""
        return DELTA["bm25plus"] if self.variant == "bm25plus" else 0.0

    @property
    def ceiling(self) -> float:
        """Upper bound of a term's factor; bm25l has no such bound and uses okapi's."""
        return 1.0 if self.variant == "lucene" else self.k1 + 1.0 + self.baseline

    def idf(self, frequency: Integers, rows: Integers, average: Floats | None = None) -> Floats:
        """The weight of terms that occur in `frequency` of `rows` rows; `average` is `average_idf` per term.

        A term that occurs in no admissible row has weight 0 except under lucene, where it still orders withheld rows.
        """
        held, total = np.asarray(frequency, dtype=np.float64), np.asarray(rows, dtype=np.float64)
        if self.variant == "lucene":
            return np.log(1.0 + (total - held + 0.5) / (held + 0.5))
        if self.variant == "okapi":
            weight = raw_okapi_idf(held, total)
            floor = EPSILON * (np.zeros_like(weight) if average is None else average)
            weight = np.where(weight < 0, floor, weight)
        elif self.variant == "bm25l":
            weight = np.log(total + 1.0) - np.log(held + 0.5)
        else:
            weight = np.log((total + 1.0) / np.maximum(held, 1.0))
        return np.where(held > 0, weight, 0.0)

    def saturation(self, frequency: NDArray[np.integer] | Floats, length: Integers, average_length: Floats) -> Floats:
        """The factor of a term that occurs `frequency` times in a row of `length` terms."""
        if self.variant == "lucene":
            return frequency / (frequency + self.half(length, average_length))
        norm = self._norm(length, average_length)
        if self.variant == "bm25l":
            # A row of length 0 under b = 1 has norm 0; it has no postings of counted terms either.
            scaled = np.divide(frequency, norm, out=np.zeros(len(norm)), where=norm > 0) + DELTA["bm25l"]
            return frequency * (self.k1 + 1.0) * scaled / (self.k1 + scaled)
        return frequency * (self.k1 + 1.0) / (frequency + self.k1 * norm)

    def half(self, length: Integers, average_length: Floats) -> Floats:
        """The frequency at which a term in a row of `length` terms reaches half of the maximum factor (lucene)."""
        return self.k1 * self._norm(length, average_length)

    def _norm(self, length: Integers, average_length: Floats) -> Floats:
        shape = np.broadcast_shapes(length.shape, average_length.shape)
        ratio = np.divide(length, average_length, out=np.ones(shape), where=average_length > 0)
        return (1.0 - self.b) + self.b * ratio


def raw_okapi_idf(frequency: Floats, rows: Floats) -> Floats:
    """Robertson and Sparck Jones' weight before any floor; negative for a term in more than half of the rows."""
    return np.log(np.maximum(rows - frequency, 0.0) + 0.5) - np.log(frequency + 0.5)
