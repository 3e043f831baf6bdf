"""The checks of a command line, and what the exit code and the output of the line prove about each.

Gives: `checks_of` and `Ran`; `may_check`: whether a line, even one that is not understood, may run a check; and
`may_read`: whether a line may show files that it does not name.

Note: this is an allow-list. Programs joined by `&&`, `;` and pipes into `tail`, after `cd` and the like, are
understood. A line with anything else (`||`, `&`, `!`, a group, a loop, a shell keyword) may run a check or not: for
such a line a failure is reported, but never a pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import and_
from pathlib import PurePosixPath

from ..sources.file_kinds import is_file_name
from .check_programs import FILE_TOOLS, IDLE, INERT_VARIABLES, check_of
from .checks import IN_HOME, Check, place_of
from .git_lines import sets_aside
from .printed_codes import CODE
from .program_changes import changes_of, is_log, printed_into
from .shell import SimpleCommand, first_word, simple_commands, started
from .summaries import summary_of

__all__ = ["Ran", "checks_of", "may_check", "may_read"]

_MOVES = frozenset(("cd", "pushd"))
_FILTERS = frozenset(("tail", "cat", "tee"))
"""Programs that pass the end of their input through."""
_QUIET = frozenset(("tsc", "vue-tsc", "eslint", "go vet", "go build"))
"""Checks that print only findings."""
_MOST = 32
"""Most checks of a line whose outputs can be distinguished."""
_SHOWS = re.compile(r"cat|(?:head|tail)(?:(?: -[nc]| --lines| --bytes)?[ =]?-?[1-9]\d*)?")
"""Filters that print part of their input."""
_LOOKS = frozenset((
    "cat", "tail", "head", "ls", "grep", "rg", "wc", "find", "which", "du", "stat", "diff", "file", "jq", "cut",
))  # fmt: skip
"""Programs that do not change files."""
_FILTERED = frozenset(("sed", "awk", "sort", "uniq", "tr", "tree", "less"))
"""Programs that print their input in another form."""
_GIT_QUIET = frozenset(("add", "commit", "push", "fetch", "status", "rev-parse", "tag", "remote"))
"""Git verbs that neither change files of the work tree nor print files."""
_GIT_LOOKS = frozenset(("diff", "log", "show", "branch", "blame", "ls-files", "grep"))
_GIT_SHOWS = frozenset(("diff", "show", "grep"))
"""Git verbs that print files."""
_NAMES_ALONE = frozenset(("--stat", "--name-only", "--name-status", "--quiet"))
_PREPARES = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), frozenset(("ci", "install", "i", "add"))),
    **dict.fromkeys(("pip", "pip3", "poetry", "bundle", "composer"), frozenset(("install", "sync", "lock"))),
    "uv": frozenset(("sync", "pip", "lock", "venv")), "cargo": frozenset(("fetch",)), "go": frozenset(("mod", "generate")),
    "git": _GIT_QUIET | {"checkout", "switch", "restore", "stash", "pull", "reset", "rebase", "merge"},
}  # fmt: skip
"""Verbs of programs that prepare the environment and print no test summary."""
_REPORTS = frozenset(("report", "html", "xml", "json", "combine"))
"""Verbs of `coverage` that change only its own files."""
_SHELLS_OWN = frozenset((
    "exit", "return", "exec", "eval", "alias", "unalias", "trap", "break", "continue", "shift", "builtin", "enable", "hash", "declare", "typeset",
    "local", "readonly", "unset", "popd", "dirs", "wait", "jobs", "fg", "bg", "disown", "kill", "read", "mapfile", "shopt", "logout", "suspend", "let",
))  # fmt: skip
"""Shell builtins that may keep a later program from running, or replace it by another one."""


@dataclass(frozen=True)
class Ran:
    """A check of a command line."""

    check: Check
    decides: bool
    """Whether no later program hides its exit code: the line's 0 is also its own, and any other code may be."""
    alone: bool
    """Whether no other program of the line can have caused a nonzero exit code."""
    shown: bool
    """Whether a summary at the end of the output is its own."""
    last: int | None
    """Most last lines of its output that are shown; None = all, 0 = unknown."""
    quiet: bool
    """Whether it prints nothing when it passes, and its output is shown, or at least the first or last lines of it."""
    conclusive: bool
    """Whether the line is understood, the check checks something, and nothing after it changes files, so its result
    holds at the end.
    """


