"""A failed read of a corpus or a run proves nothing about the file: nothing is removed or run again, and the error names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from corpus_rows import day, import_rows
from failing_reads import FailingReads
from failing_store import FailingStore
from line_tables import line_tables
from scoped_retrieval.nodes.errors import StoreError
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.runs.files import files_below
from scoped_retrieval.pipeline.storage.places import Place
from stored_corpus import generations, manifest_at, written_again
from written_runs import batch, staged

TOO_MANY = "^Too many open files: "
DENIED = PermissionError(13, "Permission denied")


@pytest.fixture(params=["folder", "memory"])
def unread(
    request: pytest.FixtureRequest, failing_reads: FailingReads, tmp_path: Path
) -> tuple[Place, Callable[[str], AbstractContextManager[None]], str]:
    """A folder for a corpus, what lets reads of names that hold a word fail there, and how the error goes on."""
    if request.param == "folder":
        return (
            tmp_path / "corpus",
            lambda word: failing_reads.of(lambda path: path.is_file() and word in str(path)),
            TOO_MANY,
        )
    pytest.importorskip("fsspec", reason="needs the extra remote")
    store = FailingStore()

    @contextmanager
    def of(word: str) -> Iterator[None]:
        store.unread = word
        yield
        store.unread = None

    return store.at(f"{tmp_path.name}/corpus"), of, "Expected the store to answer, got TimeoutError - at "


def three_generations(path: Place) -> tuple[Corpus, list[str]]:
    """A corpus whose first rows are in other packs than the last ones, and its generations, oldest first."""
    corpus = Corpus.create(path)
    corpus.publish(import_rows({"text": "one"}), now=day(1))
    corpus.publish(import_rows({"text": "two", "path": "b.md"}), now=day(2))
    written_again(corpus, day(3))
    corpus.publish(import_rows({"text": "three", "path": "c.md"}), now=day(4))
    return corpus, generations(path)


def stored(path: Place) -> set[str]:
    return {f"{at.parent.name}/{at.name}" for name in ("packs", "generations") for at in (path / name).iterdir()}


def texts(corpus: Corpus) -> list[str]:
    return sorted(corpus.frame().evidence["text"].to_pylist())


def id_of(corpus: Corpus, text: str) -> str:
    evidence = corpus.frame().evidence
    return evidence["evidence_id"].to_pylist()[evidence["text"].to_pylist().index(text)]


def erase_one(corpus: Corpus, evidence_id: str) -> int:
    return corpus.erase(Selection("ana", frozenset({"shop"}), evidence=(evidence_id,)), now=day(9))[1]


def test_an_erasure_never_removes_what_the_generation_it_wrote_needs(
    tmp_path: Path, failing_reads: FailingReads
) -> None:
    corpus, _ = three_generations(tmp_path)
    gone = id_of(corpus, "one")

    def current(path: Path) -> bool:
        return path.suffix == ".json" and path == manifest_at(tmp_path)

    with failing_reads.of(current), pytest.raises(StoreError, match=TOO_MANY):
        erase_one(corpus, gone)
    assert Corpus.open(tmp_path).verify() == []
    erase_one(Corpus.open(tmp_path), gone)
    assert Corpus.open(tmp_path).verify() == []
    assert texts(Corpus.open(tmp_path)) == ["three", "two"]


def test_gc_that_cannot_read_a_manifest_removes_nothing(unread) -> None:
    path, of, message = unread
    corpus, known = three_generations(path)
    before = stored(path)
    with of(manifest_at(path, known[1]).name), pytest.raises(StoreError, match=message):
        corpus.gc(keep=9)
    assert stored(path) == before
    assert texts(Corpus.open(path, known[1])) == ["one"]
    assert corpus.gc(keep=9)["generations"] == 0
    assert texts(Corpus.open(path, known[1])) == ["one"]


@pytest.mark.parametrize(
    "act", [lambda corpus: erase_one(corpus, id_of(corpus, "three")), lambda corpus: corpus.gc(keep=9)]
)
def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(
    tmp_path: Path, failing_reads: FailingReads, act: Callable[[Corpus], object]
) -> None:
    corpus, known = three_generations(tmp_path)
    unlisted = failing_reads.of(lambda path: path == tmp_path / "generations", DENIED)
    with unlisted, pytest.raises(StoreError, match=r"Permission denied: "):
        act(corpus)
    assert Corpus.open(tmp_path).verify() == []
    assert texts(Corpus.open(tmp_path, known[1])) == ["one"]


def test_a_store_that_does_not_answer_is_not_taken_for_no_corpus(unread) -> None:
    path, of, message = unread
    corpus, known = three_generations(path)
    with of("HEADS"), pytest.raises(StoreError, match=message) as found:
        Corpus.open(path)
    assert "index" not in str(found.value)
    for name in (None, known[1]):
        with of("generations"), pytest.raises(StoreError, match=message):
            Corpus.open(path, name)
    erase_one(corpus, id_of(corpus, "three"))
    if isinstance(path, Path):
        return  # Arrow maps the file unseen by this test
    corpus = Corpus.open(path)
    with of("/erased.arrow"), pytest.raises(StoreError, match=message):
        corpus.publish(import_rows({"text": "four", "path": "d.md"}), now=day(5))


def test_a_corpus_is_not_made_over_one_that_cannot_be_looked_at(tmp_path: Path, failing_reads: FailingReads) -> None:
    corpus, known = three_generations(tmp_path)
    with failing_reads.of(lambda path: path.name == "HEADS"), pytest.raises(StoreError, match=TOO_MANY):
        Corpus.create(tmp_path)
    assert Corpus.open(tmp_path).generation == corpus.generation == known[-1]


def test_a_shard_is_not_run_again_because_its_line_cannot_be_read_now(
    tmp_path: Path, failing_reads: FailingReads
) -> None:
    store = Runs(tmp_path)
    run_id = staged(store).run_id
    store.resume(run_id).write(0, line_tables(2, run_id=run_id))
    resumed = store.resume(run_id)
    with (
        failing_reads.of(lambda path: path.name == "LOG"),
        pytest.raises(StoreError, match=r"^Too many open files: .*LOG"),
    ):
        resumed.pending()
    assert resumed.pending() == []


def test_a_folder_of_a_run_that_cannot_be_listed_is_not_an_empty_one(
    tmp_path: Path, failing_reads: FailingReads
) -> None:
    run = batch(Runs(tmp_path))
    whole = list(files_below(run.folder))
    with (
        failing_reads.of(lambda path: path == run.folder / "tables", DENIED),
        pytest.raises(StoreError, match=r"^Permission denied: .*/tables$"),
    ):
        list(files_below(run.folder))
    assert whole == sorted(whole) and whole == list(files_below(run.folder))
    assert list(files_below(tmp_path / "none")) == []
