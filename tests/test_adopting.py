"""Adopting: what a crash left between a file and its line gets its line from the next caller, and nothing else does."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from retrieving import batch, opened
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import LiveRun, RunStore, compact, heal, verify
from scoped_retrieval.pipeline.runs.erasing_unfinished import discard
from scoped_retrieval.pipeline.runs.log import Log
from scoped_retrieval.pipeline.runs.parts import PER_RUN
from scoped_retrieval.pipeline.runs.states import states
from scoped_retrieval.pipeline.storage.durable import write_atomic
from written_runs import LINEAGE, NOON, Maker, live, without_last_lines


def crashed(store: RunStore, line_tables: Maker, snapshots: int, lines: int) -> str:
    """A run whose session died with so many snapshots and lines."""
    run_id = live(store, line_tables, snapshots).run_id
    if lost := snapshots - lines:
        without_last_lines(store, lost)
    return run_id


@pytest.mark.parametrize(("snapshots", "lines"), [(1, 0), (3, 2), (3, 0)])
def test_a_crash_between_a_file_and_its_line_is_no_change_and_healed(
    snapshots: int, lines: int, tmp_path: Path, line_tables: Maker
):
    store = RunStore(tmp_path)
    run_id = crashed(store, line_tables, snapshots, lines)
    assert verify(store, run_id).status == "crashed"
    assert heal(store) == [run_id]
    assert verify(store, run_id).status == "ok"
    assert [line.body.get("adopted", False) for line in store.log.lines()] == [
        *[False] * lines,
        *[True] * (snapshots - lines),
    ]
    assert heal(store) == []


def test_what_was_changed_beside_a_crash_is_a_change_and_gets_no_line(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run_id = crashed(store, line_tables, 3, 2)
    file = tmp_path / run_id / "live/000001.arrow.lz4"
    write_atomic(file, file.read_bytes()[:-1] + b"x")
    assert verify(store, run_id).status == "changed"
    assert heal(store) == []
    assert len(store.log.lines()) == 2


def test_a_file_that_no_crash_leaves_is_a_change_and_gets_no_line(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run_id = crashed(store, line_tables, 2, 2)
    folder = tmp_path / run_id / "live"
    shutil.copy(folder / "000002.arrow.lz4", folder / "000001a.arrow.lz4")
    assert verify(store, run_id).status == "changed"
    assert heal(store) == []
    assert len(store.log.lines()) == 2


def test_a_run_whose_session_goes_on_is_left_to_it(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    session = LiveRun(store, now=NOON, inputs={n: line_tables(1)[n] for n in PER_RUN}, lineage=LINEAGE)
    session.write(line_tables(1, run_id=session.run_id))
    without_last_lines(store, 1)
    assert heal(store) == []
    session.release()
    assert not (store.opened / session.run_id).exists()


def test_a_session_that_writes_its_first_snapshot_is_no_crash(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    session = LiveRun(store, now=NOON, inputs={n: line_tables(1)[n] for n in PER_RUN}, lineage=LINEAGE)
    seen: list[list[str]] = []
    session.write(
        line_tables(1, run_id=session.run_id),
        confirmed=lambda: seen.append([one.state for one in states(RunStore(tmp_path))]),
    )
    assert seen == [["unfinished"]]
    assert [one.state for one in states(store)] == ["ok"]


@pytest.mark.parametrize("step", ["live_format", "live_files"])
def test_a_run_that_is_compacted_between_two_steps_of_a_look_is_ok(
    step: str, tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    run_id = live(store, line_tables, 2).run_id
    module = sys.modules["scoped_retrieval.pipeline.runs.states"]
    look, calls = getattr(module, step), []

    def compacted_before(folder: Path) -> Any:
        if not calls:
            calls.append(compact(store, run_id))
        return look(folder)

    monkeypatch.setattr(module, step, compacted_before)
    assert [(one.run_id, one.state) for one in states(store)] == [(run_id, "ok")]
    assert calls


def test_a_session_leaves_no_mark_before_its_lines_are_on_disk(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    store = RunStore(tmp_path)
    session = LiveRun(store, now=NOON, inputs={n: line_tables(1)[n] for n in PER_RUN}, lineage=LINEAGE)
    session.write(line_tables(1, run_id=session.run_id))
    mark, found = store.opened / session.run_id, []
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: found.append(mark.exists()))
        session.release()
    assert found == [True]
    assert not mark.exists()


def test_the_next_question_heals_what_the_last_session_left(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (row,), runs = batch(1), tmp_path / "runs"
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Log, "append", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        opened(corpus, runs=runs).retrieve(row)
    gc.collect()  # a dead process holds nothing
    (left,) = RunStore(runs).folders()
    assert verify(RunStore(runs), left).status == "crashed"
    with opened(corpus, runs=runs) as session:
        session.retrieve(row)
    assert verify(RunStore(runs), left).status == "ok"


def test_a_discarded_run_leaves_no_mark(tmp_path: Path, line_tables: Maker):
    store = RunStore(tmp_path)
    run_id = live(store, line_tables, 1).run_id
    without_last_lines(store, 1)
    shutil.rmtree(tmp_path / run_id / "live")
    discard(store, run_id)
    assert not (store.opened / run_id).exists()
