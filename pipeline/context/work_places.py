"""Work places: whether the code that a check runs on is that of the work, or other code that Git has put in its place.

Gives: `WorkPlace`, where a session is, and `WorkPlace.after` an event of its log.

Note: a pass says nothing of what failed on other code. So every place has a name, which the names of its checks carry (`placed`): what
fails in one ends where it passes there, or where the work is. Pulls, merges and edits put no other code in the place of the work. A new
branch takes the work along; the branch that it leaves is another place from then on. What Git does in a folder beside the work is another
repository's.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from ..sources.file_kinds import is_file_name
from .checks import place_of
from .shell import Segment, behind_options, segments_of, started

__all__ = ["WorkPlace", "sets_aside"]

_GIT_OPTIONS = ("-C", "-c", "--git-dir", "--work-tree")
_BEGINS = frozenset(("-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan"))
"""Options of `checkout` and `switch` that make a branch, which takes the work along unless it starts elsewhere."""
_HERE = frozenset(("HEAD", "@"))
_REVISION = re.compile(r"[0-9a-f]{7,40}|v?\d+(?:\.\d+)*|.*(?:[~^]|@\{).*|HEAD.*|\(.*\)")
"""What no branch is called that a session begins on."""
_OWN = (None, "tool", "harness")
"""Origins of what the session itself ran."""
_REMEMBERED = 8
"""Branches whose places are remembered."""
_REMEMBERED_FOLDERS = 64
_MOVES = ("cd", "pushd")
_FILES_ALONE = re.compile(r"(?ms)\A(?!.*^(?:Switched to|HEAD is now|Note: switching)).*^Updated \d+ paths? from ")
"""What Git says of files that it checked out, and of no branch."""
_FIRST = ""
"""The branch that a session begins on, which its log does not name, and the place of its work."""


@dataclass(frozen=True)
class WorkPlace:
    """Where a session is: place `` and no stash is where its work is.

    The first branch that is moved to from another one, and that was not heard of before, is taken for the one that the session began on.
    """

    branch: str = _FIRST
    previous: str = _FIRST
    stashes: int = 0
    places: tuple[tuple[str, str], ...] = ((_FIRST, _FIRST),)
    """The places of branches, the one that was moved to last at the end."""
    folders: tuple[str, ...] = ()
    """Folders of files that the log has named."""

    @classmethod
    def of(cls, stored: Sequence[Any]) -> WorkPlace:
        """The place that `astuple` gave, read from JSON."""
        branch, previous, stashes, places, folders = stored
        return cls(branch, previous, stashes, tuple((name, place) for name, place in places), tuple(folders))

    @property
    def name(self) -> str:
        """`` where the work is."""
        place = dict(self.places)[self.branch]
        return f"{place}+{self.stashes}" if place or self.stashes else ""

    def placed(self, names: Sequence[str]) -> list[str]:
        """Names of checks as they are here, each a line or several."""
        return (
            ["\n".join(f"{name} @{self.name}" for name in each.split("\n")) for each in names]
            if self.name
            else [*names]
        )

    def after(self, event: Mapping[str, Any], folder: str = "", root: str = "") -> WorkPlace:
        """The place behind an event of the log, whose command ran in `folder`, named from the absolute folder `root`. A line that failed
        may have left the work, and brings none back.
        """
        command, said = event["command"] or "", event["text"] or ""
        if ("git" not in command and "gh" not in command) or event["origin"] not in _OWN:
            return self
        programs = [each for each in segments_of(command) if each.words[0] not in _MOVES]
        undone = bool(event["exit_code"]) and not (len(programs) == 1 and "CONFLICT (" in said)
        if undone and len(programs) == 1:
            return self
        place = self._through(event, folder, root)[-1]
        returns = place.stashes < self.stashes or (self.name and not place.name)
        return self if undone and returns else place

    def moves(self, event: Mapping[str, Any], folder: str = "", root: str = "") -> bool:
        """Whether an event moves more than once: of what ran between, no one says where."""
        return sum(one.name != other.name for one, other in pairwise(self._through(event, folder, root))) > 1

    def seeing(self, paths: Iterable[str]) -> WorkPlace:
        """The same place, with the folders of some files below that of the session: a word that is one of them is no branch."""
        known, new = set(self.folders), dict[str, None]()
        for path in paths:
            folder = posixpath.dirname(path)
            while folder and not folder.startswith(("/", "..")) and folder not in known:
                known.add(folder)
                new[folder] = None
                folder = posixpath.dirname(folder)
        return replace(self, folders=(*self.folders, *new)[-_REMEMBERED_FOLDERS:]) if new else self

    def _through(self, event: Mapping[str, Any], folder: str, root: str) -> list[WorkPlace]:
        """The places before, between and behind the programs of a command. What runs in the folder of another repository moves none."""
        root = root or (folder if folder.startswith("/") else "")
        places: list[WorkPlace] = [self]
        inner = outer = place_of(folder, root)
        for segment in segments_of(event["command"] or ""):
            inner = inner if segment.nested else outer
            if segment.words[0] in _MOVES:
                inner = _below(inner, root, segment.words[1]) if len(segment.words) == 2 and segment.exact else ""
                outer = outer if segment.nested else inner
            elif all(_may_be_of_work(_below(inner, root, each), root) for each in _places_of_git(segment)):
                places.append(places[-1]._behind(segment, event["text"] or "", inner))
        return places

    def _behind(self, segment: Segment, said: str, folder: str) -> WorkPlace:
        verb, rest = _verb(segment)
        if verb == "stash":
            more = 0 if re.search("^No local changes to save", said, re.MULTILINE) else _stashed(rest)
            return replace(self, stashes=max(self.stashes + more, 0))
        if verb == "bisect":
            ended = rest[:1] == ["reset"] and self.branch == "(bisect)"
            return self._on(self.previous if ended else "(bisect)" if rest[:1] == ["start"] else self.branch)
        branch, begins = _branch(verb, rest)
        if branch is None or re.search(f"^Already on '{re.escape(branch)}'", said, re.MULTILINE):
            return self
        if verb == "checkout" and not _BEGINS & {*rest} and self._is_folder(branch, folder, said):
            return self
        if branch in ("-", "@{-1}"):
            branch = self.previous
        return self._begun(branch) if begins else self._on(branch)

    def _is_folder(self, word: str, folder: str, said: str) -> bool:
        """Whether `git checkout` of a word, which is no known branch, was one of files: it is a known folder, or Git says so."""
        known = place_of(folder, "", word) in self.folders
        return word not in dict(self.places) and (known or bool(_FILES_ALONE.search(said)))

    def _begun(self, branch: str) -> WorkPlace:
        """On a new branch, which has the place from here on; the one that it leaves gets another."""
        if branch == self.branch:
            return self
        places = dict(self.places)
        return self._moved(branch, {**places, branch: places[self.branch], self.branch: _other(self.branch, places)})

    def _on(self, branch: str) -> WorkPlace:
        if branch == self.branch:
            return self
        places = dict(self.places)
        if branch in places:
            return self._moved(branch, places)
        if places.get(_FIRST) == _FIRST and self.branch != _FIRST and not _REVISION.fullmatch(branch):
            return self._moved(branch, {**places, branch: _FIRST}, without=_FIRST)
        return self._moved(branch, {**places, branch: _other(branch, places)})

    def _moved(self, branch: str, places: dict[str, str], without: str | None = None) -> WorkPlace:
        kept = [each for each in places.items() if each[0] not in (branch, without)]
        first = [each for each in kept if each[1] == _FIRST]
        others = [each for each in kept if each[1] != _FIRST][-_REMEMBERED:]
        return replace(self, branch=branch, previous=self.branch, places=(*first, *others, (branch, places[branch])))


def _other(branch: str, places: Mapping[str, str]) -> str:
    """A place of its own for a branch."""
    place = branch or "(first)"
    while place in places.values():
        place += "'"
    return place


def sets_aside(segment: Segment) -> bool:
    """Whether a program puts the work into a stash."""
    verb, rest = _verb(segment)
    return verb == "stash" and _stashed(rest) > 0


def _verb(segment: Segment) -> tuple[str, list[str]]:
    """The verb of a Git command, and what is behind it."""
    words = list(started(segment.words))
    program = PurePosixPath(words[0]).name if words else ""
    if program == "gh" and (words[1:3] == ["pr", "checkout"] or words[1:2] == ["co"]):
        return "switch", ["--detach", *words[3 if words[1] == "pr" else 2 :]]
    rest = behind_options(words[1:], _GIT_OPTIONS) if program == "git" else []
    return (rest[0], rest[1:]) if rest else ("", [])


def _places_of_git(segment: Segment) -> list[str]:
    """The folders that a Git command names for where it runs, from where the shell is; that one itself where it names none."""
    words = list(started(segment.words))[1:]
    options = words[: len(words) - len(behind_options(words, _GIT_OPTIONS))]
    named = [after for word, after in pairwise(options) if word in ("-C", "--git-dir", "--work-tree")]
    named += [word.split("=", 1)[1] for word in options if word.startswith(("--git-dir=", "--work-tree="))]
    return named or [""]


def _below(folder: str, root: str, word: str) -> str:
    """A folder that a word names from another one, as its place is named; one of the user's home as it is written."""
    return word if word.startswith("~") else place_of(folder, root, word)


