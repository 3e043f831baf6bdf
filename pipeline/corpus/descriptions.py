"""Stored rows that an import describes again, without writing their segment again: the descriptions of a generation.

An edited file is a case in point: each of its chunks happened when the file was modified, so that all of them are described
again, and few have another text. Where neither postings nor a vector follow from what changed, DESCRIPTIONS holds the
columns as they are now; they take the place of the stored ones when a frame is opened, beside the changes of placements.
Writing a segment again folds its descriptions in.

For every stored row whose placements ended, came back or multiplied, the table CHANGES of a pack holds all of its placements as
they are now; they take the place of the stored ones when a frame is opened. Writing a segment again folds both in.
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
    """Placements with those of changed rows replaced; both count rows alike and have those of a row in order of time."""
    if not changes.num_rows:
        return placements
    stale = np.isin(placements["row"].to_numpy(), changes["row"].to_numpy())
    together = pa.concat_tables([placements.filter(pa.array(~stale)), changes.select(PLACEMENTS.names())])
    return together.take(pa.array(np.argsort(together["row"].to_numpy(), kind="stable"))).combine_chunks()


_FIXED = tuple(name for name in DESCRIBING_COLUMNS if name in {*INDEXED_COLUMNS, *ENCODED_COLUMNS})
"""What postings and vectors are made of, as far as the id of a row does not determine it."""
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
    """Which rows of `new` have the postings and the vector that they have in `stored`, where they are these rows."""
    before = stored.select(_FIXED).take(pa.array(rows))
    return pc.equal(row_keys(new, _FIXED), row_keys(before, _FIXED)).to_numpy(False)


def described(evidence: pa.Table, rows: NDArray[np.int64], descriptions: pa.Table) -> pa.Table:
    """Evidence with these rows, each once, described again; columns that nothing changes stay as they are, zero-copy."""
    if not len(rows):
        return evidence
    place = np.arange(evidence.num_rows)
    place[rows] = evidence.num_rows + np.arange(len(rows))
    among, at = pa.array(rows), pa.array(place)
    for name in _FREE:
        stored, now = evidence[name], descriptions[name]
        if stored.null_count + now.null_count == len(stored) + len(now):
            continue  # as most columns are
        if not stored.take(among).equals(now):
            column = pa.chunked_array([*stored.chunks, *now.chunks], stored.type).combine_chunks().take(at)
            evidence = evidence.set_column(evidence.schema.get_field_index(name), evidence.schema.field(name), column)
    return evidence
