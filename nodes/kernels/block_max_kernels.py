"""A compiled loop for sub-queries with many postings: it skips rows that cannot be among the best.

Reads and fills the arrays that `compiled_recall` prepares. Needs numba; see `compiled.kernels`.

Note: the full scores of a few promising rows give an early lower bound of the scores needed (`least`). With the maximum
that each list can add within 64 rows, it rules out most rows of the lists that are read. Skipped rows could not have
been among the best, so the result is that of `best_of_few`. This is block-max pruning (Ding and Suel 2011, *Faster
top-k document retrieval using block-max indexes*) with blocks of 64 rows.
"""

from __future__ import annotations

import numpy as np
from numba import njit  # pyright: ignore[reportMissingImports]

from .list_kernels import ones, posting_of
from .selection_kernels import BINS, index, loop
from .top_rows_kernels import ARGUMENTS, histogram_edge, ordered, part_of, reached, write

ROWS_AT_ONCE = 1 << 13
"""Rows whose sums are computed together, so that they stay in the processor's cache. A multiple of 64."""
SAMPLE = 1 << 11
"""Postings that are sampled for promising rows."""


@njit
def _sampled(order, size, scale, key, factors, lists, row, grade, passed, free, k, sums, cells, totals):
    """Writes some rows of the first lists and their sums; returns the number of rows, and of lists."""
    many, read, at = np.int64(0), np.int64(0), 0
    while at < size:
        one, times = key[order[at]], scale[order[at]]
        high = min(lists[one + 1], lists[one] + SAMPLE)
        if many >= k and read + high - lists[one] > SAMPLE:
            break
        for posting in range(lists[one], high):
            own = row[index(posting)]
            if free or passed[index(own)]:
                old = sums[index(own)]
                cells[index(many)] = own
                many += np.int64(old == 0)
                sums[index(own)] = old + part_of(times, factors, grade[index(posting)])
        read += high - lists[one]
        at += 1
    for number in range(many):
        own = cells[index(number)]
        totals[index(number)] = sums[index(own)]
        sums[index(own)] = 0
    return many, at


@njit
def _lifted(
    order, first, size, scale, key, factors, lists, row, grade, line, words, before_word, cells, totals, many, edge, k,
    chosen, score,
) -> np.int64:  # fmt: skip
    """A score that `k` rows reach: cells with totals of at least `edge`, plus their parts of the lists from `first` on."""
    some, number = np.int64(0), np.int64(0)
    while some < k and number < many:
        chosen[index(some)], score[index(some)] = cells[index(number)], totals[index(number)]
        some += np.int64(totals[index(number)] >= edge)
        number += 1
    for at in range(first, size):
        one, times = key[order[at]], scale[order[at]]
        for number in range(some):
            own = chosen[index(number)]
            posting = posting_of(own, lists[one], lists[one + 1], row, line[one], words, before_word)
            if posting >= 0:
                score[index(number)] += part_of(times, factors, grade[index(posting)])
    return score[:k].min()


