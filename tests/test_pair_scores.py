"""Scores of given pairs are those of the lanes, whichever lane recalled a row, and no row has a part in another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from recall_world import day, frame, line, rules
from scoped_retrieval.nodes.columns.keys import positions
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.recall.pair_scores import Pairs, lexical_scores
from scoped_retrieval.nodes.recall.posting_recall import Asked

WORDS = ("session", "token", "cache", "retry", "role")
REQUESTS = [
    {"request_id": "a", "question": "session token token", "projects": ("shop", "docs"), "as_of": day(30), "lane_k": 9999},
    {"request_id": "b", "question": "session token", "projects": ("shop",), "as_of": day(12), "lane_k": 9999},
    {"request_id": "c", "question": "cache role absent", "projects": ("shop", "docs"), "as_of": day(30), "lane_k": 9999},
    {"request_id": "d", "question": "absent", "projects": ("docs",), "as_of": day(2), "lane_k": 9999},
]  # fmt: skip
PLAN = rules({}, {"kinds": ["code"]}, {"lanes": ["lexical", "semantic"], "parts": ["question"]})


@pytest.fixture(name="world", scope="module")
def world_fixture() -> dict[str, Any]:
    """400 rows in two projects, recorded over a month, some withheld."""
    rng = np.random.default_rng(0)
    return frame(
        [
            {
                "text": " ".join(rng.choice(WORDS, int(rng.integers(1, 9)))),
                "project": "shop" if n % 3 else "docs",
                "path": f"src/{n}.py",
                "evidence_kind": "code" if n % 2 else "doc",
                "recorded_time": day(int(rng.integers(1, 28))),
                "withheld_by": 11 if n % 13 == 0 else 0,
            }
            for n in range(400)
        ]
    )


def recalled(world: dict[str, Any], bm25: Bm25, requests: Any = REQUESTS) -> tuple[pa.Table, Pairs, list[Asked]]:
    """The admissible hits of the lexical lane, their pairs, and what the terms weigh."""
    out = line(world, requests, "lexical_hits", "lexical_recall", "recall_tables", plan=PLAN, bm25=bm25)
    hits = out["lexical_hits"].filter(pa.compute.invert(out["lexical_hits"]["withheld"]))
    hits = hits.group_by(["request_id", "row"]).aggregate([("score", "max")]).sort_by("request_id")
    tables = out["recall_tables"]
    pairs = Pairs(positions(hits["request_id"], tables.contracts["request_id"]), hits["row"].to_numpy())
    return hits, pairs, out["lexical_recall"].weighed


def test_a_pair_has_the_score_that_the_lane_gives_it(world: dict[str, Any]) -> None:
    hits, pairs, weighed = recalled(world, Bm25())
    assert set(hits["request_id"].to_pylist()) == {"a", "b", "c"}
    found = lexical_scores(pairs, weighed)
    assert found.tolist() == hits["score_max"].to_pylist()
