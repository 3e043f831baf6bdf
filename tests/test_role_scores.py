"""Each shipped role does better on its own golden set than any other role does there."""

from __future__ import annotations

from pathlib import Path

import pytest
from role_world import overlay, policies
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.evaluation.roles import bundled_sample, score_roles


@pytest.fixture(scope="module")
def scores():
    return score_roles(load_policies(), *bundled_sample())


def test_the_five_by_five_table_is_led_by_its_diagonal(scores):
    table = scores.table
    assert table.shape == (5, 5)
    for golden in table.index:
        others = table.loc[golden].drop(golden)
        assert table.loc[golden, golden] > others.max(), table.round(3).to_string()
    assert scores.failed == ()


def test_the_measure_of_a_role_is_that_of_its_golden_set(scores):
    evidence, golden = bundled_sample()
    lent = policies(overlay({"eval_profile.golden_set_id": "architect"}))
    own = policies(overlay({"eval_profile.golden_set_id": "test-engineer"}))
    assert score_roles(lent, evidence, golden).table.to_dict() != score_roles(own, evidence, golden).table.to_dict()


def test_a_role_that_is_not_distinct_is_named():
    evidence, golden = bundled_sample()
    plain = overlay({"eval_profile.golden_set_id": "architect"})
    check = overlay({"eval_profile.golden_set_id": "architect", "eval_profile.distinctiveness_checks": ["twin"]})
    twin = plain | {"role_id": "twin"}
    assert score_roles(policies(plain, twin), evidence, golden).failed == ()
    assert score_roles(policies(check, twin), evidence, golden).failed[0].startswith("twin scores")


def test_a_golden_set_that_is_not_there_is_an_error(tmp_path: Path):
    evidence, _ = bundled_sample()
    with pytest.raises(InputError, match="Expected a golden set, got none"):
        score_roles(policies(overlay()), evidence, tmp_path)
