"""Whether what is read now is the source that was read before: a folder gives its name to its source, and two may have one name."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from ..corpus.readings import Reading
from ..durable import stands
from .git_commands import Commit

__all__ = ["holds_most", "known_commits", "same_folder"]


def same_folder(before: str, root: Path) -> bool:
    """Whether a folder is the one that was read before, or that one is there no more.

    Raises:
        StoreError: nobody can say now whether it is.
    """
    return not stands(Path(before)) or (root.is_dir() and root.samefile(before))


def holds_most(root: Path, before: Reading) -> bool:
    """Whether at least half of the paths that were read stand below a folder: a copy of a tree is no other tree."""
    return 2 * sum((root / path).exists() for path in before.paths) >= len(before.paths)


def known_commits(before: Reading, line: Sequence[Commit]) -> tuple[int, str]:
    """How many commits of a line, from its first, were read before; 0 where the line is another one; its digest."""
    digests, known = hashlib.sha256(), 0
    for number, commit in enumerate(line, 1):
        digests.update(f"{commit.sha} {commit.time}\n".encode())
        if number == before.commits and digests.hexdigest() == before.line:
            known = number
    return known, digests.hexdigest()
