"""Rows with new descriptions: amended in place if postings and vectors stay; else their segment is written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corpus_rows import day, import_rows
from scoped_retrieval.pipeline.corpus import Corpus, Selection

ROWS = ({"text": "one", "path": "a.md"}, {"text": "two", "path": "b.md"}, {"text": "three", "path": "c.md"})


def corpus_of(folder: Path, *rows: dict[str, Any], **how: Any) -> Corpus:
    corpus = Corpus.create(folder)
    corpus.publish(import_rows(*map(dict, rows or ROWS)), now=day(1), **how)
    return corpus


def column(corpus: Corpus, name: str) -> dict[str, Any]:
    """A column of evidence by text."""
    return dict(zip(*(corpus.frame().evidence[each].to_pylist() for each in ("text", name)), strict=True))


def test_what_described_an_erased_row_is_erased_with_it(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    corpus.append(import_rows({**ROWS[0], "domain": "zebrafink"}, {**ROWS[1], "domain": "kept"}), now=day(2))
    held = [path for path in tmp_path.rglob("*.arrow") if b"zebrafink" in path.read_bytes()]
    assert [path.name for path in held] == ["descriptions.arrow"]
    (gone,) = (row["evidence_id"] for row in corpus.frame().evidence.to_pylist() if row["text"] == "one")
    corpus.erase(Selection("ana", frozenset({"shop"}), evidence=(gone,)), now=day(3))
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"zebrafink" in path.read_bytes()]
    assert column(corpus, "domain") == {"two": "kept", "three": None}
    assert corpus.verify() == []
