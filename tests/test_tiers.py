"""Document 002's tiers on the sample: each alone serves an item, and a graph path names its rows and edges."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow.compute as pc
import pytest
from portfolio import VARIABLES, asked, indexed
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.demo import run_demo
from scoped_retrieval.pipeline.views.recall_xray import recall_xray, render_xray
from scoped_retrieval.pipeline.views.xray import rows_of

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run_demo(tmp_path_factory.mktemp("demo") / "d", semantic=False, say=lambda _: None).folder


@pytest.fixture(scope="module")
def xray(folder):
    def ask(question: str, *lanes: str, **fields) -> dict:
        with Retriever.open(
            folder / "corpus", principal="ana", grants=folder / "corpus" / "grants.yaml", lanes=lanes, clock=lambda: NOW
        ) as retriever:
            found = retriever.retrieve(
                {
                    "question": question,
                    "project": "shop",
                    "purpose": "answer-question",
                    "as_of": NOW.isoformat(),
                    **fields,
                }
            )
        return recall_xray(rows_of(found.tables))

    return ask


def id_of(folder, path: str) -> str:
    from scoped_retrieval import Corpus

    rows = Corpus.open(folder / "corpus").frame(["shop"]).evidence
    return rows.filter(pc.equal(rows["path"], path))["evidence_id"][0].as_py()


def tiers(snapshot: dict) -> set[str]:
    return {result["servedBy"] for result in snapshot["results"]}


def test_words_alone_serve_a_hybrid_item(xray):
    snapshot = xray("Which token?", "lexical", weights={"authority": 0.0})
    assert "hybrid" in tiers(snapshot) <= {"hybrid", "procedural"}
    for result in snapshot["results"]:
        if result["servedBy"] == "hybrid":
            assert set(result["scoreDecomposition"]) == {"bm25", "mmrPenalty", "final"}


def test_the_penalty_of_a_hybrid_item_is_what_variety_costs_it(xray):
    plain, varied = (
        xray("What is the default role?", "lexical", weights={"diversity": weight}) for weight in (0.0, 0.25)
    )
    assert {r["scoreDecomposition"]["mmrPenalty"] for r in plain["results"] if r["servedBy"] == "hybrid"} == {0.0}
    hybrid = [r for r in varied["results"] if r["servedBy"] == "hybrid"]
    kinds = {0.0: 0, 0.25: 0}
    for result in hybrid:
        kinds[result["scoreDecomposition"]["mmrPenalty"]] += 1
    assert kinds[0.25] > 0
    assert "mmr_penalty=0.2500" in render_xray(varied)


def test_an_id_alone_serves_a_direct_answer_and_explains_its_tier(folder, xray):
    snapshot = xray(f"What says {id_of(folder, 'forum-default-role.md')}?", "exact")
    assert tiers(snapshot) == {"direct-answer"}
    assert snapshot["tierExplain"]["tier"] == "direct-answer"
    assert set(snapshot["results"][0]["scoreDecomposition"]) == {"tierPrior", "final"}, "no record states an importance"


def test_the_newest_rows_alone_serve_a_recent_scan(xray):
    assert tiers(xray("What happened last?", "recent")) == {"recent-scan"}


def test_a_walk_serves_a_graph_item_with_its_path(folder, xray):
    snapshot = xray("startedAt", "lexical", "graph", purpose="review-risk", recall_effort="graph", budget={"lane_k": 1})
    (found,) = [r for r in snapshot["results"] if r["path"].startswith("src/auth/roles.ts")]
    assert found["servedBy"] == "graph"
    assert found["graphPath"] == [id_of(folder, "src/auth/session.ts"), f"import -> {found['memoryId']}"]
    assert found["graphEdgeConfidences"] == [0.8]
    for result in snapshot["results"]:
        assert len(result.get("graphEdgeConfidences", [])) == max(0, len(result.get("graphPath", [])) - 1)
    text = render_xray(snapshot)
    assert f"    graph-path: {found['graphPath'][0]} -> {found['graphPath'][1]}\n    edge-confidences: 0.80\n" in text
    assert "graphPath" not in recall_xray({}, audit=False)


def test_a_rule_of_the_project_is_procedural_whichever_lane_found_it(xray):
    snapshot = xray("May src/generated be edited by hand?", "lexical")
    assert "procedural" in tiers(snapshot)


def test_what_a_review_chains_is_review_context(tmp_path):
    indexed(tmp_path / "corpus")
    question = "Which decision does the retrospective of sprint 3 follow?"
    found = asked(tmp_path / "corpus", question, mode="review", variables=VARIABLES, budget={"lane_k": 1})
    snapshot = recall_xray(rows_of(found.tables))
    assert "review-context" in tiers(snapshot)
