"""A damaged pack stays detectable: no writer writes its rows again, and nothing is erased from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from corpus_rows import SOURCE, HashEncoder, content, day, import_rows
from scoped_retrieval.nodes.errors import StoreError
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from stored_corpus import manifest_at, written_again


def flip(file: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def file_with(path: Path, word: bytes, name: str = "evidence.arrow") -> Path:
    """The file of that name, of the pack that has a word in its evidence."""
    (found,) = (file for file in path.glob("packs/*/evidence.arrow") if word in file.read_bytes())
    return found.with_name(name)


def reword(path: Path) -> Path:
    """Make one word of a text another one: the file."""
    file = file_with(path, b"timeout")
    file.write_bytes(file.read_bytes().replace(b"timeout", b"timeXXX"))
    return file


def expect_refused(corpus: Corpus, damaged: Path, act: Callable[[Corpus], object]) -> None:
    """The writer names the damaged file, and the corpus is unchanged: visibly damaged."""
    before = {path: path.read_bytes() for path in corpus.path.rglob("*") if path.suffix == ".json"}
    with pytest.raises(StoreError, match=r"^Expected (SHA-256|checksum) \w+\b.*, got \w+ - at ") as caught:
        act(corpus)
    assert caught.value.message.endswith(f"- at {damaged}")
    assert caught.value.hint.startswith("restore the pack from a backup, or index its sources into a new corpus: ")
    assert {path: path.read_bytes() for path in corpus.path.rglob("*") if path.suffix == ".json"} == before
    (line,) = Corpus.open(corpus.path).verify()
    assert line.endswith(f"packs/{damaged.parent.name}/{damaged.name}")


def told(path: Path) -> Corpus:
    """Two packs: one with three rows of two owners, one with a row of the first."""
    corpus = Corpus.create(path)
    first = [{"text": "the lock timeout"}, {"text": "second", "path": "b.md"}, {"text": "bo", "owner_user": "bo"}]
    corpus.publish(import_rows(*first), now=day(1), encoder=HashEncoder())
    corpus.publish(import_rows({"text": "later", "path": "c.md"}), now=day(2), encoder=HashEncoder())
    corpus.gc()  # of the packs without vectors
    return corpus


def selection(corpus: Corpus, *texts: str) -> Selection:
    rows = corpus.frame().evidence
    chosen = rows.filter(pa.array([text in texts for text in rows["text"].to_pylist()]))
    return Selection("ana", frozenset({"shop"}), evidence=tuple(chosen["evidence_id"].to_pylist()))


def tell(corpus: Corpus, *rows: dict[str, Any], **how: Any) -> None:
    corpus.publish(import_rows(*rows), now=day(3), **how)


SECOND = {"text": "second", "path": "b.md"}
LATER = {"text": "later", "path": "c.md"}
WRITERS: dict[str, Callable[[Corpus], object]] = {
    "merge": lambda corpus: written_again(corpus, day(3)),
    "a row described anew": lambda corpus: tell(corpus, SECOND | {"title": "Other"}),
    "a row told more of": lambda corpus: tell(corpus, SECOND | {"importance": 0.5}),
    "a row in another place": lambda corpus: tell(corpus, SECOND | {"line_start": 7}),
    "a file that is gone": lambda corpus: tell(corpus, LATER, complete_sources={SOURCE}),
    "an erasure": lambda corpus: corpus.erase(selection(corpus, "second"), now=day(3)),
    "an erasure of all": lambda corpus: corpus.erase(Selection("ana", frozenset({"shop"}), project="shop"), now=day(3)),
}


@pytest.mark.parametrize(("writer", "reopened"), [(writer, n % 2 == 0) for n, writer in enumerate(WRITERS)])
def test_no_writer_makes_rows_of_a_damaged_pack_anew(tmp_path: Path, writer: str, reopened: bool) -> None:
    corpus = told(tmp_path)
    damaged = reword(tmp_path)
    expect_refused(Corpus.open(tmp_path) if reopened else corpus, damaged, WRITERS[writer])


@pytest.mark.parametrize("name", ["evidence.arrow", "placements.arrow", "postings.arrow", "vectors.arrow"])
def test_each_file_of_a_pack_is_held_against_what_was_written(tmp_path: Path, name: str) -> None:
    corpus = told(tmp_path)
    damaged = file_with(tmp_path, b"timeout", name)
    whole = damaged.read_bytes()
    flip(damaged)
    expect_refused(corpus, damaged, WRITERS["merge"])
    expect_refused(corpus, damaged, WRITERS["an erasure"])
    damaged.write_bytes(whole)  # put back from a copy
    written_again(corpus, day(4))
    corpus.erase(selection(corpus, "second"), now=day(5))
    assert Corpus.open(tmp_path).verify() == []


def test_an_erasure_of_a_damaged_pack_leaves_no_receipt_and_takes_nothing(tmp_path: Path) -> None:
    corpus = told(tmp_path)
    meant = selection(corpus, "second")
    placements = file_with(tmp_path, b"timeout", "placements.arrow")
    flip(placements)
    expect_refused(corpus, placements, lambda corpus: corpus.erase(meant, now=day(3)))
    assert not [*tmp_path.glob("packs/*/erased.arrow")]
    assert corpus.frame().evidence.num_rows == 4
    corpus.erase(selection(corpus, "later"), now=day(3))  # of another pack
    assert corpus.frame().evidence.num_rows == 3


def test_nobody_says_what_a_damaged_pack_holds(tmp_path: Path) -> None:
    """Its owner may be another one now: an erasure must not report that it holds nothing of theirs."""
    corpus = told(tmp_path)
    damaged = file_with(tmp_path, b"timeout")
    damaged.write_bytes(damaged.read_bytes().replace(b"workspace:shop", b"workspace:shoq"))
    of_shop = Selection("ana", frozenset({"shop"}), source=SOURCE)
    for act in (lambda corpus: corpus.stored(of_shop).ids, lambda corpus: corpus.erase(of_shop, now=day(3))):
        expect_refused(corpus, damaged, act)


def test_a_damaged_pack_of_an_older_generation_goes_with_it(tmp_path: Path) -> None:
    corpus = told(tmp_path)
    damaged = file_with(tmp_path, b"timeout")
    tell(corpus, {"text": "another", "path": "e.md"})
    written_again(corpus, day(3))
    damaged.write_bytes(damaged.read_bytes().replace(b"timeout", b"timeXXX"))
    corpus.erase(selection(corpus, "second"), now=day(4))
    assert Corpus.open(tmp_path).verify() == []


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", None], ids=["empty", "a list", "cut off", "one byte more"])
def test_a_manifest_that_its_line_does_not_name_is_refused(tmp_path: Path, damage: bytes | None) -> None:
    corpus = told(tmp_path)
    at = manifest_at(tmp_path)
    whole = at.read_bytes()
    at.write_bytes(whole + b" " if damage is None else damage)
    with pytest.raises(StoreError, match=r"^Expected SHA-256 \w{64}, got \w{64} - at ") as caught:
        Corpus.open(tmp_path)
    assert caught.value.message.endswith(str(at))
    at.write_bytes(whole)
    assert Corpus.open(tmp_path).generation == corpus.generation


WORDS = ("lock", "timeout", "session", "guard", "role", "token", "cache", "shard")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 60 rows of two owners with vectors."""
    path = tmp_path_factory.mktemp("stored")
    rows = [
        {
            "text": f"{WORDS[n % 8]} {WORDS[n * 3 % 7]} number {n}",
            "path": f"docs/{n}.md",
            "owner_user": "bo" if n % 5 == 0 else None,
        }
        for n in range(60)
    ]
    corpus = Corpus.create(path)
    corpus.publish(import_rows(*rows), now=day(1), encoder=HashEncoder())
    corpus.append(import_rows({**rows[1], "zone": "private"}), now=day(2))
    corpus.gc()  # of the rows without vectors
    return path


