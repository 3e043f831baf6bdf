"""Differences between systems: tests against scipy's and intervals against its bootstrap, on small tables of values."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.evaluation.significance import bootstrap_intervals, compared, holm, paired_p

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


def test_a_system_is_not_tested_against_itself_and_equal_systems_do_not_differ():
    found = compared(table(), "full")
    assert np.isnan(found.loc["full", "p"])
    assert (found.loc["same", "p"], found.loc["same", "p_holm"], found.loc["same", "difference"]) == (1.0, 1.0, 0.0)


def test_systems_that_differ_count_for_the_correction_together():
    found = compared(table().assign(other=WORSE[::-1]), "full")
    assert list(found["p_holm"].dropna()) == [1.0, *holm(found["p"].to_numpy()[2:])]


def test_one_query_tests_nothing():
    assert np.isnan(paired_p(np.array([[0.1, 0.0]]))).all()


def test_a_constant_difference_is_no_chance():
    assert paired_p(np.array([[0.5], [0.5], [0.5]])) == 0.0


def test_intervals_are_those_of_scipys_percentile_bootstrap():
    values = np.random.default_rng(7).random((60, 1))
    low, high = bootstrap_intervals(values)
    theirs = stats.bootstrap((values[:, 0],), np.mean, method="percentile", rng=np.random.default_rng(1))
    assert low[0] == pytest.approx(theirs.confidence_interval.low, abs=0.01)
    assert high[0] == pytest.approx(theirs.confidence_interval.high, abs=0.01)


def test_intervals_are_the_same_every_time():
    values = np.random.default_rng(3).random((20, 4))
    assert all((a == b).all() for a, b in zip(bootstrap_intervals(values), bootstrap_intervals(values), strict=True))


def test_holm_is_the_example_that_textbooks_give():
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.9, np.nan, 0.8])) == pytest.approx([1.0, np.nan, 1.0], nan_ok=True)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_a_corrected_p_is_never_smaller_and_keeps_the_order(p):
    adjusted = holm(np.array(p))
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


def test_an_unknown_system_is_named_and_so_is_a_missing_scipy(monkeypatch):
    with pytest.raises(InputError, match="Expected one of full, same, worse, got 'bm25' - at --against"):
        compared(table(), "bm25")
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(InputError, match="Expected the package scipy, got none - at eval"):
        compared(table(), "full")
