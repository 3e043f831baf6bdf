"""The history of one branch of a git repository: every version of every text file, with the times it lived between.

Gives: `read_git_history`, one row per placement of a chunk; `commit_times` and `resolve_commit_time` for
`as_of: commit:SHA`. The line is the first-parent history of the branch; a merge is the change it made to its first
parent, a rename a removal and an addition.

What one would otherwise get wrong: a chunk that survives an edit where it stood is the same row, still open. One that
moves ends (`superseded_at`) and begins again in the same commit, with its new lines and that commit as `version`. A row
ends by `deleted_at` only if its file was removed. `event_time`, title and names are those of a
chunk's first appearance, in every placement of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from os import PathLike

import pyarrow as pa

from ...nodes.errors import InputError
from ...nodes.schema import TIMESTAMP
from .chunking import Chunk, Document
from .file_kinds import FileKind, file_kind
from .files import ReadOptions, RowBuilder, document_of, is_generated, microseconds
from .git_commands import ABSENT, Blobs, Change, Git
from .report import SourceReport

__all__ = ["commit_times", "git_source_id", "read_git_history", "resolve_commit_time"]

_CACHED_BYTES = 64_000_000


def read_git_history(
    repo: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    branch: str | None = None,
    now: datetime,
    report: SourceReport,
    options: ReadOptions | None = None,
) -> Iterator[pa.Table]:
    """Placements of every chunk of every text file on the branch's first-parent line, by path, then by when they ended.

    Tables have the columns of `RowBuilder.schema`: `source_id` is `git:<name>` (the folder's name by default), `branch`
    the branch read, null where none is checked out. Left out and counted in `report.skipped`, per version: symbolic links,
    submodules, names of binary formats, binary, non-UTF-8, blank and empty files, files over the size limit, paths that
    are not UTF-8. Memory follows the length of the list of changes and one path's text, not the text of the history.

    Raises:
        InputError: there is no repository or no such branch, or `now` is naive.
    """
    microseconds(now, "now")
    options = options or ReadOptions()
    git = Git(repo)
    branch, head = git.branch(branch)
    source_id = git_source_id(git, name)
    if head is None:
        report.skip("no commits")
        return
    rows = RowBuilder(options, source_id=source_id, owner_project=project, branch=branch)
    changes: dict[bytes, list[Change]] = {}
    for change in git.changes(git.commits(head)):
        changes.setdefault(change.path, []).append(change)
    with git.blobs() as blobs:
        reader = _Reader(blobs, options, report)
        for raw in sorted(changes):
            try:
                history = _History(raw.decode("utf-8"), rows, reader, report)
            except UnicodeDecodeError:
                report.skip("path not utf-8", len(changes[raw]))
                continue
            for change in changes.pop(raw):
                history.apply(change)
                yield from rows.full()
            history.close()
            yield from rows.full()
        yield from rows.rest()
    report.complete_sources.add(source_id)


def git_source_id(git: Git, name: str | None) -> str:
    """`git:<name>`; the name of the work tree's folder, or of the bare repository without `.git`, by default."""
    return f"git:{name or (git.top() or git.path.resolve()).name.removesuffix('.git') or 'repository'}"


def commit_times(repo: str | PathLike[str], *, branch: str | None = None) -> pa.Table:
    """Every commit of the branch's first-parent line, oldest first: `version`, `recorded_time`, `branch`."""
    git = Git(repo)
    branch, head = git.branch(branch)
    line = git.commits(head) if head else []
    return pa.table(
        {
            "version": pa.array([commit.sha for commit in line], pa.string()),
            "recorded_time": pa.array([commit.time for commit in line], pa.int64()).cast(TIMESTAMP),
            "branch": pa.repeat(pa.scalar(branch, pa.string()), len(line)),
        }
    )


def resolve_commit_time(repo: str | PathLike[str], sha: str, *, branch: str | None = None) -> datetime:
    """The `as_of` at which the branch's files are those of commit `sha` (a prefix, branch or tag will do).

    Raises:
        InputError: the commit is unknown or not on the first-parent line of the branch.
    """
    git = Git(repo)
    shown = None if sha.startswith("-") else git.try_("rev-parse", "--verify", "--quiet", f"{sha}^{{commit}}")
    if not shown:
        raise InputError.expected("a commit of the repository", sha, "as_of")
    full = shown.decode("ascii").strip()
    named, head = git.branch(branch)
    for commit in git.commits(head) if head else ():
        if commit.sha == full:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=commit.time)
    raise InputError.expected(
        f"a commit on the first-parent line of {named or 'HEAD'}",
        full,
        "as_of",
        hint="a commit that came in by a merge was never the state of the branch; name the merge or another branch.",
    )


