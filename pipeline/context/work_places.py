"""Work places: the code on which a check runs, that of the work or other code that Git has checked out in its place.

Gives: `WorkPlace`, where a session is, with the places of the checks of an event and the place after it.

Note: code is identified by the names of the works that it contains. A failure has the name of the code on which it was
found, and a pass ends the failures of all works that its code contains; a failure on code without the work also ends
when the work passes. Git commands move the names with the code: a new branch has those of the branch it leaves, `git
stash pop` adds those of the stash, `git merge` those of a branch. Discarded works (`git stash drop`, `git branch -D`)
count as part of the current code from then on. Pulls, commits and edits do not move names. Git commands in a folder
beside the work concern another repository, which has a place of its own for the checks that run there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from ..sources.file_kinds import is_file_name
from .check_programs import check_of
from .checks import IN_HOME, is_absolute, of_drive, place_of
from .git_lines import BACK, BRINGS, GitStep, steps_of
from .shell import MOVES, SimpleCommand

__all__ = ["WorkPlace"]

_WORK_TREE = re.compile(r"(?:\A|/)(?:\.\w+/worktrees|\.?worktrees)/[^/]+")
"""Folders in which tools create additional work trees of a repository."""
_MOVING = re.compile(r"\b(?:git|gh|cd|pushd|popd)\b")
"""Programs that move code or change the folder."""
_HERE = frozenset(("HEAD", "@"))
_REVISION = re.compile(
    r"[0-9a-f]{7,40}|v?\d+(?:\.\d+)*|.*(?:[~^]|@\{).*|HEAD.*|\(.*\)|(?:origin|upstream|remotes|refs|tags)/.+"
)
"""Names that a branch on which a session begins cannot have."""
_BRANCHED = re.compile(r"(?:fix|bugfix|hotfix|feat|feature|chore|release|dependabot|renovate)/.+")
"""Names of branches that folders do not have."""
_CLAIMS = ("model", "memory")
"""Speakers that report commands without having run them."""
_REMEMBERED = 8
"""Most branches that are remembered, most works of one code, and most branches that contain the work."""
_REMEMBERED_STASHES = 32
_REMEMBERED_FOLDERS = 64
_FIRST = ""
"""The branch on which a session begins, which its log does not name, and the name of its work."""


@dataclass(frozen=True)
class WorkPlace:
    """Where a session is.

    The first unknown branch to which a session moves from another one counts as the branch on which it began.
    """

    branch: str = _FIRST
    previous: str = _FIRST
    stashes: tuple[str, ...] = ()
    """The stashed works, newest first."""
    codes: tuple[tuple[str, tuple[str, ...]], ...] = ((_FIRST, (_FIRST,)),)
    """The works that the code of each branch contains, its own first; the current branch comes last."""
    folders: tuple[str, ...] = ()
    """Folders of files that the log names."""
    beside: tuple[tuple[str, WorkPlace], ...] = ()
    """Repositories and work trees beside the work in which Git has moved code, by their folders."""

    @classmethod
    def of(cls, stored: Sequence[Any]) -> WorkPlace:
        """The place from the JSON form of `astuple`."""
        branch, previous, stashes, codes, folders, beside = stored
        return cls(
            branch, previous, tuple(stashes), tuple((name, tuple(works)) for name, works in codes), tuple(folders),
            tuple((name, cls.of(each)) for name, each in beside),
        )  # fmt: skip

    @property
    def holds(self) -> tuple[str, ...]:
        """The works that the code contains, its own first."""
        return dict(self.codes)[self.branch]

    def passed(self, names: Sequence[str]) -> list[str]:
        """Names of checks that passed here, for all works that the code contains."""
        return [_placed(name, work) for work in self.holds for name in names]

    def failed(self, names: Sequence[str]) -> list[str]:
        """Names of checks that failed here, each as the lines of the names that end it."""
        works = self.holds[:1] if _FIRST in self.holds else (self.holds[0], _FIRST)
        return ["\n".join(_placed(name, work) for work in works for name in each.split("\n")) for each in names]

    def through(self, event: Mapping[str, Any], folder: str = "", root: str = "") -> tuple[list[WorkPlace], WorkPlace]:
        """The places where the checks of an event ran, and the place after the event. Its command ran in `folder`,
        relative to the absolute folder `root`.
        """
        command = event["command"] or ""
        if event["kind"] not in ("command.finished", "verification.finished") or event["actor"] in _CLAIMS:
            return [self], self
        root = of_drive(root or (folder if is_absolute(folder) else ""))
        place, checks = self, dict[WorkPlace, None]()
        inner = outer = place_of(folder, root)
        if not _MOVING.search(command):
            return [self._at(_beside(inner, root))], self
        left = list[str]()
        code = event["exit_code"]
        code = 1 if code is None and event["failed"] else code
        for step in steps_of(command, event["text"] or "", code):
            simple = step.simple
            inner = inner if simple.nested else outer
            if simple.words[0] in MOVES:
                inner = _gone_to(simple, inner, root, left)
                outer = outer if simple.nested else inner
            elif step.verb:
                of = {_beside(place_of(inner, root, each), root) for each in step.folders}
                place = place._moved_in(step, inner, of.pop()) if len(of) == 1 else place
            elif check_of(simple) is not None:
                checks[place._at(_beside(inner, root))] = None
        return list(checks) or [place._at(_beside(inner, root))], place

    def seeing(self, paths: Iterable[str]) -> WorkPlace:
        """The same place, with the folders of more files below that of the session: such a folder is not a branch."""
        known, new = set(self.folders), dict[str, None]()
        for path in paths:
            folder = posixpath.dirname(path)
            while folder and not folder.startswith(("/", "..")) and folder not in known:
                known.add(folder)
                new[folder] = None
                folder = posixpath.dirname(folder)
        return replace(self, folders=(*self.folders, *new)[-_REMEMBERED_FOLDERS:]) if new else self

    def _at(self, repository: str) -> WorkPlace:
        """The place of a repository, `` for that of the work."""
        return dict(self.beside).get(repository, WorkPlace()) if repository else self

    def _moved_in(self, step: GitStep, folder: str, repository: str) -> WorkPlace:
        """The place after a Git command in a repository, `` for that of the work."""
        if not repository:
            return self._behind(step, folder)
        others = dict(self.beside)
        moved = others.pop(repository, WorkPlace())._behind(step, folder)
        return replace(self, beside=(*others.items(), (repository, moved))[-_REMEMBERED:])

    def _behind(self, step: GitStep, folder: str) -> WorkPlace:
        """The place after a Git command. A command with an unknown result does not bring back the work."""
        place = self if step.done is False else self._done(step, folder)
        if step.message_kind == "none":  # all stashes are gone
            place = replace(self, stashes=())._holding((*self.holds, *self.stashes))
        back = _FIRST in place.holds and _FIRST not in self.holds
        return self if step.done is None and back else place

    def _done(self, step: GitStep, folder: str) -> WorkPlace:
        verb, words = step.verb, step.words
        if verb.startswith("stash "):
            return self._stashed(step)
        if verb == "bisect":
            ended = words[:1] == ("reset",) and self.branch == "(bisect)"
            return self._on(self.previous if ended else "(bisect)" if words[:1] == ("start",) else self.branch)
        if verb == "branch" and {"-d", "-D", "--delete"} & {*step.rest}:
            gone = [each for each in words if each in dict(self.codes) and each != self.branch]
            works = [work for each in gone for work in dict(self.codes)[each]]
            left = replace(self, codes=tuple(each for each in self.codes if each[0] not in gone))
            return left._holding((*self.holds, *works))
        if verb == "branch" and {"-m", "-M", "--move"} & {*step.rest} and words:
            return self._called(words[0] if words[1:] else self.branch, words[-1])
        if verb in BRINGS:
            return self._brought(step)
        if (verb == "reset" and {"--hard", "--merge"} & {*step.rest}) or (
            verb in ("checkout", "restore") and words == (".",)
        ):
            return self._without(self.stashes)
        return self._moved(step, folder) if step.branch and step.branch not in _HERE else self

    def _stashed(self, step: GitStep) -> WorkPlace:
        verb, words = step.verb.removeprefix("stash "), step.words
        if verb == "push":
            clean = f"{self.branch} (work stashed)".strip()
            clean = f"{self.holds[0]}'" if self.holds[0].startswith(clean) else clean
            stashes = (self.holds[0], *self.stashes)[:_REMEMBERED_STASHES]
            return replace(self, stashes=stashes)._holding((clean, *self.holds[1:]))
        if verb == "clear":
            return replace(self, stashes=())._holding((*self.holds, *self.stashes))
        if verb not in ("pop", "apply", "drop", "branch") or (verb == "branch" and not words):
            return self
        number = next((int(found) for found in re.findall(r"\d+", " ".join(words[verb == "branch" :]))), 0)
        work = self.stashes[number : number + 1]
        kept = verb == "apply" or step.conflict
        place = self if kept else replace(self, stashes=(*self.stashes[:number], *self.stashes[number + 1 :]))
        if verb == "branch":
            return place._to(words[0], {**dict(self.codes), words[0]: work or (self._other(words[0]),)})
        return place._holding((*self.holds, *work) if verb == "drop" else (*work, *self.holds))

    def _brought(self, step: GitStep) -> WorkPlace:
        """The place after the works of another branch were brought in."""
        if "--abort" in step.rest:
            return self._without([works[0] for branch, works in self.codes if branch != self.branch])
        to = step.words[2:3] if "--onto" in step.rest else step.words[1:2]
        place = self._on(to[0]) if step.verb == "rebase" and to else self
        names = [re.sub(r"[~^].*|@\{\d+\}", "", each.rsplit("..", 1)[-1]) for each in step.words]
        names = [place.previous if each in BACK else name for each, name in zip(step.words, names, strict=True)]
        codes = dict(place.codes)
        return place._holding((*place.holds, *(work for name in names for work in codes.get(name, ()))))

    def _moved(self, step: GitStep, folder: str) -> WorkPlace:
        codes, word = dict(self.codes), step.branch
        branch = step.on or (self.previous if word in BACK else word)
        if step.verb == "checkout" and not step.on and not step.begins and self._is_files(word, folder):
            return self
        if (
            step.on
            and branch not in codes
            and (word in BACK or (step.message_kind == "already" and self.branch == _FIRST))
        ):
            return self._called(self.previous if word in BACK else _FIRST, branch)._on(branch)
        start = step.words[1] if step.begins and step.words[1:] else ""
        if not step.begins or branch == self.branch:
            return self._on(
                branch, first=not (step.detaches or step.message_kind == "detached" or step.verb == "pr checkout")
            )
        if not start or start in (*_HERE, self.branch):
            taken = self.holds if self.holds[0] == _FIRST else (self._other(branch), *self.holds)
            return self._to(branch, {**codes, branch: taken, self.branch: (self._other(self.branch),)})
        return self._to(branch, {**codes, branch: (self._other(branch), *codes.get(start, ()))})

    def _is_files(self, word: str, folder: str) -> bool:
        """Whether `git checkout` of a word other than a known branch means files: a folder that the log names, or a
        file.
        """
        if word in dict(self.codes):
            return False
        branched = _BRANCHED.fullmatch(word) and word.split("/", 1)[0] not in self.folders
        file = word == "." or word.startswith("./") or word.endswith("/") or (not branched and is_file_name(word))
        return file or place_of(folder, "", word) in self.folders

    def _on(self, branch: str, *, first: bool = True) -> WorkPlace:
        """The place on a branch; an unknown branch has work of its own."""
        codes = dict(self.codes)
        if branch == self.branch:
            return self
        if (
            first
            and branch not in codes
            and _FIRST in codes
            and self.branch != _FIRST
            and not _REVISION.fullmatch(branch)
        ):
            return self._called(_FIRST, branch)._on(branch)
        return self._to(branch, {**codes, branch: codes.get(branch, (self._other(branch),))})

    def _to(self, branch: str, codes: Mapping[str, tuple[str, ...]]) -> WorkPlace:
        kept = [each for each in codes.items() if each[0] != branch]
        with_work = [each for each in kept if each[0] == _FIRST or _FIRST in each[1]][-_REMEMBERED:]
        others = [each for each in kept if each not in with_work][-_REMEMBERED:]
        return replace(self, branch=branch, previous=self.branch, codes=(*with_work, *others, (branch, codes[branch])))

    def _called(self, old: str, new: str) -> WorkPlace:
        """The same place, with a known branch renamed."""
        if old not in dict(self.codes):
            return self
        codes = tuple(
            (new if branch == old else branch, works) for branch, works in self.codes if branch != new or old == new
        )
        branch, previous = (new if each == old else each for each in (self.branch, self.previous))
        return replace(self, branch=branch, previous=previous, codes=codes)

    def _holding(self, works: Iterable[str]) -> WorkPlace:
        """The same place, with other works in its code."""
        held = tuple(dict.fromkeys(works))[:_REMEMBERED]
        return replace(
            self, codes=tuple((branch, held if branch == self.branch else each) for branch, each in self.codes)
        )

    def _without(self, works: Sequence[str]) -> WorkPlace:
        """The same place, without these works, which other code contains as well."""
        return self._holding([each for each in self.holds if each not in works] or self.holds)

    def _other(self, branch: str) -> str:
        """A unique name for the work of a branch."""
        known = {*self.stashes, *(work for _, works in self.codes for work in works)}
        name = branch or "(first)"
        while name in known:
            name += "'"
        return name


def _placed(name: str, work: str) -> str:
    """The name of a check on the code of a work."""
    return f"{name} @{work}" if work else name


def _gone_to(simple: SimpleCommand, folder: str, root: str, left: list[str]) -> str:
    """The target of `cd` and the like from a folder, `` if unknown; `left` are the folders that the line has left."""
    word = simple.words[1] if simple.words[1:] else "-" if simple.words[0] == "popd" else ""
    if word == "-" and left:
        return left.pop()
    left.append(folder)
    way_back = not root and folder.startswith("../") and word.startswith("..")
    known = simple.exact or IN_HOME.fullmatch(word)
    return place_of(folder, root, word) if len(simple.words) == 2 and known and not way_back else ""


def _beside(folder: str, root: str) -> str:
    """The repository or work tree beside the work that contains a folder; `` for a folder within `root`, one that
    contains it, or an unknown one. An additional work tree counts as a repository of its own, wherever it is, and so
    does the main work tree for a session in an additional one.
    """
    path = posixpath.normpath(folder if is_absolute(folder) else posixpath.join(root, folder))
    own, tree = (_WORK_TREE.search(each) for each in (root, path))
    if tree is not None:
        return "" if own is not None and path[: tree.end()] == root[: own.end()] else path[: tree.end()]
    if own is not None and f"{path}/".startswith(f"{root[: own.start()]}/"):
        return root[: own.start()]
    if folder.startswith("~"):
        heads = accumulate(folder[1:].split("/")[1:], "{}/{}".format, initial="")
        near = f"{folder[1:]}/" in f"{root}/" or any(head and root.endswith(head) for head in heads)
        return "" if near or not root else "/".join(folder.split("/")[:2])
    if not root:
        name = folder.lstrip("./").split("/")[0]
        return folder[: folder.index(name) + len(name)] if folder.startswith("../") and name else ""
    if f"{root}/".startswith(f"{path}/") or f"{path}/".startswith(f"{root}/"):
        return ""
    if not is_absolute(root) or root.startswith("/") != path.startswith("/"):
        return "" if not is_absolute(path) else path
    above = posixpath.commonpath((root, path))
    return posixpath.join(above, posixpath.relpath(path, above).split("/")[0])
