"""Compares one source with its last import: unchanged files, and commits that were read before.

Note: a file counts as unchanged by its status only if it was settled when it was read, else by its content.
"""

from __future__ import annotations

import json
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..corpus.source_states import PathStatus, SourceState
from ..redaction.masking import redact_column
from ..storage.durable import TICK_NS
from .git_commands import Commit
from .history_states import PathState, states_of
from .report import SourceReport
from .same_source import known_commits

__all__ = ["IncrementalSource", "UnusableError"]

_STATUS = 5
"""The first fields of `PathStatus` are a file's status."""


class UnusableError(Exception):
    """The earlier state of a source cannot be relied on: read everything."""


class IncrementalSource:
    """One source: `standing` are the paths that need not be read."""

    def __init__(self, before: SourceState, stored: Callable[[Sequence[str]], pa.Table], started: int) -> None:
        self.before, self._stored = before, stored
        self.standing: dict[str, PathStatus] = {}
        self._counted: list[pa.Table] = []
        self._seen: set[str] = set()
        self._read: dict[str, PathStatus] = {}
        self._resumed: dict[str, PathState] = {}
        self._since = 0
        self._line, self._commits = "", 0
        self._usable = True
        self._started = started
        self._links: dict[str, bool] = {}

    @property
    def relied(self) -> bool:
        """Whether rows of the corpus were used instead of reading."""
        return bool(self.standing or self._resumed)

    def add(self, rows: pa.Table) -> None:
        """Add rows that were read, to be counted by path."""
        self._counted.append(rows)

    def give_up(self) -> None:
        """Store no state for this source: it contains something that cannot be recognized again."""
        self._usable = False

    # --- files of a work tree ----------------------------------------------------------------------------------------

    def in_question(self, root: Path, files: Iterable[bytes], recorded: int, report: SourceReport) -> Iterator[bytes]:
        """The files below `root` whose status does not prove them unchanged; report entries of the others are repeated,
        in file order.

        A fast path of `status` and `is_unchanged`, for the many unchanged files.
        """
        before, links, standing, lstat = self.before.paths, self._links, self.standing, os.lstat
        below, latest = os.fsencode(root) + b"/", min(self._started - TICK_NS, 1_000 * recorded)
        for raw in files:
            try:
                path = raw.decode("utf-8")
                state = before[path]
                found = lstat(below + raw)
            except (KeyError, OSError, ValueError):
                yield raw
                continue
            modified, changed = found.st_mtime_ns, found.st_ctime_ns
            linked = links.get(path.rpartition("/")[0])
            if (
                state.settled
                and (found.st_mode, found.st_ino, found.st_size, modified, changed) == state[:_STATUS]
                and max(modified, changed) < latest
                and not (self._below_link(root, path) if linked is None else linked)
            ):
                standing[path] = state
                if state.said != "{}":
                    _repeat(path, state, report)
            else:
                yield raw

    def status(self, file: bytes, recorded: int) -> PathStatus | None:
        """The status of a file to recognize it by; None if it is not a regular file, or newer than the import."""
        try:
            found = os.lstat(file)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(found.st_mode) or found.st_mtime_ns // 1_000 > recorded:
            return None
        settled = max(found.st_mtime_ns, found.st_ctime_ns) < self._started - TICK_NS
        return PathStatus(
            found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, settled=settled
        )

    def is_unchanged(
        self, root: Path, raw: bytes, status: PathStatus | None, limit: Callable[[str], int], report: SourceReport
    ) -> bool:
        """Whether a file is unchanged since it was read; if so, its report entries are repeated.

        `limit` returns the size limit of a path; of a longer file, one byte more is read.
        """
        try:
            path = raw.decode("utf-8")
        except UnicodeDecodeError:
            return False
        before = self.before.paths.get(path)
        if before is None or status is None or before.mode != status.mode or self._below_link(root, path):
            return False
        if (before.size, before.modified) != (status.size, status.modified):
            return False
        if not before.settled or (before.inode, before.changed) != (status.inode, status.changed):
            try:
                with open(f"{root}/{path}", "rb") as file:  # noqa: PTH123 (a path object costs as much as reading it)
                    digest = self.before.digest(file.read(limit(path) + 1))
            except OSError:
                return False
            if digest != before.digest:
                return False
        if (before.inode, before.changed, before.settled) != (status.inode, status.changed, status.settled):
            before = before._replace(inode=status.inode, changed=status.changed, settled=status.settled)
        self.standing[path] = before
        _repeat(path, before, report)
        return True

    def saw(self, path: str, report: SourceReport, status: PathStatus | None, content: bytes | None = None) -> None:
        """Record that a path was read, with its own `report`. Without a status it will be read again."""
        self._seen.add(path)
        if status is None:
            return
        reported = {
            "skipped": dict(report.skipped),
            "notes": {note: report.noted_at.get(note, []) for note in report.notes},
        }
        digest = "" if content is None else self.before.digest(content)
        self._read[path] = status._replace(digest=digest, said=json.dumps(reported if any(reported.values()) else {}))

    def _below_link(self, root: Path, path: str) -> bool:
        folder = path.rpartition("/")[0]
        if folder not in self._links:
            self._links[folder] = any(
                (root / above).is_symlink() for above in accumulate(folder.split("/"), "{}/{}".format) if above
            )
        return self._links[folder]

    # --- paths of a history ------------------------------------------------------------------------------------------

    def commits_read(self, line: Sequence[Commit]) -> int:
        """How many commits of a line, from the first, were read before; 0 for a different line."""
        known, self._line = known_commits(self.before, line)
        self._commits = len(line)
        if known:
            self._since = line[known - 1].time
        return known

    def resume(self, changed: Sequence[bytes], report: SourceReport) -> tuple[dict[str, PathState], list[bytes]]:
        """The states of the changed paths in the corpus, and the paths that have to be read from their beginning.

        All other paths are unchanged.

        Raises:
            UnusableError: a path is not UTF-8, so it has no state.
        """
        try:
            touched = [path.decode("utf-8") for path in changed]
        except UnicodeDecodeError as error:
            raise UnusableError from error
        before, changed_paths = self.before.paths, set(touched)
        for path, state in before.items():
            if path not in changed_paths:
                self.standing[path] = state
                _repeat(path, state, report)
        old = [path for path in touched if path in before]
        self._resumed = states_of(self._stored(old), {path: before[path] for path in old}) if old else {}
        return self._resumed, [path.encode() for path in old if path not in self._resumed]

    def saw_history(self, path: str, report: SourceReport) -> None:
        """Record that changes of a path were read: all of them or, of a resumed one, the new ones."""
        if path in self._resumed:
            before = self.before.paths[path]
            _repeat(path, before, report)
        self.saw(path, report, PathStatus())

    # --- afterwards --------------------------------------------------------------------------------------------------

    @property
    def commits(self) -> int:
        """The number of commits of the line, if the source is a history."""
        return self._commits

    @property
    def counts(self) -> Counts:
        """The counts of unchanged paths, and of the rows of resumed paths that were not read again."""
        standing = self.standing.values()
        total = Counts(*(sum(map(attrgetter(name), standing)) for name in Counts._fields))
        if self._resumed:
            came, counts = self._came(), self._counts()
            for path in self._resumed:
                total = total.plus(counts[path]).plus(_counted(came[path]), -1)
        return total

    def state(self) -> SourceState | None:
        """The state of the source after this import; None if nothing of it can be recognized again."""
        counts = self._counts()
        # Paths with rows have passed redaction already: the rows have the path itself.
        paths = pa.array([path for path in self._read if path not in counts], pa.string())
        secret = set(paths.filter(pc.not_equal(redact_column(paths)[0], paths)).to_pylist())
        if not self._usable or not counts.keys() <= self._seen or (secret and self._commits):
            return None  # rows of a masked path, or of one that was not recorded
        paths = dict(self.standing)
        for path, state in self._read.items():
            rows, places, masked = counts.get(path, Counts())
            if path not in secret:
                digest = "" if masked else state.digest  # short content with a secret could be guessed from it
                paths[path] = state._replace(digest=digest, rows=rows, places=places, masked=masked)
        return replace(self.before, line=self._line, commits=self._commits, paths=dict(sorted(paths.items())))

    def _counts(self) -> dict[str, Counts]:
        """Rows, places and masked places of the paths that were read; the totals for resumed paths."""
        counts = {path: Counts() for path in self._resumed}
        for path, rows in self._came().items():
            state = self._resumed.get(path)
            if state is None:
                counts[path] = _counted(rows)
                continue
            before, young = self.before.paths[path], [row for row in rows if row.recorded > self._since]
            new = {row.id for row in rows} - state.ids
            counts[path] = Counts(
                before.rows + len(new), before.places + len(young), before.masked + sum(row.masked for row in young)
            )
        return counts

    def _came(self) -> dict[str, list[_Row]]:
        came: dict[str, list[_Row]] = defaultdict(list)
        for table in self._counted:
            masked = pc.greater(pc.list_value_length(table["redactions"]), 0)
            columns = (table["path"], table["id"], masked, table["recorded_time"].cast(pa.int64()))
            for path, *row in zip(*(column.to_pylist() for column in columns), strict=True):
                came[path].append(_Row(*row))
        return came


class Counts(NamedTuple):
    """Rows of evidence, their places, and the places whose text was masked."""

    rows: int = 0
    places: int = 0
    masked: int = 0

    def plus(self, other: tuple[int, int, int], sign: int = 1) -> Counts:
        """The sum, or with sign -1 the difference."""
        return Counts(*(mine + sign * theirs for mine, theirs in zip(self, other, strict=True)))


class _Row(NamedTuple):
    id: str
    masked: bool
    recorded: int


def _counted(rows: Sequence[_Row]) -> Counts:
    return Counts(len({row.id for row in rows}), len(rows), sum(row.masked for row in rows))


def _repeat(path: str, state: PathStatus, report: SourceReport) -> None:
    """Repeat the report entries of a path from when it was read."""
    if state.said == "{}":
        return
    recorded = json.loads(state.said)
    for reason, count in recorded["skipped"].items():
        report.skip(reason, count, at=path)
    for note, places in recorded["notes"].items():
        for at in places or [None]:
            report.note(note, at=at)
