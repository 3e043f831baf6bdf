"""Time as a predicate: which rows pass the time gates under which clock, and the placement that decides.

Reads contracts, REACHABLE and a RowIndex. Gives `ContractClock`, the time bounds of requests, which judges (clock, row)
pairs; and `GroupRows`, which judges every row of a row group once for each of its moments, the instants between which
it changes. Intervals are half-open: a text recorded at `as_of` counts, one superseded at `as_of` does not.

A row passes if one placement does: alive at `as_of` (recorded, not yet superseded or deleted) and, where the row has no
event time, recorded inside the window. A row without a placement was never recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.kept import OfTable, Recent
from ..columns.keys import distinct_rows, flat
from ..columns.ragged import expand_ranges
from ..frames import OPEN_END, OPEN_START, RowIndex, micros
from .gates import GATES

_TIME = [gate.number for gate in GATES if gate.gate_class == "time"]
MOMENTS, CELLS = 16, 1 << 22
"""The moments of a row group that are kept at least, as requests of one instant follow one another, and the (moment, row)
pairs up to which more are kept."""

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]
Value = TypeVar("Value")


@dataclass(frozen=True)
class ContractClock:
    """Time bounds of some requests: `as_of`, and the start and the end of the window, which is exclusive, in int64
    microseconds, `OPEN_START` and `OPEN_END` where open.
    """

    as_of: Int
    start: Int
    end: Int
    history: Bool
    """The clocks under which superseded and deleted text passes as well; a placement that has not ended is preferred."""

    def some(self, clock: Int) -> ContractClock:
        """Some of the clocks."""
        return ContractClock(self.as_of[clock], self.start[clock], self.end[clock], self.history[clock])

    def judge(self, row_index: RowIndex, clock: Int, rows: Int) -> tuple[Bool, Int]:
        """Whether each (clock, frame row) pair passes the time gates, and the placement it was judged by."""
        codes, placement = time_codes(row_index, rows, self.some(clock))
        return codes == 0, placement


@OfTable
def clocks(contracts: pa.Table) -> ContractClock:
    """The time bounds of each contract, in order."""
    return ContractClock(
        micros(contracts["as_of"], OPEN_START),
        micros(contracts["window_start"], OPEN_START),
        micros(contracts["window_end"], OPEN_END),
        np.asarray(contracts["include_deleted"].fill_null(False)),
    )


@OfTable
def distinct_clocks(contracts: pa.Table) -> tuple[ContractClock, Int]:
    """The distinct time bounds of some contracts, and each contract's position among them."""
    all_ = clocks(contracts)
    first, of = distinct_rows(all_.as_of, all_.start, all_.end, all_.history.astype(np.int64))
    return all_.some(first), of


def time_codes(row_index: RowIndex, rows: Int, clocks: ContractClock) -> tuple[NDArray[np.int8], Int]:
    """The first time gate that stops each row, and the placement it was judged by.

    Args:
        row_index: the frame's views.
        rows: frame rows, int64[n].
        clocks: one for each row, or one for all.

    Returns:
        codes, int8[n]: 0 = passes every time gate, else the gate's number in `gates.GATES`; and placements: the latest
        recorded that passes, else the latest alive at `as_of`, else the last recorded by then, else the first after it;
        -1 for a row that has none.
    """
    first = row_index.placement_starts[rows]
    counts = row_index.placement_starts[rows + 1] - first
    at, of = expand_ranges(first, counts), np.arange(len(rows)).repeat(counts)
    clock = clocks.some(of) if len(clocks.as_of) > 1 else clocks
    as_of, recorded, row = clock.as_of, row_index.recorded[at], rows[of]
    event = row_index.event_time[row]
    happened = np.where(event == OPEN_START, recorded, event)
    unknown = recorded > as_of
    superseded, deleted = row_index.superseded[at] <= as_of, row_index.deleted[at] <= as_of
    others = (
        row_index.valid_from[row] > as_of,
        row_index.valid_until[row] <= as_of,
        happened < clock.start,
        happened >= clock.end,
    )
    over = superseded | deleted
    passes = ~(unknown | (over & ~clock.history) | np.logical_or.reduce(others))
    codes = np.zeros(len(at), dtype=np.int8)
    for code, stopped in zip(reversed(_TIME), reversed((unknown, superseded, deleted, *others)), strict=True):
        codes[stopped] = code
    codes[passes] = 0
    # Of the placements of a row the one of the highest grade speaks, of these the latest; before the first, that one.
    place = at - first[of]
    most = int(place.max(initial=0)) + 1
    grade = np.where(passes, 3 - over, ~over)
    score = np.where(unknown, -1 - place, grade * most + place)
    found, placement = np.full(len(rows), _TIME[0], dtype=np.int8), np.full(len(rows), -1)
    placed = counts.nonzero()[0]
    if len(placed):
        starts = (counts.cumsum() - counts)[placed]
        best = np.maximum.reduceat(score, starts)
        chosen = np.where(best < 0, -1 - best, best % most)
        found[placed] = codes[starts + chosen]
        placement[placed] = first[placed] + chosen
    return found, placement