def checks_of(command: str | None, folder: str = "", root: str = "") -> list[Ran]:
    """The checks of a command in order, each named relative to the folder in which the command ran."""
    commands = simple_commands(command or "")
    place, known, options = place_of(folder, root), True, frozenset[str]()
    found: list[tuple[int, Check, frozenset[str]]] = []
    for number, simple in enumerate(commands):
        words = simple.words
        known &= not simple.nested and not {simple.behind, simple.ahead} & {"||", "&"}
        if words[0] == "set":
            options = _options_behind(options, words[1:])
            known &= all(re.fullmatch(r"[-+][Eeuxo]+|pipefail|errexit", word) for word in words[1:])
        elif words[0] in _MOVES:
            known &= _leads(simple)
            place = place_of(place, root, words[1] if len(words) > 1 else "~")
        elif (check := check_of(simple, place, root)) is not None:
            known &= simple.exact or not any(set(word) & set("$`") for word in words)
            found.append((number, check, options))
        else:
            known &= _does_not_steer(simple) and not sets_aside(simple)
    if not found:
        return []
    ends = [_may_end(each) for each in commands]
    tails = [(place, _last_lines(each)) for place, each in enumerate(commands) if _program(each)[0] == "tail"]
    # Whether all programs from each one on leave the files unchanged.
    leaves = [*accumulate(map(_leaves_files, reversed(commands)), and_, initial=True)][::-1]
    ran = []
    for number, check, options in found:
        before, simple, later = commands[:number], commands[number], commands[number + 1 :]
        follows = next((each.behind for each in later if each.behind not in ("|", "|&")), "")
        # With `-e`, only the last program of a list ends the shell: in `a && b; c` not `a`.
        hiding = {"||"} if "errexit" in options and follows != "&&" else {"||", ";", "\n"}
        hidden = simple.ahead in ("|", "|&") and "pipefail" not in options
        hidden |= any(each.behind in hiding for each in later) or any(each.ahead == "&" for each in commands[number:])
        ran.append(
            Ran(
                check,
                decides=not hidden and simple.words[0] != "!",
                alone=sum(ends) == ends[number],
                shown=len(found) <= _MOST
                and all(_says_nothing(each, check) for each in before)
                and _let_through(simple, later, check),
                last=min((lines for place, lines in tails if place > number), default=None),
                quiet=check.program in _QUIET and len(found) <= _MOST and _passes_on(simple, later),
                conclusive=known and not check.skips and all(map(is_log, printed_into(simple))) and leaves[number + 1],
            )
        )
    return ran


def may_check(command: str | None) -> bool:
    """Whether a command may run a check: a known one, or a program that is in no list (`docker exec web pytest`)."""
    return any(check_of(each) is not None or not _checks_nothing(each) for each in simple_commands(command or ""))


def may_read(command: str | None) -> bool:
    """Whether a command may show files that it does not name: a search, a diff, names from elsewhere (`xargs`,
    `$(...)`), or a program that is in no list (`python fix.py`).
    """
    return any(map(_may_read, simple_commands(command or "")))


def _may_read(simple: SimpleCommand) -> bool:
    program, rest = _program(simple)
    if check_of(simple) is not None or program in IDLE:
        return False
    variable = not simple.exact and any(set(word) & set("$`") for word in simple.words)
    if variable or simple.ahead in ("$(", "`") or not _checks_nothing(simple):
        return True
    verb = first_word(rest, ("-C", "-c")) if program == "git" else None
    words = [word for word in (rest[rest.index(verb) + 1 :] if verb else rest) if not word.startswith("-")]
    if program == "git" and verb not in _GIT_SHOWS:
        return False
    if "grep" in (program, verb) or program == "rg":
        return not (all(map(is_file_name, words[1:])) if words[1:] else simple.behind in ("|", "|&"))
    if program == "diff" or verb in _GIT_SHOWS:
        return not any(map(is_file_name, words)) and not _NAMES_ALONE & {*rest}
    return program == "find" and "-exec" in rest


def _checks_nothing(simple: SimpleCommand) -> bool:
    """Whether a program is known not to be a check: it reads, prepares, or changes files."""
    program, rest = _program(simple)
    if program in ("", "git") or program in IDLE | FILE_TOOLS | _LOOKS | _FILTERED:
        return True
    prepares = first_word(rest, ("-C",)) in _PREPARES.get(program, ())
    return prepares or bool(changes_of(replace(simple, redirects=())))


def _options_behind(options: frozenset[str], words: Sequence[str]) -> frozenset[str]:
    """The shell options after a `set` with these words, as far as they decide whether an exit code is hidden."""
    on = {"errexit": "errexit" in options, "pipefail": "pipefail" in options}
    sign = ""
    for word in words:
        if word[:1] in ("-", "+"):
            sign = word[0]
            if "e" in word:
                on["errexit"] = sign == "-"
        elif word in on:
            on[word] = sign == "-"
    return frozenset(name for name, held in on.items() if held)


