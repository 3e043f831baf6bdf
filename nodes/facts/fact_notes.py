"""The note next to an item whose value a record contradicts: the canonical value and its place.

Reads `fact_checks`. Gives one text per item, for the line above the item's text.

Note: the words come from a record, which is evidence like any other. They are shortened and cleaned of everything that
could pass for part of the frame.
"""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa

from ..rendering import clean

NOTES = 3
"""Maximum number of values noted next to one item; every finding is in `fact_checks`."""
_WORDS = 60
"""Maximum characters of a field, a value or a locator in a note."""


def fact_notes(items: pa.Table, fact_checks: pa.Table) -> pa.Array:
    """The note of each item, a row of `packs`; null where no record contradicts it."""
    notes = defaultdict[int, list[str]](list)
    for row in fact_checks.to_pylist():
        if row["finding"] == "mismatch":
            field, value, place = ((clean(row[name]) or "")[:_WORDS] for name in ("field", "canonical", "locator"))
            notes[row["place"]].append(f"{field} is {value} in {place}")
    noted = ["; ".join(notes[place][:NOTES]) if place in notes else None for place in items["place"].to_pylist()]
    return pa.array(noted, pa.large_string())
