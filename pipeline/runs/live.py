"""Interactive runs: a snapshot at a time, durable before its block leaves; compacted into parts later.

Each snapshot is one file with one sync and one line in LOG. `compact` (and closing the session) writes the same tables
as Parquet parts under a manifest; no digest changes. A crash in between leaves both readable, and the next `compact`
does the rest.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import VerificationError
from ...nodes.tables import TABLES
from .files import TEMPORARY, files_below, locked, sha256_of, write_json
from .ids import new_run_id, snapshot_id
from .live_files import live_files, read_live, write_live
from .parts import PER_REQUEST, PER_RUN, TEXTS, Vectors, check_conservation, stored_schema, stored_tables, texts_of
from .run import FORMAT, Run
from .store import RunStore, write_manifest, write_stored


class LiveRun:
    """An interactive run being written by one process."""

    def __init__(
        self,
        store: RunStore,
        *,
        now: datetime,
        inputs: Mapping[str, pa.Table],
        lineage: Mapping[str, Any],
    ) -> None:
        self.store = store
        self.run_id = new_run_id(now)
        self.folder = store.path / self.run_id
        self.number = 0
        self._inputs = inputs
        self._lineage = lineage
        self._lineage_sha256 = ""

    def next_id(self) -> str:
        """The id of the next snapshot."""
        return snapshot_id(self.run_id, self.number + 1)

    def write(self, tables: Mapping[str, pa.Table], vectors: Vectors | None = None) -> None:
        """Make one snapshot durable.

        Raises:
            VerificationError: a candidate is not decided exactly once.
            StoreError: the disk does not take it; nothing is left behind.
        """
        stored = stored_tables(tables, PER_REQUEST)
        check_conservation(stored, f"snapshot {self.number + 1}")
        texts = texts_of({name: table for name, table in tables.items() if name in stored}, stored, vectors)
        if not self.number:
            (self.folder / "live").mkdir(parents=True, exist_ok=True)
            self._lineage_sha256 = write_json(self.folder / "lineage.json", self._lineage, sync=False)
            stored |= stored_tables(self._inputs, [TABLES[name] for name in PER_RUN])
        file = f"{self.number + 1:06d}.arrow"
        path = self.folder / "live" / file
        sha256 = write_live(path, stored | {"texts": texts})
        line = {"file": file, "sha256": sha256, "lineage_sha256": self._lineage_sha256}
        try:
            self.store.log.append("live", self.run_id, sync=False, **line)
        except BaseException:  # a snapshot that LOG does not name was never given out
            path.unlink(missing_ok=True)
            raise
        self.number += 1


def compact(store: RunStore, run_id: str) -> Run:
    """The run as Parquet parts under a manifest; a run that has one comes back unchanged.

    Raises:
        VerificationError: an interactive file is not the one that LOG names.
    """
    folder = store.open(run_id).folder
    with locked(store.lock_of(run_id), "a run"):
        lines = [line for line in store.log.lines() if line.run_id == run_id]
        if any(line.kind == "run" for line in lines):
            _remove(folder / "live")
            return Run(folder)
        if not (folder / "manifest.json").exists():
            _write(folder, {line.body["file"]: line.body["sha256"] for line in lines if line.kind == "live"})
        _remove(folder / "live")
        store.log.append("run", run_id, manifest_sha256=sha256_of(folder / "manifest.json"))
    return Run(folder)


def _write(folder: Path, logged: Mapping[str, str]) -> None:
    for name in files_below(folder):
        if Path(name).name.startswith(TEMPORARY) or name.startswith(("tables/", "texts/")):
            (folder / name).unlink()
    files = [file for file in live_files(folder) if file in logged]
    for file in files:
        if sha256_of(folder / "live" / file) != logged[file]:
            raise VerificationError(f"Expected the file that LOG names, got a changed one - at live/{file}")
    opened = [read_live(folder / "live" / file) for file in files]
    stored = {t.name: _joined(opened, t.name, stored_schema(t)) for t in PER_REQUEST}
    inputs = {name: _joined(opened[:1], name, stored_schema(TABLES[name])) for name in PER_RUN}
    texts = _joined(opened, "texts", TEXTS)
    first = pc.index_in(pc.unique(texts["sha256"]), value_set=texts["sha256"].combine_chunks())
    receipts = [
        write_stored(folder, 0, inputs, TEXTS.empty_table(), check=False),
        write_stored(folder, 0, stored, texts.take(first)),
    ]
    created = stored["snapshots"]["created_at"][0].as_py().isoformat()
    plan = {"format": FORMAT, "run_id": folder.name, "created_at": created, "settings": {}}
    compacted = [{"file": file, "sha256": sha256_of(folder / "live" / file)} for file in files]
    write_manifest(folder, plan, receipts, kind="interactive", compacted_from=compacted)


def _joined(opened: list[dict[str, pa.Table]], name: str, schema: pa.Schema) -> pa.Table:
    found = [tables[name].cast(schema) for tables in opened if name in tables]
    return pa.concat_tables(found).combine_chunks() if found else schema.empty_table()


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
