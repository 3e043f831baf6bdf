"""Work places: whether the code that a check runs on is that of the work, or other code that Git has put in its place.

Gives: `WorkPlace`, where a session is, and `WorkPlace.after` an event of its log.

Note: a pass says nothing of what failed on other code. So every place has a name, which the names of its checks carry (`placed`): what
fails in one ends where it passes there, or where the work is. Pulls, merges and edits put no other code in the place of the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, pairwise
from pathlib import PurePosixPath
from typing import Any

from ..sources.file_kinds import is_file_name
from .shell import Segment, behind_options, segments_of, started

__all__ = ["WorkPlace", "sets_aside"]

_GIT_OPTIONS = ("-C", "-c", "--git-dir", "--work-tree")
_BEGINS = frozenset(("-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan"))
"""Options of `checkout` and `switch` that make a branch, which takes the work along unless it starts elsewhere."""
_HERE = frozenset(("HEAD", "@"))
_NOTHING_DONE = ("No local changes to save", "Already on ")
"""What Git prints where it put nothing aside."""


@dataclass(frozen=True)
class WorkPlace:
    """Where a session is: `` and no stash is where its work is.

    The branch that a session begins on has no name in its log: the first one that it moves to from another one, and that it has not been
    on, is taken for it.
    """

    branch: str = ""
    previous: str = ""
    origin: str = ""
    """The name of the branch that the session began on, once it is known."""
    stashes: int = 0

    @property
    def name(self) -> str:
        """`` where the work is."""
        return "" if not self.branch and not self.stashes else f"{self.branch}+{self.stashes}"

    def placed(self, names: Sequence[str]) -> list[str]:
        """Names of checks as they are here, each a line or several."""
        return (
            ["\n".join(f"{name} @{self.name}" for name in each.split("\n")) for each in names]
            if self.name
            else [*names]
        )

    def after(self, event: Mapping[str, Any]) -> WorkPlace:
        """The place behind an event of the log."""
        command = event["command"] or ""
        if "git" not in command and "gh" not in command:
            return self
        segments = segments_of(command)
        if event["exit_code"] and len(segments) == 1:
            return self  # it did nothing
        if any(said in (event["text"] or "") for said in _NOTHING_DONE):
            return self
        return reduce(WorkPlace._behind, segments, self)

    def moves(self, event: Mapping[str, Any]) -> bool:
        """Whether an event moves more than once: of what ran between, no one says where."""
        places = list(accumulate(segments_of(event["command"] or ""), WorkPlace._behind, initial=self))
        return sum(one.name != other.name for one, other in pairwise(places)) > 1

    def _behind(self, segment: Segment) -> WorkPlace:
        verb, rest = _verb(segment)
        if verb == "stash":
            return replace(self, stashes=max(self.stashes + _stashed(rest), 0))
        if verb == "bisect":
            return self._on("(bisect)" if rest[:1] != ["reset"] else "-" if self.branch == "(bisect)" else self.branch)
        branch = _branch(verb, rest)
        return self if branch is None else self._on(branch)

    def _on(self, branch: str) -> WorkPlace:
        """On a branch; `-` is the one before."""
        if branch in ("-", "@{-1}"):
            branch = self.previous
        elif branch == self.origin or (
            not self.origin and self.branch and branch not in ("", self.branch, self.previous)
        ):
            return replace(self, branch="", previous=self.branch, origin=branch)
        return self if branch == self.branch else replace(self, branch=branch, previous=self.branch)


def sets_aside(segment: Segment) -> bool:
    """Whether a program puts the work into a stash."""
    verb, rest = _verb(segment)
    return verb == "stash" and _stashed(rest) > 0


def _verb(segment: Segment) -> tuple[str, list[str]]:
    """The verb of a Git command, and what is behind it."""
    words = list(started(segment.words))
    program = PurePosixPath(words[0]).name if words else ""
    if program == "gh" and words[1:3] == ["pr", "checkout"]:
        return "switch", ["--detach", *words[3:]]
    rest = behind_options(words[1:], _GIT_OPTIONS) if program == "git" else []
    return (rest[0], rest[1:]) if rest else ("", [])


def _stashed(rest: Sequence[str]) -> int:
    """How many stashes more there are."""
    verb = rest[0] if rest and not rest[0].startswith("-") else "push"
    return {"push": 1, "save": 1, "pop": -1, "apply": -1, "branch": -1}.get(verb, 0)


def _branch(verb: str, rest: Sequence[str]) -> str | None:
    """The branch that `switch` or `checkout` moves to; None where it moves to none, or takes the work along."""
    if verb not in ("switch", "checkout") or {"--", "-p", "--patch"} & {*rest}:
        return None
    named = [word for word in rest if word == "-" or not word.startswith("-")]
    if _BEGINS & {*rest}:
        start = named[1:]
        return named[0] if start and start[0] not in _HERE else None
    if len(named) != 1 or (verb == "checkout" and _is_file(named[0])) or named[0] in _HERE:
        return None  # files of a branch, or nothing
    return named[0]


def _is_file(word: str) -> bool:
    return word == "." or word.startswith("./") or word.endswith("/") or is_file_name(word)
