"""Searches: the output form of a search, from its command line or its call.

Gives `Search`. The output is parsed in `search_output`.

Note: output of an unknown form is not parsed. Lines have numbers only if these were requested: `grep -r ERROR logs`
prints `logs/app.log:12:30:05 ERROR`, which has no line number. For one file, `rg -n` prints the lines without its name:
it is then the searched file, if the command line names it literally.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from ..outcome_fields import truth
from ..shell import SimpleCommand, simple_commands, started

__all__ = ["Search"]

_PROGRAMS = frozenset(("rg", "grep", "egrep", "fgrep"))
_LISTS = frozenset(("find", "fd", "fdfind"))
_STARTS = frozenset(("xargs", "parallel", *_LISTS))
"""Programs that start a search for the files that they receive."""
_KEEP_LINES = (("head",), ("tail",), ("sort",), ("uniq",))
_NOT_CUT = re.compile(r"-\w*c\w*|--(?:bytes|count)\b.*")
"""Options with which these programs change the lines."""
_SILENT = frozenset(("true", "false", ":", "test", "[", "sleep"))
"""Programs that print nothing."""
_SAYS = frozenset(("echo", "printf"))
_CUT = re.compile(r"cut (?:-d ?: -f ?1|-f ?1 -d ?:)")
_PRINTS = re.compile(
    r"-(?:exec|execdir|ok|okdir|printf|print0|ls|delete|fprint\w*|fls)|--?(?:x|X|exec|exec-batch|l|list-details|0|print0)"
)
"""Options of `find` and `fd` that print something other than one path per line."""
_VALUED = {"rg": "ABCEefgjMmrtTd", "grep": "ABCefmdD", "git": "ABCefm"}
"""Letters of options that take a value."""
_VALUED_WORDS = re.compile(
    r"--(?:after-context|before-context|context|regexp|file|glob|iglob|type|type-not|type-add|type-clear|max-count|max-depth|max-filesize|include|exclude|"
    r"exclude-dir|exclude-from|sort|sortr|color|colour|colors|encoding|engine|replace|threads|max-columns|ignore-file|pre|pre-glob|label|binary-files|devices|"
    r"directories|group-separator|context-separator|dfa-size-limit|regex-size-limit|hyperlink-format|hostname-bin)"
)
_UNKNOWN = frozenset((
    "-q", "--quiet", "--silent", "--json", "--null", "--files-without-match", "--type-list", "--initial-tab", "--field-match-separator",
    "--path-separator",
))  # fmt: skip
"""Options that suppress matches or print them in a form that is not parsed here."""
_UNKNOWN_OF = {
    "rg": {"-0"},
    "grep": {"-L", "-Z", "-z", "-T", "--null-data"},
    "git": {"-L", "-z", "-O", "--name-status"},
}
_EXPANDED = re.compile(r"[*?\[{$`]|\A~|%\w+%")
"""Words that a shell expands."""
_PARTS_ONLY = re.compile(r"-[a-zA-Z]*o|--only-matching")


@dataclass(frozen=True)
class Search:
    """The output form of a search."""

    form: str = "lines"
    """`lines` (matching lines), `counts` (per file) or `files` (names); `` if unknown."""
    numbered: bool | None = True
    """Whether each line has its number; None if it may."""
    context: bool = False
    """Whether context lines are printed."""
    columns: int = 0
    """How many numbers are between the line number and the text."""
    replaced: bool = False
    """Whether the text is not that of the file."""
    headed: bool | None = False
    """Whether the name of a file is printed above its lines; None if only in a terminal."""
    bare: bool = False
    """Whether the lines may lack the file name, as of a single searched file."""
    file: str | None = None
    """The searched file, if it is known."""
    printed: frozenset[str] = frozenset()
    """Other lines that the command line prints (`echo done`); `$?` at the end of one matches a number."""

    @classmethod
    def of_call(cls, given: Mapping[str, Any]) -> Search:
        """For a call of Claude Code's `Grep` or `Glob`. Without `-n`, only newer versions number the lines."""
        mode, numbered, path = given.get("output_mode"), truth(given.get("-n")), given.get("path")
        around = any(given.get(name) not in (None, 0, False) for name in ("-A", "-B", "-C", "context"))
        file = path if isinstance(path, str) and path and not path.endswith("/") else None
        if mode == "count":
            return cls("counts", file=file)
        if mode != "content":
            return cls("files")
        return cls(numbered=numbered, context=around, bare=file is not None, file=file if numbered else None)

    @classmethod
    def of_command(cls, command: str) -> Search:
        """For a command line. If it does more than search and pipe the matches, the form is unknown."""
        found, printed = list[Search](), set[str]()
        commands = simple_commands(command)
        if any(each.words[0] in ("cd", "pushd") for each in commands):
            return cls("")
        for number, simple in enumerate(commands):
            words = started(simple.words)
            piped = _is_pipe(simple.behind)
            if piped and found:
                found[-1] = _behind(words, found[-1])
            elif words and words[0] in _SAYS and (lines := _printed_lines(simple, words)) is not None:
                printed.update(filter(None, lines))
            elif words and words[0] not in _SILENT:
                found.append(_printed(simple, words))
            if piped and number and words and (own := _printed(simple, words)).form and words[0] in _STARTS:
                found[-1] = own
        one = replace(found[0] if found else cls(""), printed=frozenset(printed))
        if len(found) < 2:
            return one
        alike = {replace(each, context=False, bare=False, file=None) for each in found}
        around = any(each.context for each in found)
        return replace(one, context=around, bare=True, file=None) if len(alike) == 1 else cls("")


