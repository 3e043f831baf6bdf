"""What changed about stored placements since their segment was written: the table CHANGES of a pack.

For every stored row whose placements ended, came back or multiplied, CHANGES holds all of its placements as they are now;
they take the place of the stored ones when a frame is opened. Writing a segment again folds its changes in.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...nodes.tables import PLACEMENTS

CHANGES = PLACEMENTS.schema.insert(0, pa.field("segment_id", pa.string(), False))
"""`segment_id` and PLACEMENTS; `row` counts inside the segment."""


def applied(placements: pa.Table, changes: pa.Table) -> pa.Table:
    """Placements with those of changed rows replaced; both count rows alike and have those of a row in order of time."""
    if not changes.num_rows:
        return placements
    stale = np.isin(placements["row"].to_numpy(), changes["row"].to_numpy())
    together = pa.concat_tables([placements.filter(pa.array(~stale)), changes.select(PLACEMENTS.names())])
    return together.take(pa.array(np.argsort(together["row"].to_numpy(), kind="stable"))).combine_chunks()
