"""Boosts confirmed memories slightly if the setting `plugins` names `reinforcement` (document 002, S2.27).

Gives: `BOOST`, the score term `reinforcement.boost`. It is a plugin of this package: `score_terms` has one more column
with it, and a run without it is unaffected.

Source: `reinforcement_count` and `reinforcementBoost` of document 002.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .plugins import ScoreTerm

__all__ = ["BOOST"]

_HALF = 3
"""The number of confirmations that earns half of the boost."""


def _confirmed(rows: Any, _: Any) -> Any:
    """n / (n + 3) for a memory that was confirmed n times; 0 without a count."""
    column = rows["reinforcement_count"]
    counts = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0))
    counts = np.maximum(counts, 0.0)
    return counts / (counts + _HALF)


BOOST = ScoreTerm(
    "reinforcement.boost",
    "n / (n + 3) for a memory that was confirmed n times",
    group="metadata",
    weight=0.05,
    columns=("reinforcement_count",),
    value=_confirmed,
)
