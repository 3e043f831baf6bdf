"""Weights are fitted to judged queries, and every figure is of queries that were left out of the fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from golden_file import expect_golden
from judged_folders import documents_folder, talks_folder, written
from plugin_package import install
from repositories import committed, git
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.tables import RERANK_WEIGHTS, SCORE_TERMS
from scoped_retrieval.nodes.vocabulary import SCORE_TERMS as CLASSES
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.config.policies.weight_files import load_weights
from scoped_retrieval.pipeline.evaluation import tuning
from scoped_retrieval.pipeline.evaluation.asking import Asking
from scoped_retrieval.pipeline.evaluation.collections import open_collection
from scoped_retrieval.pipeline.evaluation.evaluate import evaluate
from scoped_retrieval.pipeline.evaluation.frozen_terms import FrozenTerms
from scoped_retrieval.pipeline.evaluation.tuning import DEFAULT, FITTED, fitted_weights, tune

TERMS = tuple(term for term in CLASSES if term != "diversity")
QUERIES = ("q1", "q2", "q3")


def score_terms(rows: Sequence[tuple[str, str, str, dict[str, float]]]):
    """SCORE_TERMS of (query, evidence, kind, terms)."""
    words = {"freshness": "fresh", "anchor_signal": None, "source_signal": "code", "role_signal": None}
    described = [
        {"request_id": query, "evidence_id": evidence, "evidence_kind": kind, "pool_rank": n, **dict.fromkeys(TERMS, 0.0), **terms, **words}
        for n, (query, evidence, kind, terms) in enumerate(rows, start=1)
    ]  # fmt: skip
    return SCORE_TERMS.from_rows(described)


def weights(given: dict[str, float]):
    return RERANK_WEIGHTS.from_rows(
        [{"request_id": query, **dict.fromkeys(CLASSES, 0.0), **given} for query in QUERIES]
    )


GOLDEN = Path(__file__).parent / "golden" / "tune.txt"
START = {"semantic": 0.3, "lexical": 0.3, "recency": 0.1, "scope": 0.05}


def judged(seed: int, telling: str = "semantic") -> FrozenTerms:
    """Three queries of twelve documents, one relevant each, of which one term tells and others are noise."""
    random, rows, gold = np.random.default_rng(seed), [], []
    for query in ("q1", "q2", "q3"):
        for n in range(12):
            noise = {term: float(random.random()) for term in ("semantic", "lexical", "recency")}
            rows.append((query, f"{query}-{n:02}", "doc", noise | {telling: 0.5 + (n == 7) * 0.4}))
        gold.append((query, f"{query}-07", 1))
    qrels = pd.DataFrame(gold, columns=["query_id", "doc_id", "relevance"])
    documents = {evidence: evidence for _, evidence, _, _ in rows}
    terms = FrozenTerms((), score_terms(rows), weights(START), pd.Series(documents), qrels)
    return terms.of_queries(("q1", "q2", "q3"))


@pytest.mark.parametrize("telling", ["semantic", "recency"])
def test_the_term_that_tells_gets_the_weight(telling):
    part = judged(1, telling)
    fitted = fitted_weights([part], START, pull=0)
    assert set(fitted) == {"semantic", "lexical", "recency"}  # scope is the same everywhere and keeps its weight
    assert max(fitted, key=lambda term: fitted[term]) == telling
    assert sum(fitted.values()) == pytest.approx(0.7, abs=1e-3)
    after, before = (part.values(weights, ["R@1"])["R@1"].mean() for weights in (fitted, None))
    assert after == 1.0 > before


def test_no_query_is_measured_under_weights_that_were_fitted_to_it(tmp_path, monkeypatch):
    fits = []

    def watched(parts, start, **how):
        fits.append({query for part in parts for query in part.queries})
        return {term: weight + len(fits) for term, weight in start.items() if term in parts[0].varying()}

    monkeypatch.setattr(tuning, "fitted_weights", watched)
    collections = [open_collection(documents_folder(tmp_path, name)) for name in ("one", "two")]
    done = tune(collections, Asking(tmp_path / "w", semantic=False), least_queries=2)
    assert fits == [{f"two/q{n}" for n in (1, 2, 3)}, {f"one/q{n}" for n in (1, 2, 3)}, fits[0] | fits[1]]
    assert done.left_out == {"answer-question": "one collection"}
    fits.clear()
    alone = tune(collections[:1], Asking(tmp_path / "w", semantic=False), least_queries=2)
    everything = {f"one/q{n}" for n in (1, 2, 3)}
    assert sorted(map(sorted, fits[:3])) == sorted(sorted(everything - {query}) for query in everything)
    assert fits[3] == everything
    measured = alone.values[(alone.values["metric"] == "R@10") & (alone.values["system"] == FITTED)]
    assert sorted(measured["query_id"]) == sorted(everything)


def test_the_term_of_a_plugin_is_fitted(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch)
    collections = [open_collection(documents_folder(tmp_path, name)) for name in ("one", "two")]
    work, how = tmp_path / "w", {"semantic": False, "plugins": ("acme",)}
    done = tune(collections, Asking(work, **how), least_queries=2)
    assert done.before["answer-question"]["acme.length"] == 0.3
    assert done.weights["answer-question"]["acme.length"] != 0.3


def test_lines_that_were_judged_are_measured_and_nothing_is_fitted_to_them(tmp_path):
    texts = ["def add(line, more):\n    return line + more\n", "def split(line):\n    return line.split()\n"]
    paths, shas = ("sum.py", "text.py"), ("b0", "b1")
    snapshot = {"doc_id": paths, "commit": "c1", "timestamp": "2024-01-01", "path": paths, "blob_sha": shas}
    asked = {"query_id": ["q1", "q2"], "text": ["add to a line", "split a line"], "commit": "c1"}
    gold = {"query_id": ["q1", "q2"], "doc_id": "", "path": ["sum.py:2", "text.py:90"], "relevance": 1}
    blobs = pd.DataFrame({"blob_sha": shas, "text": texts})
    folder = written(
        tmp_path / "code",
        corpus=pd.DataFrame(snapshot),
        blobs=blobs,
        queries=pd.DataFrame(asked),
        qrels=pd.DataFrame(gold),
    )
    done = tune([open_collection(folder)], Asking(tmp_path / "w", semantic=False), measures=["R@10"], least_queries=2)
    means = done.held_out().set_index("collection")[DEFAULT]
    assert means.to_dict() == {"code": 1.0, "code, by lines": 0.5}
    assert {one["collection"]: one["queries"] for one in done.data} == {"code": 2}


def test_two_collections_of_one_name_are_refused(tmp_path):
    folders = [documents_folder(tmp_path / parent, "papers") for parent in ("one", "two")]
    with pytest.raises(InputError, match="Expected collections of different names, got 'papers, papers'"):
        tune([open_collection(folder) for folder in folders], Asking(tmp_path / "w", semantic=False))


def test_the_queries_of_one_conversation_are_left_out_together(tmp_path, monkeypatch):
    fits = []
    monkeypatch.setattr(
        tuning, "fitted_weights", lambda parts, start, **_: fits.append(parts[0].queries) or dict(start)
    )
    tune([open_collection(talks_folder(tmp_path))], Asking(tmp_path / "w", semantic=False), least_queries=2)
    assert sorted(fits[:-1]) == [("talk/a1", "talk/a2"), ("talk/b1", "talk/b2")]


def test_the_weights_in_force_have_the_figures_of_eval(tmp_path):
    collections = [open_collection(documents_folder(tmp_path, name)) for name in ("one", "two")]
    measured = evaluate(collections, Asking(tmp_path / "w", semantic=False), metrics=["nDCG@10"])
    done = tune(collections, Asking(tmp_path / "w", semantic=False), measures=["nDCG@10"], least_queries=2)
    means = done.held_out().set_index("collection")[DEFAULT].to_dict()
    assert means["one"] == pytest.approx(measured.means("nDCG@10").loc["full", "one"])
    assert means["all documents"] == pytest.approx(np.mean([means["one"], means["two"]]))


@pytest.mark.golden
def test_the_tables_and_the_file_of_tune_are_the_golden_ones(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        documents_folder(tmp_path, name)
    told = ["--work", "w", "--no-semantic", "--least-queries", "2", "--out", "fitted.yaml"]
    assert main(["tune", "one", "two", *told]) == 0
    printed = capsys.readouterr().out
    text = (tmp_path / "fitted.yaml").read_text()
    said = yaml.safe_load(text)["fitted"]
    assert set(said["versions"]) == {"scoped-retrieval", "numpy", "scipy", "pyarrow"}
    assert {row["collection"]: row["queries"] for row in said["held_out"]} == {"one": 3, "two": 3, "all documents": 6}
    assert {row["metric"] for row in said["held_out"]} == {"nDCG@10", "R@10"}
    assert set(said["held_out"][0]) >= {DEFAULT, FITTED, "p", "low", "high"}
    assert load_weights(tmp_path / "fitted.yaml").weights.keys() == {"answer-question"}
    expect_golden(GOLDEN, printed)
    assert main(["tune", "one", "--work", "w", "--no-semantic", "--least-queries", "2", "--out", "w"]) == 2
    assert "Is a directory: --out w" in capsys.readouterr().err


def test_a_repository_of_one_commit_gives_no_questions(tmp_path, capsys):
    (tmp_path / "a.py").write_text("x = 1\n")
    committed(tmp_path)
    assert main(["tune", str(tmp_path), "--commits"]) == 2
    assert "Expected commits that change files" in capsys.readouterr().err


def test_the_history_of_a_repository_gives_questions_with_files_and_lines(tmp_path, monkeypatch, capsys):
    (shop := tmp_path / "shop").mkdir()
    names = ("cart", "order", "retry", "login")
    for name in names:
        body = "".join(f"def {name}_{n}():\n    return 'step {n} of the {name}'\n\n\n" for n in range(12))
        (shop / f"{name}.py").write_text(body)
    committed(shop)
    for number, name in enumerate(names):
        file = shop / f"{name}.py"
        file.write_text(file.read_text().replace(f"'step {number} of the {name}'", f"{number}"))
        git(shop, "commit", "-qam", f"{name}: step {number} returns a number")
    monkeypatch.chdir(shop)
    told = ["--no-semantic", "--least-queries=2", "--metric=R@10", "--picture=../tuned.svg", "--json"]
    assert main(["tune", ".", "--commits", *told]) == 0
    out, err = capsys.readouterr()
    said = json.loads(out)
    before, fitted = (found["answer-question"] for found in (said["fitted"]["weights_in_force"], said["weights"]))
    assert (fitted.get("recency", 0) > before.get("recency", 0)) == ("recency" in err)
    held_out = {row["collection"]: row for row in said["fitted"]["held_out"]}
    assert {name: row["queries"] for name, row in held_out.items()} == {"shop": 4, "shop, by lines": 4}
    assert held_out["shop"][DEFAULT] == 1.0
    assert 0 < held_out["shop, by lines"][DEFAULT] < 1.0
    assert load_weights(Path(".scoped-retrieval/eval/weights.yaml")).weights.keys() == {"answer-question"}
    assert git(shop, "status", "--porcelain") == ""
    assert (tmp_path / "tuned.svg").read_bytes().startswith(b"<?xml")