def _may_be_of_work(folder: str, root: str) -> bool:
    """Whether a folder may be of the repository of the work: one within `root`, or one that holds it. One beside it is of another; of
    one whose place is not known that is not said.
    """
    if folder.startswith("~"):
        return not root or f"{folder[1:]}/" in f"{root}/"
    if not root:
        return not folder.startswith("../") or not folder.strip("./")
    path = posixpath.normpath(posixpath.join(root, folder))
    return f"{root}/".startswith(f"{path}/") or f"{path}/".startswith(f"{root}/")


def _stashed(rest: Sequence[str]) -> int:
    """How many stashes more there are."""
    verb = rest[0] if rest and not rest[0].startswith("-") else "push"
    return {"push": 1, "save": 1, "pop": -1, "apply": -1, "branch": -1}.get(verb, 0)


def _branch(verb: str, rest: Sequence[str]) -> tuple[str | None, bool]:
    """The branch that `switch` or `checkout` moves to, None where it moves to none; and whether it begins there and takes the work along."""
    if verb not in ("switch", "checkout") or {"--", "-p", "--patch"} & {*rest}:
        return None, False
    named = [word for word in rest if word == "-" or not word.startswith("-")]
    if named and _BEGINS & {*rest}:
        return named[0], named[1:2] == [] or named[1] in _HERE
    if len(named) != 1 or (verb == "checkout" and _is_file(named[0])) or named[0] in _HERE:
        return None, False  # files of a branch, or nothing
    return named[0], False


def _is_file(word: str) -> bool:
    return word == "." or word.startswith("./") or word.endswith("/") or is_file_name(word)
