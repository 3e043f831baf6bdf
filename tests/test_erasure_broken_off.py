"""Erasure where something was broken off: unfinished runs, what killed writers left, and erasures that failed halfway."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from erasing_world import (
    QUESTION,
    asked,
    holding,
    settings,
    told,
    unfinished,
)
from scoped_retrieval.pipeline.corpus import Corpus, manifest, packs, tombstones
from scoped_retrieval.pipeline.corpus import store as corpus_store
from scoped_retrieval.pipeline.maintenance.erasure import Erasure, erase
from scoped_retrieval.pipeline.runs import Runs, compact, live, log, replay, verify
from scoped_retrieval.pipeline.runs import erasing as runs_erasing
from scoped_retrieval.pipeline.runs import writing as runs_writing
from scoped_retrieval.pipeline.runs.store import PLAN
from small_corpus import Story


def test_an_erasure_of_rows_removes_unfinished_runs(tmp_path: Path) -> None:
    run_id = unfinished(told(tmp_path))
    before = holding(tmp_path)
    assert erase(settings(tmp_path), source="doc:story", dry_run=True).runs.discarded == [run_id]
    assert holding(tmp_path) == before != []
    done = erase(settings(tmp_path), source="doc:story")
    assert (done.runs.discarded, Runs(tmp_path / "runs").unfinished()) == ([run_id], [])
    assert f"discarded: {run_id}, which is unfinished" in done.text()
    erase(settings(tmp_path), user="bo", project="shop")
    assert holding(tmp_path) == []


def test_an_erasure_of_rows_leaves_unfinished_runs_over_other_corpora(tmp_path: Path) -> None:
    run_id = unfinished(told(tmp_path))
    plan = tmp_path / "runs" / run_id / PLAN
    written = json.loads(plan.read_bytes())
    written["pin"]["corpus_id"] = "another"
    plan.write_text(json.dumps(written))
    assert erase(settings(tmp_path), source="doc:story").runs.discarded == []
    assert Runs(tmp_path / "runs").unfinished() == [run_id]


def test_an_erasure_of_an_unfinished_run_that_failed_at_any_write_is_done_by_asking_again(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    unfinished(told(whole))
    every = 1 if os.environ.get("TEST_PROFILE") == "full" else 5
    for at in count(0, every):
        folder = tmp_path / f"try-{at}"
        shutil.copytree(whole, folder)
        with failing(at) as touched, suppress(OSError):
            erase(settings(folder), project="shop", questions=False)
        erase(settings(folder), project="shop", questions=False)
        assert holding(folder) == []
        assert Runs(folder / "runs").unfinished() == []
        shutil.rmtree(folder)
        if touched[0] <= at:
            break
    assert at > 10


@pytest.mark.parametrize(("owner", "step", "left"), [(Path, "unlink", True), (log.RunLog, "append", True)])
def test_no_byte_stays_of_a_session_whose_compaction_was_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, left: bool
) -> None:
    snapshot = asked(told(tmp_path), batch=False)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(owner, step, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        erase(settings(tmp_path), project="shop")
    assert any("live" in name for name in holding(tmp_path)) == left
    erase(settings(tmp_path), project="shop")
    assert holding(tmp_path) == []
    assert verify(Runs(tmp_path / "runs"), snapshot).status == "erased"


def test_no_byte_stays_of_a_session_whose_files_a_loss_of_power_brought_back(tmp_path: Path) -> None:
    snapshot = asked(told(tmp_path), batch=False)
    store = Runs(tmp_path / "runs")
    run = store.open(snapshot)
    shutil.copytree(tmp_path / "runs/live", tmp_path / "aside")
    compact(store, run.run_id)
    shutil.copytree(tmp_path / "aside", tmp_path / "runs/live", dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "aside")
    erase(settings(tmp_path), project="shop")
    assert holding(tmp_path) == []
    assert verify(store, snapshot).status == "erased"


def test_a_part_that_an_erasure_named_and_left_is_told_to_be_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = asked(told(tmp_path), batch=True)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(runs_erasing, "write_bytes", _after_the_receipt(runs_erasing.write_bytes))
        erase(settings(tmp_path), project="shop")
    (problem,) = verify(Runs(tmp_path / "runs"), snapshot).problems
    assert (problem.kind, problem.part) == ("changed", "texts/part-00000.parquet")
    assert problem.detail == "texts that a receipt lists as erased still exist: run the erasure again"


def _after_the_receipt(right: Any) -> Any:
    def stopped(path: Path, data: Any, *, sync: bool) -> str:
        if path.suffix == ".parquet":
            raise KeyboardInterrupt
        return right(path, data, sync=sync)

    return stopped


@contextmanager
def failing(at: int) -> Iterator[list[int]]:
    """The write or removal number `at` of an erasure fails; gives how many were tried."""
    touched = [0]
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in PLACES:
            patch.setattr(owner, name, _failing(getattr(owner, name), at, touched))
        yield touched


def _failing(right: Any, at: int, touched: list[int]) -> Any:
    def wrong(*args: Any, **how: Any) -> Any:
        touched[0] += 1
        if touched[0] - 1 == at:
            raise OSError(28, "no space left")
        return right(*args, **how)

    return wrong


PLACES = [
    (tombstones, "write_atomic"), (manifest, "write_atomic"), (packs, "write_atomic"),
    (corpus_store, "forget"), (runs_erasing, "write_bytes"), (log.RunLog, "append"),
    (shutil, "rmtree"), (Path, "unlink"),
]  # fmt: skip


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
def test_an_erasure_that_failed_at_any_write_is_done_by_asking_again(tmp_path: Path, batch: bool) -> None:
    whole = tmp_path / "whole"
    snapshot = asked(told(whole), batch=batch)
    every = 1 if batch or os.environ.get("TEST_PROFILE") == "full" else 6  # compaction writes many parts
    for at in count(0, every):
        folder = tmp_path / f"try-{at}"
        shutil.copytree(whole, folder)
        with failing(at) as touched:
            try:
                done: Erasure | None = erase(settings(folder), project="shop")
            except OSError:
                done = None
        assert Corpus.open(folder / "corpus").verify() == []
        if done is None or done.runs.unreadable:
            erase(settings(folder), project="shop")
        assert holding(folder) == []
        store = Runs(folder / "runs")
        assert (verify(store, snapshot).status, replay(store, snapshot).status) == ("erased", "erased")
        shutil.rmtree(folder)
        if touched[0] <= at:
            break
    assert at > 5


class Killed(BaseException):
    """The process ends here."""


def killed_shard(story: Story) -> None:
    """The process ends amid the first shard of a run: its texts are written, and no table that says what they show."""

    def texts_alone(path: Path, data: memoryview, *, sync: bool) -> str:
        if path.parent.name in ("request_record", "item_record", "answer_record"):
            raise Killed
        return right(path, data, sync=sync)

    right = runs_writing.write_bytes
    with pytest.MonkeyPatch.context() as patch, story.open(runs=story.folder / "runs") as retriever:
        patch.setattr(runs_writing, "write_bytes", texts_alone)
        with pytest.raises(Killed):
            retriever.run([QUESTION])


def killed_snapshot(story: Story) -> None:
    """The process ends before the first snapshot of a session has its name."""

    def killed(path: Path, data: bytes | memoryview, *, sync: bool) -> str:
        path.with_name(".tmp-1").write_bytes(data)
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "write_atomic", killed)
        with pytest.raises(Killed):
            story.open(runs=story.folder / "runs").retrieve(QUESTION)


def killed_part(story: Story) -> None:
    """The process ends before a rewritten part of a finished run has its name."""
    part = Runs(story.folder / "runs").open(asked(story, batch=True)).folder / "texts" / "part-00000.parquet"
    shutil.copy(part, part.with_name(".tmp-1.parquet"))


def killed_removal(story: Story, left: str = "texts") -> None:
    """A process that was removing an unfinished run ended when the `left` folders still existed."""
    run_id = unfinished(story)
    for name in {"stage", "tables", "texts"} - {*left.split()}:
        shutil.rmtree(story.folder / "runs" / run_id / name)


def killed_removal_of_tables(story: Story) -> None:
    killed_removal(story, "stage texts")


@pytest.mark.parametrize(
    "killed", [killed_shard, killed_snapshot, killed_part, killed_removal, killed_removal_of_tables]
)
def test_no_byte_stays_of_what_a_writer_left_that_was_killed(tmp_path: Path, killed: Callable[[Story], None]) -> None:
    story = told(tmp_path)
    killed(story)
    assert any("runs" in name for name in holding(tmp_path))
    done = erase(settings(tmp_path), project="shop")
    assert (done.runs.unreadable, done.runs.being_written) == ([], [])
    assert holding(tmp_path) == []
