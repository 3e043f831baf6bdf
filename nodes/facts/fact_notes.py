"""The note next to an item whose value a record contradicts: the canonical value and its place.

Reads `fact_checks`. Gives one text per item, for the line above the item's text.

Note: the words come from a record, which is evidence like any other. They are shortened and cleaned of everything that
could pass for part of the frame.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import positions, rank_within
from ..rendering import clean

NOTES = 3
"""Maximum number of values noted next to one item; every finding is in `fact_checks`."""
_WORDS = 60
"""Maximum characters of a field, a value or a locator in a note."""


def fact_notes(items: pa.Table, fact_checks: pa.Table) -> pa.Array:
    """The note of each item, a row of `packs`; null where no record contradicts it."""
    wrong = fact_checks.filter(pc.equal(fact_checks["finding"], "mismatch")) if fact_checks.num_rows else fact_checks
    if not wrong.num_rows:
        return pa.nulls(items.num_rows, pa.large_string())
    item = positions(wrong["place"], items["place"])
    order = item.argsort(kind="stable")
    order = order[item[order] >= 0]
    order = order[rank_within(item[order]) < NOTES]
    field, value, place = (_short(wrong[name].take(pa.array(order))) for name in ("field", "canonical", "locator"))
    notes = pc.binary_join_element_wise(field, _text(" is "), value, _text(" in "), place, _text(""))
    offsets = item[order].searchsorted(np.arange(items.num_rows + 1))
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), notes)
    noted = pc.binary_join(lists, _text("; "))
    return pc.if_else(pa.array(np.diff(offsets) > 0), noted, pa.scalar(None, pa.large_string()))


def _text(words: str) -> pa.Scalar:
    return pa.scalar(words, pa.large_string())


def _short(words: pa.ChunkedArray) -> pa.Array:
    cleaned = [None if word is None else (clean(word) or "")[:_WORDS] for word in words.to_pylist()]
    return pa.array(cleaned, pa.large_string())
