"""A read of a run that fails is neither an absent file nor a damaged one: nothing is written or removed for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from failing_reads import FailingReads, unseen
from scoped_retrieval.nodes.errors import StoreError
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.runs import RunStore, compact, verify
from scoped_retrieval.pipeline.runs.files import files_below
from scoped_retrieval.pipeline.runs.parts import PER_RUN
from scoped_retrieval.pipeline.runs.states import states
from scoped_retrieval.pipeline.runs.store import run_kind
from written_runs import LINEAGE, NOON, Maker, batch, live

DENIED = PermissionError(13, "Permission denied")


def test_a_shard_is_not_run_again_because_its_receipt_cannot_be_read_now(
    tmp_path: Path, line_tables: Maker, failing_reads: FailingReads
) -> None:
    store, tables = RunStore(tmp_path), line_tables(2)
    inputs = {name: tables[name] for name in PER_RUN}
    asked, none, shards = tables["requests"], TABLES["failures"].empty(), pa.array([0, 0])
    run_id = store.stage(asked, none, shards, now=NOON, inputs=inputs, settings={}, lineage=LINEAGE).run_id
    store.resume(run_id).write(0, line_tables(2, run_id=run_id))
    (receipt,) = (store.folder(run_id) / "stage/receipts").glob("0*.json")
    resumed = store.resume(run_id)
    with (
        failing_reads.of(lambda path: path == receipt),
        pytest.raises(StoreError, match=r"^Too many open files: .*00000\.json"),
    ):
        resumed.pending()
    assert resumed.pending() == []
    receipt.write_text("{")
    assert store.resume(run_id).pending() == [0]


def test_a_folder_of_a_run_that_cannot_be_listed_is_not_an_empty_one(
    tmp_path: Path, line_tables: Maker, failing_reads: FailingReads
) -> None:
    run = batch(RunStore(tmp_path), line_tables)
    whole = list(files_below(run.folder))
    with (
        failing_reads.of(lambda path: path == run.folder / "tables", DENIED),
        pytest.raises(StoreError, match=r"^Permission denied: .*/tables$"),
    ):
        list(files_below(run.folder))
    assert whole == sorted(whole) and whole == list(files_below(run.folder))
    assert list(files_below(tmp_path / "none")) == []


def test_a_log_that_cannot_be_looked_at_is_not_begun_anew(tmp_path: Path, line_tables: Maker) -> None:
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    before = (tmp_path / "LOG").read_bytes()
    with unseen(tmp_path / "LOG"), pytest.raises(OSError, match="Bad file descriptor"):
        store.log.append("run", run.run_id)
    assert (tmp_path / "LOG").read_bytes() == before


def test_the_files_of_a_session_are_found_where_their_folder_cannot_be_looked_at(
    tmp_path: Path, line_tables: Maker
) -> None:
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    with unseen(run.folder / "live"):
        assert store.run_ids() == (run.run_id,)


def test_a_run_that_cannot_be_looked_at_is_not_left_out_of_a_list(tmp_path: Path, line_tables: Maker) -> None:
    store = RunStore(tmp_path)
    run = batch(store, line_tables)
    with unseen(run.folder / "manifest.json"):
        for listed in (store.run_ids, lambda: store.open(run.run_id), lambda: run_kind(run.folder)):
            with pytest.raises(StoreError, match=r"^Bad file descriptor: .*manifest\.json"):
                listed()
    assert store.run_ids() == (run.run_id,)


def test_a_run_that_cannot_be_looked_at_is_named_and_keeps_no_other_from_being_listed(
    tmp_path: Path, line_tables: Maker
) -> None:
    store = RunStore(tmp_path)
    hidden, run = batch(store, line_tables), live(store, line_tables)
    with unseen(hidden.folder / "manifest.json"):
        assert store.unfinished() == []
        assert [one.run_id for one in store.list()] == [run.run_id]
        assert {one.run_id: one.state for one in states(store)} == {hidden.run_id: "unreadable", run.run_id: "ok"}
        report = verify(store, hidden.run_id)
    assert (report.state, report.problems[0].detail) == ("unreadable", "the manifest cannot be read")
    assert verify(store, hidden.run_id).ok


def test_files_that_were_compacted_go_though_their_folder_cannot_be_looked_at(
    tmp_path: Path, line_tables: Maker
) -> None:
    store = RunStore(tmp_path)
    run = live(store, line_tables)
    with unseen(run.folder / "live"):
        compact(store, run.run_id)
    assert not (run.folder / "live").exists()
    assert verify(store, run.run_id).ok
