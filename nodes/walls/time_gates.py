"""Time as a predicate: which rows pass the time gates under which clock, and the placement that decides.

Reads contracts and a RowIndex. Gives `ContractClock`, the time bounds of requests, which judges (clock, row) pairs or
every row under some clocks, so that ten thousand different `as_of` cost only their pairs, not row sets; and `Moments`,
the instants between which a set of rows changes. Intervals are half-open: a text recorded at `as_of` counts, one
superseded at `as_of` does not.

A row passes if one placement does: alive at `as_of` (recorded, not yet superseded or deleted) and, where the row has no
event time, recorded inside the window. A row without a placement was never recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import distinct_rows
from ..columns.ragged import expand_ranges
from ..frames import OPEN_END, OPEN_START, RowIndex, micros
from .gates import GATES

_TIME = [gate.number for gate in GATES if gate.gate_class == "time"]
PAIRS = 1 << 20
"""(clock, row) pairs judged at once."""

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

    def _bounds(self, clock: Int) -> tuple[Int, Int, Int, Bool]:
        return self.as_of[clock], self.start[clock], self.end[clock], self.history[clock]

    def judge(self, row_index: RowIndex, clock: Int, rows: Int) -> tuple[Bool, Int]:
        """Whether each (clock, frame row) pair passes the time gates, and the placement it was judged by."""
        codes, placement = time_codes(row_index, rows, *self._bounds(clock))
        return codes == 0, placement

    def grid(self, row_index: RowIndex, clock: Int, rows: Int) -> Bool:
        """Whether each of some rows passes the time gates under each of some clocks: bool[clocks, rows]."""
        found, step = np.zeros((len(clock), len(rows)), dtype=bool), max(1, PAIRS // max(len(rows), 1))
        for low in range(0, len(clock), step):
            pairs = _pairs(row_index, rows, *self._bounds(clock[low : low + step, None]))
            if len(pairs.placed):
                found[low : low + step, pairs.placed] = np.logical_or.reduceat(pairs.passes, pairs.starts, axis=-1)
        return found


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
    return ContractClock(*all_._bounds(first)), of


def time_codes(
    row_index: RowIndex, rows: Int, as_of: Any, start: Any, end: Any, history: Any
) -> tuple[NDArray[np.int8], Int]:
    """The first time gate that stops each row, and the placement it was judged by.

    Args:
        row_index: the frame's views.
        rows: frame rows, int64[n].
        as_of: the instant, microseconds: one for all rows, one per row (int64[n]), or `c` instants (int64[c, 1]).
        start: start of the window, `OPEN_START` where open.
        end: end of the window, exclusive, `OPEN_END` where open.
        history: where text that was superseded or deleted passes as well; a placement that has not ended is preferred.

    Returns:
        codes, int8[n] or int8[c, n]: 0 = passes every time gate, else the gate's number in `gates.GATES`; and
        placements: the latest recorded that passes, else the latest alive at `as_of`, else the last recorded by then,
        else the first after it; -1 for a row that has none.
    """
    pairs = _pairs(row_index, rows, as_of, start, end, history)
    codes = np.zeros(pairs.passes.shape, dtype=np.int8)
    for code, stopped in zip(reversed(_TIME), reversed(pairs.stops), strict=True):
        codes[stopped] = code
    codes[pairs.passes] = 0
    unknown, superseded, deleted, *_ = pairs.stops
    over = superseded | deleted
    # Of the placements of a row the one of the highest grade speaks, of these the latest; before the first, that one.
    most = int(pairs.place.max(initial=0)) + 1
    grade = np.where(pairs.passes, 3 - over, ~over)
    score = np.where(unknown, -1 - pairs.place, grade * most + pairs.place)
    shape, placed, starts = (*codes.shape[:-1], len(rows)), pairs.placed, pairs.starts
    found, placement = np.zeros(shape, np.int8) + np.int8(_TIME[0]), np.zeros(shape, np.int64) - 1
    if len(placed):
        best = np.maximum.reduceat(score, starts, axis=-1)
        chosen = np.where(best < 0, -1 - best, best % most)
        found[..., placed] = np.take_along_axis(codes, starts + chosen, -1)
        placement[..., placed] = row_index.placement_starts[rows[placed]] + chosen
    return found, placement


class _Pairs(NamedTuple):
    """The placements of some rows, `place` counts them in their row: those of row `placed[i]` begin at `starts[i]`."""

    place: Int
    placed: Int
    starts: Int
    stops: tuple[Bool, ...]
    """Which of them each time gate stops."""
    passes: Bool


def _pairs(row_index: RowIndex, rows: Int, as_of: Any, start: Any, end: Any, history: Any) -> _Pairs:
    first = row_index.placement_starts[rows]
    counts = row_index.placement_starts[rows + 1] - first
    at, of = expand_ranges(first, counts), np.arange(len(rows)).repeat(counts)
    as_of, start, end, history = (
        each[of] if isinstance(each, np.ndarray) and each.ndim == 1 else each for each in (as_of, start, end, history)
    )
    recorded, row = row_index.recorded[at], rows[of]
    event = row_index.event_time[row]
    happened = np.where(event == OPEN_START, recorded, event)
    stops = (
        recorded > as_of,
        row_index.superseded[at] <= as_of,
        row_index.deleted[at] <= as_of,
        row_index.valid_from[row] > as_of,
        row_index.valid_until[row] <= as_of,
        happened < start,
        happened >= end,
    )
    unknown, superseded, deleted, *others = stops
    passes = ~unknown & (~(superseded | deleted) | history)
    for stopped in others:
        passes &= ~stopped
    placed = counts.nonzero()[0]
    return _Pairs(at - first[of], placed, (counts.cumsum() - counts)[placed], stops, passes)


class Moments:
    """The moments of some frame rows: what passes the time gates changes only at the times that rows have."""

    def __init__(self, rows: Int, index: RowIndex) -> None:
        starts = index.placement_starts
        placed = expand_ranges(starts[rows], starts[rows + 1] - starts[rows])
        times = [column[rows] for column in (index.valid_from, index.valid_until, index.event_time)]
        times += [column[placed] for column in (index.recorded, index.superseded, index.deleted)]
        self._times = np.unique(np.concatenate(times))

    def at(self, bounds: Int) -> Int:
        """The moment of each clock, int64[2 x bounds, clocks], of its time bounds, int64[bounds, clocks].

        Rows show the same at clocks of equal moments, if both or neither of these show superseded text.
        """
        # The number of times before each bound, and up to it: equal for bounds that compare alike with every time.
        return np.concatenate([self._times.searchsorted(bounds, side) for side in ("left", "right")])
