"""A document as lines of bytes, and the cutting of line ranges that are too long for one document chunk.

Gives: `Lines`, `Chunk`, `Outline` (what every splitter gives to `chunking`), `tidy` and `cut`. Lines end at `\\n` only;
a `\\r` before it stays in the line, so byte offsets are those of the file.

Note: a cut is chosen by the lines around it (a block's start, then a blank line before, then the least indentation,
then a checksum of the line), not by counting from the start. After an insertion the cuts below stay in place, so later
chunks keep their text and their identity.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from zlib import crc32

from ...nodes.blocks.line_units import last_cut

MAX_LINES = 60
MAX_BYTES = 4_000
"""Maximum length of a chunk in UTF-8 bytes, and so also in characters."""
HARD_LINES = 4 * MAX_LINES
HARD_BYTES = 4 * MAX_BYTES
"""Tables and fenced blocks are not cut up to this size."""
TINY_BYTES = 160
"""Below this a piece of code joins its neighbor."""
LINE_CHARACTERS = 2_000
"""Patterns match within this many characters of a line, to limit the cost of files with very long lines."""
_TAIL_LINES = 8
_SLACK = MAX_BYTES // 8
"""A long line is cut at most this many bytes before its pieces would be equal."""
_OVERLAP = 64
"""So many bytes at most are both before and behind a cut inside of a word."""


class Lines:
    """The lines of a document: `raw[i]` without its `\\n`, `starts[i]` its first byte, `starts[count]` the end."""

    def __init__(self, data: bytes) -> None:
        raw = data.split(b"\n")
        if not raw[-1]:
            raw.pop()
        self.data = data
        self.raw = raw
        self.count = len(raw)
        self.starts = [0, *accumulate(len(line) + 1 for line in raw)]
        self.starts[-1] = len(data)

    def blank(self, line: int) -> bool:
        """Whether the line has only ASCII white space."""
        return not self.raw[line].strip()

    def indent(self, line: int) -> int:
        """Columns of white space at the start of the line."""
        return len(self.raw[line]) - len(self.raw[line].lstrip(b" \t"))

    def text(self, start: int, end: int) -> bytes:
        """Lines [start, end)."""
        return self.data[self.starts[start] : self.starts[end]]

    def size(self, start: int, end: int) -> int:
        """The size in bytes of lines [start, end)."""
        return self.starts[end] - self.starts[start]

    def fits(self, start: int, end: int, lines: int = MAX_LINES, size: int = MAX_BYTES) -> bool:
        """Whether lines [start, end) are short enough for one chunk; blank lines at the end do not count."""
        while end > start and self.blank(end - 1):
            end -= 1
        return end - start <= lines and self.size(start, end) <= size

    def line_at(self, byte: int) -> int:
        """The line that contains a byte."""
        return bisect_right(self.starts, byte, hi=self.count) - 1

    @cached_property
    def strings(self) -> list[str]:
        """The lines as text, without `\\r` at the end."""
        return [line.decode("utf-8", "replace").rstrip("\r") for line in self.raw]


@dataclass(slots=True)
class Chunk:
    """Lines [start, end) that belong together. Cuts are preferred before `breaks` and not allowed before `whole`."""

    start: int
    end: int
    section: str | None = None
    breaks: Collection[int] = ()
    whole: Collection[int] = ()
    parent: str | None = None
    loose: bool = False


@dataclass(slots=True)
class Outline:
    """The result of a splitter: chunks in order, and names, references and links with their lines."""

    chunks: list[Chunk]
    symbols: list[tuple[int, str]] = field(default_factory=list)
    calls: list[tuple[int, str]] = field(default_factory=list)
    links: list[tuple[int, str]] = field(default_factory=list)
    statements: Sequence[int] | None = None
    """Where statements begin, by line, see `statements`; None = by blank lines and indentation."""
    content_types: Sequence[str] | None = None
    title: str | None = None
    start: int = 0
    """The first line of text: front matter is above it."""


def tidy(lines: Lines, outline: Outline) -> list[Chunk]:
    """Adjust the chunks to cover every line of text once, in order; blank lines join the chunk before them."""
    kept: list[Chunk] = []
    for chunk in outline.chunks:
        start = max(chunk.start, kept[-1].start + 1 if kept else 0)
        end = min(chunk.end, lines.count)
        while kept and start < end and lines.blank(start):
            start += 1
        if start >= end:
            continue
        if kept:
            kept[-1].end = start
        chunk.start, chunk.end = start, end
        kept.append(chunk)
    if not kept:
        kept = [Chunk(outline.start, lines.count)]
    kept[0].start, kept[-1].end = outline.start, lines.count
    if len(kept) > 1 and all(lines.blank(line) for line in range(kept[0].start, kept[0].end)):
        kept[1].start = outline.start
        kept.pop(0)
    return kept


def cut(lines: Lines, chunk: Chunk, statements: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges of bytes [start, end) that cover the chunk, each short enough for one document chunk.

    Cuts are at line ends; only a single line longer than a chunk is cut inside, and there between words. Where it has
    none, as in Chinese without a stop, the range behind the cut begins before it, so that a term at the cut is whole in
    one of the two.
    """
    ranges: list[tuple[int, int]] = []
    start = chunk.start
    while start < chunk.end:
        end = chunk.end if lines.fits(start, chunk.end) else _next_cut(lines, chunk, start, statements)
        if ranges and all(lines.blank(line) for line in range(start, end)):
            ranges[-1] = (ranges[-1][0], lines.starts[end])
        else:
            ranges.append((lines.starts[start], lines.starts[end]))
        start = end
    return [piece for first, last in ranges for piece in _pieces(lines, first, last)]


