"""What is erased of a corpus: of owners who came one after the other, and of rows that were described again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corpus_rows import HashEncoder, content, day, import_rows
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from stored_corpus import written_again


def one_by_one(folder: Path, owners: int) -> Corpus:
    """Each owner comes with an import of its own; every third is encoded, and every fifth described again."""
    corpus = Corpus.create(folder)
    for number in range(owners):
        row = {"text": f"note {number}", "owner_project": f"p{number % 7}", "owner_user": f"u{number:02}"}
        encoder = HashEncoder() if number % 3 == 0 else None
        rows = import_rows(dict(row), {**row, "path": "b.md", "text": "same"})
        corpus.append(rows, now=day(1), encoder=encoder)
        if number % 5 == 0:
            corpus.append(import_rows({**row, "zone": "private", "line_start": 9}), now=day(2))
    return corpus


def test_what_is_erased_of_a_shared_pack_leaves_the_other_owners_whole(tmp_path: Path) -> None:
    corpus = one_by_one(tmp_path, 12)
    written_again(corpus, day(3))
    corpus.append(
        import_rows({"text": "note 4", "owner_project": "p4", "owner_user": "u04", "zone": "public"}), now=day(3)
    )
    kept = [row for row in content(corpus.frame())[0] if row["owner_user"] != "u04"]
    corpus.erase(Selection("ana", frozenset({"p4"}), user="u04"), now=day(4))
    assert content(corpus.frame())[0] == kept
    assert not [path for path in tmp_path.rglob("*.arrow") if b"note 4" in path.read_bytes()]
    assert corpus.verify() == []


def test_segments_that_are_rewritten_leave_those_between_them_as_they_are(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path)
    first, between, last = ({"text": f"note {n}", "owner_project": f"p{n}"} for n in range(3))
    corpus.append(import_rows(first, between, last), now=day(1))
    corpus.append(import_rows(first, between | {"text": "another"}, last), now=day(2), encoder=HashEncoder())
    assert corpus.info()["rows"] == 4
    assert Corpus.open(tmp_path).verify() == []


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
