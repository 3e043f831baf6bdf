"""Compiled loops over posting lists: the same numbers as `posting_recall`, without its passes over arrays.

Reads and fills the arrays that `compiled_recall` prepares. Needs numba; `compiled.kernels` decides whether it is loaded.

Note: scores are whole multiples of 2**-30 as int64, so a sum is exact in any order, and a row may be skipped as soon as
its possible gain is known to be too small. No fast-math: every step rounds as NumPy's does.
"""

from __future__ import annotations

import numpy as np
from numba import types  # pyright: ignore[reportMissingImports]

from .list_kernels import bound, grade
from .lookup_kernels import alike, count, find, gather
from .selection_kernels import BINS, before, choose, filled, given, index, loop, sort
from .top_rows_kernels import best_rows, histogram_edge, part_of

__all__ = [
    "alike", "best_held", "best_rows", "bound", "count", "find", "frequencies", "gather", "grade",
    "judge", "read_keys",
]  # fmt: skip

_I8, _I4, _U8, _F8, _B = types.int64, types.int32, types.uint64, types.float64, types.boolean


@loop(_I8, _I8, given(_I8), given(_I8), given(_I8), given(_I8), given(_I8), given(_I8), given(_B), filled(_B, 2))
def judge(first, last, as_of, start, end, since, until, happened, withheld, open_) -> None:
    """Which rows pass at the clocks from `first` to `last`: those alive from `since` until before `until` that happened
    in the window and are not withheld.
    """
    for clock in range(first, last):
        now, low, high, own = as_of[clock], start[clock], end[clock], open_[clock]
        for at in range(len(since)):
            alive = (since[at] <= now) & (now < until[at]) & ~withheld[at]
            own[at] = alive & (low <= happened[at]) & (happened[at] < high)


@loop(
    _I8, _I8, given(_I8), given(_I4), given(_I4), given(_I8), given(_I8), given(_B, 2), given(_I8),
    filled(_I4), filled(_I4), filled(_I8),
)  # fmt: skip
def frequencies(first, last, starts, row, grade, key, judged, open_, held, held_row, held_grade, found) -> None:
    """Counts the open rows in which the keys of the pairs from `first` to `last` occur; writes the other rows and their
    grades from `held[pair]` on, where there must be room for one more.

    `judged` is the line of `open_` with the open rows, -1 where all are open.
    """
    for pair in range(first, last):
        low, high = starts[key[pair]], starts[key[pair] + 1]
        found[pair] = high - low
        if judged[pair] >= 0:
            at, own = held[pair], open_[judged[pair]]
            for posting in range(low, high):
                held_row[index(at)] = row[index(posting)]
                held_grade[index(at)] = grade[index(posting)]
                at += np.int64(1) - np.int64(own[index(row[index(posting)])])
            found[pair] -= at - held[pair]


@loop(
    _I8, _I8, given(_I8), given(_I8, 2), given(_I8, 2), _I8, given(_I8), given(_I8), filled(_I8), filled(_F8),
)  # fmt: skip
def read_keys(first, last, found, keys, places, bits, by_id, ends, row, score) -> None:
    """Decodes ascending keys to rows and scores of the sub-queries from `first` to `last`, best first, before their
    `ends`.

    `by_id` is the row of each place of an id.
    """
    limit, width = (np.int64(1) << bits) - 1, keys.shape[1]
    for sub in range(first, last):
        low = ends[sub] - found[sub]
        for at in range(found[sub]):
            key = keys[sub, width - 1 - at] if bits else keys[sub, at]
            place = limit - (key & limit) if bits else places[sub, at]
            row[low + at], score[low + at] = by_id[index(place)], np.float64(key >> bits) / 1073741824.0


