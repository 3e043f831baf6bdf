"""Reading one run, whichever way it is stored: Parquet parts under a manifest, or one file per interactive snapshot."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import StoreError, kind_of
from ...nodes.tables import TABLES
from ..places import Place
from .files import read_json, read_parquet
from .live_files import live_files, read_live, read_settings
from .parts import PERSISTED, TEXTS, stored_schema, with_texts

FORMAT = "scoped-retrieval/run/5"
"""Schema version of a run; another one is refused."""


BATCH, INTERACTIVE = "batch", "interactive"
"""Kinds of runs: a table of requests, or one snapshot at a time."""


STAGE = "stage"
"""Folder of a run that is being written."""


def starter_of(folder: Place) -> str | None:
    """The principal who started the run in a folder, whatever a crash left of it; None if nothing says so.

    Raises:
        StoreError: what would say so is damaged.
    """
    for file in (folder / "manifest.json", folder / STAGE / "run.json"):
        if file.exists():
            plan = read_json(file)
            settings = plan.get("settings") if isinstance(plan, dict) else None
            return settings.get("principal") if isinstance(settings, dict) else None
    live = live_files(folder)
    return read_settings(folder / "live" / live[0]).get("principal") if live else None


def started_by(folder: Place, principal: str) -> bool:
    """Whether a principal certainly started the run in a folder: where what would say so is damaged, nobody did."""
    try:
        return starter_of(folder) == principal
    except StoreError:
        return False


class Run:
    """A run to read. Tables come in stored form (free text as hashes) unless texts are asked for."""

    def __init__(self, folder: Place) -> None:
        self.folder = folder
        self.run_id = folder.name
        self.live = not (folder / "manifest.json").exists()
        if not self.live and self.manifest.get("format") != FORMAT:
            raise StoreError(
                f"Expected format {FORMAT}, got {self.manifest.get('format')} - at {self.run_id}/manifest.json"
            )

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest; of an interactive run, what will stand in it."""
        if self.live:
            statuses = self.table("snapshots")["status"].value_counts().to_pylist()
            return {
                "format": FORMAT,
                "run_id": self.run_id,
                "kind": INTERACTIVE,
                "settings": read_settings(self.folder / "live" / live_files(self.folder)[0]),
                "created_at": self.table("snapshots")["created_at"][0].as_py().isoformat(),
                "statuses": {s["values"]: s["counts"] for s in statuses},
                "snapshots": self.table("snapshots").num_rows,
            }
        manifest = read_json(self.folder / "manifest.json")
        if not isinstance(manifest, dict):
            raise StoreError(f"Expected an object, got {kind_of(manifest)} - at {self.run_id}/manifest.json")
        return manifest

    @cached_property
    def _live(self) -> list[dict[str, pa.Table]]:
        return [read_live(self.folder / "live" / name) for name in live_files(self.folder)]

    def stored(self, name: str) -> pa.Table:
        """A table in stored form, parts in order."""
        schema = TEXTS if name == "texts" else stored_schema(TABLES[name])
        if self.live:
            found = [tables[name].cast(schema) for tables in self._live if name in tables]
        else:
            found = [self.part(name, part["path"]) for part in self.manifest["tables"][name]["parts"]]
        return pa.concat_tables(found) if found else schema.empty_table()

    def part(self, name: str, path: str) -> pa.Table:
        """One Parquet part of a table, in stored form."""
        return read_parquet(self.folder / path, TEXTS if name == "texts" else stored_schema(TABLES[name]))

    def table(self, name: str, *, texts: bool = False, snapshot_id: str | None = None) -> pa.Table:
        """A table of the run; with `texts`, its free text in place (null where it was erased).

        `snapshot_id` keeps the rows of one snapshot.
        """
        declared = TABLES[name]
        table = self.stored(name)
        if snapshot_id is not None and "request_id" in table.column_names:
            table = table.filter(pc.equal(table["request_id"], self.request_of(snapshot_id)))
        return with_texts(table, declared, self.texts) if texts else table

    @cached_property
    def texts(self) -> pa.Table:
        """Every text of the run by hash."""
        return self.stored("texts")

    @cached_property
    def snapshots(self) -> pa.Table:
        """SNAPSHOTS of the run."""
        return self.stored("snapshots")

    @property
    def provenance(self) -> pa.Table:
        """PROVENANCE of the run."""
        return self.stored("provenance")

    def request_of(self, snapshot_id: str) -> str:
        """The request that a snapshot answers.

        Raises:
            StoreError: the run has no such snapshot.
        """
        index = pc.index(self.snapshots["snapshot_id"], snapshot_id).as_py()
        if index < 0:
            raise StoreError(f"Expected a snapshot of {self.run_id}, got none - at {snapshot_id}")
        return self.snapshots["request_id"][index].as_py()

    def tables(self) -> dict[str, pa.Table]:
        """Every table of the run in stored form, by name."""
        return {t.name: self.stored(t.name) for t in PERSISTED}