_Key = tuple[str | None, str, int]


@dataclass(frozen=True, slots=True)
class _First:
    """What a row says besides time and place, as of its first appearance, so that every placement of it says the same."""

    time: int
    title: str | None
    generated: bool
    chunk: Chunk

    def at(self, chunk: Chunk) -> Chunk:
        """The chunk of the first appearance in the place of another one of the same section and text."""
        return replace(
            self.chunk,
            line_start=chunk.line_start,
            line_end=chunk.line_end,
            byte_start=chunk.byte_start,
            byte_end=chunk.byte_end,
        )


@dataclass(frozen=True, slots=True)
class _Live:
    """A placement that still stands: the chunk where it stands, and the commit in which it began."""

    first: _First
    chunk: Chunk
    version: str
    recorded: int

    def stands_at(self, chunk: Chunk) -> bool:
        """The other chunk, of the same text, stands in the same place."""
        return (self.chunk.line_start, self.chunk.byte_start) == (chunk.line_start, chunk.byte_start)


class _History:
    """One path through time: applying a change ends placements, which become rows, and begins others."""

    def __init__(self, path: str, rows: RowBuilder, reader: _Reader, report: SourceReport) -> None:
        self.path, self.kind = path, file_kind(path)
        self._placements: dict[_Key, _Live] = {}
        self._first: dict[_Key, _First] = {}
        self._rows, self._reader, self._report = rows, reader, report

    def apply(self, change: Change) -> None:
        """The path as one commit left it. A mode change alone changes nothing."""
        commit = change.commit
        if reason := _no_file(change.mode):
            if reason != ABSENT:
                self._report.skip(reason)
            self.close(deleted=commit.time)
            return
        version = self._reader.read(self.path, self.kind, change.blob)
        if version is None:
            self.close(superseded=commit.time)
            return
        document, generated = version
        before, self._placements = self._placements, {}
        for chunk in document.chunks:
            key = (chunk.section, chunk.text, chunk.occurrence)
            live = before.pop(key, None)
            if live is not None and live.stands_at(chunk):
                self._placements[key] = live
                continue
            if live is not None:
                self._end(live, superseded=commit.time)
            first = self._first.setdefault(key, _First(commit.time, document.title, generated, chunk))
            self._placements[key] = _Live(first, first.at(chunk), commit.sha, commit.time)
        for live in before.values():
            self._end(live, superseded=commit.time)

    def close(self, *, superseded: int | None = None, deleted: int | None = None) -> None:
        """End every placement: replaced by what cannot be read, removed, or, without a time, still standing."""
        before, self._placements = self._placements, {}
        for live in before.values():
            self._end(live, superseded=superseded, deleted=deleted)

    def _end(self, live: _Live, *, superseded: int | None = None, deleted: int | None = None) -> None:
        self._report.read += 1
        self._rows.add(
            self.path,
            self.kind,
            live.first.title,
            live.first.generated,
            live.chunk,
            event_time=live.first.time,
            version=live.version,
            recorded=live.recorded,
            superseded=superseded,
            deleted=deleted,
        )


class _Reader:
    """Blobs as documents, each chunked once per kind of file while it is among the recently used."""

    def __init__(self, blobs: Blobs, options: ReadOptions, report: SourceReport) -> None:
        self._blobs, self._options, self._report = blobs, options, report
        self._cache: OrderedDict[tuple[str, FileKind], tuple[Document, bool, int]] = OrderedDict()
        self._bytes = 0

    def read(self, path: str, kind: FileKind, blob: str) -> tuple[Document, bool] | None:
        """The document and whether it is generated; None if it is left out, which is counted."""
        if not kind.text_by_name:
            self._report.skip("not text by name")
            return None
        key = (blob, kind)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key][:2]
        data = self._blobs.get(blob, self._options.max_file_bytes)
        if data is None:
            self._report.skip("blob not in the repository")
            return None
        document, reason = document_of(path, kind, data, self._options)
        if document is None:
            self._report.skip(reason)
            return None
        generated = is_generated(kind, data)
        self._cache[key] = (document, generated, len(data))
        self._bytes += len(data)
        while self._bytes > _CACHED_BYTES:
            self._bytes -= self._cache.popitem(last=False)[1][2]
        return document, generated


def _no_file(mode: str) -> str:
    """Why an entry of this mode is no file; empty if it is one."""
    if mode == ABSENT:
        return ABSENT
    if mode.startswith("12"):
        return "symbolic link"
    return "submodule" if mode.startswith("16") else ""
