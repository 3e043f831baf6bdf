"""What some rows show at an instant, kept for the instants that were asked last.

Reads: the time columns of the rows. Gives: `Moments`.

Note: what passes the time gates changes only at the times that rows have. Between two of them, all instants are one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..columns.kept import Recent
from ..columns.ragged import expand_ranges
from ..frames import RowIndex

__all__ = ["Moments"]

Value = TypeVar("Value")
KEPT = 16
"""Moments of a set of rows that are kept: requests of one instant follow one another."""


class Moments(Generic[Value]):
    """A value per moment of some frame rows."""

    def __init__(self, rows: NDArray[np.int64], index: RowIndex) -> None:
        starts = index.placement_starts
        placed = expand_ranges(starts[rows], starts[rows + 1] - starts[rows])
        times = [column[rows] for column in (index.valid_from, index.valid_until, index.event_time)]
        times += [column[placed] for column in (index.recorded, index.superseded, index.deleted)]
        self._times = np.unique(np.concatenate(times))
        self._kept: Recent[Value] = Recent(KEPT)

    def at(self, as_of: int, start: int, end: int, history: bool, make: Callable[[], Value]) -> Value:
        """What `make` returns for a clock; with `history`, superseded and deleted text passes, too."""
        bounds = np.array([as_of, start, end])
        # The number of times before each bound, and up to it: equal for bounds that compare alike with every time.
        place = (*self._times.searchsorted(bounds).tolist(), *self._times.searchsorted(bounds, "right").tolist())
        return self._kept.get((*place, history), make)
