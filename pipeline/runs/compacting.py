"""Compaction: converts the interactive files of a run to Parquet parts; no digest changes.

Note: the run is closed first, so that it gets no more snapshots. The files are removed once a line names the parts; a
crash in between leaves both, and the next erasure removes them. On an object store nothing is held: every compaction
of a run writes the same bytes, and the first line counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from ...nodes.audit.records import COVERED
from ..storage.durable import make_folders
from .live import live_file
from .log import Line, of_kind
from .parts import FORMAT, PER_RUN
from .run import Run
from .store import Runs
from .writing import INPUTS, manifest, shard_name, write_parts

__all__ = ["compact"]

SNAPSHOTS_EACH = 512
"""Snapshots per shard of a compacted run: the unit of memory, as in a run of a table of requests."""


def compact(store: Runs, run_id: str) -> Run:
    """The run as Parquet parts; a run that has them is returned unchanged.

    Raises:
        StoreError: a file that LOG names is missing or changed. No part of it was named.
    """
    run_id = store.open(run_id).run_id
    store.log.commit("close", {"run_id": run_id}, lambda: not _lines(store, run_id, "close", "run"))
    # Whoever was overtaken would write back what an erasure removed since.
    with store.log.writing():
        run = Run(store, run_id)
        if run.live:
            body = _written(run)
            store.log.commit("run", body, lambda: not _lines(store, run_id, "run"))
            run = Run(store, run_id)
    for name in run.kept:
        live_file(store.path, name).unlink(missing_ok=True)
    return run


def _lines(store: Runs, run_id: str, *kinds: str) -> list[Line]:
    lines = store.log.of(run_id)
    return [line for kind in kinds for line in of_kind(lines, kind)]


def _written(run: Run) -> dict[str, Any]:
    """Write the parts; returns what the line of the run says."""
    make_folders(run.folder, run.store.path)
    names, inputs = [*run.kept], run.tables(dict.fromkeys(PER_RUN))
    receipts = {INPUTS: write_parts(run.folder, INPUTS, inputs)}
    for shard, at in enumerate(range(0, len(names), SNAPSHOTS_EACH)):
        receipts[shard_name(shard)] = _write_shard(run, shard_name(shard), names[at : at + SNAPSHOTS_EACH])
    plan = {
        "format": FORMAT,
        "run_id": run.run_id,
        "created_at": run.kept[names[0]]["created_at"],
        "settings": run.settings,
        "lineage_sha256": run.lineage_sha256,
    }
    return manifest(run.folder, plan, receipts, inputs["provenance"])


def _write_shard(run: Run, shard: str, names: Sequence[str]) -> dict[str, Any]:
    """Write some snapshots as the parts of a shard; returns its receipt."""
    read = run.tables(dict.fromkeys([*(table.name for table in COVERED), "texts", "timings"]), names)
    stored = {name: table.combine_chunks() for name, table in read.items()}
    texts = stored["texts"]
    texts = texts.take(pc.sort_indices(pc.is_null(texts["vector"])))  # texts with a query vector first
    first = pc.index_in(pc.unique(texts["sha256"]), value_set=texts["sha256"].combine_chunks())
    return write_parts(run.folder, shard, stored | {"texts": texts.take(first).sort_by("sha256")})
