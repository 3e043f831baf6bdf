"""Compaction: converts the interactive files of a run to Parquet parts; no digest changes.

Note: a line names the parts and the snapshots in them, and then their files are removed; a crash in between leaves both,
and the next sweep removes them. A session goes on in its run. Of two compactions of a run the line of the
first counts, as does that of an erasure: the later one would write back what was erased.
"""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from ...nodes.audit.records import COVERED
from ..storage.durable import make_folders
from .live import live_file
from .log import of_kind
from .run import Run
from .store import Runs
from .writing import shard_name, write_parts

__all__ = ["compact"]

SNAPSHOTS_EACH = 512
"""Snapshots per shard of a compacted run: the unit of memory, as in a run of a table of requests."""


def compact(store: Runs, run_id: str) -> Run:
    """The run as Parquet parts; a run that has them is returned unchanged.

    Raises:
        StoreError: a file that LOG names is missing or changed. No part of it was named.
    """
    run_id = (run := store.open(run_id)).run_id
    waiting = {*run.files}  # its session may go on
    while names := [name for name in run.files if name in waiting][:SNAPSHOTS_EACH]:
        store.commit_parts(
            "shard",
            lambda run=run, names=names: _written(run, names),
            lambda run=run: not of_kind(store.log.after(run.lines), "shard", "erase"),
        )
        run = Run(store, run_id)
        for name in {*names} - {*run.files}:
            live_file(store.path, name).unlink(missing_ok=True)
    return run


def _written(run: Run, names: list[str]) -> dict[str, Any]:
    """Write some snapshots as the parts of a shard; returns what its line says."""
    make_folders(run.folder, run.store.path)
    read = run.tables(dict.fromkeys([*(table.name for table in COVERED), "texts", "timings"]), names)
    stored = {name: table.combine_chunks() for name, table in read.items()}
    texts = stored["texts"]
    texts = texts.take(pc.sort_indices(pc.is_null(texts["vector"])))  # texts with a query vector first
    first = pc.index_in(pc.unique(texts["sha256"]), value_set=texts["sha256"].combine_chunks())
    stored["texts"] = texts.take(first).sort_by("sha256")
    return run.header | write_parts(run.folder, shard_name(len(run.shards)), stored) | {"snapshots": names}
