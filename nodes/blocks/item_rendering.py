"""From rows of items to bytes of blocks: passes the stored columns that are printed to the renderer.

Reads items with their stored rows. Gives `Printed` (the pieces of each item and its heading) and `rendered` (blocks).
Trimming calls it with the worst case of everything that is not yet known; projection calls it with the actual values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import constants, flat, gathered, gathered_columns, literal, objects
from ..rendering import (
    GROUPS,
    ItemLines,
    RenderedBlocks,
    assemble,
    authority_words,
    heads,
    item_lines,
    labels,
    shows_text,
)
from .masking import masked

Int = NDArray[np.int64]

_STORED = ("evidence_kind", "path", "title", "source_id", "authority", "event_time", "text_sha256")
"""The columns of a stored row that are printed besides its text."""
_GROUP_LINES = constants(tuple(f"{name}\n" for name in GROUPS.values()), pa.large_string())


@dataclass(frozen=True)
class Items:
    """Items to be printed, all arrays in item order, sorted by `owner` and place.

    `row` is the frame row of the leading row, `number` the n of its label, `line` and `end` the lines shown, `section`
    that of the first of them, `above` and `below` how many lines of its text are not shown, `dated` whether it says its own day,
    `shape` the output shape of its request and `style` its citation style, `mask` the classes its request masks (see
    `masking`; null = none).
    """

    owner: Int
    row: pa.Array
    number: Int
    line: pa.Array
    end: pa.Array
    above: pa.Array
    below: pa.Array
    dated: NDArray[np.bool_]
    section: pa.Array
    form: pa.Array
    standing: pa.Array
    conflict_note: pa.Array
    fact_note: pa.Array
    reason: pa.Array
    shape: NDArray[np.object_]
    style: NDArray[np.object_]
    mask: pa.Array

    def ways(self) -> list[pa.Array]:
        """Columns that determine how an item is printed, apart from its request: equal items print the same."""
        return [
            self.row, pa.array(self.number), self.line, self.end, self.above, self.below, pa.array(self.dated), self.section, self.form, self.standing, self.conflict_note,
            self.fact_note, self.reason,
        ]  # fmt: skip

    def take(self, index: Int) -> Items:
        """The items at `index`."""
        at = pa.array(index)
        parts = {
            name: part.take(at) if isinstance(part, pa.Array) else part[index] for name, part in vars(self).items()
        }
        return Items(**parts)


def printed(items: Items, evidence: pa.Table) -> ItemLines:
    """The pieces of each item."""
    stored = gathered_columns(evidence, _STORED, items.row)
    return item_lines(
        label=labels(stored["evidence_kind"], items.number),
        locator=masked(
            heads(stored["path"], stored["title"], stored["source_id"], items.line, items.end, items.section),
            items.mask,
        ),
        authority=authority_words(stored["authority"]),
        standing=items.standing,
        form=items.form,
        conflict_note=items.conflict_note,
        fact_note=items.fact_note,
        day=pc.if_else(pa.array(items.dated), _days(stored["event_time"]), None),
        reason=items.reason,
        text_sha256=stored["text_sha256"],
        style=pa.array(items.style, pa.string()),
        above=items.above,
        below=items.below,
        fenced=fenced(items.shape),
    )


def shared_days(owner: Int, row: pa.Array, evidence: pa.Table, count: int) -> list[str | None]:
    """The day that all items of each request share; None where they do not."""
    days = _days(gathered(evidence["event_time"], row)).dictionary_encode()
    code = np.asarray(days.indices.fill_null(-1)).astype(np.int64)
    low, high = np.full(count, len(code)), np.full(count, -1)
    np.minimum.at(low, owner, code)
    np.maximum.at(high, owner, code)
    names = days.dictionary.to_pylist()
    return [
        names[most] if least == most >= 0 else None for least, most in zip(low.tolist(), high.tolist(), strict=True)
    ]


def _days(times: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(times, pa.date32(), safe=False), pa.string())


def fenced(shapes: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Whether an item of this shape includes text."""
    return np.asarray(shows_text(shapes), dtype=bool)


def group_lines(kinds: pa.Array) -> pa.Array:
    """The heading of each kind in a model-brief, with its line break."""
    return _GROUP_LINES.take(pc.index_in(flat(kinds).cast(pa.string()), value_set=constants(tuple(GROUPS))))


def headings(owner: Int, kinds: pa.Array, shapes: NDArray[np.object_]) -> pa.Array:
    """The line before each item: the heading where a model-brief turns to another kind, else nothing."""
    brief = shapes == "model-brief"
    if not brief.any():
        return pa.repeat(literal(""), len(owner))
    kind = objects(kinds)
    turns = np.ones(len(owner), dtype=bool)
    turns[1:] = (owner[1:] != owner[:-1]) | (kind[1:] != kind[:-1])
    return pc.if_else(pa.array(turns & brief), group_lines(kinds), literal(""))


def rendered(items: Items, texts: pa.Array, evidence: pa.Table, count: int) -> RenderedBlocks:
    """`count` blocks; `texts` are the visible texts of the items."""
    kinds = gathered(evidence["evidence_kind"], items.row)
    days = shared_days(items.owner, items.row, evidence, count)
    items = replace(items, dated=np.array([day is None for day in days], dtype=bool)[items.owner])
    return assemble(
        items.owner, headings(items.owner, kinds, items.shape), printed(items, evidence), texts, days, count
    )
