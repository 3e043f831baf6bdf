"""The placements of every chunk in a line of changes: where each chunk was, from which commit to which.

Gives: `read_changes(changes, blobs, ...)` for any line of changes whose blobs are available by id: a git branch, or the
snapshots of a labeled collection.

Note: a chunk that survives an edit in its place is the same placement, still open. All fields of a row except time and
place are those of its first appearance. A row has its placements in the column `placements`, see `placements`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...nodes.schema import TIMESTAMP
from ..corpus.incoming import PLACEMENT_LIST, placement_lists
from ..progress import Say, StepReporter, quiet
from .document_reader import DocumentReader, Text
from .file_kinds import file_kind
from .git_commands import ABSENT, Change, Commit
from .report import SourceReport

__all__ = ["BlobSource", "commit_table", "read_changes"]

LEAST_REPORTED = 500
"""Fewest changes between two lines of progress: some seconds."""
BATCH_CHANGES = 2_048
"""Paths are read together up to this many changes."""


class BlobSource(Protocol):
    """Blobs by id."""

    def get(self, blob: str, limit: int) -> bytes | None:
        """The blob's bytes, or more than `limit` of them if it is longer; None if there is no such blob."""
        ...


def read_changes(
    changes: Iterable[Change],
    blobs: BlobSource,
    reader: DocumentReader,
    constant: Mapping[str, Any],
    report: SourceReport,
    say: Say = quiet,
) -> Iterator[pa.Table]:
    """Tables of `FILE_ROWS` with `placements`, by path; all rows of a path are in one table.

    The texts of the next batch are cut while the caller works on the rows of this one.

    Args:
        changes: in the order of their commits, whose times strictly increase.
        blobs: the texts; each is cut once per kind of path.
        constant: the columns that are equal in all rows.
        report: counts placements, and skipped versions with the reason.
        say: receives a line of progress at each tenth of many changes.
    """
    with ThreadPoolExecutor(1) as ahead:
        before: tuple[_Batch, Future[set[bytes]]] | None = None
        for batch in _batches(changes, blobs, reader, report, say):
            reading = batch, ahead.submit(reader.read, batch.texts.values())
            if before is not None:
                yield from before[0].tables(constant, before[1].result())
            before = reading
        if before is not None:
            yield from before[0].tables(constant, before[1].result())


def _batches(
    changes: Iterable[Change], blobs: BlobSource, reader: DocumentReader, report: SourceReport, say: Say
) -> Iterator[_Batch]:
    by_path: dict[bytes, list[Change]] = {}
    for change in changes:
        by_path.setdefault(change.path, []).append(change)
    total, done = sum(map(len, by_path.values())), 0
    tell = StepReporter(say, "read {:,} of {:,} changes", least=LEAST_REPORTED)
    batch = _Batch(blobs, reader, report)
    for raw in sorted(by_path):
        if len(batch.changes) >= BATCH_CHANGES:
            yield batch
            batch = _Batch(blobs, reader, report)
        tell(done, total)
        own = by_path.pop(raw)
        done += len(own)
        try:
            batch.add(raw.decode("utf-8"), own)
        except UnicodeDecodeError:
            report.skip("path not utf-8", len(own))
    yield batch


def commit_table(line: Sequence[Commit]) -> pa.Table:
    """`version` and `recorded_time` of every commit of a line, in order, including those that changed no text."""
    return pa.table(
        {
            "version": pa.array([commit.sha for commit in line], pa.string()),
            "recorded_time": pa.array([commit.time for commit in line], pa.int64()).cast(TIMESTAMP),
        }
    )


