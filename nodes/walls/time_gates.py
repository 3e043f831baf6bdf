"""Time as a predicate: which (row, as_of, window) pairs pass the time gates, and the placement that decides.

Reads a RowIndex. Gives codes and placements for the caller's pairs, so that ten thousand different `as_of` cost only
their pairs, not row sets. Intervals are half-open: a text recorded at `as_of` counts, one superseded at `as_of` does
not.

A row passes if one placement does: alive at `as_of` (recorded, not yet superseded or deleted) and, where the row has no
event time, recorded inside the window. A row without a placement was never recorded.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..columns.ragged import expand_ranges
from ..frames import OPEN_END, OPEN_START, RowIndex
from .gates import NUMBER

RECORDED, SUPERSEDED, DELETED = NUMBER["recorded"], NUMBER["superseded"], NUMBER["deleted"]
VALID_FROM, VALID_UNTIL = NUMBER["valid_from"], NUMBER["valid_until"]
WINDOW_START, WINDOW_END = NUMBER["window_start"], NUMBER["window_end"]

PAIRS = 1 << 20
"""(instant, placement) pairs judged at once."""

Micros = NDArray[np.int64]
Flags = NDArray[np.bool_]


def time_codes(
    row_index: RowIndex,
    rows: Micros,
    as_of: Micros,
    window_start: Micros,
    window_end: Micros,
    history: Flags | None = None,
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """The first time gate that stops each pair, and the placement it was judged by.

    Args:
        row_index: the frame's views.
        rows: frame rows, int64[n].
        as_of: the instant of each pair, microseconds, int64[n].
        window_start: start of the window, `OPEN_START` where open, int64[n].
        window_end: end of the window, exclusive, `OPEN_END` where open, int64[n].
        history: where text that was superseded or deleted passes as well, bool[n]; None = nowhere. A placement that has
    not ended is preferred.

    Returns:
        codes, int8[n]: 0 = passes every time gate, else the gate's number in `gates.GATES`; and placements, int64[n]:
        the latest recorded that passes, else the latest alive at `as_of`, else the last recorded by then, else the
        first after it; -1 for a row that has none.
    """
    codes, placement = _current(row_index, rows, as_of, window_start, window_end)
    if history is not None and len(again := (history & (codes != 0)).nonzero()[0]):
        found, at = _ended(row_index, rows[again], as_of[again], window_start[again], window_end[again])
        passed = again[found == 0]
        codes[passed], placement[passed] = 0, at[found == 0]
    return codes, placement


def _ended(
    row_index: RowIndex, rows: Micros, as_of: Micros, window_start: Micros, window_end: Micros
) -> tuple[NDArray[np.int8], Micros]:
    """`_current` for rows without an open placement that passes: as if no placement had ended."""
    endless = replace(
        row_index,
        superseded=np.full(len(row_index.superseded), OPEN_END),
        deleted=np.full(len(row_index.deleted), OPEN_END),
    )
    return _current(endless, rows, as_of, window_start, window_end)


def _current(
    row_index: RowIndex, rows: Micros, as_of: Micros, window_start: Micros, window_end: Micros
) -> tuple[NDArray[np.int8], Micros]:
    if row_index.single:
        placement = row_index.placement_starts[rows]
        return _codes(row_index, rows, placement, as_of, window_start, window_end), placement
    first, end = row_index.placement_starts[rows], row_index.placement_starts[rows + 1]
    last = _last_recorded(row_index.recorded, first, end, as_of)
    known = last >= first
    nearest = np.where(known, last, first)
    placement = np.where(end > first, nearest, -1)
    codes = np.full(len(rows), RECORDED, dtype=np.int8)
    alive = np.zeros(len(rows), dtype=bool)
    pending, at = known.nonzero()[0], last[known]
    while len(pending):
        found = _codes(row_index, rows[pending], at, as_of[pending], window_start[pending], window_end[pending])
        lives = (found != SUPERSEDED) & (found != DELETED)
        better = (found == 0) | (lives & ~alive[pending]) | (at == last[pending])
        codes[pending[better]] = found[better]
        placement[pending[better]] = at[better]
        alive[pending[lives]] = True
        at = at - 1
        more = (found != 0) & (at >= first[pending])
        pending, at = pending[more], at[more]
    return codes, placement


def time_grid(
    row_index: RowIndex,
    rows: Micros,
    as_of: Micros,
    window_start: Micros,
    window_end: Micros,
    history: Flags | None = None,
) -> NDArray[np.int8]:
    """`time_codes` of every row under every one of `c` instants: int8[c, rows]."""
    count, instants = len(rows), len(as_of)
    if row_index.single and (history is None or not history.any()):
        placement = row_index.placement_starts[rows]
        return _codes(row_index, rows, placement, as_of[:, None], window_start[:, None], window_end[:, None])
    codes, _ = time_codes(
        row_index,
        np.tile(rows, instants),
        as_of.repeat(count),
        window_start.repeat(count),
        window_end.repeat(count),
        None if history is None else history.repeat(count),
    )
    return codes.reshape(instants, count)


def open_grid(
    row_index: RowIndex, rows: Micros, as_of: Micros, window_start: Micros, window_end: Micros, history: Flags
) -> Flags:
    """Which of some rows pass every time gate under each of `c` instants, bool[c, rows]: where `time_grid` is 0.

    All placements are tested at once: the result does not depend on which one passes.
    """
    if row_index.single and not history.any():
        return time_grid(row_index, rows, as_of, window_start, window_end) == 0
    first = row_index.placement_starts[rows]
    counts = row_index.placement_starts[rows + 1] - first
    at, row = expand_ranges(first, counts), rows.repeat(counts)
    recorded, event = row_index.recorded[at], row_index.event_time[row]
    since, lasting = np.maximum(recorded, row_index.valid_from[row]), row_index.valid_until[row]
    until = np.minimum(np.minimum(row_index.superseded[at], row_index.deleted[at]), lasting)
    windowed = bool((window_start != OPEN_START).any() or (window_end != OPEN_END).any())
    happened = np.where(event == OPEN_START, recorded, event)
    placed = (counts > 0).nonzero()[0]
    starts = (counts.cumsum() - counts)[placed]
    found = np.zeros((len(as_of), len(rows)), dtype=bool)
    step = max(1, PAIRS // max(len(at), 1))
    for low in range(0, len(as_of) if len(placed) else 0, step):
        now, start, end, ended = (each[low : low + step, None] for each in (as_of, window_start, window_end, history))
        passes = (since <= now) & (until > now)
        if ended.any():
            passes |= (since <= now) & (lasting > now) & ended
        if windowed:
            passes &= (happened >= start) & (happened < end)
        found[low : low + step, placed] = np.logical_or.reduceat(passes, starts, axis=1)
    return found


def _codes(
    row_index: RowIndex, rows: Micros, placement: Micros, as_of: Micros, window_start: Micros, window_end: Micros
) -> NDArray[np.int8]:
    """The gate that stops each row, judged by one placement; written in reverse order, so that the first gate wins."""
    recorded, event = row_index.recorded[placement], row_index.event_time[rows]
    happened = np.where(event == OPEN_START, recorded, event)
    codes = np.zeros(np.broadcast_shapes(as_of.shape, rows.shape), dtype=np.int8)
    if not codes.size:
        return codes
    for code, one, other, also_equal in (
        (WINDOW_END, window_end, happened, True),
        (WINDOW_START, happened, window_start, False),
        (VALID_UNTIL, row_index.valid_until[rows], as_of, True),
        (VALID_FROM, as_of, row_index.valid_from[rows], False),
        (DELETED, row_index.deleted[placement], as_of, True),
        (SUPERSEDED, row_index.superseded[placement], as_of, True),
        (RECORDED, as_of, recorded, False),
    ):
        least, most = one.min(), other.max()
        if least < most or (also_equal and least == most):  # else no pair is stopped, so none is compared
            np.copyto(codes, code, where=one <= other if also_equal else one < other)
    return codes


def _last_recorded(recorded: Micros, first: Micros, end: Micros, as_of: Micros) -> Micros:
    """Position of the last placement recorded at or before `as_of`, `first - 1` where there is none."""
    low, high = first.copy(), end.copy()
    for _ in range(int((end - first).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        # Once an interval is empty, both ends are equal and stay so.
        before = (recorded.take(middle, mode="clip") <= as_of) & (low < high)
        np.copyto(low, middle + 1, where=before)
        np.copyto(high, middle, where=~before)
    return low - 1
