"""Other weights on frozen terms: a moved slider gives what `what-if` gives, and no lane runs."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.demo import run_demo
from scoped_retrieval.pipeline.evaluation import Reweighing, commit_questions, known_items
from scoped_retrieval.pipeline.evaluation.metrics import per_query
from scoped_retrieval.pipeline.evaluation.rankings import full_ranking
from scoped_retrieval.pipeline.line.driver import LANES

from scoped_retrieval import Retriever

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
MEASURES = ("nDCG@10", "R@10")


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
def reweighing(asked):
    return Reweighing.of(asked.run, asked.qrels)


def test_a_moved_slider_gives_what_what_if_gives_and_no_lane_runs(asked, reweighing, tmp_path):
    moved = {"lexical": 0.9, "recency": 0.0, "authority": 0.0}
    answer = asked.retriever.what_if(asked.run.run_id, {"weights": moved})
    assert answer.frozen
    ids = asked.run.table("score_terms")["evidence_id"].unique().to_pylist()
    expected = per_query(asked.qrels, full_ranking(answer.tables["ranked"], pd.Series(ids, index=ids)), MEASURES)

    elsewhere = shutil.move(asked.folder / "corpus", tmp_path / "corpus")  # a lane would have nothing to read
    try:
        sliders = reweighing.sliders().move(**moved)
    finally:
        shutil.move(elsewhere, asked.folder / "corpus")
    for measure in MEASURES:
        after = sliders.reweighing.deltas(sliders.weights, measure)["changed"].sort_index()
        np.testing.assert_allclose(after, expected[measure].loc[after.index], atol=1e-12)
        assert sliders.figures.loc[measure, "changed"] == pytest.approx(after.mean())
    assert (sliders.deltas["delta"] != 0).sum() > 5
    assert sliders.figures.loc["nDCG@10", ["gain", "lose", "stay"]].sum() == 60


def test_the_saved_file_ranks_as_the_sliders_did(asked, reweighing, tmp_path):
    sliders = reweighing.sliders().move(lexical=0.9, recency=0.0)
    policies = load_policies(weights=sliders.save(tmp_path / "mine.yaml"))
    (purpose,) = (row for row in policies.purpose_policies.to_pylist() if row["purpose"] == "answer-question")
    assert (purpose["weight_lexical"], purpose["weight_recency"]) == (0.9, 0.0)
    assert purpose["weight_authority"] == reweighing.weights["authority"]
    assert "measure on other requests before" in (tmp_path / "mine.yaml").read_text()


def test_a_widget_moves_the_weights_and_its_page_needs_none(reweighing):
    sliders = reweighing.sliders()
    before = sliders.html()
    pytest.importorskip("ipywidgets", reason="needs the extra `notebook`")
    bundle = sliders._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/html"] == before
    sliders.controls["lexical"].value = 0.9
    assert sliders.weights["lexical"] == 0.9
    assert sliders.html() != before
    assert reweighing.figures({"lexical": 0.9}).equals(sliders.figures)


def test_what_is_not_judged_or_not_known_is_named(asked, reweighing):
    nobody = pd.DataFrame({"query_id": ["other"], "doc_id": ["a"], "relevance": [1]})
    with pytest.raises(InputError, match="Expected judgements of requests of the run, got none"):
        Reweighing.of(asked.run, nobody)
    with pytest.raises(InputError, match="lexicon"):
        reweighing.values("nDCG@10", {"lexicon": 1.0})
    with pytest.raises(InputError, match="lexicon"):
        reweighing.sliders().move(lexicon=1.0)
    with pytest.raises(InputError, match="answer-question"):
        Reweighing.of(asked.run, asked.qrels, purpose="fix-test")


def test_commits_ask_about_the_state_before_them(tmp_path):
    def git(*args: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(["git", *who, *args], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    for number, subject in enumerate(("Begin", "Retry three times", "Retry: wait longer")):
        (tmp_path / "retry.py").write_text(f"TIMES = {number}\n")
        git("add", "-A")
        git("commit", "-qm", subject)
    requests, qrels = commit_questions(tmp_path, project="p")
    first, second = git("rev-list", "--max-count=2", "--skip=1", "HEAD").split()
    assert [(r["question"], r["time"]["as_of"]) for r in requests] == [
        ("Retry: wait longer", f"commit:{first}"), ("Retry three times", f"commit:{second}"),
    ]  # fmt: skip
    assert qrels["doc_id"].tolist() == ["retry.py", "retry.py"]
