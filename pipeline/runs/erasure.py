"""Erasing texts from a run: the record stands, the words go, a receipt in LOG says so.

The receipt comes first and names the parts as they will be; then the parts are replaced. `verify` then says `erased`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...nodes.errors import InputError, StoreError
from .files import locked, read_parquet, write_bytes
from .parts import TEXTS
from .store import RunStore


def erase_texts(store: RunStore, run_id: str, sha256s: Collection[str], *, reason: str) -> int:
    """Remove texts by hash from a run's parts; returns how many were removed.

    Raises:
        InputError: the run holds none of them.
        StoreError: the run is interactive; compact it first.
    """
    run = store.open(run_id)
    if run.live:
        raise StoreError(f"Expected a compacted run, got an interactive one - at {run.run_id}", hint="run `compact`")
    wanted = pa.array(sorted(sha256s), pa.string())
    with locked(store.lock_of(run.run_id), "a run"):
        changed: dict[str, memoryview] = {}
        removed: set[str] = set()
        for part in run.manifest["tables"]["texts"]["parts"]:
            table = read_parquet(run.folder / part["path"], TEXTS)
            hit = pc.is_in(table["sha256"], value_set=wanted)
            if pc.any(hit).as_py():
                removed |= set(table["sha256"].filter(hit).to_pylist())
                sink = pa.BufferOutputStream()
                pq.write_table(table.filter(pc.invert(hit)), sink, compression="zstd")
                changed[part["path"]] = memoryview(sink.getvalue())
        if not removed:
            raise InputError(f"Expected texts of this run, got {len(wanted)} hashes it does not hold - at {run.run_id}")
        parts = {path: hashlib.sha256(data).hexdigest() for path, data in changed.items()}
        store.log.append("erase", run.run_id, texts=sorted(removed), parts=parts, reason=reason)
        for path, data in changed.items():
            write_bytes(run.folder / path, data, sync=True)
    return len(removed)
