"""Records that a requested record names follow it directly (S1.14, S1.18: direct dependencies are included).

Reads kept rows with their places. Gives new places to order by.

Note: a named record does not match the question, so rows similar to the requested one outrank it and fill a cap on
items. Only records that the exact lane found count as requested, not those that match by words alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import gathered
from ..frames import posting_keys
from .index_keys import id_keys
from .references import named_records

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


def asked_records(lanes: pa.Array, record: Bool) -> Bool:
    """The records that the exact lane found."""
    return np.array(["exact" in own for own in lanes.to_pylist()], dtype=bool) & record


def named_first(place: Int, owner: Int, asked: Bool, record: Bool, entity: pa.Array, row: Int, text: pa.Array) -> Int:
    """Places of rows: a record named by a requested one before it follows that one; the others get `place` * 2.

    Args:
        place: place of each row in its request, from 1; 0 = dropped.
        owner: request of each row.
        asked: which rows are records that were asked for.
        record: which rows are records.
        entity: id of each row's record.
        row: frame row of each row.
        text: texts of the frame.
    """
    places = place * 2
    seed, other = ((mask & (place > 0)).nonzero()[0] for mask in (asked, record & ~asked))
    if not len(seed) or not len(other):
        return places
    named = named_records(pa.nulls(len(seed), pa.string()), gathered(text, row[seed]))
    leaders: dict[tuple[int, str], int] = {}
    for number, key in named:
        at = int(seed[number])
        pair = int(owner[at]), key
        leaders[pair] = min(leaders.get(pair, int(place[at])), int(place[at]))
    for at, name in zip(other.tolist(), entity.take(pa.array(other)).to_pylist(), strict=True):
        keys = posting_keys("id", id_keys(name or ""))
        leading = [2 * leaders[int(owner[at]), key] + 1 for key in keys if (int(owner[at]), key) in leaders]
        places[at] = min([places[at], *leading])
    return places
