"""The text of an item and the positions of its parts in their document: shared by trimming and fact checks.

Reads packs, the pool, contracts and stored texts. Gives an `ItemText` per item (one row's text, or neighbors joined in
document order, masked as the contract says) and the `Part` of it that is shown.

Note: a joined text is the document's own bytes wherever the rows lie side by side. A line break between two rows that
belongs to neither is restored. Byte positions in the document are known only if they account for every byte of the
text; masked secrets or changed line endings make them unknown, and then they are null, not approximate.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import flattened, gathered, gathered_columns
from .masking import Span, class_lists, masked_spans

_PLACE = ("line_start", "line_end", "byte_start", "byte_end")


class Part(NamedTuple):
    """A part of a text, its place in the document, and how many lines of the text are above and below it."""

    text: str
    first: int | None
    last: int | None
    byte_start: int | None
    above: int
    below: int


class ItemText(NamedTuple):
    """The text of an item. `members` are the places in the pool of its rows, in document order, `rows` their rows of the
    frame, `starts` the first byte of each in the text, `lead` the bytes of the leading row, `covered` those that are masked;
    the others are its place in the document.
    """

    text: str
    size: int
    members: list[int]
    rows: list[int]
    starts: list[int]
    lead: tuple[int, int]
    line_start: int | None
    line_end: int | None
    byte_start: int | None
    covered: list[Span]

    def part(self, start: int, end: int) -> Part:
        """The part [start, end). Blank lines at the end of the text are not below it, and no line is below the last one
        in the file, which a record with more lines of text than of its own has.
        """
        data = self.text.encode()
        above, inside = data.count(b"\n", 0, start), data.count(b"\n", start, end)
        below = data.rstrip().count(b"\n", end)
        byte = None if self.byte_start is None else self.byte_start + start
        return Part(data[start:end].decode(), self._line(above), self._line(above + inside), byte, above, below)

    def member(self, byte: int) -> int:
        """The number of the member that a byte is in."""
        return bisect_right(self.starts, byte) - 1

    def within(self, start: int, end: int) -> list[int]:
        """The members that are in [start, end) at least in part."""
        ends = [*self.starts[1:], self.size]
        return [
            place
            for place, low, high in zip(self.members, self.starts, ends, strict=True)
            if low < end and high > start
        ]

    def _line(self, below: int) -> int | None:
        line = None if self.line_start is None else self.line_start + below
        return line if line is None or self.line_end is None or line < self.line_end else self.line_end


def item_texts(items: pa.Table, pool: pa.Table, evidence: pa.Table, contracts: pa.Table) -> list[ItemText]:
    """The texts of `items`, rows of `packs` that were kept, whose members are places in the pool."""
    item, members = flattened(items["members"])
    rows = gathered_columns(pool, ("row", "contract", *_PLACE), members)
    text = gathered(evidence["text"], rows["row"])
    columns = (members, rows["row"], text, pc.binary_length(text), rows["contract"], *(rows[name] for name in _PLACE))
    stored = [*zip(*(column.to_pylist() for column in columns), strict=True)]
    edges = item.searchsorted(np.arange(items.num_rows + 1)).tolist()
    own = (stored[first:stop] for first, stop in pairwise(edges))
    masks = class_lists(contracts["mask"]).to_pylist()
    return [_joined(rows, lead, masks) for rows, lead in zip(own, items["place"].to_pylist(), strict=True)]


def _joined(members: Sequence[Sequence[Any]], leading: int, masks: Sequence[str | None]) -> ItemText:
    """The members of an item, in document order, as one text, masked as its contract says."""
    parts, starts, lead, size = list[str](), list[int](), (0, 0), 0
    for place, _, text, length, *_ in members:
        if parts and not parts[-1].endswith("\n"):
            parts.append("\n")
            size += 1
        starts.append(size)
        parts.append(text)
        size += length
        lead = (size - length, size) if place == leading else lead
    (*_, contract, line_start, _, byte_start, _), (*_, line_end, _, byte_end) = members[0], members[-1]
    exact = None not in (byte_start, byte_end) and byte_end - byte_start == size
    places, rows = [member[0] for member in members], [member[1] for member in members]
    at = byte_start if exact else None
    text, covered, mask = "".join(parts), [], masks[contract]
    if mask is not None:
        text, covered = masked_spans(text, mask)
    return ItemText(text, size, places, rows, starts, lead, line_start, line_end, at, covered)
