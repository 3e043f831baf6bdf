"""Reading one run, whichever way it is stored: Parquet parts under a manifest, or one file per interactive snapshot.

To read one snapshot, only its file or parts are read, and of other shards at most the ids of their snapshots: this
takes little longer in a large run, and damage elsewhere does not prevent it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import StoreError, VerificationError, kind_of
from ...nodes.tables import TABLES
from ..storage.durable import exists
from ..storage.places import Place
from .files import expect_graph, read_json, read_parquet, read_parquet_as_is, sha256_of
from .formats import FORMAT, adapted, check_format, inline_texts, version_of
from .ids import SNAPSHOT_ID
from .live_files import live_file, live_files, live_format, read_live, read_settings, read_took
from .log import log_at
from .parts import PER_RUN, PERSISTED, stored_schema, with_texts
from .timings import LineTimings, of_manifest, seconds_of_nodes

JOINED = 128
"""Interactive files of a run that are joined at a time."""

BATCH, INTERACTIVE = "batch", "interactive"
"""Kinds of runs: a table of requests, or one snapshot at a time."""


STAGE = "stage"
"""Folder of a run that is being written."""


def starter_of(folder: Place) -> str | None:
    """The principal who started the run in a folder, even of one that a crash left; None if not recorded.

    Raises:
        StoreError: the file that records it is damaged.
    """
    for file in (folder / "manifest.json", folder / STAGE / "run.json"):
        if exists(file):
            plan = read_json(file)
            settings = plan.get("settings") if isinstance(plan, dict) else None
            return settings.get("principal") if isinstance(settings, dict) else None
    live = live_files(folder)
    return read_settings(folder / "live" / live[0]).get("principal") if live else None


def started_by(folder: Place, principal: str) -> bool:
    """Whether a principal certainly started the run in a folder; False if the files that record it are damaged."""
    try:
        return starter_of(folder) == principal
    except StoreError:
        return False


class Run:
    """A run to read. Tables are in stored form (free text as hashes) unless texts are requested."""

    def __init__(self, folder: Place) -> None:
        self.folder = folder
        self.run_id = folder.name
        self.live = not exists(folder / "manifest.json")
        self._opened: dict[str, dict[str, pa.Table]] = {}
        """Tables read from the interactive files and shards of requested snapshots, by file name."""
        self._shards: dict[str, str] = {}
        self._inline: dict[str, pa.Table] = {}
        """Inline texts of parts of an older version, by part."""
        if not self.live:
            check_format(self.manifest, f"{self.run_id}/manifest.json")

    @cached_property
    def older(self) -> bool:
        """Whether an earlier version wrote it: its tables are converted to the current schema."""
        return self.format != FORMAT

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest; for an interactive run, its future content."""
        if self.live:
            statuses = self.snapshots["status"].value_counts().to_pylist()
            return {
                "format": self.format,
                "run_id": self.run_id,
                "kind": INTERACTIVE,
                "settings": self.settings,
                "created_at": self.snapshots["created_at"][0].as_py().isoformat(),
                "statuses": {s["values"]: s["counts"] for s in statuses},
                "snapshots": self.snapshots.num_rows,
            }
        manifest = read_json(self.folder / "manifest.json")
        if not isinstance(manifest, dict):
            raise StoreError(f"Expected an object, got {kind_of(manifest)} - at {self.run_id}/manifest.json")
        return manifest

    @cached_property
    def format(self) -> str | None:
        """The format that the run names; interactive files of versions 1 to 5 name none."""
        return live_format(self.folder) if self.live else version_of(self.manifest)

    @property
    def digests_follow(self) -> bool:
        """Whether digests can be recomputed: those of an earlier version cover its own columns."""
        return not self.older and (self.live or "upgraded_from" not in self.manifest)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings that the run began with; see `RunStore.stage`."""
        if self.live:
            return read_settings(self.folder / "live" / self._files[0])
        settings = self.manifest.get("settings")
        return settings if isinstance(settings, dict) else {}

    @property
    def lineage(self) -> dict[str, Any]:
        """The graph that produced the run, as stored with it.

        Raises:
            StoreError: it is damaged.
            VerificationError: it is not the one named by the manifest, or for an interactive run by LOG.
        """
        file, at = self.folder / "lineage.json", f"{self.run_id}/lineage.json"
        found = read_json(file)
        by = "LOG" if self.live else "the manifest"
        named = log_at(self.folder.parent).graphs(self.run_id) if self.live else {self.manifest.get("lineage_sha256")}
        if named and named != {sha256_of(file)}:
            raise VerificationError(f"Expected the file that {by} names, got a changed one - at {at}")
        expect_graph(found, at)
        return found

    @cached_property
    def rows(self) -> dict[str, int]:
        """The number of rows of each of its tables."""
        if not self.live:
            return {name: entry["rows"] for name, entry in self.manifest["tables"].items()}
        return {table.name: self.stored(table.name).num_rows for table in PERSISTED}

    @cached_property
    def node_seconds(self) -> dict[str, float]:
        """The seconds of each node, for all requests together; empty if not measured."""
        if not self.live and "node_seconds" in self.manifest:
            return self.manifest["node_seconds"]
        return seconds_of_nodes(self.request_seconds.values())

    @cached_property
    def request_seconds(self) -> dict[str, LineTimings]:
        """By snapshot, the timings of the line for it and those answered together with it.

        For an interactive run, and a batch whose shards have one request each. Snapshots of earlier versions, which did
        not measure, are omitted.
        """
        if not self.live:
            found = of_manifest(self.manifest)
            shards = self.shard_seconds
            if shards and all(requests == 1 for _, requests, _ in shards):
                paths = {path.rpartition("/")[2]: path for path in self._parts("snapshots")}
                for shard, _, seconds in shards:
                    if path := paths.get(f"part-{shard:05d}.parquet"):
                        found[self.part("snapshots", path)["snapshot_id"][0].as_py()] = LineTimings(seconds)
            return found
        took = {file: read_took(self.folder / "live" / file) for file in self._files}
        return {self._ids(file)[0].as_py(): spent for file, spent in took.items() if spent is not None}

    def request_seconds_of(self, snapshot_id: str) -> LineTimings | None:
        """The timings of the line for one snapshot, if measured; reads no other interactive file."""
        if not self.live:
            return self.request_seconds.get(snapshot_id)
        file = self._shard(snapshot_id)
        return None if file is None else read_took(self.folder / "live" / file)

    @property
    def shard_seconds(self) -> list[tuple[int, int, float]]:
        """Each shard of a batch with its number of requests and the seconds of its nodes; empty if not measured."""
        found = [] if self.live else self.manifest.get("shard_seconds", [])
        return [(int(shard), int(requests), float(seconds)) for shard, requests, seconds in found]

    def _repr_html_(self) -> str:
        from ..views.notebook import run_html

        statuses = ", ".join(f"{count:,} {status}" for status, count in sorted(self.manifest["statuses"].items()))
        facts = [(name, self.settings.get(name)) for name in ("principal", "generation", "lanes")]
        return run_html(self.run_id, [("snapshots", statuses), *facts], self.lineage, self.rows, self.node_seconds)

    def stored(self, name: str) -> pa.Table:
        """A table in stored form, parts in order."""
        if not self.live:
            return joined(name, [self.part(name, path) for path in self._parts(name)])
        return joined(name, [self._live(self._files[0]).get(name)] if name in PER_RUN else self._joined.get(name, ()))

    def part(self, name: str, path: str) -> pa.Table:
        """One Parquet part of a table, in stored form."""
        if self.older:
            table = read_parquet_as_is(self.folder / path)
            self._inline.setdefault(path, inline_texts(name, table))
            return adapted(name, table)
        return read_parquet(self.folder / path, partial(stored_schema, name))

    def table(self, name: str, *, texts: bool = False, snapshot_id: str | None = None) -> pa.Table:
        """A table of the run; with `texts`, including its free text (null if erased).

        `snapshot_id` selects the rows of one snapshot, and reads only its shard or interactive file.

        Raises:
            StoreError: the run has no such snapshot, or a file is damaged.
        """
        if snapshot_id is None or name in PER_RUN:
            table = self.stored(name)
        else:
            table = self._beside(name, snapshot_id)
            table = table.filter(pc.equal(table["request_id"], self.request_of(snapshot_id)))
        if not texts:
            return table
        return with_texts(table, TABLES[name], self.texts if snapshot_id is None else self.texts_of(snapshot_id))

    @cached_property
    def texts(self) -> pa.Table:
        """Every text of the run by hash."""
        return self._with_inline(self.stored("texts"))

    def texts_of(self, snapshot_id: str) -> pa.Table:
        """The texts of the shard or interactive file of a snapshot, by hash."""
        return self._with_inline(self._beside("texts", snapshot_id))

    def _with_inline(self, texts: pa.Table) -> pa.Table:
        """These texts with the inline ones of tables of an older version."""
        if not self.older or self.live:
            return texts
        for declared in PERSISTED:
            for path in self._parts(declared.name):
                if path not in self._inline:
                    self.part(declared.name, path)
        return one_each(pa.concat_tables([texts, *self._inline.values()]))

    @cached_property
    def snapshots(self) -> pa.Table:
        """SNAPSHOTS of the run."""
        return self.stored("snapshots")

    @cached_property
    def provenance(self) -> pa.Table:
        """PROVENANCE of the run."""
        return self.stored("provenance")

    def holds(self, snapshot_id: str) -> bool:
        """Whether a snapshot belongs to this run.

        Raises:
            StoreError: no readable file contains it, and one cannot be read.
        """
        return self._shard(snapshot_id) is not None

    def request_of(self, snapshot_id: str) -> str:
        """The request that a snapshot answers.

        Raises:
            StoreError: the run has no such snapshot.
        """
        snapshots = self._beside("snapshots", snapshot_id)
        return snapshots["request_id"][pc.index(snapshots["snapshot_id"], snapshot_id).as_py()].as_py()

    def tables(self) -> dict[str, pa.Table]:
        """Every table of the run in stored form, by name."""
        return {t.name: self.stored(t.name) for t in PERSISTED}

    @cached_property
    def _files(self) -> list[str]:
        """The interactive files of the run.

        Raises:
            StoreError: there are none: the run was compacted or removed since it was opened.
        """
        if files := live_files(self.folder):
            return files
        raise StoreError(f"Expected the files of a session, got none any more - at {self.run_id}", hint="ask again")

    @cached_property
    def _joined(self) -> dict[str, list[pa.Table]]:
        """The tables of all interactive files, joined in groups: separate tables need many times the memory of their
        rows."""
        found: dict[str, list[pa.Table]] = {}
        for at in range(0, len(self._files), JOINED):
            read = [read_live(self.folder / "live" / file) for file in self._files[at : at + JOINED]]
            for name in sorted({name for tables in read for name in tables} - {*PER_RUN}):
                table = joined(name, [tables.get(name) for tables in read])
                found.setdefault(name, []).append(table.combine_chunks())
        return found

    def _live(self, file: str) -> dict[str, pa.Table]:
        if file not in self._opened:
            self._opened[file] = read_live(self.folder / "live" / file)
        return self._opened[file]

    def _beside(self, name: str, snapshot_id: str) -> pa.Table:
        """The rows of a table in the shard or interactive file of a snapshot."""
        shard = self._shard(snapshot_id)
        if shard is None:
            raise StoreError(f"Expected a snapshot of {self.run_id}, got none - at {snapshot_id}")
        if self.live:
            return joined(name, [self._live(shard).get(name)])
        read = self._opened.setdefault(shard, {})
        if name not in read:
            read[name] = joined(
                name, [self.part(name, path) for path in self._parts(name) if path.endswith(f"/{shard}")]
            )
        return read[name]

    def _shard(self, snapshot_id: str) -> str | None:
        """The name of the interactive file with a snapshot, or of the parts of its shard; None if there is none."""
        if snapshot_id not in self._shards:
            damage: StoreError | None = None
            for shard in self._likely(snapshot_id):
                try:
                    ids = self._ids(shard)
                except StoreError as error:
                    damage = damage or error
                    continue
                if pc.index(ids, snapshot_id).as_py() >= 0:
                    self._shards[snapshot_id] = shard
                    return shard
            if damage:
                raise damage
        return self._shards.get(snapshot_id)

    def _likely(self, snapshot_id: str) -> list[str]:
        """Every shard or interactive file, the one with the number in the id first."""
        if not self.live:
            return [path.rpartition("/")[2] for path in self._parts("snapshots")]
        named = SNAPSHOT_ID.fullmatch(snapshot_id)
        own = live_file(int(named["number"])) if named else ""
        return sorted(self._files, key=lambda file: file != own)

    def _ids(self, shard: str) -> pa.ChunkedArray:
        """The snapshot ids of a shard or interactive file."""
        if self.live:
            return joined("snapshots", [self._live(shard).get("snapshots")])["snapshot_id"]
        path = next(path for path in self._parts("snapshots") if path.endswith(f"/{shard}"))
        if self.older:
            return self.part("snapshots", path)["snapshot_id"]
        return read_parquet(self.folder / path, stored_schema("snapshots"), ["snapshot_id"])["snapshot_id"]

    def _parts(self, name: str) -> list[str]:
        """The paths of the parts of a table in the manifest.

        Raises:
            StoreError: the manifest lacks them or is malformed.
        """
        try:
            if self.older and name not in self.manifest["tables"]:
                return []  # the table was added since
            return [str(part["path"]) for part in self.manifest["tables"][name]["parts"]]
        except (KeyError, TypeError) as error:
            raise StoreError(
                f"Expected the parts of every table, got none of {name} - at {self.run_id}/manifest.json"
            ) from error


def one_each(texts: pa.Table) -> pa.Table:
    """Distinct texts, in order of their hashes."""
    sha256 = texts["sha256"].combine_chunks()
    return texts.take(pc.index_in(pc.unique(sha256), value_set=sha256)).sort_by("sha256")


def joined(name: str, found: Sequence[pa.Table | None]) -> pa.Table:
    """The parts of a table, concatenated."""
    tables = [table for table in found if table is not None]
    filled = [table for table in tables if table.num_rows] or tables[
        :1
    ]  # parts without rows lack the columns of plugins
    return pa.concat_tables(filled) if filled else stored_schema(name).empty_table()
