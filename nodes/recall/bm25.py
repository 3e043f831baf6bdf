"""BM25 with its two parameters, over integer statistics of the admissible rows.

Reads: document frequencies, row counts and lengths, counted by the caller. Gives: one weight per term (`idf`), and for each
row the frequency that brings half of it (`half`): a contribution is the weight times frequency / (frequency + half).

Note: the form is Lucene's (Kamphuis et al. 2020, "Which BM25 do you mean?"): weights are positive for any size of scope,
and no factor is above 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Bm25:
    """k1 and b as in Robertson & Zaragoza 2009, eq. 3.15."""

    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        if not 0 <= self.k1 < math.inf:
            raise InputError.expected("a finite number of 0 or more", self.k1, "bm25.k1")
        if not 0 <= self.b <= 1:
            raise InputError.expected("a number from 0 to 1", self.b, "bm25.b")

    def idf(self, frequency: Integers, rows: Integers) -> Floats:
        """The weight of terms that occur in `frequency` of `rows` rows, 0 included."""
        held, total = np.asarray(frequency, dtype=np.float64), np.asarray(rows, dtype=np.float64)
        return np.log(1.0 + (total - held + 0.5) / (held + 0.5))

    def half(self, length: Integers, average_length: Floats) -> Floats:
        """The frequency at which a term in a row of `length` terms reaches half of the maximum factor."""
        shape = np.broadcast_shapes(length.shape, average_length.shape)
        ratio = np.divide(length, average_length, out=np.ones(shape), where=average_length > 0)
        return self.k1 * ((1.0 - self.b) + self.b * ratio)
