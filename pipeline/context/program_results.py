"""Whether the programs of a command line ran and succeeded, as far as the exit and the output of the line show.

Gives: `ProgramResults`.

Note: only plain lines show it: programs joined by `&&`, pipes, `;` and newlines. From the first `||`, group, substitution,
branch, loop or program in the background on, nothing is certain. The exit code is that of the last list of `&&`; of the
lists before it, an output without any error message is the only sign of success. A message that begins with the name of
the program is a sign against it in any list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import PurePosixPath

from .check_programs import FILE_TOOLS, IDLE, check_of
from .line_folders import hides_errors
from .shell import MOVES, STRICT, SimpleCommand, started
from .summaries import summary_of

__all__ = ["ProgramResults"]

_PATCH_DONE = re.compile(r"^Success\. Updated the following files", re.MULTILINE)
_PATCH_FAILED = re.compile(r"^(?:apply_patch verification failed|Failed to |Invalid patch)", re.MULTILINE)
_ERROR = re.compile(
    r"(?i)error|fatal|(?:not found|denied|cannot|can't|no such|unmatched|unexpected|unbound|unknown|invalid|illegal|"
    r"not permitted|not an? |is a directory|exists|nonexistent|read-only|required|unable|fail(?:ed|ure) to|"
    r"could not|couldn't|conflict|refus|abort|usage:|parse|terminated|try again|no space|at -e line)|^\?$",
    re.MULTILINE,
)
"""Words of error messages. One in the output of a program that succeeded makes its result unknown, no more."""
_MOVE_ERROR = re.compile(r"\b(?:cd|pushd|popd):")
_UNOPENED = re.compile(
    r"(?i)no such file|permission denied|(?:is|not) a directory|nonexistent|read-only file|not permitted|overwrite|"
    r"file exists|ambiguous redirect"
)
_UNREAD = re.compile(r"syntax error|parse error|unexpected EOF")
"""How a shell refuses a whole line."""
_EASY = re.compile(r"(?:cd|pushd|echo|printf|export|set|true|:|mkdir -p)(?: |\Z)")
"""Programs that hardly fail: the next one after `&&` runs."""
_SILENT = IDLE | FILE_TOOLS | {"test", "[", "ls", ""}
"""Programs that print no summary of tests."""
_QUICK = FILE_TOOLS | {"sed", "gsed", "tee", "truncate", "test", "[", "ls", "date", "pwd"}
"""Programs that end at once: another one was broken off."""
_QUIET = ("curl", "wget")
"""Programs whose options hide errors."""
_LEAVES = ("exit", "return")
_PIPES = ("|", "|&")
_ENDS = ("", ";", "\n")
"""What a list begins behind."""
_INPUT = ("<", "<<", "<<-", "<<<")


class ProgramResults:
    """What the exit and the output of a line show of its programs. `broken_off`: something ended it early; `edits`: for
    each program, whether it only changes files.
    """

    def __init__(
        self, steps: Sequence[SimpleCommand], output: str, *, failed: bool, broken_off: bool, edits: Sequence[bool]
    ) -> None:
        self._steps, self._output, self._edits = steps, output, edits
        self._failed, self._broken_off = failed, broken_off
        self._messages: dict[str, bool] = {}

    @cached_property
    def moved_in_vain(self) -> bool:
        """Whether the output has an error message of `cd`, `pushd` or `popd`."""
        return _MOVE_ERROR.search(self._output) is not None

    def refuses(self, path: str) -> bool:
        """Whether the output has an error message about a file that a shell could not open."""
        return any(path in line for line in self._unopened)

    def began(self, number: int) -> bool:
        """Whether a program surely ran: the shell tried to open the files of its redirections."""
        return number < self._plain and (self._begun[number] or self.succeeded(number) is True)

    def succeeded(self, number: int) -> bool | None:
        """Whether a program succeeded; None if that is unknown. A failed one may have done a part."""
        if number >= self._plain:
            return None
        step, program, decides = self._steps[number], _started(self._steps[number]), number >= self._last_list
        if program == "apply_patch" and _PATCH_DONE.search(self._output):
            return True
        if program == "apply_patch" and _PATCH_FAILED.search(self._output):
            return False
        if decides and self._plain == len(self._steps):  # the exit of the line is that of its last list
            if self._failed:
                return True if self._was_tested(number) else False if self._is_last(number) else None
            if step.ahead not in _PIPES and not (self.moved_in_vain or self._has_message(program)):
                return True
        elif decides and self._failed and not self._broken_off:
            return None
        ran = self._begun[number] or (decides and self._plain == len(self._steps))
        unclear = self._complained or self._has_message(program) or _is_silenced(step, program)
        return True if ran and not unclear else None

    def _was_tested(self, number: int) -> bool:
        """Whether the output has a summary of a check that runs only after this program succeeded: no program before the
        check prints one.
        """
        return number < min(self._first_other, self._last_check) and self._sums_up

    def _is_last(self, number: int) -> bool:
        """Whether a program is the only one of its list, but for a `cd` before it: if that failed, it did not run."""
        heads = self._heads
        return heads[-1:] == [number] and all(self._steps[n].words[0] in MOVES for n in heads[:-1])

    def _is_easy(self, number: int) -> bool:
        """Whether a program hardly fails, or its error is seen."""
        step = self._steps[number]
        copies = step.words == ("cat",) and any(sign in ("<<", "<<-", "<<<") for sign, _ in step.redirects)
        easy = copies or _EASY.match(" ".join(step.words[:2])) is not None
        if step.words[0] in MOVES:
            return not (hides_errors(step) or self.moved_in_vain)
        refused = any(map(self.refuses, (path for _, path in step.redirects)))
        return easy and not (refused or (step.words[0] == "mkdir" and self._complained))

    @cached_property
    def _plain(self) -> int:
        """The number of programs at the start of the line of which anything is certain."""
        if _UNREAD.search(self._output):
            return 0
        for number, step in enumerate(self._steps):
            if step.nested or step.behind == "||" or step.ahead == "&" or (self._broken_off and self._may_wait(number)):
                return number
            if self._may_end_line(step):
                return number + 1
        return len(self._steps)

    def _may_end_line(self, step: SimpleCommand) -> bool:
        """Whether the programs after one may not have run."""
        program = _started(step)
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
    def _heads(self) -> list[int]:
        """The first program of each pipe of the last list."""
        return [n for n, each in enumerate(self._steps) if n >= self._last_list and each.behind not in _PIPES]

    def _has_message(self, program: str) -> bool:
        """Whether the output has a message of a program: it begins with its name."""
        if program not in self._messages:
            begins = rf"(?:^|/|: ){re.escape(program)}: "
            found = f"{program}: " in self._output and re.search(begins, self._output, re.MULTILINE)
            self._messages[program] = bool(found)
        return bool(program) and self._messages[program]

    @cached_property
    def _complained(self) -> bool:
        """Whether the output may have an error message."""
        return _ERROR.search(self._output) is not None

    @cached_property
    def _unopened(self) -> list[str]:
        return [line for line in self._output.splitlines() if _UNOPENED.search(line)]

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
        return summary_of(self._output) is not None


def _is_silenced(step: SimpleCommand, program: str) -> bool:
    """Whether an error message of a program may be hidden: in a file, in a pipe, or by its options."""
    into = [(sign, to) for sign, to in step.redirects if sign not in _INPUT]
    joined = any(sign == ">&" and to.isdigit() for sign, to in into)
    piped = step.ahead == "|&" or (step.ahead == "|" and joined)
    return piped or program in _QUIET or any(not (sign == ">&" and to.isdigit()) for sign, to in into)


def _started(step: SimpleCommand) -> str:
    """The program of a step, without its folder."""
    words = started(step.words)
    return (PurePosixPath(words[0]).name or words[0]) if words else ""
