"""Vectors survive an interrupted publication, and are gone once they are published, erased or cleaned up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from corpus_rows import HashEncoder, day, import_rows
from numpy.typing import NDArray
from scoped_retrieval.pipeline.corpus import Corpus, Selection, vectors
from scoped_retrieval.pipeline.corpus.embedding_checkpoints import FOLDER, has_checkpoints

ROWS = [{"text": f"text {n:02d}", "path": f"{n:02d}.md"} for n in range(25)]


class Stopping(HashEncoder):
    """Ctrl-C after so many pieces."""

    def __init__(self, pieces: int, profile: str = "hash/1") -> None:
        super().__init__(profile)
        self.pieces = pieces

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        if not self.pieces:
            raise KeyboardInterrupt
        self.pieces -= 1
        return super().encode(texts)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vectors, "CHECKPOINT_TEXTS", 10)


def interrupted(folder: Path, encoder: HashEncoder) -> Corpus:
    corpus = Corpus.create(folder)
    before = corpus.generation
    with pytest.raises(KeyboardInterrupt):
        corpus.publish(import_rows(*map(dict, ROWS)), now=day(1), encoder=encoder)
    assert Corpus.open(folder).generation == before
    assert has_checkpoints(folder)
    return corpus


def test_an_interrupted_publication_is_gone_on_with(tmp_path: Path):
    whole = Corpus.create(tmp_path / "whole")
    whole.publish(import_rows(*map(dict, ROWS)), now=day(1), encoder=HashEncoder())
    first, second, told = Stopping(2), HashEncoder(), []
    corpus = interrupted(tmp_path / "corpus", first)
    corpus.publish(
        import_rows(*map(dict, ROWS)), now=day(1), encoder=second, on_encoded=lambda *counted: told.append(counted)
    )
    assert (len(first.asked), len(second.asked)) == (20, 5)
    assert {*first.asked, *second.asked} == {row["text"] for row in ROWS}
    assert told == [(0, 5), (5, 5)]
    assert corpus.generation == whole.generation
    ours, theirs = (each.frame().vectors for each in (corpus, whole))
    assert ours is not None and theirs is not None
    assert all(np.array_equal(*pair) for pair in zip(ours.parts, theirs.parts, strict=True))
    assert not (corpus.path / FOLDER).exists()
    assert corpus.verify() == []


def test_vectors_for_rows_that_stand_already_are_kept_as_well(tmp_path: Path):
    corpus, told = Corpus.create(tmp_path), []
    for row in ROWS:
        row = row | {"owner_user": row["path"]}  # one segment each
        corpus.publish(import_rows(row), now=day(1))
    rows = import_rows(*(row | {"owner_user": row["path"]} for row in ROWS))
    first, second = Stopping(2), HashEncoder()
    with pytest.raises(KeyboardInterrupt):
        corpus.publish(rows, now=day(1), encoder=first)
    assert has_checkpoints(tmp_path)
    corpus.publish(rows, now=day(1), encoder=second, on_encoded=lambda *counted: told.append(counted))
    assert (len(first.asked), len(second.asked)) == (20, 5)
    assert told == [(0, 5), (5, 5)]
    assert corpus.verify() == []


def test_a_text_that_stands_in_two_segments_is_encoded_once(tmp_path: Path):
    corpus, encoder = Corpus.create(tmp_path), HashEncoder()
    rows = import_rows({"text": "the same"}, {"text": "the same", "owner_user": "ana"})
    corpus.publish(rows, now=day(1))
    corpus.publish(rows, now=day(1), encoder=encoder)
    assert encoder.asked == ["the same"]
    vectors = corpus.frame().vectors
    assert vectors is not None and np.array_equal(*vectors.parts)


def test_rows_that_are_all_described_anew_are_encoded(tmp_path: Path):
    corpus, encoder = Corpus.create(tmp_path), HashEncoder()
    corpus.publish(import_rows({"text": "a text"}), now=day(1))
    report = corpus.publish(import_rows({"text": "a text", "title": "A title"}), now=day(1), encoder=encoder)
    assert (report.described_anew, len(encoder.asked)) == (1, 1)


def test_a_damaged_piece_is_made_again(tmp_path: Path):
    corpus, again = interrupted(tmp_path, Stopping(2)), HashEncoder()
    first, _ = sorted(tmp_path.glob(f"{FOLDER}/*/*.arrow"))
    first.write_bytes(b"ARROW1")
    with pytest.raises(KeyboardInterrupt):
        corpus.publish(import_rows(*map(dict, ROWS)), now=day(1), encoder=Stopping(0))
    assert not first.exists()
    corpus.publish(import_rows(*map(dict, ROWS)), now=day(1), encoder=again)
    assert len(again.asked) == 15


def test_pieces_of_another_encoder_are_left_alone(tmp_path: Path):
    corpus, other = interrupted(tmp_path, Stopping(2)), HashEncoder("hash/2")
    corpus.publish(import_rows(*map(dict, ROWS)), now=day(1), encoder=other)
    assert len(other.asked) == 25
    assert not has_checkpoints(tmp_path)


def test_a_publication_without_an_encoder_keeps_them(tmp_path: Path):
    corpus = interrupted(tmp_path, Stopping(2))
    corpus.publish(import_rows({"text": "a line of a log", "source_id": "artifact:log"}), now=day(1))
    assert has_checkpoints(tmp_path)


@pytest.mark.parametrize("action", ["erase", "gc"])
def test_erasing_and_cleaning_up_remove_them(tmp_path: Path, action: str):
    corpus = interrupted(tmp_path, Stopping(2))
    if action == "gc":
        corpus.gc()
    else:
        corpus.erase(Selection("ana", frozenset(["shop"]), project="shop"), now=day(1))
    assert not (tmp_path / FOLDER).exists()


def test_a_publication_of_few_texts_writes_no_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from scoped_retrieval.pipeline.corpus.embedding_checkpoints import EmbeddingCheckpoints

    kept = []
    monkeypatch.setattr(EmbeddingCheckpoints, "keep", lambda self, table: kept.append(table.num_rows))
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows(*map(dict, ROWS[:10])), now=day(1), encoder=HashEncoder())
    assert kept == []
    corpus.publish(import_rows(*map(dict, ROWS)), now=day(1), encoder=HashEncoder())
    assert kept == [10, 5]
