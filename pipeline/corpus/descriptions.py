"""The descriptions of a generation: stored rows that an import describes again, without rewriting their segment.

An edited file is an example: the event time of each chunk is the file's modification time, so all of them are described
again, and few have new text. Where neither postings nor vectors depend on the change, DESCRIPTIONS contains the current
columns; they replace the stored ones when a frame is opened, as changes of placements do.

For every stored row whose placements ended, came back or multiplied, the table CHANGES of a pack contains all of its
current placements; they replace the stored ones when a frame is opened. Rewriting a segment folds both in.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.tables import PLACEMENTS
from .identity import DESCRIBING_COLUMNS, row_keys
from .outlines import ENCODED_COLUMNS
from .parts import STORED_EVIDENCE
from .postings import INDEXED_COLUMNS

CHANGES = PLACEMENTS.schema.insert(0, pa.field("segment_id", pa.string(), False))
"""`segment_id` and PLACEMENTS; `row` counts inside the segment."""


def applied(placements: pa.Table, changes: pa.Table) -> pa.Table:
    """Placements with those of changed rows replaced; both tables share row numbers and sort each row's by time."""
    if not changes.num_rows:
        return placements
    stale = np.isin(placements["row"].to_numpy(), changes["row"].to_numpy())
    together = pa.concat_tables([placements.filter(pa.array(~stale)), changes.select(PLACEMENTS.names())])
    return together.take(pa.array(np.argsort(together["row"].to_numpy(), kind="stable"))).combine_chunks()


_FIXED = tuple(name for name in DESCRIBING_COLUMNS if name in {*INDEXED_COLUMNS, *ENCODED_COLUMNS})
"""The columns that postings and vectors depend on and that the id of a row does not determine."""
_FREE = (*(name for name in DESCRIBING_COLUMNS if name not in _FIXED), "captured_time", "row_digest")
DESCRIPTIONS = pa.schema(
    [
        pa.field("segment_id", pa.string(), False),
        pa.field("row", pa.int64(), False),
        *(STORED_EVIDENCE.field(name) for name in ("evidence_id", *_FREE)),
    ]
)
"""`row` counts inside the segment; one line per row, by segment, then row."""


def indexed_alike(new: pa.Table, stored: pa.Table, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row of `new` has the same postings and vector as the row of `stored` at `rows`."""
    before = stored.select(_FIXED).take(pa.array(rows))
    return pc.equal(row_keys(new, _FIXED), row_keys(before, _FIXED)).to_numpy(False)


def described(evidence: pa.Table, rows: NDArray[np.int64], descriptions: pa.Table) -> pa.Table:
    """Evidence with these distinct rows described again; unchanged columns stay as they are, zero-copy."""
    if not len(rows):
        return evidence
    place = np.arange(evidence.num_rows)
    place[rows] = evidence.num_rows + np.arange(len(rows))
    among, at = pa.array(rows), pa.array(place)
    for name in _FREE:
        stored, now = evidence[name], descriptions[name]
        if stored.null_count + now.null_count == len(stored) + len(now):
            continue  # true of most columns
        if not stored.take(among).equals(now):
            column = pa.chunked_array([*stored.chunks, *now.chunks], stored.type).combine_chunks().take(at)
            evidence = evidence.set_column(evidence.schema.get_field_index(name), evidence.schema.field(name), column)
    return evidence
