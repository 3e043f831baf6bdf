"""Reading one run: Parquet parts of shards, and one file per pass of interactive snapshots that are not compacted.

A piece is what is read at once: a shard, or a file of interactive snapshots; the lines of LOG name the snapshots of each. To
read one snapshot, only its piece is read.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.audit.records import RECORD, SCHEMA, VIEWED, paths_of
from ...nodes.errors import StoreError, VerificationError
from ...nodes.score_terms import terms_of_plugins
from ...nodes.tables import TABLES
from ..storage.durable import read_whole
from .files import named, read_parquet
from .live import HEADER, live_file, read_inputs, read_tables
from .log import LOG, Line, RunFolder, is_unfinished, of_kind, snapshots_named
from .parts import (
    PER_RUN,
    READABLE,
    SCHEMAS,
    STORED,
    LineTimings,
    expect_format,
    home_of,
    timings_in,
    viewed,
    with_texts,
)
from .writing import table_of

JOINED = 128
"""Interactive files that are joined at a time: separate tables need many times the memory of their rows."""

_STORED = (*STORED, "texts", "timings")
"""What a piece with requests stores."""
_T = TypeVar("_T")


class Run:
    """A run to read. Tables are in stored form (free text as hashes) unless texts are requested. `lines` are those of
    LOG about it, if the caller has read them. A run that is compacted or erased from while it is read is read on.

    Raises:
        StoreError: no line of LOG names it, it is unfinished, or another version wrote it.
        VerificationError: its lines contradict each other, or one was changed.
    """

    def __init__(self, store: RunFolder, run_id: str, lines: list[Line] | None = None) -> None:
        self.store, self.run_id = store, run_id
        self.folder = store.path / run_id
        self.lines = lines or store.log.of(run_id)
        self._beside: dict[str, dict[str, pa.Table]] = {}
        """The tables of the piece that `beside` read last."""
        if not self.lines or is_unfinished(self.lines):
            got, hint = ("an unfinished one", "run it again with --resume") if self.lines else ("none", "")
            raise StoreError(f"Expected a finished run, got {got} - at {run_id}", hint=hint)
        expect_format(self.lines[0].body, LOG)
        self.batch = self.lines[0].body["kind"] == "begin"
        """Whether it answered a table of requests, not one at a time."""
        self.kept = snapshots_named(self.lines)
        """The interactive snapshots that LOG names, by id; empty for a batch."""
        self.shards, self.replaced = parts_of(self.lines)
        """The SHA-256 of every part by shard, then path; and of those that an erasure replaced, by path."""
        self.pieces = pieces_of(self.lines)
        """The piece of each snapshot, by id."""
        self.files = dict[str, list[str]]()
        """The files of interactive snapshots, by SHA-256, with their snapshots: those that no shard has."""
        for name, piece in self.pieces.items():
            if piece not in self.shards:
                self.files.setdefault(piece, []).append(name)

    @property
    def header(self) -> dict[str, Any]:
        """What each of its lines with snapshots says, see `live.header_of`."""
        return {name: self.lines[0].body[name] for name in HEADER}

    @property
    def created_at(self) -> str:
        """When a batch began, or the first snapshot of a session was captured; ISO 8601."""
        return self.lines[0].body["created_at"] if self.batch else next(iter(self.kept.values()))["created_at"]

    @property
    def statuses(self) -> dict[str, int]:
        """The number of snapshots by status."""
        return dict(Counter(self.tables({"snapshots": ["status"]})["snapshots"]["status"].to_pylist()))

    @property
    def started_by(self) -> str | None:
        """The principal who started it, as LOG says."""
        return self.lines[0].body.get("started_by")

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings that the run began with; see `Runs.stage`."""
        return json.loads(self.stored("settings")["settings"][0].as_py())

    @property
    def lineage_sha256(self) -> str:
        """SHA-256 of the graph that produced the run."""
        return self.lines[0].body["lineage_sha256"]

    @property
    def lineage(self) -> dict[str, Any]:
        """The graph that produced the run.

        Raises:
            StoreError: it is missing.
            VerificationError: it was changed.
        """
        path = self.store.shared(self.lineage_sha256)
        try:
            data = read_whole(path)
        except FileNotFoundError:
            raise StoreError(f"Expected a file, got none - at {named(path)}") from None
        if hashlib.sha256(data).hexdigest() != self.lineage_sha256:
            raise VerificationError(f"Expected the file that was written, got a changed one - at {named(path)}")
        return json.loads(data)

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
            for node, spent in one.nodes.items():
                total[node] += spent / (1 if self.batch else one.requests)
        return {node: round(spent, 6) for node, spent in sorted(total.items())}

    @cached_property
    def timings(self) -> dict[str, LineTimings]:
        """The timings of each snapshot, or of each shard of a batch, by id or name; empty if not measured."""
        return timings_in(self.stored("timings"))

    def timings_of(self, snapshot_id: str) -> LineTimings | None:
        """The timings of the pass that answered a snapshot, if measured."""
        return timings_in(self.beside(snapshot_id)["timings"]).get(snapshot_id)

    def stored(self, name: str) -> pa.Table:
        """A table in stored form, pieces in order."""
        return self.tables({name: None})[name]

    def tables(
        self, reads: Mapping[str, Collection[str] | None], snapshots: Sequence[str] | None = None
    ) -> dict[str, pa.Table]:
        """Tables in stored form by name, with at least the given columns of each, None for all; a file is read once. With
        `snapshots`, only the pieces of these are read.
        """
        of_all = {name: columns for name, columns in reads.items() if name in (*PER_RUN, "settings")}
        of_each = {name: columns for name, columns in reads.items() if name not in of_all}

        def read() -> dict[str, pa.Table]:
            wanted = {self.pieces.get(name) for name in (self.pieces if snapshots is None else snapshots)}
            some = [piece for piece in (*self.shards, *self.files) if piece in wanted]
            inputs = read_inputs(self.store, self.lines[0], of_all) if of_all else {}
            of_run = {name: inputs.get(name, SCHEMAS[name].empty_table()) for name in of_all}
            return of_run | self._of(of_each, some)

        return self._read_on(read)

    def table(self, name: str, *, texts: bool = False, snapshot_id: str | None = None) -> pa.Table:
        """A table of the run; with `texts`, including its free text (null if erased).

        `snapshot_id` selects the rows of one snapshot, and reads only its piece.

        Raises:
            StoreError: the run has no such snapshot, or a file is damaged.
        """
        if snapshot_id is None or name in PER_RUN:
            table = self.stored(name)
        else:
            table = self.beside(snapshot_id)[home_of(name)]
            table = viewed(table.filter(pc.equal(table["request_id"], self.request_of(snapshot_id))), name)
        if not texts:
            return table
        known = self.texts if snapshot_id is None else self.beside(snapshot_id)["texts"]
        return with_texts(table, TABLES[name], known)

    def beside(self, snapshot_id: str) -> Mapping[str, pa.Table]:
        """The stored tables of the piece of a snapshot, its texts and timings included; those that were read last are kept.

        Raises:
            StoreError: the run has no such snapshot, or its piece is damaged.
        """

        def read() -> Mapping[str, pa.Table]:
            if (piece := self.pieces.get(snapshot_id)) is None:
                raise StoreError(f"Expected a snapshot of {self.run_id}, got none - at {snapshot_id}")
            if piece not in self._beside:
                self._beside = {piece: self._of(dict.fromkeys(_STORED), [piece])}
            return self._beside[piece]

        return self._read_on(read)

    @cached_property
    def texts(self) -> pa.Table:
        """Every text of the run by hash."""
        return self.stored("texts")

    @cached_property
    def snapshots(self) -> pa.Table:
        """SNAPSHOTS of the run."""
        return self.stored("snapshots")

    @cached_property
    def provenance(self) -> pa.Table:
        """PROVENANCE of the run."""
        return self.stored("provenance")

    def request_of(self, snapshot_id: str) -> str:
        """The request that a snapshot answers.

        Raises:
            StoreError: the run has no such snapshot.
        """
        snapshots = self.beside(snapshot_id)["snapshots"]
        return snapshots["request_id"][pc.index(snapshots["snapshot_id"], snapshot_id).as_py()].as_py()

    @property
    def plugin_terms(self) -> tuple[str, ...]:
        """The score terms of plugins that the run recorded."""
        return terms_of_plugins(self.table("rerank_weights").column_names)

    def in_pieces(self) -> Iterator[tuple[str, dict[str, pa.Table]]]:
        """The tables of requests and the texts, one shard or some interactive snapshots at a time: each has the texts of
        its own rows. With the name of the shard, if it is one.
        """
        names = dict.fromkeys(_STORED[:-1])
        for shard in self.shards:
            yield shard, self._of(names, [shard])
        for at in range(0, len(self.files), JOINED):
            yield "", self._of(names, [*self.files][at : at + JOINED])

    def _of(self, reads: Mapping[str, Collection[str] | None], pieces: Sequence[str]) -> dict[str, pa.Table]:
        """Tables of some pieces, with at least these columns."""
        found: dict[str, list[pa.Table]] = {home_of(name): [] for name in reads}
        for at in range(0, len(pieces) if reads else 0, JOINED):
            read = [self._read(piece, reads) for piece in pieces[at : at + JOINED]]
            for home, tables in found.items():
                joined = _joined(home, [one[home] for one in read if home in one])
                tables.append(joined.combine_chunks() if self.files else joined)
        whole = {home: _joined(home, tables) for home, tables in found.items()}
        return {name: viewed(whole[home_of(name)], name) for name in reads}

    def _read(self, piece: str, reads: Mapping[str, Collection[str] | None]) -> dict[str, pa.Table]:
        """Stored tables of a piece: those that have the rows of some tables, with at least these columns."""
        homes = {home_of(name) for name in reads}
        if piece in self.files:
            return read_tables(live_file(self.store.path, piece), piece, homes)
        paths = [path for name, columns in reads.items() if name in VIEWED for path in paths_of(name, columns)]
        wanted = dict(reads) | {RECORD: SCHEMA.names if RECORD in reads else [*dict.fromkeys(paths)]}
        return {
            home: read_parquet(self.folder / path, SCHEMAS[home], wanted[home])
            for path in self.shards[piece]
            if (home := table_of(path)) in homes
        }

    def _read_on(self, read: Callable[[], _T]) -> _T:
        """What a function reads of the run; if it was compacted or erased from in the meantime, as it is then."""
        while True:
            try:
                return read()
            except StoreError:
                if (lines := self.store.log.of(self.run_id)) == self.lines:
                    raise
                self.__init__(self.store, self.run_id, lines)


