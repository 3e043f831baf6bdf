"""Interactive runs: one snapshot at a time, durable before its block is returned; compacted into parts later.

Each snapshot is one file with one sync of it and its name, and one line in LOG.

Note: the file makes the snapshot durable, not its line. LOG is not synced for it, so a loss of power may lose the last
lines; `verify` names the files without a line, and `compact` adopts them, never drops them. Another process may compact
(or erase from) the run of a live session: both hold the run's lock while they write, and the session begins another
run. So does a forked process, whose next snapshot would have the same number as its parent's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError, StoreError
from ...nodes.tables import TABLES
from ..storage.durable import exists, make_folders, remove_tree, write_atomic
from ..storage.locks import confirm, hold
from ..storage.places import Place
from .files import locked, write_json
from .ids import new_run_id, snapshot_id
from .live_files import live_file, write_live
from .log import LineInDoubtError, files_named
from .parts import PER_REQUEST, PER_RUN, Vectors, check_conservation, stored_tables, texts_of
from .resume import Left
from .store import RunStore
from .timings import LineTimings

COMPACTED_WITHIN = 60.0
"""Seconds that a snapshot waits for a compaction of its run."""


class RunTakenError(StoreError):
    """The run was compacted during its session, or belongs to another process: the next snapshot needs another run."""


class LiveRun:
    """An interactive run written by one process: a new one, or one that another session `left`."""

    def __init__(
        self,
        store: RunStore,
        *,
        now: datetime,
        inputs: Mapping[str, pa.Table],
        lineage: Mapping[str, Any],
        settings: Mapping[str, Any] | None = None,
        left: Left | None = None,
    ) -> None:
        self.store = store
        self.run_id = left.run_id if left else new_run_id(now)
        self.folder = store.path / self.run_id
        self.number = left.snapshots if left else 0
        self.earlier = left.request_ids if left else frozenset[str]()
        """The requests of earlier sessions in this run."""
        self._hold = left.hold if left else None
        self._process = os.getpid()
        self._inputs = inputs
        self._lineage = lineage
        self._lineage_sha256 = left.lineage_sha256 if left else ""
        self._in_doubt: dict[str, str] = {}
        """The line of the last snapshot, if the log may lack it."""
        self._taken = False
        """Whether this process lost its lock on the run, so that another may hold it."""
        self._settings = dict(settings or {})
        self._mark, self._marked = store.opened / self.run_id, False
        """Marks the run as open for a session; remains after a crash."""

    def next_id(self, after: int = 0) -> str:
        """The id of the next snapshot, or of the one `after` that many more."""
        return snapshot_id(self.run_id, self.number + after + 1)

    def release(self) -> None:
        """Stop writing, so that another session may resume the run. A forked process does not release its parent's run.

        The mark is removed once LOG is on disk: a run that lost its last line in a power failure still has the mark,
        and is healed.
        """
        if self._hold and self._process == os.getpid():
            with suppress(OSError, ScopedRetrievalError):
                if self._marked:
                    self.store.log.sync()
                self._mark.unlink(missing_ok=True)
            self._hold.release()

    def write(
        self,
        tables: Mapping[str, pa.Table],
        vectors: Vectors | None = None,
        confirmed: Callable[[], None] = lambda: None,
        took: LineTimings | None = None,
    ) -> None:
        """Make one snapshot durable. The timings of its line, `took`, are stored beside its tables and in no digest.

        `confirmed` is called when the run is locked and its folder exists, before the snapshot is written: if it
        raises, nothing is left behind.

        Raises:
            VerificationError: a candidate is not decided exactly once.
            RunTakenError: the run was compacted, or this process was forked from the one that holds it; nothing was written.
            StoreError: it cannot be written; no snapshot is left behind.
            LineInDoubtError: a store may have accepted the line. File and number stay, as after an interrupt of the
                thread; the next snapshot, or `compact`, adds the line if it is missing.
        """
        if self._process != os.getpid():
            raise RunTakenError(f"Expected the run of this process, got the one of its parent - at {self.run_id}")
        stored = stored_tables(tables, PER_REQUEST)
        check_conservation(stored, f"snapshot {self.number + 1}")
        texts = texts_of({name: table for name, table in tables.items() if name in stored}, stored, vectors)
        with locked(self.store.lock_of(self.run_id), "a snapshot", timeout=COMPACTED_WITHIN):
            if self._taken or exists(self.folder / "manifest.json"):
                raise RunTakenError(f"Expected an open run, got one that was compacted - at {self.run_id}")
            if self._in_doubt:
                self._settle()
            self._write(stored | {"texts": texts}, confirmed, took)

    def _write(self, stored: dict[str, pa.Table], confirmed: Callable[[], None], took: LineTimings | None) -> None:
        file = live_file(self.number + 1)
        path = self.folder / "live" / file
        if not self._marked and isinstance(self.folder, Path):
            make_folders(self._mark.parent)
            write_atomic(self._mark, b"")
            self._marked = True
        with self._or_nothing(path):  # the bytes may be written and only their name not on disk
            if not self.number:
                self._hold = self._hold or hold(self.store.session_of(self.run_id))
                make_folders(self.folder / "live", self.store.path)
                self._lineage_sha256 = write_json(self.folder / "lineage.json", self._lineage, sync=True)
                stored |= stored_tables(self._inputs, [TABLES[name] for name in PER_RUN])
            confirmed()  # from now on, an erasure sees the run and waits for its lock
            sha256 = write_live(path, stored, None if self.number else self._settings, took)
        self._confirm()
        line = {"file": file, "sha256": sha256, "lineage_sha256": self._lineage_sha256, **log_fields(stored)}
        line |= {"started_by": self._settings.get("principal")}
        try:
            self.store.log.append("live", self.run_id, sync=False, **line)
        except BaseException as error:
            if isinstance(error, LineInDoubtError) or not isinstance(error, Exception):  # maybe after the line
                self._in_doubt, self.number = line, self.number + 1
            else:
                self._take_back(path)
            raise
        self.number += 1

    @contextmanager
    def _or_nothing(self, path: Place) -> Iterator[None]:
        """Remove everything of a snapshot on an error."""
        try:
            yield
        except Exception:  # the snapshot is reported as not written
            with suppress(OSError):
                self._take_back(path)
            raise

    def _take_back(self, path: Place) -> None:
        """Remove a snapshot that is reported to the caller as not written; with the first one, remove the run."""
        path.unlink(missing_ok=True) if self.number else remove_tree(self.folder)

    def _confirm(self) -> None:
        """Stop if the lease expired during the put: a concurrent `compact` adopts the file, so it gets no line here."""
        try:
            confirm(self.store.lock_of(self.run_id))
        except StoreError:
            self._taken = True
            raise

    def _settle(self) -> None:
        """Append the line of the last snapshot if the log lacks it: lines are in the order of their files."""
        logged = files_named(line for line in self.store.log.lines() if line.run_id == self.run_id)
        if self._in_doubt["file"] not in logged:
            self.store.log.append("live", self.run_id, sync=False, **self._in_doubt)
        self._in_doubt = {}


def log_fields(stored: Mapping[str, pa.Table]) -> dict[str, str]:
    """The fields of a snapshot's line in LOG besides its file."""
    return stored["snapshots"].select(["request_id", "snapshot_digest"]).to_pylist()[0]
