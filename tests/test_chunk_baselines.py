"""The comparison by chunks: what it shows, how it fills a budget, and that it sees only what the query may see."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from scoped_retrieval.pipeline.evaluation.baselines import CHUNK_LINES, chunk_systems
from scoped_retrieval.pipeline.evaluation.collections import open_collection

pytest.importorskip("bm25s", reason="needs the extra eval")


def code(folder: Path) -> Path:
    texts = {"long": "filler\n" * 60 + "the rare needle\n", "doc": "the rare needle, told\n", "other": "nothing here\n"}
    rows = [
        ("c1", "src/long.py", "long", "source"),
        ("c1", "docs/a.md", "doc", "doc"),
        ("c2", "src/b.py", "other", "source"),
    ]
    corpus = pd.DataFrame(rows, columns=pd.Index(["commit", "path", "blob_sha", "kind"]))
    corpus.assign(timestamp="2025-01-01T00:00:00Z").to_parquet(folder / "corpus.parquet")
    pd.DataFrame({"blob_sha": list(texts), "text": list(texts.values())}).to_parquet(folder / "blobs.parquet")
    pd.DataFrame({"query_id": ["q"], "text": ["rare needle"], "commit": ["c1"]}).to_parquet(folder / "queries.parquet")
    pd.DataFrame({"query_id": ["q"], "path": ["src/long.py"], "relevance": [1]}).to_parquet(folder / "qrels.parquet")
    return folder


def test_the_chunk_that_matches_is_shown_and_not_the_head(tmp_path: Path) -> None:
    found = chunk_systems(open_collection(code(tmp_path)), [1000])
    everything, source = found["bm25-chunks-all-files"][1000], found["bm25-chunks-source-files"][1000]
    assert set(everything.shown["doc_id"]) == {"docs/a.md", "src/long.py"}
    assert set(source.shown["doc_id"]) == {"src/long.py"}
    assert source.tokens < CHUNK_LINES * 2 + 20  # the second chunk of the file alone


def test_a_budget_is_never_exceeded_and_cuts_at_a_line_end(tmp_path: Path) -> None:
    collection = open_collection(code(tmp_path))
    for budget in range(1, 60):
        filled = chunk_systems(collection, [budget])["bm25-chunks-all-files"][budget]
        assert filled.tokens <= budget


def test_messages_of_others_and_of_later_are_not_seen(tmp_path: Path) -> None:
    rows = [
        ("m1", "ana", "s1", "2025-01-01T00:00:00Z", 1, "the needle of ana"),
        ("m2", "bob", "s2", "2025-01-01T00:00:00Z", 1, "the needle of bob"),
        ("m3", "ana", "s1", "2025-03-01T00:00:00Z", 2, "a needle that comes later"),
        ("m4", "ana", "s1", "2025-01-01T00:01:00Z", 2, "something else was said"),
    ]
    corpus = pd.DataFrame(rows, columns=pd.Index(["doc_id", "user", "session", "timestamp", "turn", "text"]))
    corpus.assign(title=None).to_parquet(tmp_path / "corpus.parquet")
    pd.DataFrame({"query_id": ["q"], "text": ["needle"], "user": ["ana"], "asOf": ["2025-02-01T00:00:00Z"]}).to_parquet(
        tmp_path / "queries.parquet"
    )
    pd.DataFrame({"query_id": ["q"], "doc_id": ["m1"], "relevance": [1]}).to_parquet(tmp_path / "qrels.parquet")
    found = chunk_systems(open_collection(tmp_path), [500])
    assert set(found["bm25-chunks-rows"][500].shown["doc_id"]) == {"m1"}
    assert set(found["bm25-chunks-windows"][500].shown["doc_id"]) == {"m1", "m4"}
