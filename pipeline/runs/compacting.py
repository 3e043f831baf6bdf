"""Compaction: converts the interactive files of a run to Parquet parts under a manifest; no digest changes.

Note: a snapshot is durable once its file is, not its line. Files that lost their line get a new one before anything is
written, and files are removed once the manifest is written. A crash in between leaves both readable, and the next
`compact` completes the compaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow.compute as pc

from ..storage.durable import exists, remove_tree
from ..storage.places import Place
from .adopting import adopt
from .files import locked, remove_unnamed, sha256_of
from .live_files import live_files, read_live
from .parts import PER_REQUEST, PER_RUN, TEXTS
from .run import FORMAT, INTERACTIVE, Run, joined, starter_of
from .store import RunStore, run_kind
from .timings import in_manifest
from .writing import write_manifest, write_stored

_OLDER_LIVE = "scoped-retrieval/run/1 to 5"
"""The version recorded for interactive files that do not name theirs."""
SNAPSHOTS_EACH = 512
"""Snapshots per shard of a compacted run: the unit of memory, as in a run of a table of requests."""


def compact(store: RunStore, run_id: str) -> Run:
    """The run as Parquet parts under a manifest; a run that has one is returned unchanged.

    Raises:
        VerificationError: an interactive file or the graph is not the one that LOG names, or LOG names one that is
            missing, or LOG names one twice. Nothing was written.
    """
    folder = store.open(run_id).folder
    with locked(store.lock_of(folder.name), "a run"):
        lines = [line for line in store.log.lines() if line.run_id == folder.name]
        if any(line.kind == "run" for line in lines):
            _remove(folder / "live")
            return Run(folder)
        if run_kind(folder) != INTERACTIVE:
            return Run(folder)  # a batch run whose line is missing: `resume` writes it
        if not exists(folder / "manifest.json"):
            adopt(store, folder, lines)
            _write(folder)
        _remove(folder / "live")
        store.log.append(
            "run", folder.name, manifest_sha256=sha256_of(folder / "manifest.json"), started_by=starter_of(folder)
        )
    return Run(folder)


def _write(folder: Place) -> None:
    remove_unnamed(folder, ())
    files, run = live_files(folder), Run(folder)
    inputs = {name: run.stored(name).combine_chunks() for name in PER_RUN}
    receipts = [write_stored(folder, 0, inputs, TEXTS.empty_table(), check=False)]
    for shard, at in enumerate(range(0, len(files), SNAPSHOTS_EACH)):
        receipts.append(_write_shard(folder, shard, files[at : at + SNAPSHOTS_EACH]))
    created = read_live(folder / "live" / files[0])["snapshots"]["created_at"][0].as_py().isoformat()
    plan = {"format": FORMAT, "run_id": folder.name, "created_at": created, "settings": run.settings}
    compacted = [{"file": file, "sha256": sha256_of(folder / "live" / file)} for file in files]
    more = in_manifest(run.request_seconds)
    more |= {"upgraded_from": {"format": run.format or _OLDER_LIVE}} if run.older else {}
    write_manifest(folder, plan, receipts, kind=INTERACTIVE, compacted_from=compacted, **more)


def _write_shard(folder: Place, shard: int, files: Sequence[str]) -> dict[str, Any]:
    """Write some interactive files as the parts of a shard; returns its receipt."""
    read = [read_live(folder / "live" / file) for file in files]
    stored = {t.name: joined(t.name, [tables.get(t.name) for tables in read]).combine_chunks() for t in PER_REQUEST}
    texts = joined("texts", [tables.get("texts") for tables in read]).combine_chunks()
    texts = texts.take(pc.sort_indices(pc.is_null(texts["vector"])))  # texts with a query vector first
    first = pc.index_in(pc.unique(texts["sha256"]), value_set=texts["sha256"].combine_chunks())
    return write_stored(folder, shard, stored, texts.take(first).sort_by("sha256"))


def _remove(folder: Place) -> None:
    with suppress(FileNotFoundError):
        remove_tree(folder)
