"""The history of one branch of a git repository: every version of every text file, with the interval in which it
existed.

Gives: `read_git_history`, one row per placement of a chunk, and every commit in `report.commits`; `commit_times` and
`resolve_commit_time` for `as_of: commit:SHA`. The line is the first-parent history of the branch; a merge is the change
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

import os
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import chain
from os import PathLike

import pyarrow as pa

from ...nodes.errors import InputError
from ..progress import Say, counted, quiet
from .file_kinds import file_kind
from .files import ReadOptions, RowBuilder, document_of, microseconds
from .git_commands import Git
from .incremental_import import IncrementalImport
from .path_history import commit_table, read_changes
from .report import SourceReport
from .same_source import same_beginning
from .work_tree import add_file, file_version, read_file

__all__ = ["commit_times", "git_source_id", "read_git_history", "read_uncommitted", "resolve_commit_time"]


def read_git_history(  # noqa: PLR0913 - options by keyword
    repo: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    branch: str | None = None,
    now: datetime,
    report: SourceReport,
    options: ReadOptions | None = None,
    incremental: IncrementalImport | None = None,
    say: Say = quiet,
) -> Iterator[pa.Table]:
    """Placements of every chunk of every text file on the branch's first-parent line, by path, then by when they ended.

    Tables have the columns of `RowBuilder.schema`: `source_id` is `git:<name>` (the folder's name by default), `branch`
    the branch read, null if none is checked out. Skipped and counted in `report.skipped`, per version: symbolic links,
    submodules, names of binary formats, binary, non-UTF-8, blank and empty files, files over the size limit, paths that
    are not UTF-8. Memory grows with the list of changes and the text of one path, not with the text of the history.

    `say` receives lines of progress. With `incremental`, known commits are not read again: only paths changed by later
    commits have rows.

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
    line = git.commits(head)
    known = None
    if incremental is not None:
        rules = ("history", branch, asdict(options))
        known = incremental.source(
            source_id, git.top() or git.path, *rules, same=lambda before: same_beginning(before, line)
        )
    done = known.commits_read(line) if known is not None else 0
    if line[done:]:
        commits = counted(len(line) - done, "commit")
        say(f"reading {commits} of {source_id.removeprefix('git:')}")
    changes, states = git.changes(line[done:]), {}
    if known is not None and done:
        changes = list(changes)
        states, again = known.resume(sorted({change.path for change in changes}), report)
        past = git.changes(line[:done], again) if again else ()
        changes = chain(past, changes)
    with git.blobs() as blobs:
        yield from read_changes(changes, blobs, rows, options, report, states, known, say)
    report.complete_sources.add(source_id)
    report.commits[source_id] = commit_table(line)


def git_source_id(git: Git, name: str | None) -> str:
    """`git:<name>`; by default the name of the work tree's folder, or of the bare repository without `.git`."""
    return f"git:{name or (git.top() or git.path.resolve()).name.removesuffix('.git') or 'repository'}"


def commit_times(repo: str | PathLike[str], *, branch: str | None = None) -> pa.Table:
    """Every commit of the branch's first-parent line, oldest first: `version`, `recorded_time`, `branch`."""
    git = Git(repo)
    branch, head = git.branch(branch)
    line = git.commits(head) if head else []
    return commit_table(line).append_column("branch", pa.repeat(pa.scalar(branch, pa.string()), len(line)))


def resolve_commit_time(repo: str | PathLike[str], sha: str, *, branch: str | None = None) -> datetime:
    """The `as_of` at which the branch's files are those of commit `sha` (a prefix, branch or tag also works).

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
        hint="a merged commit was never the state of the branch; use the merge commit or another branch.",
    )


_NOTE = "{path}: {what} in the work tree, not committed.\n"


def read_uncommitted(
    repo: str | PathLike[str],
    *,
    project: str,
    name: str | None = None,
    now: datetime,
    report: SourceReport,
    options: ReadOptions | None = None,
) -> Iterator[pa.Table]:
    """One row per chunk of every modified, staged or untracked file, by path, then line; `recorded_time` is `now`.

    `source_id` and `branch` are those of the history of the branch checked out, `workspace_root` the absolute path of the
    work tree, `version` `uncommitted:` and a digest of the file. A bare repository has no such rows.

    Raises:
        InputError: there is no repository, or `now` is naive.
    """
    recorded = microseconds(now, "now")
    options = options or ReadOptions()
    git = Git(repo)
    top = git.top()
    if top is None:
        return
    branch, head = git.branch(None)
    rows = RowBuilder(
        options,
        source_id=git_source_id(git, name),
        owner_project=project,
        branch=branch,
        workspace_root=str(top),
    )
    committed = {path for mode, _, path in git.tree(head) if mode.startswith("100")} if head else set()
    for raw in sorted(_changed(git)):
        found = read_file(top, raw, report, options)
        data, modified = found or (b"", recorded)
        path = raw.decode("utf-8", "replace")
        kind = file_kind(path)
        document, reason = document_of(path, kind, data, options) if found else (None, "")
        if document is not None and found:
            version = f"uncommitted:{file_version(data).removeprefix('sha256:')}"
            add_file(rows, path, document, data, report, version=version, modified=modified, recorded=recorded)
        else:
            report.skip(reason, 1 if found else 0, at=path)
            if raw in committed and kind.text_by_name and path.encode("utf-8") == raw:
                what = "not readable as text" if os.path.lexists(top / path) else "removed"
                rows.add_note(
                    path, kind, _NOTE.format(path=path, what=what), version="uncommitted:none", recorded=recorded
                )
                report.read += 1
        yield from rows.full()
    yield from rows.rest()


def _changed(git: Git) -> set[bytes]:
    """Paths whose work tree or index differs from HEAD, and untracked files that are not ignored."""
    shown = git.run(
        "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"
    )
    return {entry[3:] for entry in shown.split(b"\0") if len(entry) > 3}
