"""Runs of two requests, written as the retriever writes them: in one shard, or a snapshot at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.runs import LiveRun, Run, RunStore
from scoped_retrieval.pipeline.runs.parts import PER_RUN

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
Maker = Callable[..., dict[str, pa.Table]]
LINEAGE = {"nodes": [], "edges": []}


def batch(store: RunStore, line_tables: Maker) -> Run:
    tables = line_tables(2)
    inputs = {name: tables[name] for name in PER_RUN}
    staged = store.stage(
        tables["requests"],
        TABLES["failures"].empty(),
        pa.array([0, 0]),
        now=NOON,
        inputs=inputs,
        settings={},
        lineage=LINEAGE,
    )
    staged.write(0, line_tables(2, run_id=staged.run_id))
    return staged.finish()


def live(store: RunStore, line_tables: Maker, snapshots: int = 2) -> Run:
    session = LiveRun(store, now=NOON, inputs={n: line_tables(1)[n] for n in PER_RUN}, lineage=LINEAGE)
    for number in range(1, snapshots + 1):
        session.write(line_tables(1, run_id=session.run_id, first=number))
    return store.open(session.run_id)


def without_last_lines(store: RunStore, count: int) -> None:
    """The log as a loss of power may leave it: lines that were not synced are gone."""
    log = store.path / "LOG"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-count]))
