"""The history of the current branch of a git repository: every version of every text file, with the interval in which it
existed.

Gives: `read_git_history`, one row per placement of a chunk, and every commit in `report.commits`; `read_changes`, the same for any
line of changes whose blobs are available by id, such as the snapshots of a labeled collection. The line is the first-parent
history of the branch; a merge is the change it made to its first parent, a rename a removal and an addition.

Note: a chunk that survives an edit in its place is the same row, still open. One that
moves ends (`superseded_at`) and begins again in the same commit, with its new lines and that commit as `version`. A row
ends by `deleted_at` only if its file was removed. All fields of a row except time and place are those of its first
appearance. A row has its placements in the column `placements`.

`read_uncommitted` returns rows of the same source, with `workspace_root`, for every file of a work tree that differs
from HEAD. For a request in that work tree they shadow the committed rows of the same path. A file that was removed, or
that can no longer be read as text, needs a row to shadow them, too: a note without lines or bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import partial
from itertools import pairwise
from operator import attrgetter
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...nodes.schema import TIMESTAMP
from ..corpus.incoming import PLACEMENT_LIST, placement_lists
from ..progress import Say, StepReporter, counted, quiet
from ..redaction.masking import secrets_in
from .document_reader import DocumentReader, Text
from .file_kinds import FileKind, file_kind
from .files import columns_of, limit
from .git_commands import ABSENT, Blobs, Change, Commit, Git
from .record_rows import record_table
from .report import SourceReport
from .selection import Selection
from .work_tree import read_file, rows_of_files

LEAST_REPORTED = 500
"""Fewest changes between two lines of progress: some seconds."""
BATCH_CHANGES = 2_048
"""Paths are read together up to this many changes."""

BlobOf = Callable[[str, int], bytes | None]
"""A blob's bytes by its id, or more than a limit of them if it is longer; None if there is no such blob."""


def read_git_history(
    repo: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    now: datetime,
    report: SourceReport,
    reader: DocumentReader,
    selection: Selection | None = None,
    say: Say = quiet,
) -> Iterator[pa.Table]:
    """Placements of every chunk of every text file on the branch's first-parent line, by path, then by when they ended.

    `source_id` is `git:<name>` (the folder's name by default). The branch is a
    fact of `report.commits`, not of rows. Skipped and counted in `report.skipped`, per version: symbolic links,
    submodules, names of binary formats, binary, non-UTF-8, blank and empty files, files over the size limit, paths that
    are not UTF-8. Memory grows with the list of changes and the text of one path, not with the text of the history.

    `say` receives lines of progress. Blobs whose chunks `reader` has are not read again.

    Raises:
        InputError: there is no repository.
    """
    git = Git(repo)
    branch, head = git.branch()
    source_id = git.source_id(name)
    if head is None:
        report.skip("no commits")
        return
    line = git.commits(head)
    excludes = (selection or Selection()).rules(git.folder).excludes
    say(f"reading {counted(len(line), 'commit')} of {source_id.removeprefix('git:')}")
    constant = {"source_id": source_id, "owner_project": project}
    if branch and secrets_in(branch.encode()):
        report.note("a branch with a secret in its name is read as one without a name")
        branch = None
    if (files := git.changes(line)) is None:
        files = [Change(line[-1], path, mode, blob) for mode, blob, path in git.tree(head)]
        report.skip("commit whose files are not in the repository", len(line) - 1)
    with Blobs(git) as blobs:
        changes = (change for change in files if not excludes(change.path))
        yield from read_changes(changes, blobs.get, reader, constant, report, say)
    report.complete_sources.add(source_id)
    report.commits[source_id] = commit_table(line, branch)


