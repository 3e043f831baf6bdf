"""Scores of given pairs are those of the lanes, whichever lane recalled a row, and no row has a part in another's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_world import day, frame, line, products_in_parts_of, rules, vectors
from scoped_retrieval.nodes.columns.keys import positions
from scoped_retrieval.nodes.errors import SchemaError
from scoped_retrieval.nodes.frames import VectorIndex
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.recall import pair_scores, posting_recall
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.recall.pair_scores import Pairs, bm25_reach, lexical_scores, semantic_scores
from scoped_retrieval.nodes.recall.recall_entries import TermWeights
from scoped_retrieval.nodes.recall.recall_scope import sub_query_of

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


@pytest.mark.parametrize("at_once", [7, 1 << 20])
def test_a_pair_has_the_score_that_the_lane_gives_it(
    world: dict[str, Any], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_scores, "PAIRS", at_once)
    hits, pairs, weights, tables = recalled(world, Bm25())
    assert set(hits["request_id"].to_pylist()) == {"a", "b", "c"}
    found = lexical_scores(pairs, weights, tables, world["postings"], Bm25())
    assert found.tolist() == hits["score_max"].to_pylist()


def test_loops_and_arrays_weigh_alike(world: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    loops = pytest.importorskip("numba", reason="needs the extra fast") and compiled.kernels(compiled.PAYS_FROM)
    found = []
    for one in (None, loops):
        monkeypatch.setattr(posting_recall, "kernels", lambda visits, one=one: one)
        _, pairs, weights, tables = recalled(world, Bm25())
        scores = lexical_scores(pairs, weights, tables, world["postings"], Bm25())
        found.append((scores.tolist(), bm25_reach(weights, tables, Bm25()).tolist()))
    assert found[0] == found[1]


def test_nothing_scores_more_than_can_be_reached_and_absent_terms_reach_nothing(world: dict[str, Any]) -> None:
    hits, pairs, weights, tables = recalled(world, Bm25())
    reach = bm25_reach(weights, tables, Bm25())
    assert (np.asarray(hits["score_max"]) < reach[pairs.request]).all()
    assert (reach > 0).tolist() == [True, True, True, False]


def test_withheld_rows_weigh_nothing(world: dict[str, Any]) -> None:
    rows = [row for row in world["rows"] if not row.get("withheld_by")]
    reaches = []
    for one in (world, frame(rows)):
        _, _, weights, tables = recalled(one, Bm25(), REQUESTS[:1])
        reaches.append(bm25_reach(weights, tables, Bm25()).tolist())
    assert reaches[0] == reaches[1]


@pytest.mark.parametrize("cells", [8, 1 << 21, None])
def test_a_pair_has_the_greatest_cosine_of_its_request(cells: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    products_in_parts_of(cells, monkeypatch)
    world = frame([{"text": f"word {n}", "path": f"src/{n}.py"} for n in range(6)])
    rng = np.random.default_rng(1)
    index = vectors(world, rng.normal(size=(6, 4)), rng.normal(size=(3, 4)))
    requests = [{"request_id": name, "question": "word"} for name in ("a", "b", "c")]
    tables = line(world, requests, "recall_tables", plan=rules({}, {"kinds": ["code"]}))["recall_tables"]
    of_request = np.array([0, 1, -1])  # the last one was not encoded
    sub = sub_query_of(tables.sub_queries, tables.sub_queries)
    vector = of_request[tables.sub_request[sub]]
    vector[1::2] = np.where(vector[1::2] >= 0, 2, -1)  # every second sub-query asks another text
    pairs = Pairs(np.array([0, 0, 1, 2]), np.array([0, 5, 3, 1]))
    found = semantic_scores(pairs, vector, tables, index)
    rows = np.concatenate([part for part in index.parts if part is not None]).astype(np.int64)
    cosine = rows @ index.queries.astype(np.int64).T / 2**30
    asked = [[0, 2], [0, 2], [1, 2], []]
    assert found.tolist() == [max([0.0, *cosine[row, of]]) for row, of in zip(pairs.row, asked, strict=True)]


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


def test_of_a_row_without_a_vector_the_cosine_is_0() -> None:
    world = frame([{"text": "word", "path": "src/a.py"}])
    index = vectors(world, np.ones((1, 4)), np.ones((1, 4)))
    index = type(index)(index.profile, (None,), index.row_starts, index.queries)
    tables = line(world, [{"question": "word"}], "recall_tables")["recall_tables"]
    found = semantic_scores(
        Pairs(np.array([0]), np.array([0])), np.zeros(tables.sub_queries.num_rows, int), tables, index
    )
    assert found.tolist() == [0.0]
