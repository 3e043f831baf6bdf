"""The formula of BM25 against its sum written out."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from scoped_retrieval.nodes.recall.bm25 import Bm25


def _one(bm25: Bm25, *, rows: int, df: int, tf: int, length: int, mean: float) -> float:
    idf = bm25.idf(np.array([df]), np.array([rows]))
    return float((idf * bm25.saturation(np.array([tf]), np.array([length]), np.array([mean])))[0])


def test_a_score_is_the_written_out_formula() -> None:
    score = _one(Bm25(), rows=10, df=3, tf=2, length=30, mean=20.0)
    assert score == pytest.approx(log(1 + 7.5 / 3.5) * 2 / (2 + 1.2 * (0.25 + 0.75 * 1.5)))


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_weights_stay_positive_in_small_scopes(rows: int) -> None:
    assert _one(Bm25(), rows=rows, df=rows, tf=1, length=5, mean=5.0) > 0
