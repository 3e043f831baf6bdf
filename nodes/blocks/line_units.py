"""Texts as the units a budget may cut between, with what each costs when rendered.

Reads item texts. Gives `Units`: where each unit ends, and running sums of tokens and characters, so that "how much of
this item fits" is one binary search for all items at once.

A unit is a line with its break. A line of more than `LONG_LINE` bytes is cut further: after a sentence, or else before
the last space of every 256 bytes, or else, where there is none, every 64 bytes (see `last_cut`). No token of the base
counter spans a cut before a space or after an ideographic stop; a unit behind any other cut costs one token more than
alone, which is the most that such a cut can hide. The rules belong to the trimming policy `statement/1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.array_bytes import offsets_and_bytes
from ..columns.boundaries import last_cut
from ..columns.keys import NOWHERE
from ..columns.ragged import expand_ranges, starts_of
from ..rendering import MARGIN, quoted, requoted
from .byte_runs import plain, unit_tokens
from .item_texts import slices
from .token_counting import BASE, Counters

LONG_LINE = 512
_STRIDE, _SOLID_STRIDE = 256, 64
_NEWLINE, _RETURN, _SPACE = 10, 13, 32
_ENDS_SENTENCE = np.isin(np.arange(256), [*b".!?;"])
_IDEOGRAPHIC_STOPS = (b"\xe3\x80\x82", b"\xef\xbc\x81", b"\xef\xbc\x9f", b"\xef\xbc\x9b")

ERROR_LINE = r"^E   |\b[A-Z]\w*(Error|Exception|Failure)\b|\b(FAILED|FAIL|ERROR|FATAL|panic|Traceback)\b|●|✕|✗"
"""An error line; a cut log keeps the first of them."""

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Units:
    """Units of all items, one after the other; those of item `i` are `first[i]:first[i + 1]`.

    `tokens[k]` and `chars[k]` are the cost of all units up to `k`, rendered and closed by a line break;
    `before_tokens[k]` and `before_chars[k]` that of the units before it. `start` and `end` are bytes of the item's
    text, `end` without the line break; `line[k]` counts the lines that ended before unit `k`, `solid[k]` the units
    before it that are not only white space.
    """

    first: Int
    start: Int
    end: Int
    line: Int
    tokens: Int
    chars: Int
    before_tokens: Int
    before_chars: Int
    solid: Int
    part: NDArray[np.bool_]
    """Whether each unit continues a line."""
    every: pa.Array
    """The text of each unit, its line break included."""

    def fitting(self, start: Int, stop: Int, tokens: Int, chars: Int) -> tuple[Int, Int]:
        """The end unit, exclusive, that fits from unit `start` on: by tokens and by characters, elementwise."""
        ends = []
        for closed, before, limit in (
            (self.tokens, self.before_tokens, tokens),
            (self.chars, self.before_chars, chars),
        ):
            end = closed.searchsorted(before[start] + np.maximum(limit, 0), "right")
            ends.append(np.minimum(np.maximum(end, start), stop))
        return ends[0], ends[1]

    def cost(self, start: Int, end: Int) -> tuple[Int, Int]:
        """Tokens and characters of units [start, end), elementwise; 0 where empty."""
        if not len(self.tokens):
            return np.zeros_like(start), np.zeros_like(start)
        some = end > start
        last = np.maximum(end - 1, 0)
        return (
            np.where(some, self.tokens[last] - self.before_tokens[start], 0),
            np.where(some, self.chars[last] - self.before_chars[start], 0),
        )


def units_of(texts: pa.Array, counters: Counters, names: Sequence[str], which: Int) -> Units:
    """The units of each text; text `i` is counted by the counter `names[which[i]]`."""
    offsets, data = offsets_and_bytes(texts)
    bounds, forced = _bounds(offsets, data)
    starts, ends = bounds[:-1], bounds[1:]
    first = starts.searchsorted(offsets)
    closed = data[ends - 1] == _NEWLINE
    returned = closed & (ends - starts > 1) & (data[ends - 2] == _RETURN)
    breaks = closed.astype(np.int64) + returned
    # A unit starts a line if it starts its text or follows a line break.
    opens = np.zeros(len(data) + 1, dtype=bool)
    opens[offsets] = True
    opens = opens[starts]
    opens[1:] |= closed[:-1]
    owner = np.arange(len(texts)).repeat(first[1:] - first[:-1])
    every = pa.Array.from_buffers(pa.large_string(), len(starts), [None, pa.py_buffer(bounds), pa.py_buffer(data)])

    tokens, solid = unit_tokens(data, starts, opens)
    tokens, chars = tokens - breaks, ends - starts - breaks + len(MARGIN) * opens
    fast = plain(offsets, data) & np.array([name == BASE for name in names], dtype=bool)[which]
    slow = (~fast[owner]).nonzero()[0]
    if len(slow):
        content = _cut(every, slow, (ends - breaks - starts)[slow])
        shown = zip(content.to_pylist(), opens[slow].tolist(), strict=True)
        rendered = pa.array([(quoted if opened else requoted)(text) for text, opened in shown], pa.large_string())
        tokens[slow] = counters.count(rendered, names, which[owner[slow]])
        chars[slow] = np.asarray(pc.utf8_length(rendered))
        solid[slow] = ~np.asarray(pc.or_(pc.utf8_is_space(content), pc.equal(pc.binary_length(content), 0)))
    tokens[starts.searchsorted(forced)] += 1
    running = [starts_of(counted + breaks) for counted in (tokens, chars)]
    return Units(
        first=first,
        start=starts - offsets[owner],
        end=ends - breaks - offsets[owner],
        line=starts_of(closed.astype(np.int64)),
        tokens=np.maximum.accumulate(running[0][1:] + ~closed),
        chars=running[1][1:] + ~closed,
        before_tokens=running[0],
        before_chars=running[1],
        solid=starts_of(solid.astype(np.int64)),
        part=~opens,
        every=every,
    )


def focus_units(units: Units, logs: NDArray[np.bool_], lead_start: Int, lead_end: Int) -> tuple[Int, Int]:
    """The units of each item that a cut should keep, first and last: a log's first error line, else its leading row."""
    first = units.first[:-1].copy()
    owner = np.arange(len(logs)).repeat(units.first[1:] - units.first[:-1])
    # Starts ascend inside an item; shifting each item by its number times a bound makes them ascend overall.
    width = int(units.end.max(initial=0)) + 2
    starts, shift = units.start + owner * width, np.arange(len(logs)) * width
    last = np.maximum(starts.searchsorted(np.maximum(lead_end, 1) - 1 + shift, "right") - 1, first)
    inside = (lead_start > 0).nonzero()[0]
    if len(inside):
        first[inside] = starts.searchsorted(lead_start[inside] + shift[inside], "right") - 1
    chosen = logs[owner].nonzero()[0]
    if len(chosen):
        wrong = np.asarray(pc.match_substring_regex(units.every.take(pa.array(chosen)), pattern=ERROR_LINE))
        hits = chosen[wrong]
        of_item, at = np.unique(owner[hits], return_index=True)
        first[of_item] = last[of_item] = hits[at]
    return first, last


