"""The formulas of BM25 by name, each against its sum written out."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.recall.bm25 import VARIANTS, Bm25


def _one(bm25: Bm25, *, rows: int, df: int, tf: int, length: int, mean: float, average: float = 0.0) -> float:
    idf = bm25.idf(np.array([df]), np.array([rows]), np.array([average]))
    return float((idf * bm25.saturation(np.array([tf]), np.array([length]), np.array([mean])))[0])


def test_lucene_is_the_written_out_formula() -> None:
    score = _one(Bm25(), rows=10, df=3, tf=2, length=30, mean=20.0)
    assert score == pytest.approx(log(1 + 7.5 / 3.5) * 2 / (2 + 1.2 * (0.25 + 0.75 * 1.5)))


def test_okapi_gives_a_term_of_most_rows_a_share_of_the_average_idf() -> None:
    common = _one(Bm25("okapi"), rows=10, df=9, tf=1, length=20, mean=20.0, average=0.8)
    rare = _one(Bm25("okapi"), rows=10, df=2, tf=1, length=20, mean=20.0, average=0.8)
    assert common == pytest.approx(0.25 * 0.8)
    assert rare == pytest.approx(log(8.5) - log(2.5))


def test_bm25l_and_bm25plus_are_the_written_out_formulas() -> None:
    ratio = 2 / (0.25 + 0.75 * 1.5)
    lower = _one(Bm25("bm25l"), rows=10, df=3, tf=2, length=30, mean=20.0)
    assert lower == pytest.approx((log(11) - log(3.5)) * 2 * 2.2 * (ratio + 0.5) / (1.2 + ratio + 0.5))
    plus = _one(Bm25("bm25plus"), rows=10, df=3, tf=2, length=30, mean=20.0)
    assert plus == pytest.approx(log(11 / 3) * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 1.5)))
    assert Bm25("bm25plus").baseline == 1.0


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("variant", ["lucene", "bm25l", "bm25plus"])
def test_weights_stay_positive_in_small_scopes(variant: str, rows: int) -> None:
    assert _one(Bm25(variant), rows=rows, df=rows, tf=1, length=5, mean=5.0) > 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_scope_without_rows_gives_numbers_and_no_warning(variant: str) -> None:
    assert np.isfinite(_one(Bm25(variant), rows=0, df=0, tf=1, length=5, mean=0.0))


def test_an_unknown_variant_lists_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"Expected one of lucene, okapi, bm25l, bm25plus, got 'tfidf' - at bm25.variant"
    ):
        Bm25("tfidf")
    for k1 in (-1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match=r"Expected a finite number of 0 or more, got .* - at bm25\.k1"):
            Bm25(k1=k1)
    with pytest.raises(InputError, match=r"Expected a number from 0 to 1, got 2 - at bm25.b"):
        Bm25(b=2)
