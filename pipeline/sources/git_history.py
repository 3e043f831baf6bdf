"""The history of the current branch of a git repository: every version of every text file, with the interval in which it
existed.

Gives: `read_git_history`, one row per placement of a chunk, and every commit in `report.commits`. The line is the first-parent history of the branch; a merge is the change
it made to its first parent, a rename a removal and an addition.

Note: a chunk that survives an edit in its place is the same row, still open. One that
moves ends (`superseded_at`) and begins again in the same commit, with its new lines and that commit as `version`. A row
ends by `deleted_at` only if its file was removed. All placements of a chunk have the `event_time`, title and names of
its first appearance.

`read_uncommitted` returns rows of the same source, with `workspace_root`, for every file of a work tree that differs
from HEAD. For a request in that work tree they shadow the committed rows of the same path. A file that was removed, or
that can no longer be read as text, needs a row to shadow them, too: a note without lines or bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import datetime
from os import PathLike
from typing import Any

import pyarrow as pa

from ...nodes.schema import TIMESTAMP
from ..progress import Say, counted, quiet
from .document_reader import DocumentReader
from .file_kinds import file_kind
from .files import FILE_ROWS, ReadOptions, columns_of, table_of
from .git_commands import Blobs, Change, Git
from .path_history import commit_table, read_changes
from .report import SourceReport
from .selection import Selection
from .work_tree import FilesAsRows, read_file

__all__ = ["read_git_history", "read_uncommitted"]


def read_git_history(
    repo: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    now: datetime,
    report: SourceReport,
    selection: Selection | None = None,
    reader: DocumentReader | None = None,
    say: Say = quiet,
) -> Iterator[pa.Table]:
    """Placements of every chunk of every text file on the branch's first-parent line, by path, then by when they ended.

    Tables have the columns of `FILE_ROWS`: `source_id` is `git:<name>` (the folder's name by default), `branch`
    the branch read, null if none is checked out. Skipped and counted in `report.skipped`, per version: symbolic links,
    submodules, names of binary formats, binary, non-UTF-8, blank and empty files, files over the size limit, paths that
    are not UTF-8. Memory grows with the list of changes and the text of one path, not with the text of the history.

    `say` receives lines of progress. Blobs whose chunks `reader` has are not read again.

    Raises:
        InputError: there is no repository.
    """
    reader = reader or DocumentReader()
    git = Git(repo)
    branch, head = git.branch()
    source_id = git.source_id(name)
    if head is None:
        report.skip("no commits")
        return
    line = git.commits(head)
    excludes = (selection or Selection()).rules(git.folder).excludes
    say(f"reading {counted(len(line), 'commit')} of {source_id.removeprefix('git:')}")
    constant = {"source_id": source_id, "owner_project": project, "branch": branch}
    if (files := git.changes(line)) is None:
        files = [Change(line[-1], path, mode, blob) for mode, blob, path in git.tree(head)]
        report.skip("commit whose files are not in the repository", len(line) - 1)
    with git.blobs() as blobs:
        changes = (change for change in files if not excludes(change.path))
        yield from read_changes(changes, blobs, reader, constant, report, say)
    report.complete_sources.add(source_id)
    report.commits[source_id] = commit_table(line)


_NOTE = "{path}: {what} in the work tree, not committed.\n"


def read_uncommitted(
    repo: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    now: datetime,
    report: SourceReport,
    selection: Selection | None = None,
    reader: DocumentReader | None = None,
) -> Iterator[pa.Table]:
    """One row per chunk of every file whose bytes differ from HEAD, by path, then line; `recorded_time` is `now`.

    The bytes on disk are compared, without the filters of git: other line endings are no difference, but a file that a
    filter changes on checkout (Git LFS, `ident`) differs. Files left out of a sparse checkout have no rows.

    `source_id` and `branch` are those of the history of the branch checked out, `workspace_root` the absolute path of the
    folder that is read, `version` `uncommitted:` and a digest of the masked text. A bare repository has no such rows.

    Raises:
        InputError: there is no repository.
    """
    recorded = pa.scalar(now, TIMESTAMP).value
    reader = reader or DocumentReader()
    git = Git(repo)
    if git.root is None:
        return
    branch, head = git.branch()
    constant = {
        "source_id": git.source_id(name),
        "owner_project": project,
        "branch": branch,
        "workspace_root": str(git.folder),
    }
    files = FilesAsRows(reader, report, constant, recorded, "uncommitted")
    shadowing, gone = set[str](), list[str]()
    for raw, has_rows, found in _changed(git, head, reader.options, selection or Selection(), report):
        path = raw.decode("utf-8", "replace")
        if has_rows:
            shadowing.add(path)
        if found is not None:
            yield from files.add(*found)
        else:
            gone.append(path)
    yield from files.rest()
    notes = list[dict[str, Any]]()
    for path in sorted(shadowing.intersection(gone + files.unread)):
        what = "not readable as text" if os.path.lexists(git.folder / path) else "removed"
        note = {"path": path, "text": _NOTE.format(path=path, what=what), "version": "uncommitted:none"}
        times = {"recorded_time": recorded, "event_time": recorded}
        notes.append(columns_of(file_kind(path)) | constant | note | times)
    report.read += len(notes)
    if notes:
        yield table_of(notes, FILE_ROWS)


def _changed(
    git: Git, head: str | None, options: ReadOptions, selection: Selection, report: SourceReport
) -> Iterator[tuple[bytes, bool, tuple[str, bytes, int] | None]]:
    """Paths that differ from HEAD, whether HEAD may have rows of them, and what `read_file` returns for them."""
    excludes = selection.rules(git.folder).excludes
    tree = git.tree(head) if head else ()
    committed = {path: (mode, blob) for mode, blob, path in tree if not excludes(path)}
    tags = git.files()
    files = {path: tags.get(path, "?") for path in selection.files(git.folder, SourceReport())}
    with git.blobs() as blobs:
        for raw in sorted(path for path in committed.keys() | files.keys() if files.get(path) != "S"):
            mode, blob = committed.get(raw, ("", ""))
            path, own = raw.decode("utf-8", "replace"), SourceReport()
            kind = file_kind(path)
            has_rows = mode.startswith("100") and kind.text_by_name and path.encode("utf-8") == raw
            found = read_file(git.folder, raw, own, options)
            if found is not None:
                same = has_rows and _same(found[1], blob, blobs, options.limit(kind))
            else:
                same = bool(mode) and not has_rows
            if not same:
                report.merge(own)
                yield raw, has_rows, found


def _same(data: bytes, blob: str, blobs: Blobs, limit: int) -> bool:
    """Whether a file, as far as it is read, has the bytes of a blob, apart from line endings."""
    digest = hashlib.sha1 if len(blob) == 40 else hashlib.sha256
    if digest(b"blob %d\0" % len(data) + data).hexdigest() == blob:
        return True
    committed = blobs.get(blob, limit)
    return committed is not None and committed.replace(b"\r\n", b"\n") == data.replace(b"\r\n", b"\n")
