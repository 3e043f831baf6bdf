"""The folders in which the programs of a command line run.

Gives: `folders_of` each program, the name of a path `within` a folder, and whether a program `hides_errors`.

Note: a subshell leaves the folder of its own shell as it was: after `(cd web && npm test)` the line is where it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from .checks import IN_HOME, is_absolute, place_of
from .shell import MOVES, SimpleCommand, started

__all__ = ["Folders", "folders_of", "hides_errors", "within"]

MOST = 4
"""Most folders in which one program may run; above that they count as unknown."""
Folders = tuple[str | None, ...]
"""The folders in which a program may run; None for an unknown one."""
_LOOPS = ("for", "while", "until", "select")
_BEFORE = ("do", "then", "else", "{", "!", "time")
"""Words that a loop may follow."""
_PIPES = ("|", "|&")
_IN_A_ROW = ("&&", *_PIPES, "$(", "`", "(", ")")
"""Operators behind which no list begins; those of substitutions pass an argument on."""


def folders_of(
    steps: Sequence[SimpleCommand], folder: str, *, complained: bool, began: Callable[[int], bool]
) -> Iterator[Folders]:
    """The folders of each program of a line that starts in `folder`. `complained`: the line printed an error of `cd`;
    `began`: whether a program, by its number, certainly ran.
    """
    shells = [_Shell((), (folder,), (folder,))]
    previous: SimpleCommand | None = None
    lost = _moving_loops(steps)
    for number, step in enumerate(steps):
        while step.group[: len(shells[-1].group)] != shells[-1].group:
            shells.pop()
        if step.behind not in _IN_A_ROW:
            shells[-1].begin(background=previous is not None and previous.ahead == "&")
        if step.group != shells[-1].group:
            shells.append(_Shell(step.group, shells[-1].here, shells[-1].here))
        if number in lost:
            shells[-1].here = (None,)
        yield shells[-1].here
        words = started(step.words)
        # Each program of a pipe runs in a subshell; a substitution is the argument of the program before it.
        in_pipe = step.ahead in _PIPES or (
            step.behind in _PIPES and previous is not None and previous.group == step.group
        )
        if words and words[0] in MOVES and not in_pipe:
            there = (None,) if step.ahead in ("$(", "`") else shells[-1].target(words)
            shells[-1].move(
                there, sure=not (complained or hides_errors(step)) and began(number), skipped=step.behind == "||"
            )
        previous = step


def _moving_loops(steps: Sequence[SimpleCommand]) -> set[int]:
    """The first programs of loops that move their own shell: each run of the body begins where the one before it ended."""
    found, opened = set[int](), list[int]()
    for number, step in enumerate(steps):
        if next((word for word in step.words if word not in _BEFORE), "") in _LOOPS:
            opened.append(number)
        if step.words[0] == "done" and opened:
            opened.pop()
        if started(step.words)[:1] and started(step.words)[0] in MOVES:
            found.update(at for at in opened if steps[at].group == step.group)
    return found


def hides_errors(step: SimpleCommand) -> bool:
    """Whether the errors of a program that moves the shell are hidden. `cd` prints nothing else."""
    signs = {sign for sign, _ in step.redirects}
    return bool(signs) and ("cd" in step.words or bool(signs & {"&>", "&>>", ">&"}))


def within(folder: str | None, path: str) -> str | None:
    """The name of a path in a folder; None for a relative path in an unknown folder."""
    if folder is None and not (is_absolute(path) or IN_HOME.fullmatch(path)):
        return None
    return place_of(folder or "", "", path) or "."


@dataclass
class _Shell:
    """A shell or subshell while its line is read."""

    group: tuple[int, ...]
    here: Folders
    begun: Folders
    """The folders in which the current list began."""
    missed: Folders = ()
    """The folders in which it still is if a move of the current list failed."""
    previous: Folders = (None,)
    """The folders of `cd -`."""
    pushed: list[Folders] = field(default_factory=list)

    def begin(self, *, background: bool) -> None:
        """Begin a list. One in the background ran in a subshell."""
        both = self.begun if background else (*dict.fromkeys((*self.here, *self.missed)),)
        self.here, self.missed = both if len(both) <= MOST else (None,), ()
        self.begun = self.here

    def target(self, words: Sequence[str]) -> Folders:
        """The folders to which `cd`, `pushd` or `popd` moves."""
        word = next((each for each in words[1:] if each == "-" or not each.startswith("-")), "")
        if words[0] == "pushd":
            self.pushed.append(self.here)
        if words[0] == "popd":
            return self.pushed.pop() if self.pushed else (None,)
        if word == "-":
            return self.previous
        if (words[0] == "pushd" and not word) or word.startswith("+"):
            return (None,)
        if set(word) & set("$`*?") and not IN_HOME.fullmatch(word):
            return (None,)
        return (*dict.fromkeys(within(each, word or "~") for each in self.here),)

    def move(self, there: Folders, *, sure: bool, skipped: bool) -> None:
        """Go there. `skipped`: what follows in the list may run without the move."""
        if not sure:
            self.missed = (*dict.fromkeys((*self.missed, *self.here)),)
        self.here, self.previous = (*dict.fromkeys((*there, *self.here)),) if skipped else there, self.here
