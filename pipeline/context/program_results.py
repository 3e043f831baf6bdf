"""Whether the programs of a command line ran and succeeded, as far as the exit and the output of the line show.

Gives: `ProgramResults`.

Note: an exit code is that of the last program. What it says of the others depends on the operators between them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import PurePosixPath

from .check_programs import check_of
from .line_folders import MOVES
from .shell import SimpleCommand, started
from .summaries import summary_of

__all__ = ["ProgramResults"]

_PATCH_DONE = re.compile(r"^Success\. Updated the following files", re.MULTILINE)
_PATCH_FAILED = re.compile(r"^(?:apply_patch verification failed|Failed to |Invalid patch)", re.MULTILINE)
_BY_GIT = "fatal: |error: (?:pathspec |path '|the following |[Yy]our local changes|unable to |invalid path |unknown (?:option|switch))"
"""How errors of Git begin: other programs print `error: ` too."""
_EASY = re.compile(r"(?:cd|pushd|echo|printf|export|set|true|:|mkdir -p)(?: |\Z)")
"""Programs that hardly fail: the next one after `&&` runs."""
_BRANCHES = ("then", "elif", "else")
_FAIL_OFTEN = ("cd", "pushd", "mkdir")
"""Programs whose error message means that what follows them after `&&` did not run."""
_PASSED_ON = ("tee", "sponge")
"""Programs that write the output of another one, however that one ends."""
_ENDS = (";", "\n", "&")
_PIPES = ("|", "|&")


class ProgramResults:
    """What the exit and the output of a line show of its programs. `changes`: whether a program only changes files."""

    def __init__(
        self, steps: Sequence[SimpleCommand], said: str, *, failed: bool, changes: Callable[[SimpleCommand], bool]
    ) -> None:
        self._steps, self._said, self._failed, self._changes = steps, said, failed, changes
        self._complains: dict[str, bool] = {}

    def complains(self, program: str) -> bool:
        """Whether the output has an error message of a program."""
        if program not in self._complains:
            name = re.escape(program)
            own = rf"(?:(?:[^\s:]+: (?:line \d+: )?)*(?:\S*/)?{name}: |(?:\(\w+\)|\S*zsh):{name}:\d+: )"
            by_git = all(each.words[0] in (*MOVES, "git") for each in self._steps)
            begins = {"git": r"(?:fatal|error)\b" if by_git else _BY_GIT, "perl": "Can't (?:open|rename|do)"}
            found = re.search(rf"^(?:{begins.get(program, own)})", self._said, re.MULTILINE)
            self._complains[program] = bool(program) and found is not None
        return self._complains[program]

    def began(self, number: int) -> bool:
        """Whether a program surely ran, and its redirections opened their files."""
        return number not in self._unsure and (self.succeeded(number) is not None or self._begins(number))

    def succeeded(self, number: int) -> bool | None:
        """Whether a program succeeded; None if that is unknown. A failed one may have done a part."""
        words = started(self._steps[number].words)
        program = PurePosixPath(words[0]).name if words else ""
        if number in self._unsure:
            return None
        if program == "apply_patch" and _PATCH_DONE.search(self._said):
            return True
        if program == "apply_patch" and _PATCH_FAILED.search(self._said):
            return False
        in_last = number >= self._last_list
        if self.complains(program):
            return False if self._failed and in_last and self._alone else None
        begins = self._begins(number)
        if begins and (not self._failed or not in_last or program in _PASSED_ON):
            return True
        if not self._failed or not in_last:  # all of the last list succeeded, unless one part stands in for another
            return True if in_last and self._head(number) > self._last_or else None
        if self._alone:
            return False
        if program == "apply_patch" or not any(each.behind not in _PIPES for each in self._steps[number + 1 :]):
            return None
        return (
            True if self._tested_later(number) or (begins and self._said.strip() not in ("", "(no output)")) else None
        )

    def _tested_later(self, number: int) -> bool:
        """Whether a check that runs only after this program printed its summary: nothing before can have printed one."""
        only_changes = self._last_or < number < self._first_other
        return only_changes and number < self._last_check and summary_of(self._said) is not None

    def _begins(self, number: int) -> bool:
        """Whether a program ran regardless of the others in its list: it is the first one, or reads its output."""
        if self._branched[number]:
            return False
        number = self._head(number)
        while number and self._steps[number].behind == "&&" and _is_easy(self._steps[number - 1]):
            number = self._head(number - 1)
        return number == 0 or self._steps[number].behind in _ENDS

    def _head(self, number: int) -> int:
        """The first program of the pipe of a program, or of the command in which it is substituted."""
        while number and self._steps[number].behind in (*_PIPES, "$(", "`", "(", ")"):
            number -= 1
        return number

    @cached_property
    def _last_list(self) -> int:
        """The first program of the last list."""
        return max((n for n, each in enumerate(self._steps) if each.behind in _ENDS), default=0)

    @cached_property
    def _alone(self) -> bool:
        """Whether the last list runs one program, and what its output is piped to."""
        own = (each for each in self._steps[self._last_list :] if each.words[0] not in MOVES)
        return sum(each.behind not in _PIPES for each in own) == 1

    @cached_property
    def _last_or(self) -> int:
        """The last program after `||`, -1 if there is none."""
        return max((n for n, each in enumerate(self._steps) if each.behind == "||"), default=-1)

    @cached_property
    def _last_check(self) -> int:
        return max((n for n, each in enumerate(self._steps) if check_of(each) is not None), default=-1)

    @cached_property
    def _first_other(self) -> int:
        """The first program that may print a summary of tests: it does more than change files."""
        others = (n for n, each in enumerate(self._steps) if not (_is_easy(each) or self._changes(each)))
        return next(others, len(self._steps))

    @cached_property
    def _branched(self) -> list[bool]:
        """Whether each program is in a branch of an `if`."""
        found, inside = list[bool](), False
        for each in self._steps:
            word = each.words[0]
            inside = word in _BRANCHES or (inside and word != "fi")
            found.append(inside)
        return found

    @cached_property
    def _unsure(self) -> set[int]:
        """The programs after the `&&` of one that may have failed."""
        found, missed = set[int](), False
        for number, each in enumerate(self._steps):
            missed &= each.behind in ("&&", *_PIPES)
            if missed:
                found.add(number)
            missed |= each.words[0] in _FAIL_OFTEN and self.complains(each.words[0])
        return found


def _is_easy(step: SimpleCommand) -> bool:
    return _EASY.match(" ".join(step.words[:2])) is not None
