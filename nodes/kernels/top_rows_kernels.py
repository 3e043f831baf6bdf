"""A compiled loop that finds the best open rows of sub-queries.

Reads and fills the arrays that `compiled_recall` prepares. Needs numba; see `compiled.kernels`.

Note: scores are whole multiples of 2**-30 as int64, so a sum is exact in any order, and a row may be skipped as soon as
its possible gain is known to be too small. No fast-math: every step rounds as NumPy's does.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types  # pyright: ignore[reportMissingImports]

from .list_kernels import posting_of
from .selection_kernels import BINS, choose, filled, front, given, index, loop, sort

SHORT = 8
"""A list with fewer postings per row looked up is read from end to end."""

_I8, _I4, _U8, _F8, _B = types.int64, types.int32, types.uint64, types.float64, types.boolean


@njit(inline="always")
def part_of(scale, factors, grade) -> np.int64:
    """The part of a score that a posting adds."""
    return np.int64(np.rint(scale * factors[index(grade)]))


@loop(given(_I8), _I8, gives=_I8)
def histogram_edge(counts, k) -> np.int64:
    """The bin of a histogram that contains the `k`-th best; there are at least `k`."""
    above, bin_ = np.int64(0), np.int64(len(counts))
    while above < k:
        bin_ -= 1
        above += counts[index(bin_)]
    return bin_


@loop(given(_I8), given(_I4), _I8, _I8, _I8, filled(_I8), gives=_I8)
def reached(sums, cells, size, k, shift, counts) -> np.int64:
    """A score that at least `k` of the sums of some cells reach, by a histogram; 0 if there are fewer."""
    if size < k:
        return np.int64(0)
    counts[:] = 0
    for at in range(size):
        counts[index(sums[index(cells[index(at)])] >> shift)] += 1
    return histogram_edge(counts, k) << shift


@njit
def ordered(pairs, bounds, order, rest) -> np.int64:
    """Orders the pairs of a sub-query by their bounds, greatest first, with the sum of each bound and the later ones;
    returns the shift that turns a score into the number of a bin.
    """
    for at in range(len(pairs)):
        pair, to = pairs[at], at
        while to > 0 and bounds[order[to - 1]] < bounds[pair]:
            order[to] = order[to - 1]
            to -= 1
        order[to] = pair
    rest[len(pairs)] = 0
    for at in range(len(pairs) - 1, -1, -1):
        rest[at] = rest[at + 1] + bounds[order[at]]
    shift = np.int64(0)
    while rest[0] >> shift >= BINS:
        shift += 1
    return shift


@njit
def write(sub, cells, totals, size, least, k, rank, bits, score, place, cell, found, keys, places) -> None:
    """Writes the keys of the best of some cells, with the scores `totals`; `k` of them reach `least`."""
    kept, limit = np.int64(0), (np.int64(1) << bits) - 1
    if bits:
        for number in range(size):
            total = totals[index(number)]
            if total >= least:
                score[index(kept)] = (total << bits) | (limit - rank[index(cells[index(number)])])
                kept += 1
        found[sub] = min(kept, k)
        if kept > keys.shape[1]:
            front(score, kept, found[sub])
            kept = found[sub]
        keys[sub, :kept] = score[:kept]
    else:
        for number in range(size):
            own = cells[number]
            if totals[number] >= least:
                score[kept], place[kept], cell[kept] = totals[number], rank[own], own
                kept += 1
        found[sub] = min(kept, k)
        if kept > k:
            choose(score, place, cell, kept, k)
        sort(score, place, cell, found[sub])
        keys[sub, : found[sub]], places[sub, : found[sub]] = score[: found[sub]], place[: found[sub]]


@loop(
    _I8, _I8, given(_I8), given(_I8), given(_I8), given(_I8), given(_F8), given(_I8), given(_F8, 2),
    given(_I8), given(_I4), given(_I4), given(_I4), given(_U8, 2), given(_I4, 2),
    given(_B, 2), given(_I8), given(_I8), given(_I8), _I8, filled(_I8), filled(_I8, 2), filled(_I8, 2),
)  # fmt: skip
def best_rows(
    first, last, starts, pairs, key, setting, scale, bounds, factor,
    lists, row, grade, line, words, before_word, gates, gate, k, rank, bits, found, keys, places,
) -> None:  # fmt: skip
    """The keys of the best rows of the sub-queries from `first` to `last`: at least `k` if there are so many, and no more
    than fit a line of `keys`. `found` is how many of the `k` there are.

    A key is a score followed, in `bits` bits, by the distance of the place of the row's id from the last one. Where
    both do not fit, `bits` is 0: then the `k` best are written in order, scores as keys, and `places`. `gate` is the
    line of `gates` with the rows that may be returned, -1 where all may.

    The lists with the greatest parts come first (MaxScore, Turtle & Flood 1995). As soon as the remaining lists could
    not lift a new row to a score that `k` rows have already, they are only looked up for rows that can still be among
    the best.
    """
    rows, most = len(rank), 0
    for sub in range(first, last):
        most = max(most, starts[sub + 1] - starts[sub])
    sums, counts = np.zeros(rows, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    touched, cells = np.empty(rows + 1, dtype=np.int32), np.empty(rows + 1, dtype=np.int32)
    score, place, cell = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    totals, order, rest = np.empty(rows, np.int64), np.empty(most, np.int64), np.zeros(most + 1, np.int64)
    for sub in range(first, last):
        size, left, many, least, at = starts[sub + 1] - starts[sub], np.int64(0), np.int64(0), np.int64(0), 0
        if size == 0:
            continue
        shift = ordered(pairs[starts[sub] : starts[sub + 1]], bounds, order, rest)
        for number in range(size):
            left += lists[key[order[number]] + 1] - lists[key[order[number]]]
        factors = factor[setting[order[0]]]
        while at < size and rest[at] >= least:
            one, times = key[order[at]], scale[order[at]]
            low, high = lists[one], lists[one + 1]
            if gate[sub] < 0:
                for posting in range(low, high):
                    own = row[index(posting)]
                    old = sums[index(own)]
                    touched[index(many)] = own
                    many += np.int64(old == 0)
                    sums[index(own)] = old + part_of(times, factors, grade[index(posting)])
            else:
                passed = gates[gate[sub]]
                for posting in range(low, high):
                    own = row[index(posting)]
                    old, open_ = sums[index(own)], np.int64(passed[index(own)])
                    touched[index(many)] = own
                    many += np.int64(old == 0) & open_
                    sums[index(own)] = old + part_of(times, factors, grade[index(posting)]) * open_
            at += 1
            left -= high - low
            if left > many + BINS:
                least = max(least, reached(sums, touched, many, k[sub], shift, counts))
        live = many
        if at < size:
            live = np.int64(0)
            for number in range(many):
                own = touched[index(number)]
                cells[index(live)] = own
                live += np.int64(sums[index(own)] + rest[at] >= least)
            while at < size:
                one, times, kept = key[order[at]], scale[order[at]], np.int64(0)
                low, high, own_line = lists[one], lists[one + 1], line[one]
                for number in range(live):
                    own = cells[index(number)]
                    cells[index(kept)] = own
                    kept += np.int64(sums[index(own)] + rest[at] >= least)
                if high - low < SHORT * kept:
                    for posting in range(low, high):
                        own = row[index(posting)]
                        old = sums[index(own)]
                        part = part_of(times, factors, grade[index(posting)])
                        sums[index(own)] = old + (part if old else np.int64(0))
                else:
                    for number in range(kept):
                        own = cells[index(number)]
                        posting = posting_of(own, low, high, row, own_line, words, before_word)
                        if posting >= 0:
                            sums[index(own)] += part_of(times, factors, grade[index(posting)])
                live = kept
                at += 1
                if at < size and live > 2 * k[sub]:
                    least = max(least, reached(sums, cells, live, k[sub], shift, counts))
        else:
            for number in range(many):
                cells[index(number)] = touched[index(number)]
        if live > k[sub]:
            least = max(least, reached(sums, cells, live, k[sub], shift, counts))
        for number in range(live):
            totals[index(number)] = sums[index(cells[index(number)])]
        write(sub, cells, totals, live, least, k[sub], rank, bits, score, place, cell, found, keys, places)
        for number in range(many):
            sums[index(touched[index(number)])] = 0