def read_changes(
    changes: Iterable[Change],
    blob: BlobOf,
    reader: DocumentReader,
    constant: Mapping[str, Any],
    report: SourceReport,
    say: Say = quiet,
) -> Iterator[pa.Table]:
    """Tables with `placements`, by path; all rows of a path are in one table.

    The texts of the next batch are cut while the caller works on the rows of this one.

    Args:
        changes: in the order of their commits, whose times strictly increase.
        blob: the texts; each is cut once per kind of path.
        constant: the columns that are equal in all rows.
        report: counts placements, and skipped versions with the reason.
        say: receives a line of progress at each tenth of many changes.
    """
    with ThreadPoolExecutor(1) as ahead:
        read = list[tuple[list[Change], list[bytes | None], Future[None]]]()
        for batch in _batches(changes, say):
            keys, texts = _texts(batch, blob, reader, report)
            read.append((batch, keys, ahead.submit(reader.read, texts)))
            if len(read) > 1:
                yield from _placements(*read.pop(0), reader, constant, report)
        for each in read:
            yield from _placements(*each, reader, constant, report)


def _batches(changes: Iterable[Change], say: Say) -> Iterator[list[Change]]:
    """The changes by path, all those of a path in one batch."""
    ordered = sorted(changes, key=attrgetter("path"))
    tell, batch = StepReporter(say, "read {:,} of {:,} changes", least=LEAST_REPORTED), list[Change]()
    for done, change in enumerate(ordered):
        if not batch or change.path != batch[-1].path:
            tell(done, len(ordered))
            if len(batch) >= BATCH_CHANGES:
                yield batch
                batch = []
        batch.append(change)
    if batch:
        yield batch


def _texts(
    changes: Sequence[Change], blob: BlobOf, reader: DocumentReader, report: SourceReport
) -> tuple[list[bytes | None], Collection[Text]]:
    """The key of the text after each change, None if it has none that can be read; and the texts."""
    keys, texts = list[bytes | None](), dict[tuple[str, FileKind], Text]()
    for change in changes:
        path = change.path.decode("utf-8", "replace")
        kind, key = file_kind(path), None
        reason = "path not utf-8" if path.encode() != change.path else _no_file(change.mode)
        if reason or not kind.text_by_name:
            report.skip(reason or "not text by name", int(reason != ABSENT), at=path)
        else:
            if (text := texts.get((change.blob, kind))) is None:
                text = Text(reader.key(f"git:{change.blob}", path), path, partial(blob, change.blob, limit(kind)))
                texts[change.blob, kind] = text
            key = text.key
        keys.append(key)
    return keys, texts.values()


def commit_table(line: Sequence[Commit], branch: str | None = None) -> pa.Table:
    """`version`, `recorded_time` and `branch` of every commit of a line, in order, including those that changed no text."""
    return pa.table(
        {
            "version": pa.array([commit.sha for commit in line], pa.string()),
            "recorded_time": pa.array([commit.time for commit in line], pa.int64()).cast(TIMESTAMP),
            "branch": pa.repeat(pa.scalar(branch, pa.string()), len(line)),
        }
    )


