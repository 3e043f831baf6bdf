"""The text of an item and the positions of its parts in their document: shared by trimming and citation.

Reads packs, the pool and stored texts. Gives `ItemTexts`: per item its text (one row's, or neighbors joined in document order),
and per member row its byte range in that text and its position in the document.

Note: a joined text is the document's own bytes wherever the rows lie side by side. A line break between two rows that
belongs to neither is restored. Byte positions in the document are known only if they account for every byte of the
text; masked secrets or changed line endings make them unknown, and then they are null, not approximate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import (
    first_of_runs,
    flattened,
    gathered,
    gathered_columns,
    integers,
    last_of_runs,
    literal,
    run_lengths,
)

Int = NDArray[np.int64]
_PLACE = ("line_start", "line_end", "byte_start", "byte_end")
_ENDS = ("line_end", "byte_end")


@dataclass(frozen=True)
class ItemTexts:
    """Texts of items, and the members of each in document order."""

    text: pa.Array
    """large_string, one per item."""
    item: Int
    """Item of each member, ascending."""
    member_id: pa.Array
    """Evidence id of each member."""
    member_place: Int
    """Place in the pool of each member."""
    member_row: Int
    """Frame row of each member."""
    first: Int
    """First member of each item."""
    start: Int
    """First byte of each member in its item's text."""
    lead_start: Int
    """First byte of the leading row in its item's text, one per item."""
    lead_end: Int
    """End byte of the leading row in its item's text, exclusive, one per item."""
    line_start: pa.Array
    """First line of each item in its document; null = unknown."""
    line_end: pa.Array
    """Last line of each item in its document; null = unknown."""
    byte_start: pa.Array
    """First byte of each item in its document; null = unknown or not exact."""
    size: Int
    """Bytes of each item's text."""


def item_texts(items: pa.Table, pool: pa.Table, evidence: pa.Table) -> ItemTexts:
    """The texts of `items`, rows of `packs` that were kept, whose members are places in the pool."""
    item, members = flattened(items["members"])
    alone = len(item) == items.num_rows
    rows = gathered_columns(pool, ("evidence_id", "row", *_PLACE), members)
    row, place = integers(rows["row"]), {name: rows[name] for name in _PLACE}
    text = gathered(evidence["text"], row)
    size = np.asarray(pc.binary_length(text)).astype(np.int64)
    start = np.zeros(len(item), dtype=np.int64)
    opening = ending = lead = item
    whole = size
    if not alone:
        opening, ending = first_of_runs(item), last_of_runs(item)
        open_end = ~np.asarray(pc.ends_with(text, "\n"))
        open_end[ending] = False
        text = _joined(
            pc.if_else(pa.array(open_end), pc.binary_join_element_wise(text, literal("\n"), literal("")), text), opening
        )
        size = size + open_end
        before = size.cumsum() - size
        start = before - before[opening].repeat(run_lengths(opening, len(item)))
        place = {name: column.take(pa.array(ending if name in _ENDS else opening)) for name, column in place.items()}
        whole = (start + size)[ending]
        lead = (integers(members) == integers(items["place"])[item]).nonzero()[0]
    exact = pc.equal(pc.subtract(place["byte_end"], place["byte_start"]), pa.array(whole))
    return ItemTexts(
        text=text,
        item=item,
        member_id=rows["evidence_id"],
        member_place=integers(members),
        member_row=row,
        first=opening,
        start=start,
        lead_start=start[lead],
        lead_end=(start + size)[lead],
        line_start=place["line_start"],
        line_end=place["line_end"],
        byte_start=pc.if_else(exact, place["byte_start"], None),
        size=whole,
    )


def _joined(text: pa.Array, opening: Int) -> pa.Array:
    offsets = pa.array(np.concatenate((opening, [len(text)])))
    return pc.binary_join(pa.LargeListArray.from_arrays(offsets, text), literal(""))


def resolvable(
    line_start: pa.Array, byte_start: pa.Array, version: pa.Array, path: pa.Array, text_sha256: pa.Array
) -> pa.Array:
    """Whether a citation can be resolved to its text: it needs a hash and a position.

    A position is a range of lines or bytes, or the version of the text; a record without a path needs none.
    """
    span = pc.or_(line_start.is_valid(), byte_start.is_valid())
    whole = pc.or_(version.is_valid(), path.is_null())
    return pc.and_(pc.or_(span, whole), text_sha256.is_valid())


def slices(texts: pa.Array, start: Int, end: Int) -> pa.Array:
    """Bytes [start, end) of each text; the positions must lie between characters."""
    if not len(texts):
        return texts
    _, offset_buffer, data = texts.buffers()
    first = np.frombuffer(offset_buffer, np.int64)[texts.offset : texts.offset + len(texts)]
    spread = np.empty(2 * len(texts) + 1, np.int64)
    spread[0:-1:2], spread[1::2] = first + start, first + end
    spread[-1] = spread[-2]
    every = pa.Array.from_buffers(pa.large_string(), 2 * len(texts), [None, pa.py_buffer(spread), data])
    return every.take(pa.array(np.arange(0, 2 * len(texts), 2)))