def _is_pipe(sign: str) -> bool:
    return sign.startswith("|") and sign != "||"


def _printed_lines(simple: SimpleCommand, words: Sequence[str]) -> list[str] | None:
    """The lines that `echo` or `printf` prints, None if the command line does not show them."""
    text = " ".join(words[1:])
    if words[0] == "printf":
        if len(words) != 2 or "%" in text or not text.endswith("\\n"):
            return None
        text = text.removesuffix("\\n").replace("\\n", "\n")
    literal = simple.exact or not _EXPANDED.search(text.removesuffix("$?"))
    options = words[0] == "echo" and len(words) > 1 and re.fullmatch("-[neE]+", words[1])
    return text.split("\n") if literal and not (options or "\\" in text or _is_pipe(simple.ahead)) else None


def _behind(words: Sequence[str], found: Search) -> Search:
    """The form after a pipe."""
    found = replace(found, headed=bool(found.headed))
    if words == ("cat",) or (words[:1] in _KEEP_LINES and not any(map(_NOT_CUT.fullmatch, words))):
        return found
    own = _options(words) if words and PurePosixPath(words[0]).name in _PROGRAMS else None
    if own is not None and (own.form, own.numbered, own.context, own.columns) == ("lines", False, False, 0):
        return found if own.file is None and not any(map(_PARTS_ONLY.match, words)) else Search("")
    named = found.form == "counts" or (found.form == "lines" and (found.numbered or not found.bare))
    if _CUT.fullmatch(" ".join(words)) and named and not (found.context or found.headed):
        return Search("files", bare=found.bare)
    return Search("")


def _printed(simple: SimpleCommand, words: Sequence[str]) -> Search:
    """The output form of a program."""
    head = PurePosixPath(words[0]).name
    if head in _PROGRAMS or words[:2] == ("git", "grep"):
        found = _options(words)
        file = found.file or ""
        named = (simple.exact and "%" not in file) or not _EXPANDED.search(file)
        given = any(sign.startswith("<") for sign, _ in simple.redirects)
        known = named and not given and simple.ahead not in ("$(", "`")
        return found if known else replace(found, file=None, bare=True)
    place = next((n for n, word in enumerate(words) if PurePosixPath(word).name in _PROGRAMS), None)
    if head in _STARTS and place is not None and (head != "find" or words[place - 1].startswith("-exec")):
        found = _options(words[place:])
        return replace(found, file=None, bare=True, headed=bool(found.headed))
    if head in _LISTS and not any(_PRINTS.fullmatch(word) for word in words[1:]):
        return Search("files")
    return Search("")


def _options(words: Sequence[str]) -> Search:
    """The output form of a search by its options."""
    name = PurePosixPath(words[0]).name
    program = name if name in ("rg", "git") else "grep"
    named, given = _arguments(words[2 if program == "git" else 1 :], _VALUED[program])

    def has(*options: str) -> bool:
        return not given.isdisjoint(options)

    lists = has("--files") or has("-l", "--files-with-matches", "--name-only")
    counts = has("-c", "--count", "--count-matches")
    by_rg = program == "rg"
    if has(*_UNKNOWN, *_UNKNOWN_OF[program]) or (lists and counts):
        return Search("")
    files = named if has("-e", "-f", "--regexp", "--file", "--files") else named[1:]
    without = has("--no-filename", "-I" if by_rg else "-h")
    recursive = not by_rg and has("-r", "-R", "--recursive", "--dereference-recursive", "--directories")
    folder = len(files) == 1 and re.search(r"(?:\A|/)\.{0,2}\Z", files[0]) is not None
    alone = len(files) == 1 or not (files or by_rg or recursive)
    unnamed = alone and program != "git" and not (recursive and folder) and not has("-H", "--with-filename")
    bare = without or unnamed
    of_one = len(files) == 1 and not recursive and program != "git" and not (without and by_rg)
    file = files[0] if bare and of_one and not folder else None
    pretty = by_rg and has("-p", "--pretty")
    numbered = pretty or has("-n", "--line-number") or (by_rg and has("--column", "--vimgrep"))
    headed = has("--heading") or pretty or (None if by_rg and not has("--no-heading", "--vimgrep") else False)
    context = has("-A", "-B", "-C", "--after-context", "--before-context", "--context", "--passthru", "--passthrough")
    context |= program == "git" and has("-W", "-p", "--function-context", "--show-function")
    return Search(
        "files" if lists else "counts" if counts else "lines",
        numbered and not (by_rg and has("-N")) and not has("--no-line-number"),
        context,
        has("--column", "--vimgrep") + has("-b", "--byte-offset"),
        by_rg and has("-r", "--replace"),
        headed,
        bare,
        file,
    )  # fmt: skip


def _arguments(words: Sequence[str], valued: str) -> tuple[list[str], set[str]]:
    """The arguments of a search that are not options, and its options without their values."""
    named, options, rest = list[str](), set[str](), iter(words)
    for word in rest:
        if word == "--":
            named += rest
        elif word.startswith("--"):
            name, valueless, _ = word.partition("=")
            options.add(name)
            if not valueless and _VALUED_WORDS.fullmatch(name):
                next(rest, None)
        elif word.startswith("-") and len(word) > 1:
            if word[1:].isdigit():
                options.add("-C")
            for at, letter in enumerate(word[1:], start=2):
                options.add(f"-{letter}")
                if letter in valued:
                    if at == len(word):
                        next(rest, None)
                    break
        else:
            named.append(word)
    return named, options