def _last_lines(tail: SimpleCommand) -> int:
    """Most lines that `tail` shows, 0 if unknown."""
    words = [word for word in _program(tail)[1] if word.startswith("-") or word.lstrip("+").isdigit()]
    found = re.fullmatch(r"(?:-|-n ?|--lines[= ])(\d{1,6})", " ".join(words))
    return int(found[1]) if found else 0 if words else 10


def _leads(simple: SimpleCommand) -> bool:
    """Whether a `cd` certainly changes to the folder that it names, for all later programs."""
    words, piped = simple.words, {simple.behind, simple.ahead} & {"|", "|&"}
    if len(words) != 2 or words[1].startswith("-") or piped:
        return False
    return simple.exact or IN_HOME.fullmatch(words[1]) is not None


def _does_not_steer(simple: SimpleCommand) -> bool:
    """Whether a program leaves the shell unchanged: the programs that run next, and the meaning of names."""
    words = simple.words
    if words[0] in ("source", "."):
        return len(words) == 2 and words[1].endswith("/activate")
    if words[0] == "export":
        return all("=" in word and word.split("=")[0] in INERT_VARIABLES for word in words[1:])
    return words[0] not in _SHELLS_OWN and bool(started(words))


def _program(simple: SimpleCommand) -> tuple[str, list[str]]:
    words = started(simple.words)
    return (PurePosixPath(words[0]).name, list(words[1:])) if words else ("", [])


def _says_nothing(simple: SimpleCommand, check: Check) -> bool:
    """Whether a program prints no summary that could be mistaken for that of the check."""
    program, rest = _program(simple)
    if program in ("echo", "printf"):
        text = CODE.sub("", " ".join(rest)).replace("\\n", "\n")
        return not set(text) & set("$`") and summary_of(f"{text}\n" + "\n".join(rest), check.program) is None
    if (other := check_of(simple)) is not None:
        return other.family not in ("test", "all")
    if program in _PREPARES:
        return first_word(rest, ("-C",)) in _PREPARES[program]
    return program in IDLE | FILE_TOOLS or (program == "sed" and any(re.match(r"-[a-zA-Z]*i", word) for word in rest))


def _let_through(simple: SimpleCommand, later: Sequence[SimpleCommand], check: Check) -> bool:
    """Whether the end of the output of a check is the end of the output of the line."""
    files = {path for sign, path in simple.redirects if sign in (">", "&>")}
    seen, piped = not files, True
    for each in later:
        program, rest = _program(each)
        named = {word for word in rest if not word.startswith(("-", "+")) and not word.isdigit()}
        piped &= each.behind in ("|", "|&")
        if piped and program in _FILTERS and each.exact and not each.redirects:
            if named and (program != "tee" or "-a" in rest):
                return False
            files |= named
        elif not piped and program in ("tail", "cat") and len(named) == 1 and named <= files and each.exact:
            seen = True
        elif not _says_nothing(each, check):
            return False
    return seen


def _passes_on(simple: SimpleCommand, later: Sequence[SimpleCommand]) -> bool:
    """Whether empty output of the line implies that the check ended and printed nothing."""
    limited = any(PurePosixPath(each).name in ("timeout", "gtimeout") for each in simple.words)
    piped = all(each.behind in ("|", "|&") and _SHOWS.fullmatch(" ".join(each.words)) for each in later)
    joined = all(sign == ">&" and to.isdigit() for each in (simple, *later) for sign, to in each.redirects)
    return piped and joined and not limited and all(each.exact for each in later)


def _leaves_files(simple: SimpleCommand) -> bool:
    """Whether a program is known not to change checked files of the work tree; build products are not checked."""
    program, rest = _program(simple)
    if program == "tee" and simple.behind in ("|", "|&"):
        return all(map(is_log, rest))
    if changes_of(simple):
        return False
    if program == "git":
        return first_word(rest, ("-C",)) in _GIT_QUIET | _GIT_LOOKS
    if simple.words[0] == "coverage":
        return simple.words[1:2] != () and simple.words[1] in _REPORTS
    check = check_of(simple)
    return program in _LOOKS | IDLE if check is None else check.family != "all"


def _may_end(simple: SimpleCommand) -> bool:
    """Whether a program can have caused a nonzero exit code of the line."""
    return _program(simple)[0] not in IDLE | _FILTERS
