"""Whether the programs of a command line ran and succeeded, as far as the exit and the output of the line show.

Gives: `ProgramResults`.

Note: an exit code is that of the last program. What it says of the others depends on the operators between them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import PurePosixPath
from posixpath import commonprefix
from typing import NamedTuple

from .check_programs import check_of
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
_SILENT = frozenset(("source", ".", "mkdir", "touch", "chmod", "test", "[", "ls", "sleep", "date", "pwd", ""))
"""More programs that print no summary of tests."""
_QUICK = frozenset(("rm", "mv", "cp", "ln", "sed", "gsed", "tee", "truncate", "mkdir", "touch", "chmod", "test", "[", "ls", "date", "pwd"))  # fmt: skip
"""Programs that end at once: another one was broken off."""
_LOOPS = ("for", "while", "until", "select")
_BRANCHES = ("then", "elif", "else")
_PASSED_ON = ("tee", "sponge")
"""Programs that write the output of another one, however that one ends."""
_ENDS = (";", "\n", "&")
_PIPES = ("|", "|&")
_LINKED = (*_PIPES, "$(", "`", "(", ")")
"""Operators before a program that runs whenever the one before it does."""
_OPEN = ("{", "if", "case", *_LOOPS)
_CLOSE = ("}", "fi", "done", "esac")
_UNOPENED = re.compile(r"(?i)no such file|permission denied|(?:is|not) a directory|nonexistent|read-only file")


class _Place(NamedTuple):
    """The place of a program in its line."""

    outer: int
    """The first program of the pipe that it is in, or that its outermost group is in."""
    head: int
    """The first program of its pipe, or of the command in which it is substituted."""
    begun: bool
    """Whether it ran regardless of the others in its list: it is the first one, or reads its output."""
    optional: bool
    """Whether it is in a branch, or in a loop that may not run."""
    outermost: bool
    """Whether it begins outside of groups, loops and branches."""


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

    def began(self, number: int) -> bool:
        """Whether a program surely ran, and its redirections opened their files."""
        return number not in self._unsure and (self._places[number].begun or self.succeeded(number) is not None)

    def refuses(self, path: str) -> bool:
        """Whether the output has an error message about a file that a shell could not open."""
        return any(path in line for line in self._unopened)

    def succeeded(self, number: int) -> bool | None:
        """Whether a program succeeded; None if that is unknown. A failed one may have done a part."""
        program = _started(self._steps[number])
        if number in self._unsure:
            return None
        if program == "apply_patch" and _PATCH_DONE.search(self._said):
            return True
        if program == "apply_patch" and _PATCH_FAILED.search(self._said):
            return False
        place, group = self._places[number], self._steps[number].group
        if place.optional:
            return None
        in_last = number >= self._last_list
        if self.complains(program):
            return False if self._failed and in_last and self._alone else None
        if place.begun and (not self._failed or not in_last or program in _PASSED_ON):
            return True
        if not self._failed or not in_last:  # all of the last list succeeded, unless one part stands in for another
            counts = in_last and place.outer > self._last_or
            return True if counts and not any(group[:size] in self._apart for size in range(len(group) + 1)) else None
        if self._alone:
            return False
        if program == "apply_patch" or not any(each.behind not in _PIPES for each in self._steps[number + 1 :]):
            return None
        printed = self._said.strip() not in ("", "(no output)")
        return True if self._tested_later(number) or (place.begun and printed) else None

    def _ends(self, number: int) -> bool:
        """Whether a program runs however the one before it ended. With `-e`, a line that failed may have ended there."""
        return self._steps[number].behind in (("&",) if self._is_strict(number) else _ENDS)

    def _is_easy(self, number: int) -> bool:
        """Whether a program hardly fails, or its error is seen."""
        step = self._steps[number]
        copies = step.words == ("cat",) and any(sign in ("<<", "<<-", "<<<") for sign, _ in step.redirects)
        easy = copies or _EASY.match(" ".join(step.words[:2])) is not None
        if not easy or (step.words[0] in MOVES and hides_errors(step)):
            return False
        return not any(map(self.refuses, (path for _, path in step.redirects)))

    def _tested_later(self, number: int) -> bool:
        """Whether a check that runs only after this program printed its summary: nothing before can have printed one."""
        only_changes = self._last_or < number < self._first_other
        return only_changes and number < self._last_check and self._sums_up

    @cached_property
    def _last_list(self) -> int:
        """The first program of the last list."""
        starts = (n for n, each in enumerate(self._steps) if self._places[n].outermost and self._ends(n))
        return max(starts, default=0)

    @cached_property
    def _unopened(self) -> list[str]:
        return [line for line in self._said.splitlines() if _UNOPENED.search(line)]

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
        for number, step in enumerate(self._steps):
            if not (self._edits[number] or _started(step) in _SILENT or self._is_easy(number)):
                return number
        return len(self._steps)

    @cached_property
    def _sums_up(self) -> bool:
        return summary_of(self._said) is not None

    def _is_strict(self, number: int) -> bool:
        """Whether a failure before a program may have ended its shell, by `set -e`. Of the outermost shell, the line would
        have failed.
        """
        start = self._strict_from
        if number <= start:
            return False
        group = self._steps[start].group
        return (self._failed or len(group) > self._common) and self._steps[number].group[: len(group)] == group

    @cached_property
    def _strict_from(self) -> int:
        """The first `set -e`."""
        steps = enumerate(self._steps)
        sets = (n for n, each in steps if each.words[0] == "set" and any(map(STRICT.match, each.words)))
        return next(sets, len(self._steps))

    @cached_property
    def _common(self) -> int:
        """The number of subshells that the whole line is in."""
        return len(commonprefix([each.group for each in self._steps]))

    @cached_property
    def _apart(self) -> set[tuple[int, ...]]:
        """Groups whose exit is not that of the line: in a pipe, in the argument of a program, or behind `!`."""
        found, closed = set[tuple[int, ...]](), tuple[int, ...]()
        for earlier, step in pairwise(self._steps):
            inner = closed or earlier.group
            level = len(commonprefix([inner, step.group]))
            if step.behind in _PIPES and level < len(inner):
                found.add(inner[: level + 1])
            if step.behind in ("$(", "`", "(") and level < len(step.group):
                found.add(step.group[: level + 1])
            closed = inner if step.behind == ")" else ()  # what follows is a redirection of the group
        return found

    @cached_property
    def _places(self) -> list[_Place]:
        """Where each program is in the line, in one pass."""
        common = self._common
        groups: dict[tuple[int, ...], int] = {}
        bodies: list[tuple[int, bool]] = []
        found, branched = list[_Place](), False
        before: tuple[int, ...] = ()
        for number, step in enumerate(self._steps):
            word = step.words[0]
            branched = word in _BRANCHES or (branched and word != "fi")
            if word in _CLOSE and bodies:
                bodies.pop()
            level = len(commonprefix([before, step.group]))
            around = [groups[step.group[:level]]] if level > common else []
            around += [at for at, _ in bodies[-1:]]  # it is within the others
            linked = number > 0 and step.behind in _LINKED
            head = found[number - 1].head if linked else number
            begun = number == 0 or self._ends(number)
            if linked:
                begun = found[head].begun
            elif number and not begun and step.behind != "||" and self._is_easy(number - 1):
                begun = found[number - 1].begun
            optional = branched or any(each for _, each in bodies[-1:]) or self._is_function(number)
            begun = begun and not optional and all(found[at].begun for at in around)
            outer = min((found[at].outer for at in around), default=head)
            found.append(_Place(min(head, outer), head, begun, optional, not around))
            inner = range(max(level, common) + 1, len(step.group) + 1)
            groups.update({step.group[:size]: number for size in inner})
            if word in _OPEN:
                runs = word == "if" or (word == "{" and not self._is_function(number))
                runs |= word == "for" and len(step.words) > 3 and step.exact
                bodies.append((number, optional or not runs))
            before = step.group
        return found

    @cached_property
    def _unsure(self) -> set[int]:
        """The programs of which nothing is certain: a program before them failed, may have left their shell or loop, or
        was broken off.
        """
        found, everything = set[int](), False
        left: tuple[int, ...] | None = None  # the subshell that a program may have left
        opened, inner = list[int](), -1  # `inner`: loops that began since a program may have left one
        for number, step in enumerate(self._steps):
            if step.words[0] in _CLOSE and opened:
                opened.pop()
            left = left if left is not None and step.group[: len(left)] == left else None
            if inner >= 0:
                inner += any(word in _LOOPS for word in step.words[:3]) - (step.words[0] == "done")
            everything |= self._broken_off and number == self._first_slow
            if everything or left is not None or inner >= 0:
                found.add(number)
            program = _started(step)
            stops = step.nested or step.ahead == "&&" or self._is_strict(number)
            everything |= (program in MOVES or (program == "mkdir" and stops)) and self.complains(program)
            if step.words[0] in _OPEN:
                opened.append(number)
            in_function = any(map(self._is_function, opened[-1:]))
            if program in ("break", "continue"):
                inner = max(inner, 0)
            elif not (in_function and program == "return") and self._leaves(number, opened[-1] if opened else None):
                left = step.group if left is None else left
        return found

    @cached_property
    def _first_slow(self) -> int:
        """The first program that may have been broken off."""
        for number, step in enumerate(self._steps):
            program = _started(step)
            edits = program in ("git", "perl") and self._edits[number]
            activates = program in ("source", ".") and step.words[-1].endswith("/activate")
            if program and not (program in _QUICK or edits or activates or self._is_easy(number)):
                return number
        return len(self._steps)

    def _is_function(self, number: int) -> bool:
        """Whether the body of a function begins: it runs when the function is called."""
        step = self._steps[number]
        return (
            step.words[0] == "{" and number > 0 and step.behind == "(" and step.group == self._steps[number - 1].group
        )

    def _leaves(self, number: int, opener: int | None) -> bool:
        """Whether a program may have left its shell. `opener`: the start of the innermost `{`, loop or branch around it."""
        step = self._steps[number]
        if step.words[0] == "exec":
            return len(step.words) > 1
        words = started(step.words)
        if words[:1] not in (("exit",), ("return",)):
            return False
        at = opener if opener is not None and self._steps[opener].words[0] == "{" and step.behind != "||" else number
        behind_or = self._steps[at].behind == "||"
        fails = words[1:2] != ("0",) if words[1:] else step.behind == "||"
        outermost = len(step.group) <= self._common and not self._piped_body
        if fails and outermost and not self._failed:
            return False  # the line would have failed
        before = self._steps[at - 1]
        moved = at > 0 and before.words[0] in MOVES and not hides_errors(before)
        return not (behind_or and moved and not self.complains(before.words[0]))

    @cached_property
    def _piped_body(self) -> bool:
        """Whether the output of a loop or of `{ ... }` is piped, which runs it in a subshell."""
        return any(each.words[0] in _CLOSE and each.ahead in _PIPES for each in self._steps)


def _started(step: SimpleCommand) -> str:
    """The program of a step, without its folder."""
    words = started(step.words)
    return (PurePosixPath(words[0]).name or words[0]) if words else ""
