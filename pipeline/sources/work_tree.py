"""The current work tree: every text file that is not ignored, once, as it is when it is read.

Gives: `read_work_tree`. Which files are read is `selection`'s.

Note: symbolic links are never followed, so nothing outside the root is read; `version` is a
digest of the file's text with its secrets masked, `event_time` the file's modification time, never later than `now`, or
the date in its header (`headers.metadata_of`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from io import FileIO
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError
from ...nodes.schema import TIMESTAMP
from .document_reader import PLACED, DocumentReader, Text
from .file_kinds import file_kind
from .files import limit
from .report import SourceReport
from .selection import Selection, file_at

_BATCH_FILES, _BATCH_BYTES = 1_024, 32_000_000


def read_work_tree(
    root: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    now: datetime,
    report: SourceReport,
    reader: DocumentReader,
    selection: Selection | None = None,
    leave_out: Collection[Path] = (),
) -> Iterator[pa.Table]:
    """One row per chunk of every text file under `root`, by path, then line; `root` may also be one file.

    Files in `leave_out` (resolved) belong to another source.

    `source_id` is `workspace:<name>` (the folder's name by default),
    `recorded_time` is `now`. Skipped and counted in `report.skipped`: symbolic links, nested repositories, names of
    binary formats, binary, non-UTF-8, blank and empty files, pipes, sockets and devices, files over the size limit or
    not readable, paths that are not UTF-8. The source of a folder is added to `report.complete_sources`.

    Raises:
        InputError: there is nothing at `root`.
    """
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
    constant = {"source_id": source_id, "owner_project": project}
    found = (read_file(folder, raw, report) for raw in sorted(paths))
    yield from rows_of_files(filter(None, found), reader, report, constant, pa.scalar(now, TIMESTAMP).value)
    if folder == root:
        report.complete_sources.add(source_id)


def rows_of_files(
    files: Iterable[tuple[str, bytes, int]],
    reader: DocumentReader,
    report: SourceReport,
    constant: Mapping[str, Any],
    recorded: int,
    version: str = "sha256",
) -> Iterator[pa.Table]:
    """The rows of files (path, bytes and modification time), some files at a time.

    `constant` are the columns that are equal in all rows; versions are digests with the prefix `version`.
    """
    batch, size = list[tuple[str, bytes, int]](), 0
    for file in files:
        batch.append(file)
        size += len(file[1])
        if len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
            yield from _rows(batch, reader, report, constant, recorded, version)
            batch, size = [], 0
    yield from _rows(batch, reader, report, constant, recorded, version)


def _rows(
    files: Sequence[tuple[str, bytes, int]],
    reader: DocumentReader,
    report: SourceReport,
    constant: Mapping[str, Any],
    recorded: int,
    version: str,
) -> Iterator[pa.Table]:
    keys = [reader.key(f"sha256:{hashlib.sha256(data).hexdigest()}", path) for path, data, _ in files]
    versions = list[str | None]()
    reader.read(Text(key, path, partial(bytes, data)) for key, (path, data, _) in zip(keys, files, strict=True))
    for key, (path, _, _) in zip(keys, files, strict=True):
        reason, notes, digest = reader.document(key)
        versions.append(digest and f"{version}:{digest.removeprefix('sha256:')}")
        if reason is not None:
            report.skip(reason, at=path)
        for note in notes:
            report.note(note, at=path)
    places = reader.places(keys)
    if not len(places.document):
        return
    report.read += len(places.document)
    chunks = reader.chunks(places)
    of, instant = pa.array(places.document), chunks.schema.field("event_time").type
    modified = pa.array([min(modified, recorded) for _, _, modified in files], pa.int64())
    columns = {name: pa.array(places.at[name]) for name in PLACED} | {
        "path": pa.array([path for path, _, _ in files], pa.string()).take(of),
        "version": pa.array(versions, pa.string()).take(of),
        "event_time": pc.coalesce(chunks["event_time"], modified.cast(instant).take(of)),
        "recorded_time": recorded,
    }
    yield reader.table(chunks, {**constant, **columns})


def read_file(root: Path, raw: bytes, report: SourceReport) -> tuple[str, bytes, int] | None:
    """Path, bytes (at most one more than the limit) and modification time (microseconds) of a file; None, with the reason
    counted, if it is skipped.
    """
    kind = file_kind(raw.decode("utf-8", "replace"))
    if not kind.text_by_name and not raw.endswith(b"/"):
        report.skip("not text by name", at=raw.decode("utf-8", "replace"))
        return None
    if (found := file_at(root, raw, report)) is None:
        return None
    path, status = found
    try:
        with FileIO(f"{root}/{path}") as opened:
            return path, opened.read(limit(kind) + 1), status.st_mtime_ns // 1_000
    except (OSError, ValueError):
        report.skip("not readable", at=path)
        return None
