"""Matches of a search, parsed from its output in a known form.

Gives `matches_in`.

Note: with context lines (`-C 2`) both kinds of lines have a path and a number, and a path may contain the separators
(`2026-05-20-notes.md:4:foo`). Adjacent lines are of one file with ascending numbers, which shows where its name ends;
if two names are possible, the lines are left out. If it is unknown whether lines have numbers, all of them must look
numbered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ..summaries import ESCAPES
from .searching import Search
from .writing import Transcript

__all__ = ["MOST_MATCHES", "matches_in"]

MOST_MATCHES = 200
_PATH = re.compile(r"(?:[A-Za-z]:(?=[\\/]))?[^\s:\x00][^:\t\x00]*")
_WHOLE = re.compile(r"(?:[A-Za-z]:(?=[\\/]))?[^\s:(\[<\x00][^\s:\x00]*")
"""A path that is a whole line."""
_NUMBER = re.compile(r"(?=(?P<sign>[:=-])(?P<line>\d{1,9})(?P=sign))")
_BARE = re.compile(r"(?P<line>\d{1,9})(?P<sign>[:=-])(?P<text>.*)", re.DOTALL)
_COUNT = re.compile(r"(?:(?P<path>(?:[A-Za-z]:(?=[\\/]))?[^\s:](?:[^:\n]*[^\s:])?):)?(?P<count>\d{1,9})")
_COLUMN = re.compile(r"\d{1,9}[:=-]")
_MOST = 8
"""Maximum number of numbers tried per line."""
_OMITTED = re.compile(r"\[Omitted long (?:matching )?(?:line|context line)\b.*\]")
_LAST_NUMBER = re.compile(r"(?<!\d)\d{1,3}\Z")
_STANDARD = ("(standard input)", "<stdin>")
_SAYS = re.compile(
    r"Found \d+ (?:files?|total)\b.*|No (?:files|matches) found|\[Showing results with pagination\b.*|\(Results are truncated\b.*"
)
"""Lines that Claude Code prints before file names and after the matches."""
_GOES_ON = re.compile(r"\d+(?::|\Z)|\d\d[\s,Z]")
"""A text that may continue a number: `30:05 ERROR` of `12:30:05 ERROR`."""


class _Line(NamedTuple):
    path: str | None
    line: int
    text: str
    matches: bool


def matches_in(text: str, made: Transcript, search: Search, folder: str = "") -> list[dict[str, Any]]:
    """The matches in the output of a search in a folder."""
    lines = [line.removesuffix("\r") for line in ESCAPES.sub("", text).split("\n")]
    lines = [line for line in lines if not (_SAYS.fullmatch(line) or _is_printed_beside(line, search))]
    found: Iterable[tuple[str, dict[str, Any]]] = ()
    if search.form == "files":
        names = (line.strip() for line in lines if _WHOLE.fullmatch(line.strip()) and "//" not in line)
        found = ((name, {}) for name in names if not (search.bare and name.isdigit()))
    elif search.form == "counts":
        found = ((path, {}) for path in _counted(lines, search))
    elif search.form == "lines":
        read = [each for each in _lines(lines, search) if each.path and each.matches]
        found = ((str(each.path), _line_and_text(each, search)) for each in read)
    matches = [{"path": made.path(str(PurePosixPath(folder) / path)), **fields} for path, fields in found]
    return matches[:MOST_MATCHES]


def _is_printed_beside(line: str, search: Search) -> bool:
    """Whether a line was printed by the command line besides the matches."""
    return bool(search.printed) and (line in search.printed or _LAST_NUMBER.sub("$?", line) in search.printed)


def _line_and_text(found: _Line, search: Search) -> dict[str, Any]:
    text = "" if _OMITTED.fullmatch(found.text) else found.text
    for _ in range(search.columns):
        text = _COLUMN.sub("", text, count=1) if _COLUMN.match(text) else text
    return {"line": found.line} if search.replaced else {"line": found.line, "text": text.strip() or None}


def _counted(lines: Sequence[str], search: Search) -> Iterator[str]:
    for line in lines:
        if (found := _COUNT.fullmatch(line)) and int(found["count"]) and (path := found["path"] or search.file):
            yield path


def _lines(lines: Sequence[str], search: Search) -> list[_Line]:
    """The numbered lines of an output."""
    if search.file and any(line.startswith(f"{search.file}/") for line in lines):
        search = replace(search, bare=False, file=None)  # a folder was searched
    begins = next((place for place, line in enumerate(lines) if line), 0)
    named = _is_name(lines, begins) and not search.bare
    headed = search.headed or (search.headed is None and named)
    if search.numbered is False and not headed:
        return []
    read = list(
        _under_names(lines) if headed else _in_context(lines, search) if search.context else _alone(lines, search)
    )
    known = [each for each in read if each is not None]
    return known if search.numbered or (len(known) == len(read) and _count_up(known)) else []


def _count_up(read: Sequence[_Line]) -> bool:
    """Whether the line numbers are plausible: ascending, and not part of the text."""
    last = dict[str | None, int]()
    for each in read:
        if each.line <= last.get(each.path, 0) or _GOES_ON.match(each.text):
            return False
        last[each.path] = each.line
    return True


def _is_name(lines: Sequence[str], place: int) -> bool:
    """Whether a line is the name of the file of the next lines."""
    line, follows = lines[place] if place < len(lines) else "", lines[place + 1 : place + 2]
    behind = place == 0 or not lines[place - 1]
    return behind and bool(_PATH.fullmatch(line)) and not _BARE.match(line) and any(map(_BARE.match, follows))


def _under_names(lines: Sequence[str]) -> Iterator[_Line | None]:
    """Lines below the name of their file; None for one that cannot be parsed."""
    name = None
    for place, line in enumerate(lines):
        if not line:
            name = None
        elif name is None and _is_name(lines, place):
            name = line
        elif line != "--":
            found = _BARE.fullmatch(line) if name else None
            yield _Line(name, int(found["line"]), found["text"], found["sign"] == ":") if found else None


def _alone(lines: Sequence[str], search: Search) -> Iterator[_Line | None]:
    """Lines of output without context lines."""
    for line in filter(None, lines):
        if search.bare and (found := _BARE.fullmatch(line)) and found["sign"] == ":":
            yield _Line(search.file, int(found["line"]), found["text"], matches=True)
        else:
            named = [each for each in _readings(line) if line[len(each[0])] == ":"]
            yield _read(line, named[0][0]) if named else None


def _in_context(lines: Sequence[str], search: Search) -> Iterator[_Line | None]:
    """Lines of output with context lines."""
    together, names = list[str](), dict[str, int]()
    for line in [*lines, ""]:
        if search.bare and (found := _BARE.fullmatch(line)):
            yield _Line(search.file, int(found["line"]), found["text"], found["sign"] == ":")
            continue
        read = dict(_readings(line))
        kept = {name: first for name, first in names.items() if read.get(name) == first + len(together)}
        if together and not kept:
            yield from (_read(each, *names) if len(names) == 1 else None for each in together)
            together, names = [], {}
        if kept or read:
            together.append(line)
            names = kept or read
        elif line not in ("", "--"):
            yield None


def _readings(line: str) -> Iterator[tuple[str, int]]:
    """Possible paths at the beginning of a line, with the number after each."""
    for found in islice(_NUMBER.finditer(line), _MOST):
        if _PATH.fullmatch(path := line[: found.start()]) and path not in _STANDARD:
            yield path, int(found["line"])


def _read(line: str, path: str) -> _Line:
    """A line after its path."""
    found = _BARE.fullmatch(line[len(path) + 1 :])
    assert found is not None
    return _Line(path, int(found["line"]), found["text"], line[len(path)] == ":")
