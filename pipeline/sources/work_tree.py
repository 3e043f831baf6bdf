"""The current work tree: every text file that is not ignored, once, as it is when it is read.

Gives: `read_work_tree`. In a git repository the files are those `git ls-files` lists, tracked or not ignored; elsewhere the
folder is walked and nested `.gitignore` files are honored in git's own pattern language.

Note: symbolic links are never followed, so nothing outside the root is read; `version` is a
digest of the file's text with its secrets masked, `event_time` the file's modification time, never later than `now`.

The metadata header of a document of a portfolio (S1.1, `metadata_of`) becomes columns of its rows. Only a Markdown document that
states both `entity` and `level` has one: front matter of other tools uses words such as `date` and `zone` for other
things; of that, only `tags` are used, and `title` by `chunking`. A malformed, incomplete or misspelled header still
restricts its document: a zone outside the vocabulary counts as restricted, with a note in the report; private or
restricted applies in any front matter and any spelling, readable or not.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from io import FileIO
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
from pathspec import GitIgnoreSpec

from ...nodes.errors import InputError
from ...nodes.vocabulary import ZONES
from .chunking import Document
from .file_kinds import FileKind, file_kind
from .files import FileFacts, ReadOptions, RowBuilder, decoded, document_of, is_generated, microseconds
from .git_commands import Git, work_tree_root
from .headers import Header, read_header, record_number
from .incremental_import import IncrementalImport
from .report import SourceReport
from .same_source import holds_most

__all__ = ["add_file", "list_files", "metadata_of", "read_file", "read_work_tree", "through_link"]

_TOOL_FOLDERS = frozenset(
    [".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache"]
)


def read_work_tree(
    root: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    now: datetime,
    report: SourceReport,
    options: ReadOptions | None = None,
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
        listed = list_files(root, report)
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
    metadata = metadata_of(path, kind, document.title, content, report)
    file = FileFacts(path, kind, document.title, is_generated(kind, content), metadata)
    report.read += len(document.chunks)
    version = document.version if not uncommitted else f"uncommitted:{document.version.removeprefix('sha256:')}"
    for chunk in document.chunks:
        happened = min(modified, recorded)
        rows.add(file, chunk, event_time=happened, version=version, recorded=recorded)


def list_files(root: Path, report: SourceReport) -> list[bytes]:
    """Paths of the files under `root` that are not ignored, relative to it, separated by `/`.

    If git cannot list them, the folder is walked, and a note in the report says why.
    """
    if work_tree_root(root) is None:
        return list(_walk(root, report))
    try:
        git, folder = Git(root), root.resolve()
        paths = None if git.root is None else list(git.files(folder))
        if paths == [] and git.try_("check-ignore", "--quiet", ".", folder=folder) is not None:
            report.note("Git ignores this folder, so none of its files was read; copy it elsewhere", at=str(root))
    except InputError as error:
        report.note(f"files were listed without git: {error.message}", at=str(root))
        paths = None
    return list(_walk(root, report)) if paths is None else [*paths, *_special(os.fsencode(root), paths)]


def _special(root: bytes, paths: Collection[bytes]) -> Iterator[bytes]:
    """Pipes, sockets and devices beside these paths, which git does not list, so that they are reported as skipped."""
    for folder in sorted({path.rpartition(b"/")[0] for path in paths}):
        with suppress(OSError), os.scandir(root + b"/" + folder) as found:
            for entry in found:
                if not (entry.is_file(follow_symlinks=False) or entry.is_symlink() or entry.is_dir()):
                    path = folder + b"/" + entry.name if folder else entry.name
                    if path not in paths:
                        yield path


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


_Specs = list[tuple[str, GitIgnoreSpec]]
"""The `.gitignore` files above a path, the deepest last, each with its folder, relative to the root, with a `/`."""


def _walk(root: Path, report: SourceReport) -> Iterator[bytes]:
    """Files below `root`, without those that `.gitignore` files exclude and without folders of tools."""
    waiting: list[tuple[str, _Specs]] = [("", [])]
    while waiting:
        folder, above = waiting.pop()
        specs = above + _ignore_file(root / folder, folder)
        try:
            with os.scandir(root / folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        below: list[tuple[str, _Specs]] = []
        for entry in entries:
            path = folder + entry.name
            if _is_folder(entry):
                if entry.is_symlink():
                    report.skip("symbolic link")
                elif entry.name in _TOOL_FOLDERS or _ignored(f"{path}/", specs):
                    report.skip("ignored")
                else:
                    below.append((f"{path}/", specs))
            elif _ignored(path, specs):
                report.skip("ignored")
            else:
                yield os.fsencode(path)
        waiting.extend(reversed(below))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _ignore_file(folder: Path, relative: str) -> _Specs:
    file = folder / ".gitignore"
    if not file.is_file() or file.is_symlink():
        return []
    try:
        return [(relative, GitIgnoreSpec.from_lines(file.read_text("utf-8", "replace").splitlines()))]
    except (OSError, ValueError):
        return []


def _ignored(path: str, specs: _Specs) -> bool:
    """The deepest `.gitignore` with a pattern for the path decides; a folder ends with `/`."""
    for base, spec in reversed(specs):
        include = spec.check_file(path.removeprefix(base)).include
        if include is not None:
            return include
    return False


_CLOSING = ("restricted", "private")
"""The zones that restrict a document, the most restrictive first."""

_FRONT_MATTER = re.compile(
    rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?$", re.DOTALL | re.MULTILINE
)


def metadata_of(path: str, kind: FileKind, title: str | None, data: bytes, report: SourceReport) -> Mapping[str, Any]:
    """Columns from the header of a document; none if there is no header."""
    if kind.splitter != "markdown":
        return {}
    data = (decoded(data) or "").encode()
    found = _FRONT_MATTER.match(data)
    matter = found[1] if found else b""
    if b"level" not in data.lower() and not any(word in matter.lower() for word in (b"zone", b"tags")):
        return {}
    header = None
    try:
        header = read_header(data.decode("utf-8"), path)
        entity, level = header.text("entity"), header.text("level")
        if not entity or not level:
            tags = header.strings("tags") if header.line_numbers.get("tags", header.lines) < header.lines else None
            return {**_closed(header, matter), **({"tags": tags} if tags else {})}
        dated = header.instant("date")
        columns = {
            "document_type": entity,
            "entity": header.text("id") or record_number(title or ""),
            "level": level.lower(),
            "tags": header.strings("tags"),
            "zone": _zone(header, report),
            "event_time": dated and microseconds(dated, path),
        }
    except InputError:
        zone = _zone(header, report) if header is not None else None
        closed = {"zone": zone} if zone in _CLOSING else _closed(header, matter)
        report.note(f"an unreadable header was ignored{'; the document is restricted' if closed else ''}", at=path)
        return closed
    if entity.lower() == "decision":
        columns["evidence_kind"] = "decision-record"
    return {name: value for name, value in columns.items() if value is not None}


def _closed(header: Header | None, matter: bytes) -> Mapping[str, Any]:
    """The zone of a header that restricts a document, whatever its other fields; none if it is unrestricted.

    Front matter that cannot be parsed restricts the document if it mentions a zone. A line of the text counts only with
    `entity` or `level`.
    """
    fields = header.fields if header is not None else {}
    words: list[Any] = []
    if header is not None and "zone" in fields:
        counts = header.line_numbers["zone"] <= header.lines or {"entity", "level"} & fields.keys()
        words = [fields["zone"]] if counts else []
    elif (header is None or not header.lines) and re.search(rb"(?i)\bzone\b", matter):
        words = ["restricted"]
    words = words[0] if words and isinstance(words[0], list) else words
    zones = [ZONES.aliases.get(word, word) for word in (str(word).strip().lower() for word in words)]
    return next(({"zone": zone} for zone in _CLOSING if zone in zones), {})


def _zone(header: Header, report: SourceReport) -> str | None:
    try:
        return header.zone()
    except InputError:
        report.note(f"a zone that is none of {', '.join(ZONES.values)} counts as restricted", at=header.place("zone"))
        return "restricted"
