"""Differences between systems: tests and intervals against scipy's, on small tables of values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scoped_retrieval.pipeline.evaluation.metrics import compared, holm

FULL = [0.9, 0.5, 1.0, 0.4, 0.8, 0.7]
WORSE = [0.7, 0.4, 1.0, 0.1, 0.6, 0.3]


def table() -> pd.DataFrame:
    return pd.DataFrame({"full": FULL, "same": FULL, "worse": WORSE})


def test_a_difference_has_its_sign_its_interval_and_its_test():
    found = compared(table(), "full")
    assert list(found.index) == ["full", "same", "worse"]
    worse = found.loc["worse"]
    assert worse["difference"] == pytest.approx(np.mean(WORSE) - np.mean(FULL))
    assert worse["difference_low"] <= worse["difference"] <= worse["difference_high"] < 0
    assert worse["p"] == pytest.approx(stats.ttest_rel(FULL, WORSE).pvalue)
    assert worse["p_holm"] == pytest.approx(worse["p"])  # the one other system differs nowhere


def test_intervals_are_those_of_scipys_t_test():
    found = compared(table(), "full").loc["worse"]
    theirs = stats.ttest_rel(WORSE, FULL).confidence_interval(0.95)
    assert (found["difference_low"], found["difference_high"]) == pytest.approx((theirs.low, theirs.high))
    own = stats.ttest_1samp(WORSE, 0.0).confidence_interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((own.low, own.high))


def test_holm_is_the_example_that_textbooks_give():
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.9, np.nan, 0.8])) == pytest.approx([1.0, np.nan, 1.0], nan_ok=True)
