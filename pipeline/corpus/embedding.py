"""Vectors of rows that are stored already: current rows first, in batches, each of which is published.

So an import is answered from its texts before anything is encoded, an interrupted one keeps what it encoded, and memory
follows the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..encoders.unit_vectors import Encoder
from .generation import Generation
from .incoming import is_open
from .next_generation import Next, Revision
from .stored import StoredRows

__all__ = ["ENCODED_ROWS", "next_encoded", "unencoded"]

ENCODED_ROWS = 16_384
"""Rows of a batch: some minutes of one core."""


def unencoded(base: Generation, ids: pa.Array) -> tuple[StoredRows, NDArray[np.int64]]:
    """The rows of segments without vectors, and which of them have one of these ids, rows with an open placement first."""
    old = StoredRows.of(base, [segment for segment in base.segments() if not segment.encoded])
    rows = np.flatnonzero(pc.is_in(old.evidence["evidence_id"], value_set=ids).to_numpy())
    current = np.zeros(old.evidence.num_rows, dtype=bool)
    current[old.placements["row"].to_numpy()[is_open(old.placements)]] = True
    return old, rows[np.argsort(~current[rows], kind="stable")]


def next_encoded(
    base: Generation, ids: pa.Array, encoder: Encoder, now: datetime, told: Callable[[int, int], None]
) -> tuple[int, Generation]:
    """How many rows still have no vector, and the generation after the next batch.

    `told` is called with the number of texts encoded in this batch, and with that of the rows left.
    """
    old, rows = unencoded(base, ids)
    if not len(rows):
        return 0, base
    batch = np.sort(rows[:ENCODED_ROWS])
    revision = Revision(set(old.segments_of(batch).tolist()), dropped=batch)
    next_ = Next(base, old, revision, encoder, on_encoded=lambda done, _: told(done, len(rows)))
    after = next_.write(old.imported(batch), now, added=0)
    return len(rows) - len(batch), after
