"""A disk that is full or may not be written to: the error says so, the corpus is as it was, and no run is lost."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scoped_retrieval.nodes.errors import StoreError
from scoped_retrieval.pipeline.corpus import Corpus, Selection, erasing
from scoped_retrieval.pipeline.engines.shards import ShardJob, in_this_process
from scoped_retrieval.pipeline.runs import Runs, verify
from small_corpus import Story, row

resource = pytest.importorskip("resource", reason="needs limits on what a process writes")

ROWS = [row("doc", f"docs/{n}.md", f"Handler {n} is described here, amber.") for n in range(9)]
ASKED = [{"project": "shop", "purpose": "answer-question", "question": f"which handler is {n}"} for n in range(3)]


@contextmanager
def full(bytes_: int) -> Iterator[None]:
    """A disk on which no file grows beyond some bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def asked(story: Story, runs: str, **how: Any) -> dict[str, list[str]]:
    """The logical digests of a run's parts, by table."""
    with story.open(runs=story.folder / runs, shard_requests=1) as opened:
        run = opened.run(**(how or {"requests": ASKED}))
    assert verify(Runs(story.folder / runs), run.run_id).status == "ok"
    found = Runs(run.path.parent).open(run.run_id)
    return {
        "snapshots": found.snapshots["snapshot_digest"].to_pylist(),
        "texts": sorted(found.texts["sha256"].to_pylist()),
    }


def test_a_run_that_a_full_disk_stopped_is_resumed_when_there_is_room(tmp_path: Path):
    def until_full(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Generator[int]:
        yield from in_this_process(job, shards[:1], clock)
        with full(4096):
            yield from in_this_process(job, shards[1:], clock)

    story = Story(tmp_path, *ROWS)
    whole = asked(story, "whole")
    with pytest.raises(StoreError, match="File too large") as caught:
        asked(story, "cut", requests=ASKED, engine=until_full)
    (run_id,) = Runs(tmp_path / "cut").unfinished()
    assert f": {tmp_path / 'cut' / run_id / 'tables'}" in caught.value.message
    assert caught.value.hint == f"`run --resume {run_id}` completes the run"
    assert asked(story, "cut", resume=run_id) == whole


def test_a_run_whose_folder_takes_nothing_says_where_and_how_to_go_on(tmp_path: Path):
    def without_tables(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Generator[int]:
        for name in ("snapshots", "requests"):  # a file where a folder must be
            (job.staged.folder / "tables" / name).write_text("")
        yield from in_this_process(job, shards, clock)

    story = Story(tmp_path, *ROWS)
    with pytest.raises(StoreError, match=rf"Expected to finish the run, got .* - at {tmp_path}/cut/run-") as caught:
        asked(story, "cut", requests=ASKED, engine=without_tables)
    (run_id,) = Runs(tmp_path / "cut").unfinished()
    assert caught.value.hint == f"`run --resume {run_id}` completes the run"


def test_a_publication_that_a_full_disk_stopped_leaves_the_corpus_as_it_was(tmp_path: Path):
    story = Story(tmp_path, *ROWS)
    before = Corpus.open(tmp_path / "corpus").generation
    with full(1024), pytest.raises(StoreError, match="File too large") as caught:
        story.tell(row("doc", "docs/late.md", "A late handler."))
    assert caught.value.hint.startswith("the corpus is as it was; free disk space")
    assert Corpus.open(tmp_path / "corpus").generation == before
    assert not Corpus.open(tmp_path / "corpus").verify()
    story.tell(row("doc", "docs/late.md", "A late handler."))
    assert Corpus.open(tmp_path / "corpus").generation != before


def test_an_erasure_that_a_full_disk_stopped_is_not_called_undone(tmp_path: Path):
    Story(tmp_path, *ROWS)
    corpus = Corpus.open(tmp_path / "corpus")
    row_id = corpus.frame().evidence["evidence_id"][0].as_py()
    chosen = Selection("ana", frozenset({"shop"}), evidence=(row_id,))
    with full(16), pytest.raises(StoreError, match="File too large") as caught:
        corpus.erase(chosen, now=datetime.now(UTC))
    assert caught.value.hint.startswith(
        "the erasure is not finished, and part of the rows may still be there; free disk space"
    )
    assert corpus.erase(chosen, now=datetime.now(UTC))[0] == {row_id}


def test_a_cleaning_that_the_disk_stopped_says_what_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Story(tmp_path, *ROWS)
    (tmp_path / "corpus" / "packs" / "000000001-stray").mkdir()
    corpus = Corpus.open(tmp_path / "corpus")
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(erasing, "remove_tree", lambda _: (_ for _ in ()).throw(full))
    with pytest.raises(StoreError, match="No space left on device") as caught:
        corpus.gc()
    assert caught.value.hint.startswith("some unused files may already be removed; the current generation is intact")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, where nobody makes a folder")
def test_a_place_that_nobody_may_write_to_is_named():
    with pytest.raises(StoreError, match=r".*: /proc/corpus"):
        Corpus.create("/proc/corpus")
    with pytest.raises(StoreError, match=r": folder of runs /proc/runs"):
        Runs("/proc/runs")
