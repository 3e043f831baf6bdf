"""Whether a source is the one of an earlier import: sources are named after folders, whose names may repeat."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ...nodes.errors import InputError
from ..corpus.source_states import PathStatus, SourceState
from ..storage.durable import exists
from .git_commands import Commit, Git

__all__ = ["holds_most", "known_commits", "same_beginning", "same_folder"]


def same_folder(before: str, root: Path) -> bool:
    """Whether a folder is the one that was read before, or that one no longer exists.

    Raises:
        StoreError: it cannot be determined now.
    """
    return not exists(Path(before)) or (root.is_dir() and root.samefile(before))


def holds_most(root: Path, limit: Callable[[str], int], before: SourceState) -> bool:
    """Whether at least half of the files read before are unchanged below a folder: a copy counts as the same tree.

    Files with a masked secret are ignored, as their content is not recorded. `limit` returns the size limit of a path;
    of a longer file, one byte more is read.
    """
    digested = {path: status for path, status in before.paths.items() if status.digest}
    return 2 * sum(_holds(root / path, status, limit(path), before) for path, status in digested.items()) >= len(
        digested
    )


def _holds(path: Path, status: PathStatus, limit: int, before: SourceState) -> bool:
    with suppress(OSError):
        if path.stat().st_size == status.size:
            with path.open("rb") as file:
                return before.digest(file.read(limit + 1)) == status.digest
    return False


def same_beginning(before: SourceState, line: Sequence[Commit]) -> bool:
    """Whether the history in the folder that was read before begins with the same commit as this one."""
    with suppress(InputError, OSError):
        git = Git(before.root)
        _, head = git.branch(None)
        return head is not None and git.commits(head)[0].sha == line[0].sha
    return False


def known_commits(before: SourceState, line: Sequence[Commit]) -> tuple[int, str]:
    """How many commits of a line, from the first, were read before (0 for a different line), and the line's digest."""
    digests, known = hashlib.sha256(), 0
    for number, commit in enumerate(line, 1):
        digests.update(f"{commit.sha} {commit.time}\n".encode())
        if number == before.commits and digests.hexdigest() == before.line:
            known = number
    return known, digests.hexdigest()
