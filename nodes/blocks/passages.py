"""Which passage of an item a cut keeps: the one that covers most of the query, not necessarily the head.

Reads the units of texts, the levels of their lines and what a request asks for. Gives `AskedWords`, `asked_by` and
`best_passage`.

A text is cut between statements of code, paragraphs and list items of prose, as the importer found them (column
`statements` of EVIDENCE). A text without them, such as a log, may be cut before any line; and the parts of a long line
are what nests deepest, whatever the line is.

Note: words are compared by their first five letters, since terms are stems and texts are not. That is enough to choose
between the passages of one item, and affects nothing else. A cut keeps the head of an item unless another passage
covers more; a log keeps its first error line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

from ..columns.keys import constants
from ..columns.numbers import RESOLUTION
from .line_units import DULL, PART, Units

_QUIET = re2.Options()
_QUIET.log_errors = False
PREFIX = 5
"""Bytes of a word that are compared."""
_ENDINGS = {4: (b"s", b"e", b"i", b"*"), 3: (b"s", b"es", b"ed", b"er", b"in", b"*e", b"*i")}
"""Endings of words whose stem is shorter than the compared prefix; `*` repeats the last letter."""
_IDEOGRAPH = 0xE3
"""The first byte of ideographs and kana is at least this."""
_SEPARATOR, _LOWER, _UPPER = range(3)
_KIND = bytearray([_SEPARATOR] * 128 + [_LOWER] * 128)
_KIND[ord("0") : ord("9") + 1] = [_LOWER] * 10
_KIND[ord("a") : ord("z") + 1] = [_LOWER] * 26
_KIND[ord("A") : ord("Z") + 1] = [_UPPER] * 26


Hits = list[tuple[int, int, int]]
"""The units that contain what is asked for, ascending: unit, a bit for what that is, and its weight."""


class Word(NamedTuple):
    """What the words of a term begin with, and the ways in which they go on up to the fifth letter."""

    begin: bytes
    endings: tuple[bytes, ...]

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(term: str) -> Word:
        """Of a stem; of ideographs the first two."""
        data = term.encode()
        if data[0] >= _IDEOGRAPH:
            return Word(term[:2].encode(), (b"",))
        if len(data) == PREFIX and data.endswith(b"i"):
            return Word(data[:-1], (b"i", b"y"))
        twice = data[-1:]
        return Word(data[:PREFIX], (b"", *(end.replace(b"*", twice) for end in _ENDINGS.get(len(data), ()))))

    def places(self, text: bytes, lowered: bytes) -> Iterator[tuple[int, int]]:
        """Where such words, or humps of identifiers, begin in a text, and which of the endings each has."""
        begin, endings = self
        length, size = len(begin), len(text)
        at = lowered.find(begin)
        while at >= 0:
            before = _KIND[text[at - 1]] if at else _SEPARATOR
            if not before or begin[0] >= _IDEOGRAPH or (before == _LOWER and _KIND[text[at]] == _UPPER):
                first = end = at + length
                while end < at + PREFIX and end < size:
                    kind = _KIND[text[end]]
                    if not kind or (kind == _UPPER and _KIND[text[end - 1]] == _LOWER):
                        break
                    end += 1
                if first == end:
                    yield at, 0
                elif lowered[first:end] in endings:
                    yield at, endings.index(lowered[first:end])
            at = lowered.find(begin, at + 1)


@dataclass
class AskedWords:
    """What a request asks for, with weights in multiples of `RESOLUTION`: words, and the places of texts, names and regular
    expressions that are asked for as they are written."""

    words: dict[Word, int] = field(default_factory=dict)
    written: list[Callable[[bytes], Iterable[int]]] = field(default_factory=list)

    def add_term(self, term: str, weight: float) -> None:
        """Ask for a term; of two with the same words, the heavier counts."""
        word = Word.of(term)
        self.words[word] = max(self.words.get(word, 0), round(weight / RESOLUTION))

    def hits(self, units: Units) -> Hits:
        """Where units that are not dull contain what is asked for; a literal weighs twice as much as all words."""
        data, lowered = units.data, units.data.lower()
        found: list[tuple[int, int]] = []
        weights: list[int] = []
        for word, weight in self.words.items():
            number = len(weights)
            found += [(at, number + ending) for at, ending in word.places(data, lowered)]
            weights += [weight] * len(word.endings)
        bounds = [(units.start[low], units.start[high]) for low, high in pairwise(units.first)]
        for number, places in enumerate(self.written, len(weights)):
            found += [(low + at, number) for low, high in bounds for at in places(data[low:high])]
        weights += [2 * sum(self.words.values()) or 1] * len(self.written)
        at, of = np.array(found, np.int64).reshape(-1, 2).T
        unit = np.searchsorted(units.start, at, "right") - 1
        pairs = sorted({*zip(unit.tolist(), of.tolist(), strict=True)})
        return [(unit, 1 << number, weights[number]) for unit, number in pairs if units.level[unit] != DULL]


def asked_by(words: Mapping[tuple[str, str], float], anchors: pa.Table) -> dict[str, AskedWords]:
    """What each request asks for, by its id: the terms of the lexical lane, and the anchors that are asked for as written."""
    asked: dict[str, AskedWords] = defaultdict(AskedWords)
    for (request, term), weight in words.items():
        asked[request].add_term(term, weight)
    written = anchors.filter(pc.is_in(anchors["kind"], value_set=constants(tuple(_WRITTEN))))
    for request, kind, value in zip(
        *(written[name].to_pylist() for name in ("request_id", "kind", "value")), strict=True
    ):
        asked[request].written.append(partial(_WRITTEN[kind], value))
    return asked


def _matches(regex: str, text: bytes) -> Iterator[int]:
    return (max(found.start(), found.end() - 1) for found in re2.finditer(regex, text, _QUIET))


def _whole_words(written: str, text: bytes) -> Iterator[int]:
    """Where a literal neither begins nor ends inside of a word."""
    literal = written.encode()
    at = text.find(literal)
    while at >= 0:
        edges = text[at - 1 : at + 1] if at else b"", text[at + len(literal) - 1 : at + len(literal) + 1]
        if not any(len(edge) == 2 and edge.replace(b"_", b"a").isalnum() for edge in edges):
            yield at
        at = text.find(literal, at + 1)


_WRITTEN = {"literal": _whole_words, "identifier": _whole_words, "regex": _matches}
"""Where the anchors of a kind are in a text."""


def best_passage(
    units: Units, opening: int, closing: int, error: int | None, limits: tuple[int, int], hits: Hits
) -> tuple[int, int]:
    """The units [first, end) that are kept of the text [opening, closing): whole statements.

    The text exceeds the limits, of tokens and of characters; `error` is the unit of a log's first error line, else its first.
    """
    start, end = opening, min(units.reach(opening, closing, *limits))
    if error is not None and end <= error:
        start = max(error - 2, opening)
        end = min(units.reach(start, closing, *limits))
    if error is not None or end >= closing:
        return start, units.without_blank(start, end)
    head = best = start, _end(units, start, end)
    hits = hits[bisect_left(hits, (start,)) : bisect_left(hits, (closing,))]
    most, everything = _gain(hits, *head), _gain(hits, start, closing)
    tried, levels = start, units.level

    def passage(begin: int) -> tuple[int, int]:
        end = min(units.reach(begin, closing, *limits))
        return begin, end if end >= closing else _end(units, begin, end)

    containing = {unit for unit, _, _ in hits} if most < everything else ()
    for unit in sorted(containing):
        # A passage begins with the statement, or the part of a long line, that contains a word.
        begin = _begin(levels, unit, tried)
        if begin > tried:
            tried, other = begin, passage(begin)
            gain = _gain(hits, *other)
            if gain > most:
                best, most = other, gain
    # What stands above is shown as far as nothing is lost by it; inside of a long line, one part.
    while best != head:
        above = passage(_begin(levels, best[0] - 1, start))
        if above[0] == start or _gain(hits, *above) < most:
            break
        of_line = levels[best[0]] == PART
        best = above
        if of_line:
            break
    return best


def _begin(levels: list[int], unit: int, first: int) -> int:
    """The last unit up to `unit` with which a passage may begin, else `first`."""
    while unit > first and not 0 < levels[unit] < DULL:
        unit -= 1
    return unit if unit > first else first


def _gain(hits: Hits, start: int, end: int) -> int:
    """The weight of what the units [start, end) contain; each word counts once."""
    seen = gain = 0
    for unit, bit, weight in hits:
        if start <= unit < end and not seen & bit:
            seen |= bit
            gain += weight
    return gain


def _end(units: Units, begin: int, limit: int) -> int:
    """The last unit up to `limit` before which a text that begins at `begin` may end: after whole statements, else
    after the last one inside, else the limit. Nothing ends with a header, or with blank lines.
    """
    levels = units.level
    own = before = levels[begin] if 0 < levels[begin] < DULL else 1
    whole = inside = begin
    for unit in range(begin + 1, limit + 1):
        level = levels[unit]
        if level in (0, DULL):
            continue
        if own > (level if level > 0 else -level - 1):
            whole = unit
            break
        if level == own:
            whole = unit
        if 0 < level != PART:
            inside = unit if level <= before else inside
            before = level
    end = whole if whole > begin else inside if inside > begin else limit
    return units.without_blank(begin, end)
