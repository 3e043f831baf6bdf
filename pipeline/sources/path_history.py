"""The placements of every chunk in a line of changes: where each chunk was, from which commit to which.

Gives: `read_changes(changes, blobs, rows, options, report)` for any line of changes whose blobs are available by id: a
git branch, or the snapshots of a labeled collection.

Note: a chunk that survives an edit in its place is the same placement, still open. All fields
of a row except time and place are those of its first appearance.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa

from ...nodes.schema import TIMESTAMP
from ..progress import Say, StepReporter, quiet
from .chunking import Document
from .file_kinds import FileKind, file_kind
from .files import FileFacts, ReadOptions, RowBuilder, document_of, is_generated
from .git_commands import ABSENT, Change, Commit
from .history_states import First, Live, PathState
from .incremental_source import IncrementalSource
from .report import SourceReport

__all__ = ["BlobSource", "commit_table", "read_changes"]

LEAST_REPORTED = 500
"""Fewest changes between two lines of progress: some seconds."""
_CACHED_BYTES = 64_000_000


class BlobSource(Protocol):
    """Blobs by id."""

    def get(self, blob: str, limit: int) -> bytes | None:
        """The blob's bytes, or more than `limit` of them if it is longer; None if there is no such blob."""
        ...


def read_changes(
    changes: Iterable[Change],
    blobs: BlobSource,
    rows: RowBuilder,
    options: ReadOptions,
    report: SourceReport,
    states: Mapping[str, PathState] = MappingProxyType({}),
    known: IncrementalSource | None = None,
    say: Say = quiet,
) -> Iterator[pa.Table]:
    """Tables of `RowBuilder.schema`, by path, then by when the placements ended.

    Args:
        changes: in the order of their commits, whose times strictly increase.
        blobs: the texts; each is chunked once per kind while it is cached.
        rows: collects rows into the tables.
        report: counts placements, and skipped versions with the reason.
        states: the states of resumed paths before the first change.
        known: records each path that was read.
        say: receives a line of progress at each tenth of many changes.
    """
    by_path: dict[bytes, list[Change]] = {}
    for change in changes:
        by_path.setdefault(change.path, []).append(change)
    reader = _Reader(blobs, options)
    tell, total, done = (
        StepReporter(say, "read {:,} of {:,} changes", least=LEAST_REPORTED),
        sum(map(len, by_path.values())),
        0,
    )
    for raw in sorted(by_path):
        tell(done, total)
        done += len(by_path[raw])
        own = SourceReport()
        try:
            path = raw.decode("utf-8")
        except UnicodeDecodeError:
            report.skip("path not utf-8", len(by_path[raw]))
            if known is not None:
                known.give_up()
            continue
        history = _History(path, rows, reader, own, states.get(path, PathState()))
        for change in by_path.pop(raw):
            history.apply(change)
            yield from rows.full()
        history.close()
        if known is not None:
            known.saw_history(path, own)
        report.merge(own)
        yield from rows.full()
    if reader.incomplete and known is not None:
        known.give_up()
    yield from rows.rest()


def commit_table(line: Sequence[Commit]) -> pa.Table:
    """`version` and `recorded_time` of every commit of a line, in order, including those that changed no text."""
    return pa.table(
        {
            "version": pa.array([commit.sha for commit in line], pa.string()),
            "recorded_time": pa.array([commit.time for commit in line], pa.int64()).cast(TIMESTAMP),
        }
    )


class _History:
    """The history of one path: applying a change ends placements, which become rows, and begins others."""

    def __init__(self, path: str, rows: RowBuilder, reader: _Reader, report: SourceReport, state: PathState) -> None:
        self.path, self.kind = path, file_kind(path)
        self._placements, self._first = dict(state.live), dict(state.first)
        self._rows, self._reader, self._report = rows, reader, report

    def apply(self, change: Change) -> None:
        """Apply the change of one commit to the path. A mode change alone has no effect."""
        commit = change.commit
        if reason := _no_file(change.mode):
            if reason != ABSENT:
                self._report.skip(reason, at=self.path)
            self.close(deleted=commit.time)
            return
        version = self._reader.read(self.path, self.kind, change.blob, self._report)
        if version is None:
            self.close(superseded=commit.time)
            return
        document, generated = version
        before, self._placements = self._placements, {}
        for chunk in document.chunks:
            key = (chunk.section, chunk.text, chunk.occurrence)
            live = before.pop(key, None)
            if live is not None and live.is_at(chunk):
                self._placements[key] = live
                continue
            if live is not None:
                self._end(live, superseded=commit.time)
            first = self._first.setdefault(key, First(commit.time, document.title, generated, chunk))
            self._placements[key] = Live(first, first.at(chunk), commit.sha, commit.time)
        for live in before.values():
            self._end(live, superseded=commit.time)

    def close(self, *, superseded: int | None = None, deleted: int | None = None) -> None:
        """End every placement: superseded by something unreadable, deleted, or, without a time, still open."""
        before, self._placements = self._placements, {}
        for live in before.values():
            self._end(live, superseded=superseded, deleted=deleted)

    def _end(self, live: Live, *, superseded: int | None = None, deleted: int | None = None) -> None:
        self._report.read += 1
        self._rows.add(
            FileFacts(self.path, self.kind, live.first.title, live.first.generated),
            live.chunk,
            event_time=live.first.time,
            version=live.version,
            recorded=live.recorded,
            superseded=superseded,
            deleted=deleted,
        )


class _Reader:
    """Reads blobs as documents, each chunked once per kind of file while it is cached."""

    def __init__(self, blobs: BlobSource, options: ReadOptions) -> None:
        self._blobs, self._options = blobs, options
        self.incomplete = False
        """Whether a blob was missing from the repository; it may be there next time."""
        self._cache: OrderedDict[tuple[str, FileKind], tuple[Document, bool, int]] = OrderedDict()
        self._bytes = 0

    def read(self, path: str, kind: FileKind, blob: str, report: SourceReport) -> tuple[Document, bool] | None:
        """The document and whether it is generated; None if it is skipped, which is counted."""
        if not kind.text_by_name:
            report.skip("not text by name", at=path)
            return None
        key = (blob, kind)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key][:2]
        data = self._blobs.get(blob, self._options.limit(kind))
        if data is None:
            self.incomplete = True
            report.skip("blob not in the repository", at=path)
            return None
        document, reason = document_of(path, kind, data, self._options)
        if document is None:
            report.skip(reason, at=path)
            return None
        generated = is_generated(kind, data)
        self._cache[key] = (document, generated, len(data))
        self._bytes += len(data)
        while self._bytes > _CACHED_BYTES:
            self._bytes -= self._cache.popitem(last=False)[1][2]
        return document, generated


def _no_file(mode: str) -> str:
    """Why an entry of this mode is not a file; empty if it is."""
    if mode == ABSENT:
        return ABSENT
    if mode.startswith("12"):
        return "symbolic link"
    return "submodule" if mode.startswith("16") else ""
