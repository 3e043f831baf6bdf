"""Interactive runs: snapshots on disk before their answers leave, compacted into parts later.

runs/shared/<sha256>                      the graph, and the tables and settings of a run: once for all runs
runs/live/<sha256>.arrow.lz4              the snapshots of a pass; a line of LOG names each with the SHA-256 of its file

A file is an Arrow IPC stream in an LZ4 frame, one row, with a list of structs per table; tables without rows are
omitted. It is compressed as a whole: its 400 columns are small and alike, and compressing each of their buffers takes
seven times as long for twice the bytes.

Note: a session has a run of its own, which others may compact or erase from in the meantime. If an erasure sweeps while it
writes, it begins another run: its files need other names. So does a forked process, whose next snapshot would have its
parent's number.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...nodes.errors import StoreError
from ...nodes.tables import CONTRACT_BOUNDS, FAILURES, REQUESTS, SNAPSHOTS
from ..storage.chain import Line
from ..storage.durable import make_folders, read_whole, write_atomic
from ..storage.places import Place
from .files import json_bytes, named
from .ids import new_run_id, snapshot_id
from .log import RunFolder
from .parts import (
    FORMAT,
    PER_RUN,
    SETTINGS,
    LineTimings,
    Vectors,
    stored_whole,
)

LIVE = "live"
SUFFIX = ".arrow.lz4"
WHOSE = ("principal", "asked_by", "project", "session_id")
OF_SNAPSHOT = ("snapshot_id", "request_id", "status", "block_ref")
"""What the line of a snapshot says of its request, and of itself."""
HEADER = ("format", "run_id", "inputs_sha256", "lineage_sha256", "started_by")
"""What `header_of` gives."""


class RunTakenError(StoreError):
    """Files were swept, or the run belongs to another process: the next snapshot needs another run."""


class PackedSnapshots(NamedTuple):
    """The snapshots of a pass as they are stored, the SHA-256 of that, and what their line says of each."""

    data: bytes
    sha256: str
    described: list[dict[str, Any]]


def live_file(runs: Place, sha256: str) -> Place:
    """A file of interactive snapshots."""
    return runs / LIVE / f"{sha256}{SUFFIX}"


def packed(
    tables: Mapping[str, pa.Table], vectors: Vectors | None = None, took: LineTimings | None = None
) -> PackedSnapshots:
    """The snapshots of some requests that the line answered together, with its timings."""
    found = _described(tables)
    timings = {} if took is None else {one["snapshot_id"]: took for one in found}
    data = _bytes_of(stored_whole(tables, vectors, timings))
    sha256 = hashlib.sha256(data).hexdigest()
    return PackedSnapshots(data, sha256, [one | {"sha256": sha256} for one in found])


class LiveRun:
    """A new interactive run, written by one process."""

    def __init__(
        self,
        store: RunFolder,
        *,
        now: datetime,
        inputs: Mapping[str, pa.Table],
        lineage: Mapping[str, Any],
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.store = store
        self.run_id = new_run_id(now)
        self.written = 0
        self._number = 0
        self._process = os.getpid()
        self._inputs, self._lineage, self._settings = inputs, lineage, dict(settings or {})
        self._header: dict[str, Any] = {}

    def take(self, count: int) -> list[str]:
        """Ids for the next snapshots, used up whether they are written or not."""
        self._number += count
        return [snapshot_id(self.run_id, number) for number in range(self._number - count + 1, self._number + 1)]

    def write(self, snapshots: PackedSnapshots, confirmed: Callable[[], None] = lambda: None) -> None:
        """Make snapshots durable, all or none.

        `confirmed` raises if evidence was erased. An erasure that comes later sweeps, and then reads every line.

        Raises:
            RunTakenError: files without a line were swept, or this process was forked from the one that has the run; nothing
                was written.
            StoreError: they cannot be written; none is left behind.
            LineInDoubtError: a store may have accepted the line: the file stays.
        """
        if self._process != os.getpid():
            raise RunTakenError(f"Expected the run of this process, got the one of its parent - at {self.run_id}")
        file = live_file(self.store.path, snapshots.sha256)

        def written(files: list[Place]) -> dict[str, Any]:
            if file in files:  # its name says what is in it: there is no other
                raise RunTakenError(f"Expected to write a snapshot, got a sweep - at {self.run_id}")
            confirmed()
            if not self._header:
                self._header = header_of(self.store, self.run_id, self._inputs, self._lineage, self._settings)
                make_folders(self.store.path / LIVE, self.store.path)
            files.append(file)
            write_atomic(file, snapshots.data)
            return {**self._header, "snapshots": snapshots.described}

        self.store.commit_files("live", written)
        self.written += len(snapshots.described)


def header_of(
    store: RunFolder,
    run_id: str,
    inputs: Mapping[str, pa.Table],
    lineage: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """What every line of a run with snapshots says, and its first one; what all its requests have in common is stored."""
    stored = {name: inputs[name] for name in PER_RUN if name in inputs}
    stored["settings"] = pa.table([[json.dumps(settings, sort_keys=True)]], schema=SETTINGS)
    return {
        "format": FORMAT,
        "run_id": run_id,
        "inputs_sha256": store.share(_bytes_of(stored)),
        "lineage_sha256": store.share(json_bytes(lineage)),
        "started_by": settings.get("principal"),
    }


def read_inputs(store: RunFolder, line: Line, names: Collection[str] | None = None) -> dict[str, pa.Table]:
    """The tables that are the same for all requests of a run, and its settings, by any line with `header_of`.

    Raises:
        StoreError: the file is missing or damaged.
    """
    sha256 = line.body["inputs_sha256"]
    return read_tables(store.shared(sha256), sha256, names)


def read_tables(path: Place, sha256: str, names: Collection[str] | None = None) -> dict[str, pa.Table]:
    """The tables of a file in stored form; with `names`, only these. Its SHA-256 says that it is as it was written.

    Raises:
        StoreError: the file is missing or damaged.
    """
    try:
        data = read_whole(path)
    except FileNotFoundError:
        raise StoreError(f"Expected a snapshot, got none - at {named(path)}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise StoreError(f"Expected a whole snapshot, got a damaged one - at {named(path)}")
    with pa.CompressedInputStream(pa.BufferReader(data), "lz4") as unpacked:
        table = pa.ipc.open_stream(unpacked.read_buffer()).read_all()
    found = {}
    for name in table.column_names:
        if names is None or name in names:
            struct = table[name].combine_chunks().flatten()
            found[name] = pa.Table.from_arrays(struct.flatten(), schema=pa.schema(list(struct.type)))
    return found


def _bytes_of(stored: Mapping[str, pa.Table]) -> bytes:
    fields, arrays = [], []
    for name, table in stored.items():
        if table.num_rows:
            (rows,) = table.combine_chunks().to_batches()
            arrays.append(pa.ListArray.from_arrays(np.array([0, table.num_rows], np.int32), rows.to_struct_array()))
            fields.append(pa.field(name, arrays[-1].type, False))
    schema = pa.schema(fields)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return pa.compress(sink.getvalue(), "lz4", asbytes=True)  # the buffer without it is as large as the input


def _described(tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
    """What the line of interactive snapshots says of each."""
    asked = asked_by(tables, WHOSE)
    rows = tables[SNAPSHOTS.name].select([*OF_SNAPSHOT, "snapshot_digest", "created_at"]).to_pylist()
    return [asked[row["request_id"]] | row | {"created_at": row["created_at"].isoformat()} for row in rows]


def asked_by(tables: Mapping[str, pa.Table], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """These columns of each request, refused ones included, and the projects that it `reached`, by its id."""
    asked = dict[str, dict[str, Any]]()
    for table in (tables[FAILURES.name], tables[REQUESTS.name]):
        known = [name for name in ("request_id", *names) if name in table.column_names]
        asked |= {row["request_id"]: {**dict.fromkeys(names), **row} for row in table.select(known).to_pylist()}
    reached = defaultdict[str, set[str]](set)
    for bound in tables[CONTRACT_BOUNDS.name].select(["request_id", "project"]).to_pylist():
        reached[bound["request_id"]].add(bound["project"])
    return {id_: row | {"reached": sorted(reached[id_])} for id_, row in asked.items()}
