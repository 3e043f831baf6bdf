"""Where a text may be cut: between statements of code, paragraphs and list items of prose, lines of a log.

Reads units of texts. Gives `Cuts`.

Note: this is a reading of the text alone, without a grammar: it skips strings and comments, follows brackets and
compares indentation, which is the same in nearly every language. A statement longer than the room is cut between lines.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from .line_units import Units

_TOKENS = re.compile(
    r'"""[\s\S]*?(?:"""|\Z)|\'\'\'[\s\S]*?(?:\'\'\'|\Z)|/\*[\s\S]*?(?:\*/|\Z)|(?://|#)[^\n]*'
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[()\[\]{}]'
)
"""Strings and comments, as they are in most languages, and brackets."""
_STARTS_INSIDE = re.compile(r'\A(?:(?!""").)*?^[ \t]*"""[ \t]*$', re.DOTALL | re.MULTILINE)
"""A text that begins in a long string: the first mark closes it."""
_CONTINUES = re.compile(
    r"[)\]}.?:&|,=+]|(?:end|else|elif|elsif|except|finally|catch|rescue|ensure|then|fi|done|esac)\b"
)
"""A line that belongs to the statement before it."""
_ANNOUNCES = re.compile(r"(?:#|//|/\*|\*|@|--)|.*(?:[\\,=+&|(\[]|\b(?:and|or|return))$")
"""A line that belongs to the statement after it: a comment, a decorator, or one that goes on."""
_PROSE = re.compile(r"\s*(?:[-*+#|>]|\d+[.)]|\.\. )")
"""A line that begins a list item, a heading, a row of a table or a directive."""

_DULL = re.compile(
    r"(?:import|from|#include|#import|package|use|using|extern crate|require|require_relative|@import)\b(?!\s*[(=])"
    r"|\W{0,4}(?:SPDX-|Copyright|Licensed under|Permission is hereby)",
    re.IGNORECASE,
)
"""A line that begins an import or belongs to a licence."""
_BREAK = re.compile("\n")

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


class Cuts:
    """Whether a text may begin before each unit, and whether it may end there, for the items read so far."""

    def __init__(self, units: Units, code: Bool, log: Bool) -> None:
        """`code` and `log` tell how each item is read; those of no kind are prose."""
        self.units, self.code, self.log = units, code, log
        self.begin, self.end = np.ones((2, len(units.start) + 1), dtype=bool)
        self.dull = np.zeros(len(units.start) + 1, dtype=bool)
        """The units that answer nothing: imports, and comments about a licence."""
        self._read: set[int] = set()

    def read(self, items: Int, opening: Int, closing: Int) -> None:
        """Read the items with the units [`opening`, `closing`)."""
        places = (each.tolist() for each in (opening, closing, self.code[items], self.log[items]))
        for first, last, code, log in zip(*places, strict=True):
            if log or last <= first or first in self._read:
                continue
            self._read.add(first)
            lines = self.units.every.slice(first, last - first).to_pylist()
            begin, end = (np.array(each) for each in (_of_code if code else _of_prose)(lines))
            self.begin[first + 1 : last], self.end[first + 1 : last] = begin[1:], end[1:]
            if code:
                self.dull[first:last] = _dull(lines, begin)

    def last_end(self, unit: Int, least: Int) -> Int:
        """The last place at or before each unit, and after `least`, where a text may end; else the unit itself."""
        places = np.maximum.accumulate(np.where(self.end, np.arange(len(self.end)), -1))
        last = places[unit]
        return np.where(last > least, last, unit)


def _of_prose(lines: list[str]) -> tuple[list[bool], list[bool]]:
    cuts = [
        bool(line.strip()) and (not before.strip() or bool(_PROSE.match(line)))
        for before, line in zip(["", *lines], lines, strict=False)
    ]
    return cuts, cuts


def _of_code(lines: list[str]) -> tuple[list[bool], list[bool]]:
    inside = _inside("".join(lines))
    begin, end, at, indent, before = [], [], 0, 0, ""
    for line in lines:
        text = line.strip()
        free = bool(text) and at not in inside and not _CONTINUES.match(text) and not _ANNOUNCES.match(before)
        begin.append(free)
        end.append(free and _indent(line) <= indent)
        at += len(line)
        before = text
        indent = _indent(line) if text else indent
    return begin, end


def _dull(lines: list[str], begin: Bool) -> Bool:
    """The lines of statements that import something or of comments that begin with a licence."""
    begin = begin.copy()
    begin[:1] = True
    dull = np.array([bool(_DULL.match(line)) for line in lines])
    statement = begin.cumsum() - 1
    of_statement = np.zeros(statement[-1] + 1, dtype=bool)
    of_statement[statement[dull]] = True
    return of_statement[statement]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _inside(text: str) -> set[int]:
    """The places of line starts that are inside a string, a comment or round or square brackets."""
    found, open_, at = set(), [], 0
    if text.count('"""') % 2 and (head := _STARTS_INSIDE.match(text)):
        at = head.end()
        found |= {place + 1 for place in _breaks(text, 0, at)}
    for token in _TOKENS.finditer(text, at):
        if open_ and open_[-1] != "{":
            found |= {place + 1 for place in _breaks(text, at, token.start())}
        at = token.start()
        mark = token[0]
        if mark in "([{":
            open_.append(mark)
        elif mark in ")]}":
            if open_:
                open_.pop()
        else:
            found |= {place + 1 for place in _breaks(text, at, token.end())}
            at = token.end()
    if open_ and open_[-1] != "{":
        found |= {place + 1 for place in _breaks(text, at, len(text))}
    return found


def _breaks(text: str, start: int, end: int) -> list[int]:
    return [start + each.start() for each in _BREAK.finditer(text[start:end])]
