"""The current work tree: every text file that is not ignored, once, as it is when it is read.

Gives: `read_work_tree`. Which files are read is `selection`'s.

Note: symbolic links are never followed, so nothing outside the root is read; `version` is a
digest of the file's text with its secrets masked, `event_time` the file's modification time, never later than `now`, or
the date in its header (`headers.metadata_of`).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from io import FileIO
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError
from .document_reader import DocumentReader, Text
from .file_kinds import file_kind
from .files import ReadOptions, microseconds
from .report import SourceReport
from .selection import Selection, file_at

__all__ = ["WorkTreeFiles", "read_file", "read_work_tree"]

_BATCH_FILES = 1_024


def read_work_tree(  # noqa: PLR0913 - options by keyword
    root: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    now: datetime,
    report: SourceReport,
    options: ReadOptions | None = None,
    selection: Selection | None = None,
    leave_out: Collection[Path] = (),
    reader: DocumentReader | None = None,
) -> Iterator[pa.Table]:
    """One row per chunk of every text file under `root`, by path, then line; `root` may also be one file.

    Files in `leave_out` (resolved) belong to another source.

    Tables have the columns of `FILE_ROWS`: `source_id` is `workspace:<name>` (the folder's name by default),
    `recorded_time` is `now`. Skipped and counted in `report.skipped`: symbolic links, nested repositories, names of
    binary formats, binary, non-UTF-8, blank and empty files, pipes, sockets and devices, files over the size limit or
    not readable, paths that are not UTF-8. The source of a folder is added to `report.complete_sources`.

    Raises:
        InputError: there is nothing at `root`, or `now` is naive.
    """
    recorded = microseconds(now, "now")
    reader = reader or DocumentReader.of(options)
    root = Path(root)
    if root.is_file():
        folder, paths = root.parent, [os.fsencode(root.name)]
        name = name or root.resolve().parent.name
    elif root.is_dir():
        folder = root
        listed = (selection or Selection()).files(root, report)
        paths = [path for path in listed if not leave_out or (root / os.fsdecode(path)).resolve() not in leave_out]
        name = name or root.resolve().name
    else:
        raise InputError(f"Expected a folder or a file, got none - at {root}")
    source_id = f"workspace:{name or 'root'}"
    files = WorkTreeFiles(folder, reader, report, {"source_id": source_id, "owner_project": project}, recorded)
    for raw in sorted(paths):
        file = file_at(folder, raw, report)
        if file is not None:
            files.add(*file)
            yield from files.full()
    yield from files.rest()
    if folder == root:
        report.complete_sources.add(source_id)


class WorkTreeFiles:
    """Collects files of a work tree, and yields their rows in batches."""

    def __init__(
        self,
        folder: Path,
        reader: DocumentReader,
        report: SourceReport,
        constant: Mapping[str, Any],
        recorded: int,
        *,
        uncommitted: bool = False,
    ) -> None:
        """`constant` are the columns that are equal in all rows; versions say whether files are `uncommitted`."""
        self._uncommitted = uncommitted
        self._folder, self._reader, self._report = folder, reader, report
        self._constant, self._recorded = constant, recorded
        self._files: list[tuple[str, bytes, int]] = []
        self.texts: list[Text] = []
        self._bytes = 0

    def add(self, path: str, status: os.stat_result) -> None:
        """Add a file."""
        if not file_kind(path).text_by_name:
            self._report.skip("not text by name", at=path)
            return
        data = bytes_of(f"{self._folder}/{path}", self._reader.options.limit_at(path))
        if data is None:
            self._report.skip("not readable", at=path)
        else:
            self.place(path, self.text(path, data), status.st_mtime_ns // 1_000)

    def text(self, path: str, data: bytes) -> bytes:
        """The key of a text that is to be read."""
        key = self._reader.key_of(data, path)
        self.texts.append(Text(key, path, lambda: data))
        self._bytes += len(data)
        return key

    def place(self, path: str, key: bytes, modified: int) -> None:
        """Add a document at a path."""
        self._files.append((path, key, modified))

    def full(self) -> Iterator[pa.Table]:
        """Yield the rows of the files so far if they are many."""
        if len(self._files) >= _BATCH_FILES or self._bytes >= self._reader.options.batch_bytes:
            yield from self.rest()

    def rest(self) -> Iterator[pa.Table]:
        """Yield the rows of the files so far."""
        files, texts, self._files, self.texts, self._bytes = self._files, self.texts, [], [], 0
        self._reader.read(texts)
        cache, report = self._reader.cache, self._report
        versions = []
        for path, key, _ in files:
            reason, notes, version = cache.document(key)
            if self._uncommitted and version:
                version = f"uncommitted:{version.removeprefix('sha256:')}"
            versions.append(version)
            if reason is not None:
                report.skip(reason, at=path)
            for note in notes:
                report.note(note, at=path)
        places = cache.places([key for _, key, _ in files])
        if not len(places.document):
            return
        report.read += len(places.document)
        chunks = cache.chunks(places.group, places.at["chunk"])
        of, instant = pa.array(places.document), chunks.schema.field("event_time").type
        modified = (
            pa.array([min(modified, self._recorded) for _, _, modified in files], pa.int64()).cast(instant).take(of)
        )
        yield self._reader.table(
            chunks,
            dict(self._constant)
            | {
                name: pa.array(places.at[name])
                for name in ("occurrence", "line_start", "line_end", "byte_start", "byte_end")
            }
            | {
                "path": pa.array([path for path, _, _ in files], pa.string()).take(of),
                "version": pa.array(versions, pa.string()).take(of),
                "event_time": pc.coalesce(chunks["event_time"], modified),
                "recorded_time": pa.scalar(self._recorded, pa.int64()).cast(instant),
            },
        )


def bytes_of(file: str, limit: int) -> bytes | None:
    """The bytes of a file, at most one more than the limit; None if it cannot be read."""
    try:
        with FileIO(file) as opened:
            return opened.read(limit + 1)
    except (OSError, ValueError):
        return None


def read_file(root: Path, raw: bytes, report: SourceReport, options: ReadOptions) -> tuple[bytes, int] | None:
    """Bytes and modification time (microseconds) of a file; None, with the reason counted, if it is skipped."""
    found = file_at(root, raw, report)
    if found is None:
        return None
    path, status = found
    data = bytes_of(f"{root}/{path}", options.limit_at(path))
    if data is None:
        report.skip("not readable", at=path)
        return None
    return data, status.st_mtime_ns // 1_000
