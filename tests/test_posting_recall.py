"""Sub-queries that share one pass of scoring: those with the same look-ups, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scoped_retrieval.nodes.recall.posting_recall import profiles_of
from scoped_retrieval.nodes.recall.recall_entries import Entries

SAME: dict[str, Any] = {"request": 0, "key": [0, 1], "weight": [1.0, 2.0], "hop": [False, True]}


@pytest.mark.parametrize(
    ("other", "profiles"),
    [
        ({}, [0, 0]),
        ({"request": 1}, [0, 1]),
        ({"key": [0, 2]}, [0, 1]),
        ({"weight": [1.0, 3.0]}, [0, 1]),
        ({"hop": [False, False]}, [0, 1]),
        ({"key": [0], "weight": [1.0], "hop": [False]}, [0, 1]),
    ],
)
def test_sub_queries_share_a_profile_only_where_everything_that_scores_is_the_same(
    other: dict[str, Any], profiles: list[int]
) -> None:
    asked = [SAME, SAME | other]
    scope: Any = SimpleNamespace(sub=np.arange(2), request=np.array([one["request"] for one in asked]))
    sub = np.repeat([0, 1], [len(one["key"]) for one in asked])
    key, weight, hop = (np.concatenate([one[name] for one in asked]) for name in ("key", "weight", "hop"))
    found, entries = profiles_of(scope, Entries(["a", "b", "c"], sub, key, weight, hop))
    assert found.tolist() == profiles
    assert len(entries.key) == (len(key) if profiles == [0, 1] else 2)
