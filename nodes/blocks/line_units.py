"""A text as the units that a budget may cut between, with what each costs when rendered.

Reads one item's text. Gives `Units` and `Measured`: running sums of tokens and characters, so that "how much of this
item fits" is one binary search.

A unit is a line with its break. A line of more than `LONG_LINE` bytes is cut further: after a sentence, or else before
the last space of every 256 bytes, or else, where there is none, every 64 bytes (see `last_cut`). No token of the base
counter spans a cut before a space or after an ideographic stop; a unit behind any other cut costs one token more than
alone, which is the most that such a cut can hide. The rules belong to the trimming policy `statement/1`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from operator import add
from typing import Any, NamedTuple

from ..columns.boundaries import last_cut
from ..columns.hidden_characters import escape
from ..rendering import MARGIN, requoted

LONG_LINE = 512
_STRIDE, _SOLID_STRIDE = 256, 64
_LAST_SPACE = re.compile(rb".*(?<=[^\x00- ]) ", re.DOTALL)
_SENTENCE_END = re.compile(rb"[.!?;](?= )")
_IDEOGRAPHIC_STOP = re.compile(rb"(?:\xe3\x80\x82|\xef\xbc[\x81\x9f\x9b])(?=[^\x00- ])")


class Unit(NamedTuple):
    """A line, or a part of a long one: its bytes without the line break, the number of the line, whether it continues
    the line, whether a token may span its start, and what the block shows of it."""

    size: int
    line: int
    part: bool
    forced: bool
    printed: str


class Units:
    """The units of a text, a list per column: first byte, end byte without the line break, bytes of the line break, and
    the columns of `Unit`."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        raw, printed = self.data.split(b"\n"), escape(text).split("\n")
        after = [2 if line[-1:] == b"\r" else 1 for line in raw]
        after[-1] = 0
        content = [line[:-1] if size == 2 else line for line, size in zip(raw, after, strict=True)]
        lines = zip(range(len(raw) - (not raw[-1])), content, printed, map(len, content), after, strict=False)
        # Most lines are a unit each.
        units = [
            unit
            for number, line, shown, size, ends in lines
            for unit in (
                _parts(line, number)
                if size > LONG_LINE
                else ((size, number, False, False, MARGIN + (shown[:-1] if ends == 2 else shown)),)
            )
        ]
        columns: Iterable[tuple[Any, ...]] = zip(*units, strict=True) if units else [()] * len(Unit._fields)
        self.size, self.line, self.part, self.forced, self.printed = map(list, columns)
        ends_line = [line != other for line, other in pairwise((*self.line, -1))]
        self.breaks = [after[line] if ends else 0 for line, ends in zip(self.line, ends_line, strict=True)]
        sums = [0, *accumulate(map(add, self.size, self.breaks))]
        self.start, self.end = sums[:-1], list(map(add, sums, self.size))

    def bytes_of(self, unit: int) -> bytes:
        """The text of a unit, without the line break."""
        return self.data[self.start[unit] : self.end[unit]]

    def at(self, byte: int) -> int:
        """The unit that contains a byte of the text."""
        return max(bisect_right(self.start, byte) - 1, 0)

    def without_blank(self, start: int, end: int) -> int:
        """The end of the units [start, end) without those at their end that are only white space."""
        while end > start and not self.printed[end - 1][0 if self.part[end - 1] else len(MARGIN) :].strip():
            end -= 1
        return end


def _parts(line: bytes, number: int) -> list[Unit]:
    """The units of a long line."""
    cuts = {0, len(line)}
    for stop in (_SENTENCE_END, _IDEOGRAPHIC_STOP):
        cuts.update([found.end() for found in stop.finditer(line)])
    forced: list[int] = []
    for low in range(0, len(line), _STRIDE):
        last = _LAST_SPACE.match(line, low, low + _STRIDE)
        if last:
            cuts.add(last.end() - 1)
        else:
            forced += _solid(line, low, min(low + _STRIDE, len(line)))
    return [
        Unit(
            end - start, number, start > 0, start in forced,
            (MARGIN if not start else "") + requoted(line[start:end].decode()),
        )
        for start, end in pairwise(sorted({*cuts, *forced}))
    ]  # fmt: skip


def _solid(line: bytes, start: int, end: int) -> list[int]:
    """Where a stretch without spaces is cut; it may start and end inside of a character."""
    while line[start] & 0xC0 == 0x80:
        start -= 1
    cuts: list[int] = []
    while end - start > _SOLID_STRIDE:
        text = line[start : start + _SOLID_STRIDE].decode("utf-8", "ignore")
        start += len(text[: last_cut(text)[0] or None].encode())
        cuts.append(start)
    return cuts


class Measured:
    """What the units of a text cost."""

    def __init__(self, units: Units, counted: Sequence[int]) -> None:
        """`counted` are the tokens of what is printed of each unit."""
        self.units = units
        self.tokens = Sums(map(add, counted, units.forced), units.breaks)
        self.chars = Sums(map(len, units.printed), units.breaks)

    def cost(self, start: int, end: int) -> tuple[int, int]:
        """Tokens and characters of the units [start, end); 0 where empty."""
        return self.tokens.cost(start, end), self.chars.cost(start, end)


class Sums:
    """Running sums of what units cost, each closed by a line break if it is the last one printed."""

    def __init__(self, sizes: Iterable[int], breaks: Sequence[int]) -> None:
        self._before = [0, *accumulate(map(add, sizes, breaks))]
        last = zip(self._before[1:], breaks, strict=True)
        self._closed = list(accumulate([after + (not size) for after, size in last], max))

    def cost(self, start: int, end: int) -> int:
        """The cost of the units [start, end)."""
        return self._closed[end - 1] - self._before[start] if end > start else 0

    def reach(self, start: int, stop: int, limit: int) -> int:
        """The end of the units from `start` on that fit into `limit`, at most `stop`."""
        return bisect_right(self._closed, self._before[start] + max(limit, 0), start, max(start, stop))
