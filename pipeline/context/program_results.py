"""Whether the programs of a command line ran and succeeded, as far as the exit and the output of the line show.

Gives: `ProgramResults`.

Note: only plain lines show it: programs joined by `&&`, pipes, `;` and newlines. From the first `||`, group, branch, loop or
program in the background on, nothing is certain. An exit code is that of the last list of `&&`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import PurePosixPath

from .check_programs import FILE_TOOLS, IDLE, check_of
from .line_folders import MOVES, hides_errors
from .shell import STRICT, SimpleCommand, started
from .summaries import summary_of

__all__ = ["ProgramResults"]

_PATCH_DONE = re.compile(r"^Success\. Updated the following files", re.MULTILINE)
_PATCH_FAILED = re.compile(r"^(?:apply_patch verification failed|Failed to |Invalid patch)", re.MULTILINE)
_BY_GIT = "fatal: |error: (?:pathspec |path '|the following |[Yy]our local changes|unable to |invalid path |unknown (?:option|switch))"
"""How errors of Git begin: other programs print `error: ` too."""
_EASY = re.compile(r"(?:cd|pushd|echo|printf|export|set|true|:|mkdir -p)(?: |\Z)")
"""Programs that hardly fail: the next one after `&&` runs."""
_SILENT = IDLE | FILE_TOOLS | {"test", "[", "ls", ""}
"""Programs that print no summary of tests."""
_QUICK = FILE_TOOLS | {"sed", "gsed", "tee", "truncate", "test", "[", "ls", "date", "pwd"}
"""Programs that end at once: another one was broken off."""
_PASSED_ON = ("tee", "sponge")
"""Programs that write the output of another one, however that one ends."""
_LEAVES = ("exit", "return", "logout", "break", "continue")
_PIPES = ("|", "|&")
_ENDS = ("", ";", "\n")
"""What a list begins behind."""
_UNOPENED = re.compile(r"(?i)no such file|permission denied|(?:is|not) a directory|nonexistent|read-only file")


class ProgramResults:
    """What the exit and the output of a line show of its programs. `broken_off`: something ended it early; `edits`: for
    each program, whether it only changes files.
    """

    def __init__(
        self, steps: Sequence[SimpleCommand], said: str, *, failed: bool, broken_off: bool, edits: Sequence[bool]
    ) -> None:
        self._steps, self._said, self._edits = steps, said, edits
        self._failed, self._broken_off = failed, broken_off
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

    def refuses(self, path: str) -> bool:
        """Whether the output has an error message about a file that a shell could not open."""
        return any(path in line for line in self._unopened)

    def began(self, number: int) -> bool:
        """Whether a program surely ran, and its redirections opened their files."""
        return number < self._plain and (self._begun[number] or self.succeeded(number) is not None)

    def succeeded(self, number: int) -> bool | None:
        """Whether a program succeeded; None if that is unknown. A failed one may have done a part."""
        if number >= self._plain:
            return None
        program, decides = _started(self._steps[number]), number >= self._last_list
        if program == "apply_patch" and _PATCH_DONE.search(self._said):
            return True
        if program == "apply_patch" and _PATCH_FAILED.search(self._said):
            return False
        shown = decides and self._plain == len(self._steps)  # the exit of the line is that of its last list
        if self.complains(program):
            return False if self._failed and shown and self._alone else None
        ended_here = self._failed and decides and (shown or not self._broken_off)
        if self._begun[number] and (program in _PASSED_ON or not ended_here):
            return True if (shown and not self._failed) or not _is_silenced(self._steps[number], program) else None
        if not shown or not self._failed:
            return True if shown else None
        return False if self._alone else self._was_passed(number, program) or None

    def _was_passed(self, number: int, program: str) -> bool:
        """Whether the output of a line that failed is of a program that runs only after this one succeeded."""
        if program == "apply_patch" or all(each.behind in _PIPES for each in self._steps[number + 1 :]):
            return False
        tested = number < min(self._first_other, self._last_check) and self._sums_up
        return tested or (self._begun[number] and self._said.strip() not in ("", "(no output)"))

    def _is_easy(self, number: int) -> bool:
        """Whether a program hardly fails, or its error is seen."""
        step = self._steps[number]
        copies = step.words == ("cat",) and any(sign in ("<<", "<<-", "<<<") for sign, _ in step.redirects)
        easy = copies or _EASY.match(" ".join(step.words[:2])) is not None
        if not easy or (step.words[0] in MOVES and hides_errors(step)):
            return False
        return not any(map(self.refuses, (path for _, path in step.redirects)))

    @cached_property
    def _plain(self) -> int:
        """The number of programs at the start of the line of which anything is certain."""
        for number, step in enumerate(self._steps):
            if step.nested or step.behind == "||" or "&" in (step.behind, step.ahead):
                return number
            if self._broken_off and self._may_wait(number):
                return number
            if self._may_end_line(step):
                return number + 1
        return len(self._steps)

    def _may_end_line(self, step: SimpleCommand) -> bool:
        """Whether the programs after one may not have run, or not in their folder."""
        program = _started(step)
        if program in MOVES or (program == "mkdir" and step.ahead == "&&"):
            return self.complains(program)
        if program == "set":
            return self._failed and any(map(STRICT.match, step.words))
        return program in _LEAVES or (step.words[0] == "exec" and len(step.words) > 1)

    def _may_wait(self, number: int) -> bool:
        """Whether a program may have been broken off."""
        step = self._steps[number]
        program = _started(step)
        edits = program in ("git", "perl") and self._edits[number]
        activates = program in ("source", ".") and step.words[-1].endswith("/activate")
        return bool(program) and not (program in _QUICK or edits or activates or self._is_easy(number))

    @cached_property
    def _begun(self) -> list[bool]:
        """Whether each program of a plain line ran regardless of the others: it is the first of a list, in a pipe with
        one that is, or behind programs that hardly fail.
        """
        found = list[bool]()
        for number, step in enumerate(self._steps):
            follows = step.behind in _PIPES or (step.behind == "&&" and self._is_easy(number - 1))
            found.append(step.behind in _ENDS or not number or (follows and found[-1]))
        return found

    @cached_property
    def _last_list(self) -> int:
        """The first program of the last list."""
        return max((number for number, each in enumerate(self._steps) if each.behind in _ENDS), default=0)

    @cached_property
    def _unopened(self) -> list[str]:
        return [line for line in self._said.splitlines() if _UNOPENED.search(line)]

    @cached_property
    def _alone(self) -> bool:
        """Whether the last list runs one program, and what its output is piped to."""
        heads = [each for each in self._steps[self._last_list :] if each.behind not in _PIPES]
        seen = [each.words[0] in MOVES and each.ahead not in _PIPES and not hides_errors(each) for each in heads]
        return seen.count(False) == 1

    @cached_property
    def _last_check(self) -> int:
        return max((n for n, each in enumerate(self._steps) if check_of(each) is not None), default=-1)

    @cached_property
    def _first_other(self) -> int:
        """The first program that may print a summary of tests: it does more than change files."""
        for number, step in enumerate(self._steps):
            if not (self._edits[number] or _started(step) in _SILENT or self._is_easy(number)):
                return number
        return len(self._steps)

    @cached_property
    def _sums_up(self) -> bool:
        return summary_of(self._said) is not None


def _is_silenced(step: SimpleCommand, program: str) -> bool:
    """Whether an error message of a program may be hidden."""
    silenced = any(sign in ("&>", "&>>") or (to == "/dev/null" and sign != "<") for sign, to in step.redirects)
    return silenced and program not in _PASSED_ON


def _started(step: SimpleCommand) -> str:
    """The program of a step, without its folder."""
    words = started(step.words)
    return (PurePosixPath(words[0]).name or words[0]) if words else ""
