"""The text of an item and the positions of its parts in their document: shared by trimming and fact checks.

Reads packs, the pool, contracts and stored texts. Gives an `ItemText` per item, masked as the contract says, and the `Part` of
it that is shown.

Note: byte positions in the document are known only if they account for every byte of the text; masked secrets or changed
line endings make them unknown, and then they are null, not approximate.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import gathered, gathered_columns
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
    """The text of an item; `covered` are its bytes that are masked, and the others its place in the document."""

    text: str
    size: int
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

    def _line(self, below: int) -> int | None:
        line = None if self.line_start is None else self.line_start + below
        return line if line is None or self.line_end is None or line < self.line_end else self.line_end


def item_texts(items: pa.Table, pool: pa.Table, evidence: pa.Table, contracts: pa.Table) -> list[ItemText]:
    """The texts of `items`, rows of `packs`."""
    rows = gathered_columns(pool, ("row", "contract", *_PLACE), items["place"])
    text = gathered(evidence["text"], rows["row"])
    columns = (text, pc.binary_length(text), rows["contract"], *(rows[name] for name in _PLACE))
    masks = class_lists(contracts["mask"]).to_pylist()
    found = []
    for text, size, contract, first, last, start, end in zip(*(one.to_pylist() for one in columns), strict=True):
        exact, mask = None not in (start, end) and end - start == size, masks[contract]
        shown, covered = (text, []) if mask is None else masked_spans(text, mask)
        found.append(ItemText(shown, size, first, last, start if exact else None, covered))
    return found
