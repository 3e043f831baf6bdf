"""What a work tree holds that its repository has not committed.

Gives: `read_uncommitted`: rows of the same source as the history, with `workspace_root`, for every file that differs from
HEAD. For a request in that work tree they take the place of the committed rows of the same path.

Note: only a row shadows, so a file that was removed, or that can no longer be read as text,
gets one too: a note that says so, without lines or bytes. Otherwise the committed text would pass for the current one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from os import PathLike

import pyarrow as pa

from .file_kinds import file_kind
from .files import ReadOptions, RowBuilder, document_of, microseconds
from .git_commands import Git
from .git_history import git_source_id
from .report import SourceReport
from .work_tree import add_file, file_version, read_file

__all__ = ["read_uncommitted"]

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
    work tree, `version` `uncommitted:` and a digest of the file. A bare repository has none.

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
            add_file(rows, path, kind, document, data, report, version=version, modified=modified, recorded=recorded)
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
