"""Terms for what a memory's record states, each a plugin of this package that the setting `plugins` enables.

Gives: `BOOST`, the score term `reinforcement.boost`, and `IMPORTANCE`, the score term `importance.stated`.

Source: `reinforcement_count`, `reinforcementBoost` and `importance` of document 002 (S2.27).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .plugins import ScoreTerm

_HALF = 3
"""The number of confirmations that earns half of the boost."""


def _stated(rows: Any, name: str) -> Any:
    """The numbers of a column, 0 where a row states none or less."""
    return np.maximum(np.asarray(pc.fill_null(rows[name].cast(pa.float64()), 0.0)), 0.0)


def _confirmed(rows: Any, _: Any) -> Any:
    counts = _stated(rows, "reinforcement_count")
    return counts / (counts + _HALF)


def _important(rows: Any, _: Any) -> Any:
    return np.minimum(_stated(rows, "importance"), 1.0)


BOOST = ScoreTerm(
    "reinforcement.boost",
    "n / (n + 3) for a memory that was confirmed n times",
    group="metadata",
    weight=0.05,
    columns=("reinforcement_count",),
    value=_confirmed,
)
IMPORTANCE = ScoreTerm(
    "importance.stated",
    "the importance that the record states, 0 to 1",
    group="metadata",
    weight=0.05,
    columns=("importance",),
    value=_important,
)
