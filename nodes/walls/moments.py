"""The instants between which a set of rows changes: what passes the time gates changes only at the times that rows have.

Reads: the time columns of the rows. Gives: `Moments`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..columns.ragged import expand_ranges
from ..frames import RowIndex

__all__ = ["Moments"]


class Moments:
    """The moments of some frame rows."""

    def __init__(self, rows: NDArray[np.int64], index: RowIndex) -> None:
        starts = index.placement_starts
        placed = expand_ranges(starts[rows], starts[rows + 1] - starts[rows])
        times = [column[rows] for column in (index.valid_from, index.valid_until, index.event_time)]
        times += [column[placed] for column in (index.recorded, index.superseded, index.deleted)]
        self._times = np.unique(np.concatenate(times))

    def at(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """The moment of each clock, int64[2 x bounds, clocks], of its time bounds, int64[bounds, clocks].

        Rows show the same at clocks of equal moments, if both or neither of these show superseded text.
        """
        # The number of times before each bound, and up to it: equal for bounds that compare alike with every time.
        return np.concatenate([self._times.searchsorted(bounds, side) for side in ("left", "right")])