def _placements(
    changes: Sequence[Change],
    after: Sequence[bytes | None],
    reading: Future[None],
    reader: DocumentReader,
    constant: Mapping[str, Any],
    report: SourceReport,
) -> Iterator[pa.Table]:
    """The rows of a batch: `after` are the keys of the texts, which are read when `reading` ends."""
    reading.result()
    paths = [change.path.decode("utf-8", "replace") for change in changes]
    keys, at = list[bytes](), list[int]()
    for number, key in enumerate(after):
        if key is None:
            continue
        if (reason := reader.document(key)[0]) is not None:
            report.skip(reason, at=paths[number])
            continue
        keys.append(key)
        at.append(number)
    places = reader.places(keys)
    if not len(places.document):
        return
    version = np.array(at, dtype=np.int64)[places.document]
    path = np.cumsum([0, *(one != other for one, other in pairwise(paths))])
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
    by = np.minimum(ended, len(changes) - 1)
    is_last = (ended == len(changes)) | (path[by] != path[ended - 1])
    times = np.array([change.commit.time for change in changes], dtype=np.int64)
    end, gone = times[by], np.array([bool(_no_file(change.mode)) for change in changes])[by]
    shas = pa.array([change.commit.sha for change in changes], pa.string())
    placed = {
        "version": shas.take(pa.array(version[first])),
        **{name: pa.array(places.at[name][first]) for name in ("line_start", "line_end", "byte_start", "byte_end")},
        "recorded_time": pa.array(times[version[first]]),
        "superseded_at": pa.array(end, mask=is_last | gone),
        "deleted_at": pa.array(end, mask=is_last | ~gone),
    }
    report.read += len(first)
    heads = np.flatnonzero(another[begins])
    rows = first[heads]
    last = order[np.append(begins[heads[1:]], len(order)) - 1]  # its header describes the row
    began = pa.array(times[version[rows]]).cast(TIMESTAMP)
    columns = {name: values.take(pa.array(heads)) for name, values in placed.items()}
    table = reader.table(
        reader.chunks(places, last),
        dict(constant)
        | columns
        | {
            "path": pa.array(paths, pa.string()).take(pa.array(version[rows])),
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


_NOTE = "{path}: {what} in the work tree, not committed.\n"


def read_uncommitted(
    repo: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    now: datetime,
    report: SourceReport,
    reader: DocumentReader,
    selection: Selection | None = None,
) -> Iterator[pa.Table]:
    """One row per chunk of every file whose bytes differ from HEAD, by path, then line; `recorded_time` is `now`.

    The bytes on disk are compared, without the filters of git: other line endings are no difference, but a file that a
    filter changes on checkout (Git LFS, `ident`) differs. Files left out of a sparse checkout have no rows.

    `source_id` is that of the history, `workspace_root` the absolute path of the
    folder that is read, `version` `uncommitted:` and a digest of the masked text. A bare repository has no such rows.

    Raises:
        InputError: there is no repository.
    """
    recorded = pa.scalar(now, TIMESTAMP).value
    git = Git(repo)
    if git.root is None:
        return
    _, head = git.branch()
    constant = {
        "source_id": git.source_id(name),
        "owner_project": project,
        "workspace_root": str(git.folder),
    }
    unshadowed = set[str]()
    files = _changed(git, head, selection or Selection(), report, unshadowed)
    for table in rows_of_files(files, reader, report, constant, recorded, "uncommitted"):
        unshadowed.difference_update(table["path"].unique().to_pylist())
        yield table
    notes = list[dict[str, Any]]()
    for path in sorted(unshadowed):
        what = "not readable as text" if os.path.lexists(git.folder / path) else "removed"
        note = {"path": path, "text": _NOTE.format(path=path, what=what), "version": "uncommitted:none"}
        times = {"recorded_time": recorded, "event_time": recorded}
        notes.append(columns_of(file_kind(path)) | constant | note | times)
    report.read += len(notes)
    if notes:
        yield record_table(notes)


def _changed(
    git: Git, head: str | None, selection: Selection, report: SourceReport, shadowed: set[str]
) -> Iterator[tuple[str, bytes, int]]:
    """Files that differ from HEAD, as `read_file` returns them; adds the paths that differ and of which HEAD has rows."""
    excludes = selection.rules(git.folder).excludes
    tree = git.tree(head) if head else ()
    committed = {path: (mode, blob) for mode, blob, path in tree if not excludes(path)}
    tags = git.files()
    files = {path: tags.get(path, "?") for path in selection.files(git.folder, SourceReport())}
    with Blobs(git) as blobs:
        for raw in sorted(path for path in committed.keys() | files.keys() if files.get(path) != "S"):
            mode, blob = committed.get(raw, ("", ""))
            path, own = raw.decode("utf-8", "replace"), SourceReport()
            kind = file_kind(path)
            has_rows = mode.startswith("100") and kind.text_by_name and path.encode("utf-8") == raw
            found = read_file(git.folder, raw, own)
            if found is not None:
                same = has_rows and _same(found[1], blob, blobs, limit(kind))
            else:
                same = bool(mode) and not has_rows
            if not same:
                report.merge(own)
                shadowed |= {path} if has_rows else set()
                if found is not None:
                    yield found


def _same(data: bytes, blob: str, blobs: Blobs, most: int) -> bool:
    """Whether a file, as far as it is read, has the bytes of a blob, apart from line endings."""
    digest = hashlib.sha1 if len(blob) == 40 else hashlib.sha256
    if digest(b"blob %d\0" % len(data) + data).hexdigest() == blob:
        return True
    committed = blobs.get(blob, most)
    return committed is not None and committed.replace(b"\r\n", b"\n") == data.replace(b"\r\n", b"\n")
