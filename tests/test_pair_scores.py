"""Scores of given pairs are those of the lanes, whichever lane recalled a row, and no row has a part in another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_world import day, frame, line, rules
from scoped_retrieval.nodes.columns.keys import positions
from scoped_retrieval.nodes.errors import SchemaError
from scoped_retrieval.nodes.frames import VectorIndex
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall import pair_scores
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.recall.pair_scores import Pairs, lexical_scores
from scoped_retrieval.nodes.recall.recall_entries import TermWeights

LOOPS = compiled.kernels(compiled.PAYS_FROM)
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


def recalled(world: dict[str, Any], bm25: Bm25, requests: Any = REQUESTS) -> tuple[pa.Table, Pairs, TermWeights, Any]:
    """The admissible hits of the lexical lane, their pairs, and what the terms weigh."""
    out = line(world, requests, "lexical_hits", "lexical_recall", "recall_tables", plan=PLAN, bm25=bm25)
    hits = out["lexical_hits"].filter(pa.compute.invert(out["lexical_hits"]["withheld"]))
    hits = hits.group_by(["request_id", "row"]).aggregate([("score", "max")]).sort_by("request_id")
    tables = out["recall_tables"]
    pairs = Pairs(positions(hits["request_id"], tables.contracts["request_id"]), hits["row"].to_numpy())
    return hits, pairs, TermWeights.concat(out["lexical_recall"].weights), tables


def test_a_pair_has_the_score_that_the_lane_gives_it(world: dict[str, Any]) -> None:
    hits, pairs, weights, tables = recalled(world, Bm25())
    assert set(hits["request_id"].to_pylist()) == {"a", "b", "c"}
    found = lexical_scores(pairs, weights, tables, world["postings"], Bm25())
    assert found.tolist() == hits["score_max"].to_pylist()


@given(st.data())
def test_compiled_and_numpy_products_are_equal(data: st.DataObject) -> None:
    if LOOPS is None:
        pytest.skip("needs the extra fast")
    count, dimensions = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 9))
    component = st.sampled_from([-(2**15), 2**15 - 1]) | st.integers(-(2**15), 2**15 - 1)
    parts = [
        np.array([[data.draw(component) for _ in range(dimensions)] for _ in range(count)], np.int16) for _ in range(2)
    ]
    index = VectorIndex("test", tuple(parts), np.array([0, count]), np.zeros((0, dimensions), np.int16))
    others = 3 * parts[0].astype(np.int32)  # sums of three vectors
    rows = np.array(data.draw(st.lists(st.integers(0, 2 * count - 1), max_size=9)), np.int64)
    which = np.arange(len(rows)) % count
    wanted = (np.concatenate(parts)[rows].astype(np.int64) * others[which]).sum(axis=1).tolist()
    for loops in (None, LOOPS):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair_scores, "kernels", lambda visits, loops=loops: loops)
            assert pair_scores._products(index, rows, others, which).tolist() == wanted


@pytest.mark.skipif(LOOPS is None, reason="needs the extra fast")
def test_vectors_of_another_width_are_an_error_and_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_scores, "kernels", lambda visits: LOOPS)
    index = VectorIndex("test", (np.ones((2, 3), np.int16),), np.array([0]), np.zeros((0, 3), np.int16))
    with pytest.raises(SchemaError, match="Expected vectors of 2 dimensions, got 3 - at segment 0"):
        pair_scores._products(index, np.array([1]), np.ones((1, 2), np.int32), np.array([0]))
