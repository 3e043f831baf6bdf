"""Whatever names a thing is on disk after the thing: LOG after the run, a pointer after its packs, all folders above synced."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from power_loss import Disk
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import Runs, compact, erase_texts
from scoped_retrieval.pipeline.runs.log import RunLog
from scoped_retrieval.pipeline.sources.importing import normalize
from scoped_retrieval.pipeline.storage.chain import Chain, Line
from scoped_retrieval.pipeline.storage.durable import (
    write_atomic,
)
from written_runs import Maker, batch, live

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="paths of handles come from /proc")


def nothing(_: Path) -> bool:
    return False


def at_each_line(disk: Disk, store: Runs, patch: pytest.MonkeyPatch) -> list[list[str]]:
    """What a loss of power would take at the moment that each line of LOG is begun."""
    found: list[list[str]] = []
    append = RunLog.append

    def watched(self: RunLog, last: Line | None, body: dict[str, Any]) -> Line:
        places = (store.path / body["run_id"], store.path / "shared", store.path / "live")
        lost = disk.lost(*(place for place in places if place.exists())) if body["kind"] != "close" else []
        found.append([path for path in lost if "/stage/" not in path])  # the line of a run does not name its stage
        return append(self, last, body)

    patch.setattr(RunLog, "append", watched)
    return found


def written_twice(folder: Path, line_tables: Maker, forgetful: Callable[[Path], bool] = nothing) -> list[list[str]]:
    """Two batch runs: the second finds the folder of runs and its log there."""
    disk = Disk(forgetful)
    store = Runs(folder / "runs")
    with disk.watched(), pytest.MonkeyPatch.context() as patch:
        found = at_each_line(disk, store, patch)
        for _ in range(2):
            batch(store, line_tables)
    return found


def test_a_run_is_on_disk_before_the_log_names_it(tmp_path: Path, line_tables: Maker):
    assert written_twice(tmp_path, line_tables) == [[], []]


@pytest.mark.parametrize(("left_out", "lost"), [
    (lambda folder: folder.name == "runs", "{run}"),
    (lambda folder: folder.name == "tables", "{run}/tables/candidate_record"),
    (lambda folder: folder.name == "candidate_record", "{run}/tables/candidate_record/part-00000.parquet"),
    (lambda folder: folder.name.startswith("run-"), "{run}/tables"),
], ids=["runs", "tables", "one table", "run"])  # fmt: skip
def test_leaving_out_the_sync_of_one_folder_would_be_found(
    tmp_path: Path, line_tables: Maker, left_out: Callable[[Path], bool], lost: str
):
    found = written_twice(tmp_path, line_tables, left_out)
    runs = {entry.name for entry in (tmp_path / "runs").glob("run-*")}
    assert {lost.format(run=run) for run in runs} <= {path for each in found for path in each}


def test_a_session_is_on_disk_before_its_lines_and_its_compaction_before_its_last(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    disk, store = Disk(), Runs(tmp_path / "runs")
    with disk.watched():
        found = at_each_line(disk, store, monkeypatch)
        for _ in range(2):
            compact(store, live(store, line_tables).run_id)
    assert found == [[]] * 8


def test_a_receipt_is_on_disk_before_its_line_and_the_part_before_it_is_said_to_be_gone(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
):
    disk, store = Disk(), Runs(tmp_path / "runs")
    with disk.watched():
        found = at_each_line(disk, store, monkeypatch)
        run = batch(store, line_tables)
        erase_texts(store, run.run_id, run.texts["sha256"].to_pylist()[:1], reason="asked by its owner")
        assert disk.lost(run.folder) == []
    assert found == [[], []]


def test_a_corpus_is_on_disk_before_its_line(
    tmp_path: Path, evidence_rows: Callable[..., pa.Table], monkeypatch: pytest.MonkeyPatch
):
    disk, found = Disk(), []
    append = Chain.append

    def watched(self: Chain, *args: Any) -> Line:
        found.append(disk.lost(*(tmp_path / "a" / "corpus" / name for name in ("packs", "generations"))))
        return append(self, *args)

    monkeypatch.setattr(Chain, "append", watched)
    with disk.watched():
        corpus = Corpus.create(tmp_path / "a" / "corpus")
        rows, _ = normalize(evidence_rows("shop"), project="shop", principal="ana", now=NOON)
        corpus.publish(rows, now=NOON)
        assert disk.lost(tmp_path / "a") == ["a/corpus/HEADS"]  # whose name was synced with its first line
    assert found == [[], []]


def test_grants_are_on_disk_with_their_names(tmp_path: Path):
    disk = Disk()
    with disk.watched():
        for project in ("shop", "pay"):
            write_starter_grants(tmp_path / "new" / "grants.yaml", "ana", project)
            assert disk.lost(tmp_path / "new") == []
    assert stat.S_IMODE((tmp_path / "new/grants.yaml").stat().st_mode) == 0o600


def test_a_file_keeps_what_it_was_where_the_write_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left on device"):
        write_atomic(tmp_path / "file", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old"}


def test_a_private_file_keeps_the_mode_that_somebody_gave_it(tmp_path: Path):
    for mode in (None, 0o640):
        if mode is not None:
            (tmp_path / "file").chmod(mode)
        write_atomic(tmp_path / "file", b"new", private=True)
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == (mode or 0o600)