class _Known:
    """What was found of a set of rows."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}

    def once(self, name: Hashable, make: Callable[[], Value]) -> Value:
        """What `make` returns, which follows from the rows alone; kept as long as the table of the groups.

        It must not refer to the evidence: the frame would never be released.
        """
        if name not in self._values:
            self._values[name] = make()
        return self._values[name]


class Moment(_Known):
    """What a row group shows at an instant."""

    def __init__(self, stops: NDArray[np.int8], withheld: Bool) -> None:
        super().__init__()
        self.stops = stops
        """The first time gate that stops each row, int8[rows]; 0 = none."""
        self.open = (stops == 0) & ~withheld


class GroupRows(_Known):
    """The frame rows of a row group, ascending, and whether a visibility gate withholds each."""

    def __init__(self, rows: Int, withheld: Bool) -> None:
        super().__init__()
        self.rows, self.withheld = rows, withheld
        self._moments = Recent[Moment](max(MOMENTS, CELLS // max(len(rows), 1)))

    def moments(self, index: RowIndex, clocks: ContractClock) -> Int:
        """The moment of each of some clocks, int64[clocks, 7]: equal where the rows show the same, which changes only at the
        times that rows have.
        """
        times = self.once("times", lambda: self._times(index))
        bounds = np.array([clocks.as_of, clocks.start, clocks.end])
        # The number of times before each bound, and up to it: equal for bounds that compare alike with every time.
        return np.array(
            [*times.searchsorted(bounds, "left"), *times.searchsorted(bounds, "right"), clocks.history], dtype=np.int64
        ).T

    def _times(self, index: RowIndex) -> Int:
        starts, rows = index.placement_starts, self.rows
        placed = expand_ranges(starts[rows], starts[rows + 1] - starts[rows])
        times = [column[rows] for column in (index.valid_from, index.valid_until, index.event_time)]
        times += [column[placed] for column in (index.recorded, index.superseded, index.deleted)]
        return np.unique(np.concatenate(times))

    def at(self, index: RowIndex, clocks: ContractClock) -> list[Moment]:
        """What the group shows under each of some clocks."""

        def judge(at: int) -> Moment:
            return Moment(time_codes(index, self.rows, clocks.some(np.array([at])))[0], self.withheld)

        asked = enumerate(self.moments(index, clocks))
        return [self._moments.get(moment.tobytes(), partial(judge, at)) for at, moment in asked]


def _groups(reachable: pa.Table) -> list[GroupRows]:
    rows, withheld = (flat(reachable[name]) for name in ("rows", "withheld_by"))
    row, stopped = rows.values.to_numpy(), withheld.values.to_numpy() != 0
    return [GroupRows(row[low:high], stopped[low:high]) for low, high in pairwise(rows.offsets.to_numpy().tolist())]


rows_of_groups = OfTable(_groups)
"""The row groups in REACHABLE, in order."""
