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
from ...nodes.schema import TIMESTAMP
from .document_reader import DocumentReader, Text
from .file_kinds import file_kind
from .files import ReadOptions
from .report import SourceReport
from .selection import Selection, file_at

__all__ = ["FilesAsRows", "read_file", "read_work_tree"]

_BATCH_FILES, _BATCH_BYTES = 1_024, 32_000_000
_PLACED = ("occurrence", "line_start", "line_end", "byte_start", "byte_end")


def read_work_tree(
    root: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    now: datetime,
    report: SourceReport,
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
        InputError: there is nothing at `root`.
    """
    reader = reader or DocumentReader()
    root = Path(root)
    if root.is_file():
        folder, paths = root.parent, [os.fsencode(root.name)]
    elif root.is_dir():
        folder = root
        listed = (selection or Selection()).files(root, report)
        paths = [path for path in listed if not leave_out or (root / os.fsdecode(path)).resolve() not in leave_out]
    else:
        raise InputError(f"Expected a folder or a file, got none - at {root}")
    source_id = f"workspace:{name or folder.resolve().name or 'root'}"
    files = FilesAsRows(
        reader, report, {"source_id": source_id, "owner_project": project}, pa.scalar(now, TIMESTAMP).value
    )
    for raw in sorted(paths):
        if (found := read_file(folder, raw, report, reader.options)) is not None:
            yield from files.add(*found)
    yield from files.rest()
    if folder == root:
        report.complete_sources.add(source_id)


class FilesAsRows:
    """Collects files as they are read, and yields their rows in batches."""

    def __init__(
        self,
        reader: DocumentReader,
        report: SourceReport,
        constant: Mapping[str, Any],
        recorded: int,
        version: str = "sha256",
    ) -> None:
        """`constant` are the columns that are equal in all rows; versions are digests with the prefix `version`."""
        self._reader, self._report = reader, report
        self._constant, self._recorded, self._version = constant, recorded, version
        self._files: list[tuple[str, bytes, int]] = []
        self._texts: list[Text] = []
        self._bytes = 0
        self.unread: list[str] = []
        """The paths of files that have no rows."""

    def add(self, path: str, data: bytes, modified: int) -> Iterator[pa.Table]:
        """Add a file; yields the rows of the files so far if they are many."""
        key = self._reader.key_of(data, path)
        self._texts.append(Text(key, path, lambda: data))
        self._files.append((path, key, modified))
        self._bytes += len(data)
        if len(self._files) >= _BATCH_FILES or self._bytes >= _BATCH_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[pa.Table]:
        """Yield the rows of the files so far."""
        files, texts, self._files, self._texts, self._bytes = self._files, self._texts, [], [], 0
        reader, report, versions = self._reader, self._report, list[str | None]()
        reader.read(texts)
        for path, key, _ in files:
            reason, notes, version = reader.document(key)
            versions.append(version and f"{self._version}:{version.removeprefix('sha256:')}")
            if reason is not None:
                report.skip(reason, at=path)
                self.unread.append(path)
            for note in notes:
                report.note(note, at=path)
        places = reader.places([key for _, key, _ in files])
        if not len(places.document):
            return
        report.read += len(places.document)
        chunks = reader.chunks(places)
        of, instant = pa.array(places.document), chunks.schema.field("event_time").type
        modified = pa.array([min(modified, self._recorded) for _, _, modified in files], pa.int64())
        columns = {name: pa.array(places.at[name]) for name in _PLACED} | {
            "path": pa.array([path for path, _, _ in files], pa.string()).take(of),
            "version": pa.array(versions, pa.string()).take(of),
            "event_time": pc.coalesce(chunks["event_time"], modified.cast(instant).take(of)),
            "recorded_time": pa.scalar(self._recorded, pa.int64()).cast(instant),
        }
        yield reader.table(chunks, {**self._constant, **columns})


def read_file(root: Path, raw: bytes, report: SourceReport, options: ReadOptions) -> tuple[str, bytes, int] | None:
    """Path, bytes (at most one more than the limit) and modification time (microseconds) of a file; None, with the reason
    counted, if it is skipped.
    """
    if not file_kind(raw.decode("utf-8", "replace")).text_by_name and not raw.endswith(b"/"):
        report.skip("not text by name", at=raw.decode("utf-8", "replace"))
        return None
    if (found := file_at(root, raw, report)) is None:
        return None
    path, status = found
    try:
        with FileIO(f"{root}/{path}") as opened:
            return path, opened.read(options.limit_at(path) + 1), status.st_mtime_ns // 1_000
    except (OSError, ValueError):
        report.skip("not readable", at=path)
        return None
