"""Rows with new descriptions: amended in place if postings and vectors stay; else their segment is written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from corpus_rows import SOURCE, HashEncoder, content, day, import_rows
from scoped_retrieval.pipeline.corpus import Corpus, Selection

ROWS = ({"text": "one", "path": "a.md"}, {"text": "two", "path": "b.md"}, {"text": "three", "path": "c.md"})


def corpus_of(folder: Path, *rows: dict[str, Any], **how: Any) -> Corpus:
    corpus = Corpus.create(folder)
    corpus.publish(import_rows(*map(dict, rows or ROWS)), now=day(1), **how)
    return corpus


def column(corpus: Corpus, name: str) -> dict[str, Any]:
    """A column of evidence by text."""
    return dict(zip(*(corpus.frame().evidence[each].to_pylist() for each in ("text", name)), strict=True))


def segments(corpus: Corpus) -> set[str]:
    return {segment.segment_id for segment in corpus._base.segments()}


@pytest.mark.parametrize("changes", [{"zone": "private"}, {"title": "Guide"}])
def test_the_generation_is_the_one_that_writing_everything_gives(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Amended or written again, then merged: the rows are those of a corpus that never knew others."""
    corpus = corpus_of(tmp_path / "amended")
    said = ({**ROWS[0], **changes}, ROWS[1], {**ROWS[2], **changes})
    corpus.publish(import_rows(*map(dict, said)), complete_sources={SOURCE}, now=day(2))
    fresh = corpus_of(tmp_path / "fresh", *said)
    assert corpus.generation == fresh.generation
    assert content(corpus.frame()) == content(fresh.frame())
    corpus.merge(now=day(3))
    assert (corpus.generation, corpus.info()["segments"]) == (fresh.generation, 1)
    assert content(Corpus.open(corpus.path).frame()) == content(fresh.frame())
    assert corpus._base.manifest.changes is None


def test_a_generation_keeps_the_descriptions_it_had(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    first = corpus.generation
    corpus.append(import_rows({**ROWS[0], "zone": "private"}), now=day(2))
    assert column(Corpus.open(tmp_path, first), "zone")["one"] is None
    assert column(Corpus.open(tmp_path), "zone")["one"] == "private"


def test_a_row_described_anew_keeps_its_vector_or_gets_its_first(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, encoder=HashEncoder())
    corpus.append(import_rows({**ROWS[0], "zone": "private"}), now=day(2))
    assert corpus.info()["encoded_rows"] == 3
    plain = corpus_of(tmp_path / "plain")
    plain.append(import_rows({**ROWS[0], "zone": "private"}), now=day(2), encoder=HashEncoder())
    assert (plain.info()["encoded_rows"], column(plain, "zone")["one"]) == (1, "private")
    assert corpus.verify() == plain.verify() == []


def test_parts_inherit_the_zone_that_a_parent_has_now(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, {"text": "book", "entity": "book", "zone": "public"})
    corpus.append(import_rows({"text": "book", "entity": "book", "zone": "private"}), now=day(2))
    corpus.append(import_rows({"text": "page", "parent_id": "book", "zone": "public"}), now=day(3))
    assert column(corpus, "zone") == {"book": "private", "page": "private"}


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
