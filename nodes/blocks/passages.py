"""Which passage of an item a cut keeps: the one that covers most of the query, not necessarily the head.

Reads the units of a text, the levels of its statements and what its request asks for. Gives `AskedWords`, `asked_by`,
`Cuts` and `best_passage`.

A text is cut between statements of code, paragraphs and list items of prose, as the importer found them (column
`statements` of EVIDENCE). A text without them, such as a log, may be cut before any line; and the parts of a long line
are what nests deepest, whatever the line is.

Note: words are compared by their first five letters, since terms are stems and texts are not. That is enough to choose
between the passages of one item, and affects nothing else. A cut keeps the head of an item unless another passage
covers clearly more; a log keeps its first error line; and of neighbors joined into one item, the passage lies in the
row that was ranked.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import constants
from ..columns.numbers import RESOLUTION
from .line_units import Measured, Units

__all__ = ["AskedWords", "Cuts", "asked_by", "best_passage"]

PREFIX = 5
"""Bytes of a word that are compared."""
_SHORT_ENDINGS = {4: ("s", "e", "i", "*"), 3: ("s", "es", "ed", "er", "in", "*e", "*i")}
"""Endings of words whose stem is shorter than the compared prefix; `*` repeats the last letter."""
_WORD = re.compile(rb"[A-Z]+[a-z0-9\x80-\xe2\xea-\xff]*|[a-z0-9\x80-\xe2\xea-\xff]+")
"""A word, or a hump of an identifier."""
_IDEOGRAPH = rb"[\xe3-\xe9][\x80-\xbf]{2}"
_PAIR = re.compile(rb"(%b)(?=(%b))" % (_IDEOGRAPH, _IDEOGRAPH))
"""Two adjacent ideographs, which form a term."""
_INSIDE_WORD = re.compile(rb"\w\w")

DULL = 127
"""The level of lines that answer nothing: imports and licences."""
PART = DULL - 1
"""The level of parts of a long line behind the first."""


@dataclass
class AskedWords:
    """What a request asks for, with weights in multiples of `RESOLUTION`: words by the prefixes that are compared, and
    the texts and names that are asked for as they are written."""

    words: dict[bytes, int] = field(default_factory=dict)
    literals: list[bytes] = field(default_factory=list)

    def add_term(self, term: str, weight: float) -> None:
        """Ask for a term; of two with the same prefix, the heavier counts."""
        for form in _forms(term):
            key = form.encode()
            self.words[key] = max(self.words.get(key, 0), round(weight / RESOLUTION))

    def add_literal(self, literal: str) -> None:
        """Ask for a text as it is written; it weighs twice as much as all words."""
        self.literals.append(literal.encode())

    def words_in(self, text: bytes) -> set[bytes]:
        """The asked words in a text: words, and humps of identifiers."""
        found = {word[:PREFIX].lower() for word in _WORD.findall(text)}
        if not text.isascii():
            found.update(first + second for first, second in _PAIR.findall(text))
        return found.intersection(self.words)


def asked_by(terms: pa.Table, anchors: pa.Table | None = None) -> dict[str, AskedWords]:
    """What each request asks for, by its id: rows of MATCH_TERMS, and literals and identifiers among ANCHORS."""
    asked: dict[str, AskedWords] = defaultdict(AskedWords)
    columns = (terms[name].to_pylist() for name in ("request_id", "term", "weight"))
    for request, term, weight in zip(*columns, strict=True):
        asked[request].add_term(term, weight)
    if anchors is not None:
        quoted = anchors.filter(pc.is_in(anchors["kind"], value_set=constants(("literal", "identifier"))))
        for request, value in zip(quoted["request_id"].to_pylist(), quoted["value"].to_pylist(), strict=True):
            asked[request].add_literal(value)
    return asked


def _forms(term: str) -> list[str]:
    """The prefixes of the words of a term; a term of few letters has several."""
    if not term.isascii():
        return [term[:2] if len(term.encode()) > PREFIX else term]
    if len(term) >= PREFIX:
        return [term[:PREFIX], *([f"{term[:-1]}y"] if len(term) == PREFIX and term.endswith("i") else [])]
    return [term, *(f"{term}{ending.replace('*', term[-1])}" for ending in _SHORT_ENDINGS.get(len(term), ()))]


class Cuts:
    """Where a text may begin and end."""

    def __init__(self, units: Units, levels: Sequence[int]) -> None:
        """`levels` are those of the lines of the text, see EVIDENCE; with fewer than the lines, nothing is known."""
        self._units, self._lines = units, levels

    @cached_property
    def _of_lines(self) -> list[int]:
        """The level of the line of each unit."""
        line = self._units.line
        return [self._lines[number] for number in line] if len(self._lines) > line[-1] else [1] * len(line)

    def is_dull(self, unit: int) -> bool:
        """Whether a unit answers nothing."""
        return self._of_lines[unit] == DULL

    @cached_property
    def _levels(self) -> list[int]:
        """How deep the statement nests that begins with each unit; the head of a text begins one."""
        levels = [
            PART if part and level != DULL else level
            for part, level in zip(self._units.part, self._of_lines, strict=True)
        ]
        levels[0] = levels[0] if levels[0] % DULL else 1
        return levels

    def may_begin(self, unit: int) -> bool:
        """Whether a text may begin with a unit."""
        return 0 < self._levels[unit] < DULL

    def _block_end(self, begin: int) -> int:
        """Where the block of the statement that begins with a unit ends."""
        if not self.may_begin(begin):
            return len(self._levels)
        level = self._levels[begin]
        for unit in range(begin + 1, len(self._levels)):
            other = self._levels[unit]
            if other not in (0, DULL) and level > (other if other > 0 else -other - 1):
                return unit
        return len(self._levels)

    def _last_inside(self, begin: int, limit: int) -> int:
        """The last unit up to a limit that begins a statement, but not the first of its block; else `begin`."""
        units = [unit for unit in range(limit + 1) if self.may_begin(unit) and self._levels[unit] != PART]
        for before, unit in zip(reversed(units[:-1]), reversed(units), strict=False):
            if unit <= begin:
                break
            if self._levels[unit] <= self._levels[before]:
                return unit
        return begin

    def end(self, begin: int, limit: int) -> int:
        """The last unit up to `limit` before which a text that begins at `begin` may end: after whole statements, else
        after the last one inside, else the limit. Nothing ends with a header, or with blank lines.
        """
        stop = self._block_end(begin)
        level = self._levels[begin]
        whole = stop
        if stop > limit:
            same = [
                unit for unit in range(begin + 1, limit + 1) if self._levels[unit] == level and self.may_begin(unit)
            ]
            whole = same[-1] if same else begin
        end = whole if whole > begin else self._last_inside(begin, limit)
        end = end if end > begin else limit
        return self._units.without_blank(min(begin + 1, end), end)


def best_passage(
    text: Measured, cuts: Cuts, closing: int, focus: tuple[int, int], log: bool, cap: int, most: int, asked: AskedWords
) -> tuple[int, int]:
    """The units [first, end) that are kept of a text, up to `closing`, that costs more than `cap`: whole statements.

    One unit is kept even if it costs more than `cap`, up to `most`. `focus` are the first and last unit of what was
    ranked, of a log its first error line.
    """
    first, last = focus

    def reach(start: int) -> int:
        end = text.tokens.reach(start, closing, cap)
        return start + 1 if end <= start < closing and text.tokens.cost(start, start + 1) <= most else end

    def passage(start: int) -> tuple[int, int]:
        end = reach(start)
        return start, cuts.end(start, end) if end < closing else end

    start, end = 0, reach(0)
    if end <= last and first > 0 and end < closing:
        start = max(first - 2 * log, 0)
        end = reach(start)
    if log or end >= closing:
        return start, end
    if not asked.words:
        return passage(start)
    begins = [unit for unit in range(start, max(last, start) + 1) if unit == start or cuts.may_begin(unit)]
    passages = [passage(unit) for unit in begins]
    of_unit = _gains(text.units, cuts, closing, asked)
    gains = [sum(dict(item for own in of_unit[first:end] for item in own.items()).values()) for first, end in passages]
    parts = [text.units.part[unit] for unit in begins]
    best = max(range(len(begins)), key=lambda at: (2 * gains[at] + (not parts[at]), -at))
    # Within a line, what is asked for is in the middle.
    same = best
    while same < len(begins) and parts[same] and gains[same] == gains[best]:
        same += 1
    best += max(same - best - 1, 0) // 2
    return passages[best if gains[best] > gains[0] else 0]


def _gains(units: Units, cuts: Cuts, closing: int, asked: AskedWords) -> list[dict[bytes, int]]:
    """For each unit up to `closing` what it contains of what is asked for: weights by word or literal."""
    words = asked.words
    gains = [
        {} if cuts.is_dull(unit) else {word: words[word] for word in asked.words_in(units.bytes_of(unit))}
        for unit in range(closing)
    ]
    weight = 2 * sum(words.values())
    for literal in asked.literals:
        for at in _whole_words(units.data[: units.end[closing - 1]], literal):
            unit = units.at(at)
            if not cuts.is_dull(unit):
                gains[unit][b" " + literal] = weight
    return gains


def _whole_words(text: bytes, literal: bytes) -> Iterator[int]:
    """Where a literal neither begins nor ends inside of a word."""
    at = text.find(literal)
    while at >= 0:
        edges = text[at - 1 : at + 1] if at else b"", text[at + len(literal) - 1 : at + len(literal) + 1]
        if not any(_INSIDE_WORD.fullmatch(edge) for edge in edges):
            yield at
        at = text.find(literal, at + 1)
