"""Labelled collections: read in two layouts, asked inside their own scope, measured from the run's own tables, compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from golden_file import expect_golden
from judged_folders import JUDGED, PAPERS, QUESTIONS, documents_folder, written
from repositories import git
from scipy import stats
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.evaluation.asking import Asking, index_collections
from scoped_retrieval.pipeline.evaluation.collections import open_collection
from scoped_retrieval.pipeline.evaluation.evaluate import GOLD_PER_1000, evaluate
from scoped_retrieval.pipeline.evaluation.metrics import compared, holm, per_query

ADD = "def add(a, b):\n    return a + b\n"
ADD_FIXED = "def add(a, b):\n    return int(a) + int(b)\n"
SPLIT = "def split(line):\n    return line.split()\n"

SNAPSHOTS = [
    ("c1", "2024-01-01", {"sum.py": ADD, "text.py": SPLIT}),
    ("c2", "2024-01-01", {"sum.py": ADD_FIXED}),  # the same instant; text.py is gone
    ("c3", "2024-02-01", {"sum.py": ADD, "text.py": SPLIT}),
]


@pytest.fixture
def code(tmp_path: Path) -> Path:
    texts = {text: f"blob{i}" for i, text in enumerate([ADD, ADD_FIXED, SPLIT])}
    corpus = [
        (f"{sha}:{path}", sha, day, path, texts[text]) for sha, day, tree in SNAPSHOTS for path, text in tree.items()
    ]
    queries = [("q1", "add returns strings", "c1"), ("q2", "split a line", "c2"), ("q3", "split a line", "c3")]
    qrels = [("q1", "sum.py"), ("q2", "text.py"), ("q3", "text.py")]
    return written(
        tmp_path / "code",
        corpus=pd.DataFrame(corpus, columns=["doc_id", "commit", "timestamp", "path", "blob_sha"]),
        blobs=pd.DataFrame([(sha, text) for text, sha in texts.items()], columns=["blob_sha", "text"]),
        queries=pd.DataFrame(queries, columns=["query_id", "text", "commit"]),
        qrels=pd.DataFrame(qrels, columns=["query_id", "path"]).assign(doc_id="", relevance=1),
    )


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    return documents_folder(tmp_path)


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    corpus = [
        ("m1", "ana", "s", "2024-01-01T09:00:00Z", "my dog is called Rex"),
        ("m2", "bo", "s", "2024-01-01T09:00:00Z", "my dog is called Ada"),
        ("m3", "bo", "s", "2024-03-01T09:00:00Z", "my dog is now called Max"),
    ]
    return written(
        tmp_path / "talk",
        corpus=pd.DataFrame(corpus, columns=["doc_id", "user", "session", "timestamp", "text"]),
        queries=pd.DataFrame(
            [("q1", "what is my dog called", "bo", "2024-02-01T00:00:00Z")],
            columns=["query_id", "text", "user", "asOf"],
        ),
        qrels=pd.DataFrame([("q1", "m2", 1)], columns=["query_id", "doc_id", "relevance"]),
    )


def test_snapshots_are_the_commits_of_their_project(tmp_path: Path, code: Path, documents: Path) -> None:
    corpus = index_collections([open_collection(code), open_collection(documents)], tmp_path, semantic=False)
    commits = corpus.commits("code").to_pylist()
    assert [(row["source_id"], row["version"]) for row in commits] == [("git:code", sha) for sha in ("c1", "c2", "c3")]
    assert len({row["recorded_time"] for row in commits}) == 3
    assert corpus.commits("papers").num_rows == 0


def test_every_shape_is_asked_in_one_run_inside_its_own_scope(
    tmp_path: Path, code: Path, documents: Path, conversations: Path
) -> None:
    collections = [open_collection(folder) for folder in (code, documents, conversations)]
    done = evaluate(collections, Asking(tmp_path / "work", semantic=False), metrics=["R@5", "RR@1"])

    table = {(r["collection"], r["system"], r["metric"]): (r["value"], r["queries"]) for r in done.records()}
    assert table["code", "full", "R@5"] == (pytest.approx(2 / 3, abs=1e-4), 3)  # text.py is not in c2: nothing to find
    assert table["papers", "full", "RR@1"] == (1.0, 3)
    assert table["talk", "full", "RR@1"] == (1.0, 1)
    trec = (tmp_path / "work/trec/talk/full.run").read_text().splitlines()
    assert [line.split()[:4] for line in trec] == [["talk/q1", "Q0", "m2", "1"]]  # not ana's, not the later one
    assert sum(done.asked.run.statuses.values()) == 14  # each once for its ranking and once for its block


def test_the_block_is_measured_under_its_own_budget(tmp_path: Path, documents: Path) -> None:
    done = evaluate(
        [open_collection(documents)], Asking(tmp_path / "work", semantic=False), metrics=["R@5"], blocks=[1, 500]
    )
    found = done.means("R@5")["papers"]
    assert {system: found[system] for system in ("full", "block", "block@1", "block@500")} == {
        "full": 1.0, "block": 1.0, "block@1": 0.0, "block@500": 1.0,
    }  # fmt: skip
    tokens = [b["tokens"] for b in done.asked.run.table("blocks").to_pylist() if b["request_id"].endswith("@block@500")]
    rate = pytest.approx(1000 * len(tokens) / sum(tokens))
    rates = done.means(GOLD_PER_1000)["papers"].to_dict()
    assert rates == {"block": rate, "block@500": rate, "block@1": 0.0}


def test_a_label_of_lines_counts_where_the_block_shows_one_of_them(tmp_path: Path, code: Path) -> None:
    labels = [("q1", "sum.py:2"), ("q2", "sum.py:1"), ("q3", "text.py:1-2"), ("q3", "sum.py")]
    qrels = pd.DataFrame(labels, columns=["query_id", "path"]).assign(doc_id="", relevance=1)
    qrels.to_parquet(code / "qrels.parquet", index=False)
    done = evaluate([open_collection(code)], Asking(tmp_path / "w", semantic=False), metrics=["R@5"], blocks=[1])
    shown = done.means("line shown")["code"].to_dict()
    assert shown == {"block": pytest.approx(2 / 3), "block@1": 0.0}  # nothing of sum.py answers q2
    assert done.means("R@5").loc["full", "code"] > 0, "files count as before"


def test_a_part_without_a_column_is_named(code: Path) -> None:
    pd.DataFrame({"query_id": ["q1"], "path": ["sum.py"]}).to_parquet(code / "qrels.parquet")
    with pytest.raises(InputError, match=r"Expected the column relevance, got none - at .*code: qrels"):
        open_collection(code)


def test_questions_alone_are_about_the_checkout_that_they_are_in(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sum.py").write_text(ADD)
    git(tmp_path, "init", "-q")
    (folder := tmp_path / "questions" / "qrels").mkdir(parents=True)
    (folder.parent / "queries.jsonl").write_text('{"_id": "1", "text": "add two numbers"}\n')
    (folder / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tsum.py:2\t1\n")
    with pytest.raises(InputError, match="Expected a repository with commits"):
        open_collection(folder.parent)
    git(tmp_path, "add", "sum.py")
    git(tmp_path, "commit", "-qm", "x")
    outside = Path(shutil.copytree(folder.parent, tmp_path_factory.mktemp("outside") / "questions"))
    for around, named in ((folder.parent, Path()), (tmp_path, outside)):
        monkeypatch.chdir(around)
        work = around / "w"
        done = evaluate([open_collection(named)], Asking(work, semantic=False), metrics=["R@5"])
        means = done.means("line shown").loc["block", "questions"], done.means("R@5").loc["full", "questions"]
        assert means == (1, 1)
    for query, path, got in (("9", "sum.py", "'9'"), ("1", "sun.py", "'sun.py'"), ("1", "", "''"), ("1", f"sum.py:{10**20}", "'sum.py:1")):  # fmt: skip
        (folder / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n1\tsum.py\t1\n{query}\t{path}\t1\n")
        with pytest.raises(InputError, match=f"got {got}.* - at .*questions: qrels"):
            open_collection(folder.parent)


def test_measures_are_those_that_ir_measures_has_by_these_names() -> None:
    from ir_measures import AP, RR, Judged, P, iter_calc, nDCG

    qrels = pd.DataFrame({"query_id": ["q"] * 3, "doc_id": ["a", "b", "c"], "relevance": [2, 1, 2]})
    run = pd.DataFrame({"query_id": ["q"] * 3, "doc_id": ["b", "x", "a"], "score": [3.0, 2.0, 1.0]})
    names = {
        "nDCG@2": nDCG @ 2,
        "AP": AP,
        "P(rel=2)@3": P(rel=2) @ 3,
        "RR(rel=2)@3": RR(rel=2) @ 3,
        "Judged@3": Judged @ 3,
    }
    found = per_query(qrels, run, tuple(names)).loc["q"]
    assert found.to_dict() == {name: next(iter(iter_calc([one], qrels, run))).value for name, one in names.items()}


@pytest.mark.golden
def test_the_tables_of_eval_are_the_golden_ones(tmp_path: Path, capsys):
    folder = str(documents_folder(tmp_path))
    args = ["--work", str(tmp_path / "w"), "--no-semantic", "--metric", "nDCG@10", "--metric", "R@1", "--block", "60"]
    assert main(["eval", folder, *args]) == 0
    expect_golden(Path(__file__).parent / "golden" / "eval.txt", capsys.readouterr().out)


def beir(folder: Path) -> Path:
    (folder / "qrels").mkdir(parents=True)
    corpus = [json.dumps({"_id": id_, "title": title, "text": text, "metadata": {}}) for id_, title, text in PAPERS]
    (folder / "corpus.jsonl").write_text("\n".join(corpus) + "\n")
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": i, "text": t}) + "\n" for i, t in QUESTIONS))
    lines = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in JUDGED)
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines)
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq9\td4\t1\n")
    return folder


def test_either_layout_gives_the_same_rows_requests_and_judgements(tmp_path):
    ours = open_collection(documents_folder(tmp_path / "uniform"))
    theirs = open_collection(beir(tmp_path / "other" / "papers"))
    assert (theirs.name, theirs.shape, theirs.key) == (ours.name, ours.shape, ours.key)
    assert theirs.qrels.values.tolist() == ours.qrels.values.tolist()
    assert theirs.requests() == ours.requests()
    assert [table.to_pylist() for table in theirs.rows()] == [table.to_pylist() for table in ours.rows()]


def test_another_split_has_other_judgements_and_an_unknown_one_is_named(tmp_path):
    folder = beir(tmp_path / "papers")
    assert open_collection(folder, "dev").qrels["query_id"].tolist() == ["papers/q9"]
    assert open_collection(folder, "dev").digest() == open_collection(folder).digest()  # one corpus
    with pytest.raises(InputError, match="Expected one of dev, test, got 'train' - at --split of papers"):
        open_collection(folder, "train")


FULL = [0.9, 0.5, 1.0, 0.4, 0.8, 0.7]
WORSE = [0.7, 0.4, 1.0, 0.1, 0.6, 0.3]


def table() -> pd.DataFrame:
    return pd.DataFrame({"full": FULL, "same": FULL, "worse": WORSE})


def test_a_difference_has_its_sign_its_interval_and_its_test():
    found = compared(table(), "full")
    assert list(found.index) == ["full", "same", "worse"]
    worse = found.loc["worse"]
    assert worse["difference"] == pytest.approx(np.mean(WORSE) - np.mean(FULL))
    assert worse["low"] <= worse["difference"] <= worse["high"] < 0
    assert worse["p"] == pytest.approx(stats.ttest_rel(FULL, WORSE).pvalue)
    assert worse["p_holm"] == pytest.approx(worse["p"])  # the one other system differs nowhere


def test_intervals_are_those_of_scipys_t_test():
    found = compared(table(), "full").loc["worse"]
    theirs = stats.ttest_rel(WORSE, FULL).confidence_interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((theirs.low, theirs.high))


def test_holm_is_the_example_that_textbooks_give():
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.9, np.nan, 0.8])) == pytest.approx([1.0, np.nan, 1.0], nan_ok=True)
