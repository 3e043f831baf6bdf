"""The clocks of requests: time bounds, and which rows pass the time gates under each.

Reads contracts. Gives a `ContractClock`, which judges (clock, row) pairs or every row under some clocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import distinct_rows
from ..frames import OPEN_END, OPEN_START, RowIndex, micros
from .time_gates import open_grid, time_codes

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class ContractClock:
    """Distinct time bounds of some requests; `as_of`, window start and window end are int64 microseconds."""

    as_of: Int
    start: Int
    end: Int
    history: Bool
    """The clocks under which superseded and deleted text passes as well."""

    def __len__(self) -> int:
        return len(self.as_of)

    def judge(self, row_index: RowIndex, clock: Int, rows: Int) -> tuple[Bool, Int]:
        """Whether each (clock, frame row) pair passes the time gates, and the placement it was judged by."""
        bounds = (self.as_of[clock], self.start[clock], self.end[clock], self.history[clock])
        codes, placement = time_codes(row_index, rows, *bounds)
        return codes == 0, placement

    def grid(self, row_index: RowIndex, clock: Int, rows: Int) -> Bool:
        """Whether each of some rows passes the time gates under each of some clocks: bool[clocks, rows]."""
        bounds = (self.as_of[clock], self.start[clock], self.end[clock], self.history[clock])
        return open_grid(row_index, rows, *bounds)


def clocks(contracts: pa.Table) -> ContractClock:
    """The time bounds of each contract, in order."""
    return ContractClock(
        micros(contracts["as_of"], OPEN_END),
        micros(contracts["window_start"], OPEN_START),
        micros(contracts["window_end"], OPEN_END),
        np.asarray(contracts["include_deleted"].fill_null(False)),
    )


def distinct_clocks(contracts: pa.Table) -> tuple[ContractClock, Int]:
    """The distinct time bounds of some contracts, and each contract's position among them."""
    all_ = clocks(contracts)
    first, of = distinct_rows(all_.as_of, all_.start, all_.end, all_.history.astype(np.int64))
    return ContractClock(all_.as_of[first], all_.start[first], all_.end[first], all_.history[first]), of
