"""A read of a run that fails is neither an absent file nor a damaged one: nothing is written or removed for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from failing_reads import FailingReads
from scoped_retrieval.nodes.errors import StoreError
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.runs.files import files_below
from scoped_retrieval.pipeline.runs.parts import PER_RUN
from written_runs import LINEAGE, NOON, Maker, batch

DENIED = PermissionError(13, "Permission denied")


def test_a_shard_is_not_run_again_because_its_line_cannot_be_read_now(
    tmp_path: Path, line_tables: Maker, failing_reads: FailingReads
) -> None:
    store, tables = Runs(tmp_path), line_tables(2)
    inputs = {name: tables[name] for name in PER_RUN}
    asked, none, shards = tables["requests"], TABLES["failures"].empty(), pa.array([0, 0])
    run_id = store.stage(asked, none, shards, now=NOON, inputs=inputs, settings={}, lineage=LINEAGE).run_id
    store.resume(run_id).write(0, line_tables(2, run_id=run_id))
    resumed = store.resume(run_id)
    with (
        failing_reads.of(lambda path: path.name == "LOG"),
        pytest.raises(StoreError, match=r"^Too many open files: .*LOG"),
    ):
        resumed.pending()
    assert resumed.pending() == []


def test_a_folder_of_a_run_that_cannot_be_listed_is_not_an_empty_one(
    tmp_path: Path, line_tables: Maker, failing_reads: FailingReads
) -> None:
    run = batch(Runs(tmp_path), line_tables)
    whole = list(files_below(run.folder))
    with (
        failing_reads.of(lambda path: path == run.folder / "tables", DENIED),
        pytest.raises(StoreError, match=r"^Permission denied: .*/tables$"),
    ):
        list(files_below(run.folder))
    assert whole == sorted(whole) and whole == list(files_below(run.folder))
    assert list(files_below(tmp_path / "none")) == []