@dataclass
class _Batch:
    """The changes of some paths, those of a path in a row."""

    blobs: BlobSource
    reader: DocumentReader
    report: SourceReport

    def __post_init__(self) -> None:
        self.changes: list[Change] = []
        self._paths: list[str] = []
        self._path_of: list[int] = []
        self._keys: list[bytes | None] = []
        self._gone: list[bool] = []
        self.texts: dict[bytes, Text] = {}
        self._known: dict[tuple[str, object], bytes] = {}

    def add(self, path: str, changes: Sequence[Change]) -> None:
        """Add a path."""
        kind, limit = file_kind(path), self.reader.options.limit_at(path)
        for change in changes:
            reason, key = _no_file(change.mode), None
            if reason:
                if reason != ABSENT:
                    self.report.skip(reason, at=path)
            elif not kind.text_by_name:
                self.report.skip("not text by name", at=path)
            elif (key := self._known.get((change.blob, kind))) is None:
                key = self._known[change.blob, kind] = self.reader.key(f"git:{change.blob}", path)
                self.texts[key] = Text(key, path, partial(self.blobs.get, change.blob, limit))
            self.changes.append(change)
            self._path_of.append(len(self._paths))
            self._keys.append(key)
            self._gone.append(bool(reason))
        self._paths.append(path)

    def tables(self, constant: Mapping[str, Any], missing: Collection[bytes]) -> Iterator[pa.Table]:
        """The rows of these paths, whose texts were read, but for those of the `missing` keys."""
        changes = self.changes
        reasons: dict[bytes, str | None] = {}
        keys, at = list[bytes](), list[int]()
        for number, key in enumerate(self._keys):
            if key is None:
                continue
            if key not in reasons:
                reasons[key] = "blob not in the repository" if key in missing else self.reader.document(key)[0]
            if (reason := reasons[key]) is not None:
                self.report.skip(reason, at=self._paths[self._path_of[number]])
                continue
            keys.append(key)
            at.append(number)
        places = self.reader.places(keys)
        if not len(places.document):
            return
        version = np.array(at, dtype=np.int64)[places.document]
        path = np.array(self._path_of, dtype=np.int64)
        occurrence = places.at["occurrence"]
        order = np.lexsort((version, occurrence, places.same, path[version]))

        def changed(values: NDArray) -> NDArray[np.bool_]:
            """Where a value differs from the one before it, in this order."""
            values = values[order]
            return np.append(True, values[1:] != values[:-1])

        another = changed(path[version]) | changed(places.same) | changed(occurrence)
        moved = changed(places.at["line_start"]) | changed(places.at["byte_start"])
        gap = np.append(True, np.diff(version[order]) != 1)
        begins = np.flatnonzero(another | moved | gap)
        first = order[begins]
        ended = version[order[np.append(begins[1:], len(order)) - 1]] + 1
        is_last = (ended == len(changes)) | (path[np.minimum(ended, len(changes) - 1)] != path[ended - 1])
        times = np.array([change.commit.time for change in changes], dtype=np.int64)
        end, gone = (
            times[np.minimum(ended, len(changes) - 1)],
            np.array(self._gone)[np.minimum(ended, len(changes) - 1)],
        )
        shas = pa.array([change.commit.sha for change in changes], pa.string())
        placed = {
            "version": shas.take(pa.array(version[first])),
            **{name: pa.array(places.at[name][first]) for name in ("line_start", "line_end", "byte_start", "byte_end")},
            "recorded_time": pa.array(times[version[first]]),
            "superseded_at": pa.array(end, mask=is_last | gone),
            "deleted_at": pa.array(end, mask=is_last | ~gone),
        }
        self.report.read += len(first)
        heads = np.flatnonzero(another[begins])
        rows = first[heads]
        last = order[np.append(begins[heads[1:]], len(order)) - 1]  # its header describes the row
        began = pa.array(times[version[rows]]).cast(TIMESTAMP)
        columns = {name: values.take(pa.array(heads)) for name, values in placed.items()}
        table = self.reader.table(
            self.reader.chunks(places, last),
            dict(constant)
            | columns
            | {
                "path": pa.array(self._paths, pa.string()).take(pa.array(path[version[rows]])),
                "occurrence": pa.array(occurrence[rows]),
                "event_time": began,
            },
        )
        yield table.append_column(PLACEMENT_LIST, placement_lists(placed, np.append(heads, len(first))))


def _no_file(mode: str) -> str:
    """Why an entry of this mode is not a file; empty if it is."""
    if mode == ABSENT:
        return ABSENT
    if mode.startswith("12"):
        return "symbolic link"
    return "submodule" if mode.startswith("16") else ""
