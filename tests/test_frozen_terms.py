"""Other weights on frozen terms: changed weights give what `what-if` gives, and no lane runs."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from repositories import git
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.lanes import LANE_NAMES as LANES
from scoped_retrieval.pipeline.demo import run_demo
from scoped_retrieval.pipeline.evaluation.frozen_terms import FrozenTerms
from scoped_retrieval.pipeline.evaluation.metrics import per_query
from scoped_retrieval.pipeline.evaluation.synthetic import commit_collection, known_items

from scoped_retrieval import Retriever

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
MEASURES = ("nDCG@10", "R@10")
MOVED = {"lexical": 0.9, "recency": 0.0, "authority": 0.0}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The sample, asked 60 questions for known items."""
    folder = run_demo(tmp_path_factory.mktemp("demo") / "d", semantic=False, say=lambda _: None).folder
    retriever = Retriever.open(
        folder / "corpus", principal="ana", grants=folder / "corpus" / "grants.yaml", runs=folder / "runs",
        lanes=[lane for lane in LANES if lane != "semantic"], clock=lambda: NOW,
    )  # fmt: skip
    requests, qrels = known_items(
        retriever.corpus.frame(["shop"]).evidence, 60, project="shop", purpose="answer-question", as_of=NOW.isoformat()
    )
    run = retriever.runs.open(retriever.run(requests).run_id)
    return SimpleNamespace(folder=folder, retriever=retriever, run=run, qrels=qrels)


@pytest.fixture(scope="module")
def terms(asked):
    return FrozenTerms.of(asked.run, asked.qrels)


def test_changed_weights_give_what_what_if_gives_and_no_lane_runs(asked, terms, tmp_path):
    answer = asked.retriever.what_if(asked.run.run_id, {"weights": MOVED})
    ranked = answer.tables["ranked"].select(["request_id", "evidence_id", "rank"]).to_pandas()
    ranked = ranked.set_axis(["query_id", "doc_id", "score"], axis=1).assign(score=-ranked["rank"].astype(float))
    expected = per_query(asked.qrels, ranked, MEASURES)

    elsewhere = shutil.move(asked.folder / "corpus", tmp_path / "corpus")  # a lane would have nothing to read
    try:
        figures = terms.figures(MOVED)
    finally:
        shutil.move(elsewhere, asked.folder / "corpus")
    for measure in MEASURES:
        after = terms.deltas(MOVED, measure)["changed"].sort_index()
        np.testing.assert_allclose(after, expected[measure].loc[after.index], atol=1e-12)
        assert figures.loc[measure, "changed"] == pytest.approx(after.mean())
    assert (terms.deltas(MOVED)["delta"] != 0).sum() > 5
    assert figures.loc["nDCG@10", ["gain", "lose", "stay"]].sum() == 60


def test_what_is_not_judged_or_not_known_is_named(asked, terms):
    nobody = pd.DataFrame({"query_id": ["other"], "doc_id": ["a"], "relevance": [1]})
    with pytest.raises(InputError, match="Expected judgements of requests of the run, got none"):
        FrozenTerms.of(asked.run, nobody)
    with pytest.raises(InputError, match="lexicon"):
        terms.values({"lexicon": 1.0})


def test_commits_ask_about_the_state_before_them(tmp_path):
    git(tmp_path, "init", "-q")
    for number, subject in enumerate(("Begin", "Retry three times", "Retry: wait longer")):
        (tmp_path / "retry.py").write_text(f"TIMES = {number}\n")
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", subject)
    found = commit_collection(tmp_path, 100)
    first, second = git(tmp_path, "rev-list", "--max-count=2", "--skip=1", "HEAD").split()
    asked = [("Retry: wait longer", first), ("Retry three times", second)]
    assert found.queries[["text", "commit"]].apply(tuple, axis=1).tolist() == asked
    assert found.qrels["doc_id"].tolist() == ["retry.py", "retry.py"]