def pieces_of(lines: Iterable[Line]) -> dict[str, str]:
    """The piece of each snapshot that the lines of a run name: its shard, or its file as long as it has none."""
    found = dict[str, str]()
    for line in of_kind(lines, "live", "shard"):
        named = line.body.get("snapshots", ())  # a line of another version may name none
        found |= (
            {one["snapshot_id"]: one["sha256"] for one in named}
            if line.body["kind"] == "live"
            else dict.fromkeys(named, line.body["shard"])
        )
    return found


def parts_of(lines: list[Line]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """The parts of each shard with their SHA-256 by path, as the lines of a run name them, and those that were replaced as
    texts of them were erased.

    Raises:
        VerificationError: two lines name one shard, or a receipt something else than texts.
    """
    found, replaced = dict[str, dict[str, str]](), dict[str, str]()
    for line in of_kind(lines, "shard", "erase"):
        shard, parts = line.body["shard"], line.body["parts"]
        if line.body["kind"] == "shard":
            if shard in found:
                raise VerificationError(f"Expected one line of shard {shard}, got two - at {LOG}")
            found[shard] = parts
            continue
        for path in parts:
            if table_of(path) != "texts" or shard not in found:
                raise VerificationError(f"Expected a receipt of texts, got one of {path} - at {LOG}")
        replaced |= {path: sha256 for path, sha256 in found[shard].items() if table_of(path) == "texts"}
        found[shard] = {path: sha256 for path, sha256 in found[shard].items() if path not in replaced} | parts
    return dict(sorted(found.items())), replaced


def _joined(name: str, tables: Sequence[pa.Table]) -> pa.Table:
    """The parts of a table, concatenated."""
    filled = [table for table in tables if table.num_rows] or tables[:1]  # empty parts lack the columns of plugins
    return pa.concat_tables(filled, promote_options="default") if filled else SCHEMAS[name].empty_table()
