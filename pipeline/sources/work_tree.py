"""The current work tree: every text file that is not ignored, once, as it is when it is read.

Gives: `read_work_tree`. Which files are read is `selection`'s.

Note: symbolic links are never followed, so nothing outside the root is read; `version` is a
digest of the file's text with its secrets masked, `event_time` the file's modification time, never later than `now`, or
the date in its header (`headers.metadata_of`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from io import FileIO
from os import PathLike
from pathlib import Path

import pyarrow as pa

from ...nodes.errors import InputError
from .chunking import Document
from .file_kinds import file_kind
from .files import FileFacts, ReadOptions, RowBuilder, decoded, document_of, is_generated, microseconds
from .headers import metadata_of
from .incremental_import import IncrementalImport
from .report import SourceReport
from .same_source import holds_most
from .selection import Selection

__all__ = ["add_file", "read_file", "read_work_tree", "through_link"]


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
    incremental: IncrementalImport | None = None,
) -> Iterator[pa.Table]:
    """One row per chunk of every text file under `root`, by path, then line; `root` may also be one file.

    Files in `leave_out` (resolved) belong to another source. With `incremental`, unchanged files of a folder have no
    rows.

    Tables have the columns of `RowBuilder.schema`: `source_id` is `workspace:<name>` (the folder's name by default),
    `recorded_time` is `now`. Skipped and counted in `report.skipped`: symbolic links, nested repositories, names of
    binary formats, binary, non-UTF-8, blank and empty files, pipes, sockets and devices, files over the size limit or
    not readable, paths that are not UTF-8. The source of a folder is added to `report.complete_sources`.

    Raises:
        InputError: there is nothing at `root`, or `now` is naive.
    """
    recorded = microseconds(now, "now")
    options = options or ReadOptions()
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
    rows = RowBuilder(options, source_id=source_id, owner_project=project)
    known = None
    if incremental is not None and folder == root:
        rules = ("work tree", str(root.resolve()), asdict(options))
        known = incremental.source(source_id, root, *rules, same=partial(holds_most, root, options.limit_at))
    elif incremental is not None:
        incremental.share([source_id])
    below = os.fsencode(folder) + b"/"
    files = sorted(paths)
    for raw in known.in_question(folder, files, recorded, report) if known is not None else files:
        status = known.status(below + raw, recorded) if known is not None else None
        if known is not None and known.is_unchanged(folder, raw, status, options.limit_at, report):
            continue
        own = SourceReport()
        content = _add(rows, folder, raw, own, options, recorded)
        if known is not None and content is not None:
            known.saw(raw.decode("utf-8"), own, status, content)
        report.merge(own)
        yield from rows.full()
    yield from rows.rest()
    if folder == root:
        report.complete_sources.add(source_id)


def _add(
    rows: RowBuilder, folder: Path, raw: bytes, report: SourceReport, options: ReadOptions, recorded: int
) -> bytes | None:
    """Read a file and add its chunks, if it is text; returns its bytes, None if it was not read."""
    data = read_file(folder, raw, report, options)
    if data is None:
        return None
    content, modified = data
    path = raw.decode("utf-8")
    kind = file_kind(path)
    document, reason = document_of(path, kind, content, options)
    if document is None:
        report.skip(reason, at=path)
        return content
    add_file(rows, path, document, content, report, modified=modified, recorded=recorded)
    return content


def add_file(
    rows: RowBuilder,
    path: str,
    document: Document,
    content: bytes,
    report: SourceReport,
    *,
    modified: int,
    recorded: int,
    uncommitted: bool = False,
) -> None:
    """Add the chunks of a file in a work tree; its event time is its modification time, never later than `recorded`."""
    kind = file_kind(path)
    metadata = {}
    if kind.splitter == "markdown":
        metadata = dict(metadata_of(path, document.title, decoded(content) or "", report))
        if dated := metadata.get("event_time"):
            metadata["event_time"] = microseconds(dated, path)
    file = FileFacts(path, kind, document.title, is_generated(kind, content), metadata)
    report.read += len(document.chunks)
    version = document.version if not uncommitted else f"uncommitted:{document.version.removeprefix('sha256:')}"
    for chunk in document.chunks:
        happened = min(modified, recorded)
        rows.add(file, chunk, event_time=happened, version=version, recorded=recorded)


def read_file(root: Path, raw: bytes, report: SourceReport, options: ReadOptions) -> tuple[bytes, int] | None:
    """Bytes and modification time (microseconds) of a file; None, with the reason counted, if it is skipped.

    At most one byte more than the size limit is read. A file that no longer exists is not counted.
    """
    try:
        path = raw.decode("utf-8")
    except UnicodeDecodeError:
        report.skip("path not utf-8", at=ascii(raw))
        return None
    if path.endswith("/"):
        report.skip("nested repository", at=path)
        return None
    kind = file_kind(path)
    if not kind.text_by_name:
        report.skip("not text by name", at=path)
        return None
    place = f"{root}/{path}"
    try:
        if through_link(root, path):
            report.skip("symbolic link", at=path)
            return None
        status = os.lstat(place)
        if not stat.S_ISREG(status.st_mode):
            report.skip("submodule" if stat.S_ISDIR(status.st_mode) else "not a regular file", at=path)
            return None
        with FileIO(place) as file:
            return file.read(options.limit(kind) + 1), status.st_mtime_ns // 1_000
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        report.skip("not readable", at=path)
        return None


def through_link(root: Path, path: str) -> bool:
    """Whether a folder of a path below `root`, or the file itself, is a symbolic link."""
    at = str(root)
    with suppress(OSError, ValueError):
        for part in path.split("/"):
            at = f"{at}/{part}"
            if stat.S_ISLNK(os.lstat(at).st_mode):
                return True
    return False