def _next_cut(lines: Lines, chunk: Chunk, start: int, statements: Sequence[int]) -> int:
    if chunk.end - start == 1:
        return chunk.end
    far = min(start + MAX_LINES, bisect_right(lines.starts, lines.starts[start] + MAX_BYTES) - 1)
    far = max(start + 1, min(far, chunk.end - 1))
    if chunk.end - far < _TAIL_LINES and far - start > 2 * _TAIL_LINES:
        far = chunk.end - _TAIL_LINES
    near = start + max(1, (far - start) // 3)
    best = _best(lines, chunk, near, far + 1, statements) or _best(lines, chunk, start + 1, near, statements)
    if best is not None:
        return best
    for line in range(far + 1, min(chunk.end, start + HARD_LINES) + 1):
        if lines.size(start, line) > HARD_BYTES:
            break
        if line == chunk.end or (line not in chunk.whole and not lines.blank(line)):
            return line
    return far


def _best(lines: Lines, chunk: Chunk, first: int, last: int, statements: Sequence[int]) -> int | None:
    best, best_key = None, None
    for line in range(first, last):
        if line in chunk.whole or lines.blank(line):
            continue
        key = (
            line not in chunk.breaks,
            statements[line] <= 0,
            not lines.blank(line - 1),
            lines.indent(line),
            crc32(lines.raw[line].strip()),
        )
        if best_key is None or key < best_key:
            best, best_key = line, key
    return best


def _pieces(lines: Lines, start: int, end: int) -> list[tuple[int, int]]:
    """One range, or equal pieces of it if it is one long line or exceeds the hard limit."""
    size = end - start
    first, last = lines.line_at(start), lines.line_at(end - 1)
    while first < last and lines.blank(last):
        last -= 1
    while first < last and lines.blank(first):
        first += 1
    if size <= HARD_BYTES and (first < last or lines.size(first, last + 1) <= MAX_BYTES):
        return [(start, end)]
    count = -(-size // (MAX_BYTES - _SLACK))
    cuts = [_boundary(lines.data, start + size * number // count) for number in range(1, count)]
    return list(zip([start, *(again for _, again in cuts)], [*(cut for cut, _ in cuts), end], strict=True))


def _boundary(data: bytes, at: int) -> tuple[int, int]:
    """The last place up to `at` where a word may end, else a character; and where the range behind it begins."""
    while data[at] & 0xC0 == 0x80:
        at -= 1
    text = data[at - _SLACK : at].decode("utf-8", "ignore")
    place, between = last_cut(text)
    at -= len(text[place:].encode("utf-8"))
    again = at if between else at - _OVERLAP
    while data[again] & 0xC0 == 0x80:
        again += 1
    return at, again