def _bounds(offsets: Int, data: NDArray[np.uint8]) -> tuple[Int, Int]:
    """Every place where a unit starts or ends, ascending, and those of them that a token may span."""
    line_ends = (data == _NEWLINE).nonzero()[0] + 1
    marked = np.zeros(len(data) + 1, dtype=bool)
    marked[offsets] = marked[line_ends] = True
    bounds = marked.nonzero()[0]
    length = bounds[1:] - bounds[:-1]
    long = length > LONG_LINE
    if not long.any():
        return bounds, NOWHERE
    cut = (data[1:] == _SPACE) & (data[:-1] > _SPACE) & long.repeat(length)[1:]
    at = cut.nonzero()[0] + 1
    marked[at[_ENDS_SENTENCE[data[at - 1]]]] = True
    spaces = np.append(-1, at)
    strides = np.where(long, -(-length // _STRIDE), 0)
    low = bounds[:-1].repeat(strides) + _STRIDE * expand_ranges(np.zeros_like(strides), strides)
    high = np.minimum(low + _STRIDE, bounds[1:].repeat(strides))
    last = spaces[spaces.searchsorted(high) - 1]
    marked[last[last >= low]] = True
    solid = last < low
    forced = [
        cut for pair in zip(low[solid].tolist(), high[solid].tolist(), strict=True) for cut in _solid(data, *pair)
    ]
    marked[forced] = True
    for stop in _IDEOGRAPHIC_STOPS if data.max() > 127 else ():
        head, middle, tail = (data[i : len(data) - 2 + i] for i in range(3))
        at = ((head == stop[0]) & (middle == stop[1]) & (tail == stop[2])).nonzero()[0] + 3
        at = at[at < len(data)]
        line = bounds.searchsorted(at, "right") - 1
        # No cut at the end of a line: its break belongs to the line.
        marked[at[long[line] & (data[at] > _SPACE)]] = True
    return marked.nonzero()[0], np.array(forced, np.int64)


def _solid(data: NDArray[np.uint8], start: int, end: int) -> list[int]:
    """Where a stretch without spaces is cut; it may start and end inside of a character."""
    while data[start] & 0xC0 == 0x80:
        start -= 1
    cuts: list[int] = []
    while end - start > _SOLID_STRIDE:
        text = data[start : start + _SOLID_STRIDE].tobytes().decode("utf-8", "ignore")
        start += len(text[: last_cut(text)[0] or None].encode())
        cuts.append(start)
    return cuts


def _cut(texts: pa.Array, index: Int, length: Int) -> pa.Array:
    """The first `length` bytes of the texts at `index`."""
    return slices(texts.take(pa.array(index)), np.zeros(len(index), np.int64), length)
