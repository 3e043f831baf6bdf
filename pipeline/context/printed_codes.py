"""The exit codes that a command line prints: `pytest | tail -3; echo ${PIPESTATUS[0]}`.

Gives: `printed_codes`, and `CODE`, a variable with an exit code.

Note: a code is read where the output has a line of the form that `echo` or `printf` prints. A code other than 0 is
never a pass. It is a failure only if it is certainly that of the only check of the line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from .check_programs import check_of
from .shell import SimpleCommand, simple_commands, started
from .summaries import ESCAPES, LINE

__all__ = ["CODE", "printed_codes"]

CODE = re.compile(r"\$(?:\?|\{\?\}|\{?(?:PIPESTATUS|pipestatus)\b(?:\[[^\]]*\])?\}?)")
_OF_THE_FIRST = re.compile(r"\$\{(?:PIPESTATUS\[0\]|pipestatus\[1\])\}")
_NEVER = r"(?!)"
_CODE, _CODES = r"(\d{1,3})", r"(\d{1,3}(?: \d{1,3})*)"
_PIPES = ("|", "|&")
_TO_FILES = (">", ">>", ">|", "&>", "&>>")
_ENDS_WITH_INPUT = frozenset(("tail", "cat", "tee"))
"""Programs that read their whole input, so what they read from is not ended early."""


def printed_codes(command: str, output: str) -> str | None:
    """What the exit codes that a line prints show: `failed`, its only check has one other than 0; `not 0`, something
    has; `unseen`, the output lacks one; None if all are 0, or the line prints none.
    """
    if CODE.search(command) is None:
        return None
    commands = simple_commands(command)
    forms = [form for each in commands if (form := _form(each)) is not None]
    lines = [" ".join(ESCAPES.sub("", line).split()) for line in output.splitlines()] if forms else []
    codes = list[str]()
    for form in dict.fromkeys(forms):
        count = forms.count(form)
        found = [match for line in lines if len(line) <= LINE and (match := re.fullmatch(form, line))]
        codes += ["".join(each.groups()) for each in found[-count:]] if len(found) >= count else [""]
    if any(each.strip("0 ") for each in codes):
        return "failed" if len(codes) == 1 and _is_of_the_check(commands) else "not 0"
    return "unseen" if "" in codes else None


def _form(simple: SimpleCommand) -> str | None:
    """The pattern of the line in which a program prints exit codes, one group each; None if it prints none."""
    program, *rest = started(simple.words) or ("",)
    if program not in ("echo", "printf") or simple.exact or any(sign in _TO_FILES for sign, _ in simple.redirects):
        return None
    if program == "echo":
        while rest and re.fullmatch(r"-[neE]+", rest[0]):
            rest = rest[1:]
        text = " ".join(rest)
    else:
        values = iter(rest[1:])
        text = re.sub(r"%[sdiu]", lambda _: next(values, ""), "".join(rest[:1]))
    line = next((each for each in text.replace("\\n", "\n").splitlines() if CODE.search(each)), None)
    if line is None:
        return _NEVER if CODE.search(" ".join(rest)) else None
    around = CODE.split(" ".join(line.split()))
    if any(set(each) & set("$`") for each in around):
        return _NEVER
    before = ".*" if around[0] else ""  # what was printed before may have no newline
    some = [_CODES if re.search(r"\[[@*]\]|^\$\{?pipestatus\}?$", each) else _CODE for each in CODE.findall(line)]
    if some.count(_CODES) > 1:
        return _NEVER  # where one list ends is unknown
    return before + "".join(re.escape(each) + code for each, code in zip(around, [*some, ""], strict=True))


def _is_of_the_check(commands: Sequence[SimpleCommand]) -> bool:
    """Whether the last program prints the exit code of the only check of the line, directly behind it."""
    *before, last = commands
    places = [number for number, each in enumerate(commands) if check_of(each) is not None]
    joined = all(each.behind not in ("||", "&") and each.ahead != "&" and not each.nested for each in commands)
    if len(places) != 1 or not joined or last.behind not in (";", "\n") or _form(last) is None:
        return False
    check, piped = before[places[0]], before[places[0] + 1 :]
    if check.words[0] == "!" or not all(map(_passes_through, piped)):
        return False
    fails = any(each.words[0] == "set" and "pipefail" in each.words for each in before)
    printed = {found[0] for found in CODE.finditer(" ".join(last.words))}
    if printed <= {"$?", "${?}"}:
        return fails or not piped
    return check.behind not in _PIPES and all(map(_OF_THE_FIRST.fullmatch, printed))


def _passes_through(simple: SimpleCommand) -> bool:
    return simple.behind in _PIPES and PurePosixPath(simple.words[0]).name in _ENDS_WITH_INPUT
