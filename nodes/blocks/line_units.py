"""The texts of a request as the units that a budget may cut between, with what each costs when rendered.

Reads texts and the levels of their lines. Gives `Units`: running sums, so that "how much of this item fits" is one binary
search.

A unit is a line with its break. A line of more than `LONG_LINE` bytes is cut further: after a sentence, else before the last space of every 256 characters, or else, where there is none, every 64 bytes (see `last_cut`). A part costs as much
as if it were a line: one token more than alone, which is the most that a cut can hide from the base counter. The rules
belong to the trimming policy `statement/2`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from .rendering import quoted, requoted

LONG_LINE = 512
_SOLID = 64
_PART = re.compile(
    r".{0,255}?(?:[.!?;](?= )|[\u3002\uff01\uff1f\uff1b](?=\S))|(?=.[^ ]{0,254} ).{0,255}\S(?= |\Z)", re.DOTALL
)

DULL = 127
"""The level of lines that answer nothing: imports and licences."""
PART = DULL - 1
"""The level of parts of a long line behind the first: they nest deepest."""

_SOLID_BYTES = bytes(byte not in b" \t\n\r\x0b\f" for byte in range(256))
_SPACES, _NO_WORD = re.compile(r"\s+"), re.compile(r"\W+")
_JOINER = "\u200d"


def last_cut(text: str) -> tuple[int, bool]:
    """The last place inside of a text where it may be cut, 0 if there is none, and whether a word may end there.

    That is after white space, else after other characters that are no part of a word, else between two characters,
    but not before an accent, a vowel sign or a joiner, nor after a joiner.
    """
    for rule in (_SPACES, _NO_WORD):
        ends = [found.end() for found in rule.finditer(text)]
        if inside := [end for end in ends if end < len(text)]:
            return inside[-1], True
    at = len(text) - 1
    while at > 0 and (unicodedata.category(text[at])[0] in "MC" or text[at - 1] == _JOINER):
        at -= 1
    return max(at, 0), False


class Units:
    """The units of some texts, one after the other; those of text `i` are `first[i]:first[i + 1]`, or `first[i]:closing[i]`
    without blank lines at its end.

    `data` are the bytes of the texts, each with a line break behind it. `start`, `tokens` and `chars` have the first byte
    of each unit and what all units before it cost, and the totals. `level` is that of the line of each unit, see EVIDENCE;
    `solid` the end of the last unit before it that is not blank.
    """

    def __init__(self, texts: Sequence[str], levels: Sequence[Sequence[int]]) -> None:
        """`levels` are those of the lines of each text; where there are fewer than lines, every line begins a statement."""
        encoded = [text.encode() + b"\n" for text in texts]
        self.data = b"".join(encoded)
        starts = np.append(0, np.flatnonzero(np.frombuffer(self.data, np.uint8) == ord("\n")) + 1)
        edges = np.array([0, *accumulate(map(len, encoded))])
        self.start: list[int] = starts.tolist()
        self.printed = "".join([quoted(text) + "\n" for text in texts]).splitlines(keepends=True)
        self.level: list[int] = []
        counts = np.diff(starts.searchsorted(edges)).tolist()
        for text, own, count in zip(texts, levels, counts, strict=True):
            known = len(own) >= count - text.endswith("\n")
            self.level += [*own, 0][:count] if known else [1] * count
        for unit in np.flatnonzero(np.diff(starts) > LONG_LINE)[::-1].tolist():
            self._cut_line(unit)
        starts = np.array(self.start)
        self.first: list[int] = starts.searchsorted(edges).tolist()
        solid = np.maximum.reduceat(np.frombuffer(self.data.translate(_SOLID_BYTES), np.uint8), starts[:-1])
        ends = np.append(0, np.where(solid, np.arange(1, len(starts)), 0))
        self.solid: list[int] = np.maximum.accumulate(ends).tolist()
        self.closing = [self.without_blank(first, end) for first, end in pairwise(self.first)]
        self.chars = [0, *accumulate(map(len, self.printed))]
        self.tokens = self.chars

    def _cut_line(self, unit: int) -> None:
        """Make several units of one."""
        line = self.data[self.start[unit] : self.start[unit + 1] - 1].decode()
        cuts = [0]
        while cuts[-1] < len(line):
            found = _PART.match(line, cuts[-1])
            solid = line[cuts[-1] : cuts[-1] + _SOLID].encode()[:_SOLID].decode(errors="ignore")
            ends = cuts[-1] + len(solid) == len(line)
            cuts.append(found.end() if found else cuts[-1] + (len(solid) if ends else last_cut(solid)[0] or len(solid)))
        every = [line[low:high] for low, high in pairwise(cuts)]
        head, *parts = every
        level = self.level[unit]
        self.level[unit + 1 : unit + 1] = [DULL if level == DULL else PART] * len(parts)
        self.printed[unit : unit + 1] = [f"{quoted(head)}\n", *(f"{requoted(part)}\n" for part in parts)]
        sizes = [len(part.encode()) for part in every[:-1]]
        self.start[unit + 1 : unit + 1] = [*accumulate(sizes, initial=self.start[unit])][1:]

    def count(self, tokens: Sequence[int]) -> None:
        """Set the tokens of what is printed of each unit."""
        self.tokens = [0, *accumulate(tokens)]

    def cost(self, start: int, end: int) -> tuple[int, int]:
        """Tokens and characters of the units [start, end)."""
        return self.tokens[end] - self.tokens[start], self.chars[end] - self.chars[start]

    def reach(self, start: int, stop: int, tokens: int, chars: int) -> tuple[int, int]:
        """The end of the units from `start` on that fit, at most `stop`: by tokens and by characters."""
        by_tokens = bisect_right(self.tokens, self.tokens[start] + tokens, start + 1, stop + 1) - 1
        by_chars = bisect_right(self.chars, self.chars[start] + chars, start + 1, stop + 1) - 1
        return by_tokens, by_chars

    def at(self, byte: int) -> int:
        """The unit that contains a byte of `data`."""
        return bisect_right(self.start, byte) - 1

    def without_blank(self, start: int, end: int) -> int:
        """The end of the units [start, end) without blank ones at their end."""
        solid = self.solid[end]
        return solid if solid > start else start
