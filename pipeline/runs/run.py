"""Reading one run, whichever way it is stored: Parquet parts under a manifest, or one file per interactive snapshot.

LOG says which: a run that a line names as finished has a manifest, any other the snapshots that its lines name. To read
one snapshot, only its file or parts are read, and of other shards at most the ids of their snapshots.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.audit.records import COVERED
from ...nodes.errors import StoreError, VerificationError
from ...nodes.score_terms import terms_of_plugins
from ..storage.places import Place
from .files import named, read_json, read_parquet, sha256_of
from .live import live_file, read_metadata, read_tables
from .log import Line, RunFolder, manifest_named, of_kind, snapshots_named
from .parts import (
    DECLARED,
    FORMAT,
    PER_RUN,
    READABLE,
    expect_format,
    home_of,
    reading,
    stored_schema,
    viewed,
    with_texts,
)
from .timings import LineTimings

__all__ = ["BATCH", "INTERACTIVE", "Run", "joined"]

JOINED = 128
"""Interactive files that are joined at a time: separate tables need many times the memory of their rows."""

BATCH, INTERACTIVE = "batch", "interactive"
"""Kinds of runs: a table of requests, or one snapshot at a time."""


class Run:
    """A run to read. Tables are in stored form (free text as hashes) unless texts are requested. `lines` are those of
    LOG about it, if the caller has read them.

    Raises:
        StoreError: no line of LOG names it, or its manifest cannot be read.
        VerificationError: its manifest is not the one that LOG names.
    """

    def __init__(self, store: RunFolder, run_id: str, lines: list[Line] | None = None) -> None:
        self.store, self.run_id = store, run_id
        self.folder = store.path / run_id
        self.lines = store.log.of(run_id) if lines is None else lines
        self.live = not of_kind(self.lines, "run")
        self._opened: dict[str, dict[str, pa.Table]] = {}
        """Tables read from the interactive files and shards of requested snapshots, by file name."""
        self._shards: dict[str, str] = {}
        if self.live and not of_kind(self.lines, "live"):
            raise StoreError(
                f"Expected a finished run, got an unfinished one - at {run_id}", hint="run it again with --resume"
            )
        if not self.live:
            expect_format(self.manifest, f"{run_id}/manifest.json")
            if sha256_of(self.folder / "manifest.json") != manifest_named(self.lines):
                raise VerificationError(
                    f"Expected the manifest that LOG names, got a changed one - at {run_id}/manifest.json"
                )

    def moved(self) -> Run | None:
        """The run again, if it was interactive and was compacted since it was opened."""
        again = Run(self.store, self.run_id) if self.live else self
        return again if self.live != again.live else None

    @cached_property
    def kept(self) -> dict[str, dict[str, str]]:
        """The snapshots that LOG names, by id; empty for a batch."""
        return snapshots_named(self.lines)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest; for an interactive run, its future content."""
        if not self.live:
            return read_json(self.folder / "manifest.json")
        statuses = self.snapshots["status"].value_counts().to_pylist()
        return {
            "format": FORMAT,
            "run_id": self.run_id,
            "kind": INTERACTIVE,
            "settings": self.settings,
            "created_at": self.snapshots["created_at"][0].as_py().isoformat(),
            "statuses": {s["values"]: s["counts"] for s in statuses},
            "snapshots": self.snapshots.num_rows,
        }

    @property
    def started_by(self) -> str | None:
        """The principal who started it, as LOG says."""
        return self.lines[0].body.get("started_by")

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings that the run began with; see `Runs.stage`."""
        if self.live:
            return read_metadata(self.store.shared(self._inputs), self._inputs)[0]
        settings = self.manifest.get("settings")
        return settings if isinstance(settings, dict) else {}

    @property
    def lineage_sha256(self) -> str:
        """SHA-256 of the graph that produced the run."""
        return self.lines[0].body["lineage_sha256"] if self.live else self.manifest["lineage_sha256"]

    @property
    def lineage(self) -> dict[str, Any]:
        """The graph that produced the run.

        Raises:
            StoreError: it is missing.
            VerificationError: it was changed.
        """
        return _unchanged(self.store.shared(self.lineage_sha256), self.lineage_sha256)

    @cached_property
    def rows(self) -> dict[str, int]:
        """The number of rows of each of its tables."""
        found = self.tables({table.name: table.key[:1] for table in READABLE})
        return {name: table.num_rows for name, table in found.items()}

    @cached_property
    def node_seconds(self) -> dict[str, float]:
        """The seconds of each node, for all requests together; empty if not measured."""
        total = defaultdict[str, float](float)
        for one in self.timings.values():
            each = 1 if self.batch else one.requests  # a pass that answered several snapshots is there for each
            for node, spent in one.nodes.items():
                total[node] += spent / each
        return {node: round(spent, 6) for node, spent in sorted(total.items())}

    @cached_property
    def timings(self) -> dict[str, LineTimings]:
        """The timings of each snapshot, or of each shard of a batch, by id or name; empty if not measured."""
        if self.live:
            took = ((name, self.timings_of(name)) for name in self.kept)
            return {name: spent for name, spent in took if spent is not None}
        stored = _unchanged(self.folder / "timings.json", self.manifest["timings_sha256"])
        return {name: LineTimings.of(one) for name, one in stored.items()}

    def timings_of(self, snapshot_id: str) -> LineTimings | None:
        """The timings of the pass that answered a snapshot, if measured; reads no other interactive file."""
        if not self.live:
            return self.timings.get(snapshot_id)
        return read_metadata(live_file(self.store.path, snapshot_id), self.kept[snapshot_id]["sha256"])[1]

    @property
    def batch(self) -> bool:
        """Whether it answered a table of requests."""
        return not self.live and self.manifest.get("kind") == BATCH

    def stored(self, name: str, columns: Collection[str] | None = None) -> pa.Table:
        """A table in stored form, parts in order; with `columns`, at least these of it."""
        if not self.live:
            return joined(name, [self.part(name, path, columns) for path in self._parts(name)])
        if name in PER_RUN:
            return joined(name, [read_tables(self.store.shared(self._inputs), self._inputs, {name}).get(name)])
        return self.joined_live([name])[name]

    def tables(self, reads: Mapping[str, Collection[str]]) -> dict[str, pa.Table]:
        """Tables in stored form by name, with at least the given columns of each; a file is read once."""
        live = self.joined_live([name for name in reads if name not in PER_RUN]) if self.live else {}
        return {name: live[name] if name in live else self.stored(name, columns) for name, columns in reads.items()}

    def joined_live(self, names: Iterable[str], snapshots: Sequence[str] | None = None) -> dict[str, pa.Table]:
        """Tables of the interactive files of all or some snapshots, in stored form; each file is read once."""
        wanted, names = [*(self.kept if snapshots is None else snapshots)], [*names]
        homes = {home_of(name) for name in names}
        found: dict[str, list[pa.Table]] = {home: [] for home in homes}
        for at in range(0, len(wanted), JOINED):
            read = [
                read_tables(live_file(self.store.path, one), self.kept[one]["sha256"], homes)
                for one in wanted[at : at + JOINED]
            ]
            for home in homes:
                found[home].append(joined(home, [tables.get(home) for tables in read]).combine_chunks())
        whole = {home: joined(home, tables).combine_chunks() for home, tables in found.items()}
        return {name: viewed(whole[home_of(name)], name) for name in names}

    def part(self, name: str, path: str, columns: Collection[str] | None = None) -> pa.Table:
        """The rows of a table in a Parquet part of its record, in stored form; only its own columns are read."""
        stored = read_parquet(self.folder / path, partial(stored_schema, home_of(name)), reading(name, columns))
        return viewed(stored, name)

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
        return with_texts(table, DECLARED[name], self.texts if snapshot_id is None else self.texts_of(snapshot_id))

    @cached_property
    def texts(self) -> pa.Table:
        """Every text of the run by hash."""
        return self.stored("texts")

    def texts_of(self, snapshot_id: str) -> pa.Table:
        """The texts of the shard or interactive file of a snapshot, by hash."""
        return self._beside("texts", snapshot_id)

    def snapshots_beside(self, snapshot_id: str) -> pa.Table:
        """SNAPSHOTS of the shard or interactive file of a snapshot."""
        return self._beside("snapshots", snapshot_id)

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
        snapshots = self.snapshots_beside(snapshot_id)
        return snapshots["request_id"][pc.index(snapshots["snapshot_id"], snapshot_id).as_py()].as_py()

    @property
    def plugin_terms(self) -> tuple[str, ...]:
        """The score terms of plugins that the run recorded."""
        return terms_of_plugins(self.table("rerank_weights").column_names)

    def shards(self) -> Iterator[dict[str, pa.Table]]:
        """The tables of requests and the texts, one shard or some interactive snapshots at a time: each has the texts of
        its own rows.
        """
        names = [*(table.name for table in COVERED), "texts"]
        if self.live:
            snapshots = [*self.kept]
            for at in range(0, len(snapshots), JOINED):
                yield self.joined_live(names, snapshots[at : at + JOINED])
            return
        paths = {name: {path.rpartition("/")[2]: path for path in self._parts(name)} for name in names}
        for shard in sorted(set[str]().union(*paths.values())):
            yield {
                name: joined(name, [self.part(name, paths[name][shard])] if shard in paths[name] else [])
                for name in names
            }

    @property
    def _inputs(self) -> str:
        """SHA-256 of the file with the tables and settings of an interactive run."""
        return self.lines[0].body["inputs_sha256"]

    def _beside(self, name: str, snapshot_id: str) -> pa.Table:
        """The rows of a table in the shard or interactive file of a snapshot."""
        shard = self._shard(snapshot_id)
        if shard is None:
            raise StoreError(f"Expected a snapshot of {self.run_id}, got none - at {snapshot_id}")
        if self.live:
            if shard not in self._opened:
                self._opened[shard] = read_tables(live_file(self.store.path, shard), self.kept[shard]["sha256"])
            return viewed(joined(home := home_of(name), [self._opened[shard].get(home)]), name)
        read = self._opened.setdefault(shard, {})
        if name not in read:
            paths = (path for path in self._parts(name) if path.endswith(f"/{shard}"))
            read[name] = joined(name, [self.part(name, path) for path in paths])
        return read[name]

    def _shard(self, snapshot_id: str) -> str | None:
        """The interactive snapshot itself, or the name of the parts of its shard; None if there is none."""
        if self.live:
            return snapshot_id if snapshot_id in self.kept else None
        if snapshot_id not in self._shards:
            damage: StoreError | None = None
            for path in self._parts("snapshots"):
                try:
                    ids = self.part("snapshots", path, ["snapshot_id"])["snapshot_id"]
                except StoreError as error:
                    damage = damage or error
                    continue
                if pc.index(ids, snapshot_id).as_py() >= 0:
                    self._shards[snapshot_id] = path.rpartition("/")[2]
                    return self._shards[snapshot_id]
            if damage:
                raise damage
        return self._shards.get(snapshot_id)

    def _parts(self, name: str) -> list[str]:
        """The paths of the parts of a table in the manifest.

        Raises:
            StoreError: the manifest lacks them or is malformed.
        """
        try:
            return [str(part["path"]) for part in self.manifest["tables"][home_of(name)]["parts"]]
        except (KeyError, TypeError) as error:
            raise StoreError(
                f"Expected the parts of every table, got none of {name} - at {self.run_id}/manifest.json"
            ) from error


def _unchanged(path: Place, sha256: str) -> Any:
    """A JSON file, checked against its SHA-256."""
    found = read_json(path)
    if sha256_of(path) != sha256:
        raise VerificationError(f"Expected the file that was written, got a changed one - at {named(path)}")
    return found


def joined(name: str, found: Sequence[pa.Table | None]) -> pa.Table:
    """The parts of a table, concatenated."""
    tables = [table for table in found if table is not None]
    filled = [table for table in tables if table.num_rows] or tables[:1]  # empty parts lack the columns of plugins
    return pa.concat_tables(filled, promote_options="default") if filled else stored_schema(name).empty_table()