@njit
def _after(order, size, key, bounds, unit, line, peak, after) -> None:
    """The maximum that the lists from each on can add, by words of rows, in units."""
    after[size] = 0
    for at in range(size - 1, -1, -1):
        own, behind, own_line = after[at], after[at + 1], line[key[order[at]]]
        if own_line >= 0:
            step, own_peak = np.int32((bounds[order[at]] >> unit) // 255 + 1), peak[own_line]
            for word in range(len(own)):
                own[word] = behind[word] + own_peak[word] * step
        else:
            step = np.int32((bounds[order[at]] >> unit) + 1)
            for word in range(len(own)):
                own[word] = behind[word] + step


@loop(*ARGUMENTS)
def best_of_many(
    first, last, many_, starts, pairs, key, setting, scale, bounds, factor,
    lists, row, grade, line, words, before_word, peak, gates, gate, k, rank, bits, found, keys, places,
) -> None:  # fmt: skip
    """`best_of_few` for the sub-queries from `first` to `last` that have `many_` postings."""
    rows, most = len(rank), 0
    for sub in range(first, last):
        most = max(most, (starts[sub + 1] - starts[sub]) * np.int64(many_[sub]))
    if not most:
        return
    sums, counts = np.zeros(rows, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    chosen, cells = np.empty(rows + 1, dtype=np.int32), np.empty(rows + 1, dtype=np.int32)
    score, place, cell = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    totals, order, rest = np.empty(rows + 1, np.int64), np.empty(most, np.int64), np.zeros(most + 1, np.int64)
    next_ = np.empty(most, np.int64)
    width = rows // 64 + 1
    after, seen = np.zeros((most + 1, width), dtype=np.int32), np.zeros(width, dtype=np.uint64)
    for sub in range(first, last):
        size = starts[sub + 1] - starts[sub]
        if size == 0 or not many_[sub]:
            continue
        shift = ordered(pairs[starts[sub] : starts[sub + 1]], bounds, order, rest)
        factors, free, passed = factor[setting[order[0]]], gate[sub] < 0, gates[max(gate[sub], np.int64(0))]
        least, unit, read = np.int64(0), np.int64(0), 0
        many, done = _sampled(
            order, size, scale, key, factors, lists, row, grade, passed, free, k[sub], sums, cells, totals
        )
        if many >= k[sub]:
            least = _lifted(
                order, done, size, scale, key, factors, lists, row, grade, line, words, before_word, cells, totals, many,
                reached(totals, many, k[sub], shift, counts), k[sub], chosen, score,
            )  # fmt: skip
        while rest[0] >> unit >= 1 << 24:
            unit += 1
        _after(order, size, key, bounds, unit, line, peak, after)
        while read < size and rest[read] >= least:
            next_[read] = lists[key[order[read]]]
            read += 1
        counts[:] = 0
        live = np.int64(0)
        for begin in range(0, rows, ROWS_AT_ONCE):
            end = min(rows, begin + ROWS_AT_ONCE)
            for at in range(read):
                one, times, posting, behind = key[order[at]], scale[order[at]], next_[at], after[at + 1]
                high = lists[one + 1]
                while posting < high and row[index(posting)] < end:
                    own = row[index(posting)]
                    word, bit = index(own >> 6), np.uint64(1) << np.uint64(own & 63)
                    part = part_of(times, factors, grade[index(posting)])
                    if seen[word] & bit:
                        sums[index(own)] += part
                    elif part + (np.int64(behind[word]) << unit) >= least and (free or passed[index(own)]):
                        sums[index(own)] = part
                        seen[word] |= bit
                    posting += 1
                next_[at] = posting
            for word in range(begin >> 6, (end + 63) >> 6):
                waiting = seen[index(word)]
                if waiting:
                    seen[index(word)] = 0
                    hope = np.int64(after[read, index(word)]) << unit
                    while waiting:
                        lowest = waiting & (~waiting + np.uint64(1))
                        own = (word << 6) + ones(lowest - np.uint64(1))
                        waiting ^= lowest
                        total = sums[index(own)]
                        sums[index(own)] = 0
                        cells[index(live)] = own
                        totals[index(live)] = total
                        place[index(live)] = hope
                        counts[index(total >> shift)] += np.int64(total + hope >= least)
                        live += np.int64(total + hope >= least)
            if live >= k[sub]:
                least = max(least, histogram_edge(counts, k[sub]) << shift)
        if read < size and live > k[sub]:
            least = max(least, _lifted(
                order, read, size, scale, key, factors, lists, row, grade, line, words, before_word, cells, totals, live,
                histogram_edge(counts, k[sub]) << shift, k[sub], chosen, score,
            ))  # fmt: skip
        for at in range(read, size):
            one, times, kept = key[order[at]], scale[order[at]], np.int64(0)
            low, high, own_line = lists[one], lists[one + 1], line[one]
            step = (bounds[order[at]] >> unit) // 255 + 1
            for number in range(live):
                own, hope, total = cells[index(number)], place[index(number)], totals[index(number)]
                if total + hope >= least:
                    posting = posting_of(own, low, high, row, own_line, words, before_word)
                    if posting >= 0:
                        total += part_of(times, factors, grade[index(posting)])
                    cells[index(kept)] = own
                    totals[index(kept)] = total
                    if own_line < 0:
                        place[index(kept)] = hope - (((bounds[order[at]] >> unit) + 1) << unit)
                    else:
                        place[index(kept)] = hope - ((np.int64(peak[own_line, own >> 6]) * step) << unit)
                    kept += 1
            live = kept
            if live > 2 * k[sub]:
                least = max(least, reached(totals, live, k[sub], shift, counts))
        if live > k[sub]:
            least = max(least, reached(totals, live, k[sub], shift, counts))
        write(sub, cells, totals, live, least, k[sub], rank, bits, score, place, cell, found, keys, places)
