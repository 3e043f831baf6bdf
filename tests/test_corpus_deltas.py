"""Rows with new descriptions: amended in place if postings and vectors stay; else their segment is written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from corpus_rows import SOURCE, HashEncoder, content, day, import_rows
from scoped_retrieval.pipeline.corpus import Corpus, Selection, publishing

ROWS = ({"text": "one", "path": "a.md"}, {"text": "two", "path": "b.md"}, {"text": "three", "path": "c.md"})


def corpus_of(folder: Path, *rows: dict[str, Any], **how: Any) -> Corpus:
    corpus = Corpus.create(folder)
    corpus.publish(import_rows(*map(dict, rows or ROWS)), now=day(1), **how)
    return corpus


def column(corpus: Corpus, name: str) -> dict[str, Any]:
    """A column of evidence by text."""
    return dict(zip(*(corpus.frame().evidence[each].to_pylist() for each in ("text", name)), strict=True))


def found(corpus: Corpus, key: str) -> list[str]:
    """The texts that a key finds."""
    frame = corpus.frame()
    rows = frame.postings.lookup([key], np.arange(frame.segments.num_rows)).rows
    return sorted(frame.evidence["text"].take(pa.array(rows)).to_pylist())


def segments(corpus: Corpus) -> set[str]:
    return {segment.segment_id for segment in corpus._base.segments()}


def test_a_row_described_anew_stays_where_it_stands_if_its_postings_do(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    before = segments(corpus)
    report = corpus.append(import_rows({"text": "two", "path": "b.md", "zone": "private"}), now=day(2))
    assert (report.described_anew, report.segments_written, segments(corpus)) == (1, 0, before)
    assert column(corpus, "zone") == {"one": None, "two": "private", "three": None}
    assert column(corpus, "captured_time") == {"one": day(1), "two": day(2), "three": day(1)}
    again = corpus.append(import_rows({"text": "two", "path": "b.md", "zone": "public"}), now=day(3))
    assert (again.described_anew, column(corpus, "zone")["two"]) == (1, "public")
    assert corpus.verify() == Corpus.open(tmp_path).verify() == []


@pytest.mark.parametrize(
    "changes", [{"title": "Guide"}, {"symbols": ["f"]}, {"calls": ["g"]}, {"entity": "E-1"}, {"uri": "https://x.org"}]
)
def test_a_row_whose_postings_change_is_written_again_with_its_segment(tmp_path: Path, changes: dict[str, Any]) -> None:
    corpus = corpus_of(tmp_path)
    before = segments(corpus)
    report = corpus.append(import_rows({"text": "two", "path": "b.md", **changes}), now=day(2))
    assert (report.described_anew, report.segments_written) == (1, 1)
    assert segments(corpus).isdisjoint(before)
    key = {"title": "t:guid", "symbols": "d:f", "calls": "r:g", "entity": "i:e-1", "uri": "i:https://x.org"}
    assert found(corpus, key[next(iter(changes))]) == ["two"]
    assert [found(corpus, f"t:{word}") for word in ("one", "two", "three")] == [["one"], ["two"], ["three"]]
    assert corpus.frame().evidence.num_rows == 3
    assert corpus.verify() == []


def test_a_segment_that_loses_all_of_its_rows_is_gone(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    corpus.append(import_rows(*({**row, "title": "Guide"} for row in ROWS)), now=day(2))
    assert (corpus.info()["segments"], found(corpus, "t:guid")) == (1, ["one", "three", "two"])
    assert corpus.verify() == []


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


def test_deltas_that_pile_up_are_folded_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "DELTAS_KEPT", 2)
    corpus = corpus_of(tmp_path)
    written = []
    for number, row in enumerate(ROWS):
        report = corpus.append(import_rows({**row, "importance": 0.5}), now=day(2 + number))
        written.append(report.segments_written)
    assert written == [0, 0, 1]
    assert column(corpus, "importance") == {"one": 0.5, "two": 0.5, "three": 0.5}
    assert (corpus._base.manifest.changes, corpus.verify()) == (None, [])


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


def test_a_frame_copies_only_the_columns_that_changed(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    corpus.append(import_rows({**ROWS[0], "zone": "private"}), now=day(2))
    corpus = Corpus.open(tmp_path)
    (pack,) = (pack for pack in corpus._base.packs.values() if "evidence.arrow" in pack)
    frame, stored = corpus.frame().evidence, pack.evidence(0, int(pack.sizes.sum()))
    copied = {name for name in frame.column_names if buffers(frame[name]) != buffers(stored[name])}
    assert copied == {"zone", "captured_time"}


def buffers(column: pa.ChunkedArray) -> list[int]:
    """Where the memory of a column lies."""
    return [0 if buffer is None else buffer.address for chunk in column.chunks for buffer in chunk.buffers()]


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