def everything(path: Path) -> object:
    """All that a question can read of a corpus: evidence, placements, posting lists and vectors."""
    frame = Corpus.open(path).frame()
    lists = [
        (
            words.hashes.tolist(),
            words.keys.to_pylist(),
            words.starts.tolist(),
            words.rows.tolist(),
            words.freqs.tolist(),
        )
        for words in frame.postings.parts
    ]
    vectors = [None if part is None else part.tolist() for part in frame.vectors.parts] if frame.vectors else []
    return content(frame), lists, vectors


FILES = ("evidence.arrow", "placements.arrow", "postings.arrow", "vectors.arrow")


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_told_or_changes_nothing(tmp_path: Path, stored: Path, name: str) -> None:
    path = tmp_path / "corpus"
    shutil.copytree(stored, path)
    expected = everything(path)
    (file,) = (file for file in path.glob(f"packs/*/{name}") if file.with_name("evidence.arrow").exists())
    whole = file.read_bytes()
    told = 0
    for bit in range(3, 8 * len(whole), 8 * len(whole) // 20):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        try:
            assert everything(path) == expected, f"bit {bit} of {name} changed an answer"
        except StoreError as error:
            told += 1
            assert f"packs/{file.parent.name}/{name}" in error.message
            assert error.hint.startswith("restore the pack from a backup")
    file.write_bytes(whole)
    assert told > 6
    assert everything(path) == expected
