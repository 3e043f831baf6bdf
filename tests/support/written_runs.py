"""Runs of two requests, written as the retriever writes them: in one shard, or a snapshot at a time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from line_tables import line_tables
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.runs import LiveRun, Run, Runs, StagedRun, packed
from scoped_retrieval.pipeline.runs.live import live_file
from scoped_retrieval.pipeline.runs.parts import PER_RUN

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
LINEAGE = {"nodes": [], "edges": []}


def staged(store: Runs, shards: int = 1) -> StagedRun:
    """Requests that were asked, two to a shard, and that are not answered."""
    tables = line_tables(2 * shards)
    inputs = {name: tables[name] for name in PER_RUN}
    numbers = pa.array([number // 2 for number in range(2 * shards)])
    none = TABLES["failures"].empty()
    return store.stage(tables["requests"], none, numbers, now=NOON, inputs=inputs, settings={}, lineage=LINEAGE)


def finished(run: StagedRun) -> Run:
    """The run, after its shards that are pending were answered."""
    for shard in run.pending():
        run.write(shard, line_tables(2, run_id=run.run_id, first=1 + 2 * shard))
    return run.finish()


def batch(store: Runs, shards: int = 1) -> Run:
    return finished(staged(store, shards))


def session_of(store: Runs, settings: dict[str, Any] | None = None) -> LiveRun:
    """A session that has written nothing yet."""
    inputs = {n: line_tables(1)[n] for n in PER_RUN}
    return LiveRun(store, now=NOON, inputs=inputs, lineage=LINEAGE, settings=settings)


def live(store: Runs, snapshots: int = 2) -> Run:
    session = session_of(store)
    for number in range(1, snapshots + 1):
        session.write(packed(line_tables(1, run_id=session.run_id, first=number)))
    return store.open(session.run_id)


def file_of(run: Run, number: int) -> Path:
    """The file of an interactive snapshot, from 1."""
    return Path(str(live_file(run.store.path, [*run.files][number - 1])))


def part_of(run: Run, table: str, shard: str = "00000") -> Path:
    """The part of a table, or of the texts, of a shard."""
    (path,) = (path for path in run.shards[shard] if path.split("/")[-2] == table)
    return Path(str(run.folder / path))


def head(store: Runs) -> str:
    """The hash of the last line of the log."""
    return store.log.lines()[-1].hash


def log_again(store: Runs, *lines: tuple[str, dict[str, Any]]) -> None:
    """Write the log anew with these lines, as a user with write access can."""
    (Path(str(store.path)) / "LOG").unlink()
    for kind, body in lines:
        store.log.commit(kind, {name: value for name, value in body.items() if name != "kind"})