@loop(
    _I8, _I8, given(_I8), given(_I8), given(_I8), given(_I8), given(_F8), given(_I8), given(_F8, 2),
    given(_I8), given(_I8), given(_I4), given(_I4), given(_B, 2), given(_I8), given(_I8), given(_B), _I8,
    given(_I8, 2), given(_I8), given(_I8), given(_I8), given(_I8),
    filled(_I8), filled(_I8), filled(_I8), filled(_I8),
)  # fmt: skip
def best_held(
    first, last, requests, starts, pairs, setting, scale, bounds, factor,
    held, count_, row, grade_, allowed, filter_, document, alone, documents,
    recorded, line, k, rank, ends, found, found_sub, found_row, found_score,
) -> None:  # fmt: skip
    """The `k` best rows that are not open, per request from `first` to `last`: of a document only the newest.

    Request `i` has the sub-queries `requests[i]:requests[i + 1]`; its rows are written before its `ends`. A row that is
    `alone` in its document is its newest: the scores of those rows bound the score needed.
    """
    rows, room = len(rank), 0
    for request in range(first, last):
        cells = 0
        for sub in range(requests[request], requests[request + 1]):
            most = 0
            for at in range(starts[sub], starts[sub + 1]):
                most += count_[pairs[at]]
            cells += min(rows, most)
        room = max(room, cells)
    sums, counts = np.zeros(rows, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    touched, seen = np.empty(rows + 1, dtype=np.int64), np.empty(documents, dtype=np.int64)
    best, newest = np.full(documents, -2, dtype=np.int64), np.empty(documents, dtype=np.int64)
    of, at_row, total = (np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64))
    score, place, cell = (
        np.empty(documents, dtype=np.int64), np.empty(documents, dtype=np.int64), np.empty(documents, dtype=np.int64)
    )  # fmt: skip
    for request in range(first, last):
        cells, many, single, highest, shift = 0, 0, np.int64(0), np.int64(0), np.int64(0)
        for sub in range(requests[request], requests[request + 1]):
            most = np.int64(0)
            for at in range(starts[sub], starts[sub + 1]):
                most += bounds[pairs[at]]
            highest = max(highest, most)
        while highest >> shift >= BINS:
            shift += 1
        counts[:] = 0
        one_sub = requests[request + 1] - requests[request] == 1
        for sub in range(requests[request], requests[request + 1]):
            hit = 0
            for at in range(starts[sub], starts[sub + 1]):
                pair = pairs[at]
                factors = factor[setting[pair]]
                for posting in range(held[pair], held[pair] + count_[pair]):
                    own = row[index(posting)]
                    old = sums[index(own)]
                    touched[index(hit)] = own
                    hit += np.int64(old == 0)
                    sums[index(own)] = old + part_of(scale[pair], factors, grade_[index(posting)])
            for at in range(hit):
                own = touched[index(at)]
                if allowed[filter_[sub], own]:
                    of[cells], at_row[cells], total[cells] = sub, own, sums[index(own)]
                    cells += 1
                    if one_sub and alone[index(own)]:
                        counts[index(sums[index(own)] >> shift)] += 1
                        single += 1
                    else:
                        which, when = document[index(own)], recorded[line[request], own]
                        if best[which] == -2:
                            best[which], newest[which], seen[many] = -1, when, which
                            many += 1
                        newest[which] = max(newest[which], when)
                sums[index(own)] = 0
        least, size = np.int64(0), 0
        if single >= k[request] > 0:
            least = histogram_edge(counts, k[request]) << shift
        for at in range(cells):
            own = at_row[index(at)]
            if one_sub and alone[index(own)]:
                if total[index(at)] >= least:
                    score[size], place[size], cell[size] = total[at], rank[own], at
                    size += 1
                continue
            which = document[own]
            if recorded[line[request], own] == newest[which]:
                other = best[which]
                if other < 0 or before(total[at], rank[own], total[other], rank[at_row[other]]):
                    best[which] = at
        for at in range(many):
            chosen = best[seen[at]]
            if total[chosen] >= least:
                score[size], place[size], cell[size] = total[chosen], rank[at_row[chosen]], chosen
                size += 1
            best[seen[at]] = -2
        if size > k[request]:
            choose(score, place, cell, size, k[request])
            size = k[request]
        sort(score, place, cell, size)
        found[request] = size
        for at in range(size):
            to = ends[request] - k[request] + at
            found_sub[to], found_row[to], found_score[to] = of[cell[at]], at_row[cell[at]], score[at]
