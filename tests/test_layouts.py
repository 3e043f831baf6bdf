"""Collections in BEIR's files are the collection that Parquet holds, and rankings of other systems are measured, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judged_folders import JUDGED, PAPERS, QUESTIONS, documents_folder
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.evaluation.collections import open_collection


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
