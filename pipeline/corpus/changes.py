"""What changed about stored placements since their segment was written: the closures table of a generation.

For every stored row whose placements ended, came back or multiplied, CHANGES holds all of its placements as they are now;
they take the place of the stored ones when a frame is opened. Writing a segment again folds its changes in.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.tables import PLACEMENTS
from .incoming import sorted_placements

CHANGES = PLACEMENTS.schema.insert(0, pa.field("segment_id", pa.string(), False))
"""`segment_id` and PLACEMENTS; `row` counts inside the segment."""


def applied(placements: pa.Table, changes: pa.Table) -> pa.Table:
    """Placements with those of changed rows replaced; both count rows alike."""
    if not changes.num_rows:
        return placements
    stale = pc.is_in(placements["row"], value_set=changes["row"].combine_chunks())
    kept = placements.filter(pc.invert(stale))
    return sorted_placements(pa.concat_tables([kept, changes.select(PLACEMENTS.names())]))
