"""From items to bytes of blocks: passes the stored columns that are printed to the renderer.

Reads items with their stored rows. Gives `Row`, `Item` and `Look`, `lines_of` (the printed parts of an item) and
`rendered` (a block). Trimming calls it with the worst case of everything that is not yet known; projection calls it
with the actual values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import gathered_columns, integers
from ..rendering import GROUPS, ItemLines, assemble, authority_word, clean, head, item_lines, shows_text
from .masking import class_lists, masked_text

_STORED = ("evidence_kind", "path", "title", "source_id", "authority", "event_time", "text_sha256")


class Row(NamedTuple):
    """The columns of a stored row that are printed besides its text; `day` is the date of its event."""

    kind: str
    path: str | None
    title: str | None
    source: str
    authority: int | None
    day: str | None
    text_sha256: str


class Item(NamedTuple):
    """An item to be printed.

    `row` is its leading row, `number` the n of its label, `first` and `last` the lines shown, `section` that of the
    first of them, `above` and `below` how many lines of its text are not shown, `cut` whether anything is not shown.
    """

    row: Row
    number: int
    first: int | None
    last: int | None
    above: int
    below: int
    cut: bool
    section: str | None
    form: str
    standing: str
    conflict_note: bool
    fact_note: str | None
    reason: str | None


class Look(NamedTuple):
    """How a request prints its items: output shape, citation style, and the classes it masks (see `masking`)."""

    shape: str
    style: str
    mask: str | None
    fenced: bool
    """Whether items include text."""

    def heading(self, kind: str) -> str:
        """The line before the first item of a kind; empty where nothing has a heading."""
        return f"{GROUPS[kind]}\n" if self.shape == "model-brief" else ""


def looks_of(contracts: pa.Table) -> list[Look]:
    """How each contract prints its items."""
    columns = (contracts["output_shape"], contracts["citation_style"], class_lists(contracts["mask"]))
    values = zip(*(column.to_pylist() for column in columns), strict=True)
    return [Look(shape, style, mask, shows_text(shape)) for shape, style, mask in values]


def reasons(items: pa.Table, ranked: pa.Table, looks: Sequence[Look]) -> list[str | None]:
    """The short reason of selection of each item, which only items without text print."""
    if all(look.fenced for look in looks):
        return [None] * items.num_rows
    at = np.empty(ranked.num_rows, dtype=np.int64)  # the position in `ranked` of each row of the pool
    at[integers(ranked["place"])] = np.arange(ranked.num_rows)
    return ranked["selected_reason"].take(pa.array(at[integers(items["place"])])).to_pylist()


def rows_at(evidence: pa.Table, index: pa.Array | NDArray[np.int64]) -> list[Row]:
    """Stored rows as they are printed."""
    stored = gathered_columns(evidence, _STORED, index)
    stored["event_time"] = pc.cast(pc.cast(stored["event_time"], pa.date32(), safe=False), pa.string())
    return [Row(*values) for values in zip(*(column.to_pylist() for column in stored.values()), strict=True)]


def shared_day(rows: Sequence[Row]) -> str | None:
    """The day that all rows have; None where they do not share one."""
    days = {row.day for row in rows}
    return days.pop() if len(days) == 1 else None


def ambiguous_paths(rows: Sequence[Row]) -> set[str | None]:
    """The paths that several sources have, such as two work trees of a repository."""
    paths = Counter([path for path, _ in {(row.path, row.source) for row in rows}])
    return {path for path, sources in paths.items() if path is not None and sources > 1}


def lines_of(item: Item, look: Look, *, dated: bool, sourced: bool) -> ItemLines:
    """The printed parts of an item; it says its own day if it is `dated`, and its source if it is `sourced`."""
    row = item.row
    place = head(row.path, row.title, row.source, item.first, item.last, item.section)
    place += f" ({clean(row.source)})" if sourced else ""
    return item_lines(
        label=f"{row.kind}#{item.number}",
        place=place if look.mask is None else masked_text(place, look.mask),
        authority=authority_word(row.authority),
        standing=item.standing,
        form=item.form,
        conflict_note=item.conflict_note,
        fact_note=item.fact_note,
        day=row.day if dated else None,
        reason=item.reason,
        text_sha256=row.text_sha256,
        style=look.style,
        above=item.above,
        below=item.below,
        cut=item.cut,
        fenced=look.fenced,
    )


def rendered(items: Sequence[Item], texts: Sequence[str], look: Look) -> tuple[str, str | None]:
    """The block of some items in their order, with their visible texts, and its reference."""
    rows = [item.row for item in items]
    day, paths = shared_day(rows), ambiguous_paths(rows)
    kinds = [row.kind for row in rows]
    headings = [
        look.heading(kind) if kind != before else "" for kind, before in zip(kinds, [None, *kinds], strict=False)
    ]
    lines = [lines_of(item, look, dated=day is None, sourced=item.row.path in paths) for item in items]
    return assemble(list(zip(headings, lines, texts, strict=True)), day, look.fenced)
