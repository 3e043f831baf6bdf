"""A compiled loop for sub-queries of many postings: it passes over the rows that cannot be among the best.

Reads and fills the arrays that `compiled_recall` prepares. Needs numba; see `compiled.kernels`.

The one thing to know: the whole scores of a few rows that look good say early what a score needs at least (`least`). With
what each list can add within 64 rows, most rows of the lists that are read are known to need no sum. What is passed over
could not have been among the best, so the result is that of `best_of_few`.
"""

from __future__ import annotations

import numpy as np
from numba import njit  # pyright: ignore[reportMissingImports]

from .list_kernels import ones, posting_of
from .selection_kernels import BINS, front, index, loop
from .shown_kernels import ARGUMENTS, histogram_edge, ordered, part_of, reached, reached_by, write

BLOCK = 1 << 15
"""Rows whose sums are made together: they stay in the nearest memory. A multiple of 64."""
SAMPLE = 1 << 12
"""Postings among which rows are sought that say what a score needs at least."""


@njit
def _sampled(
    order, size, k, shift, scale, key, factors, lists, row, grade, line, words, before_word, passed, free,
    sums, cells, touched, counts, score,
) -> np.int64:  # fmt: skip
    """A score that at least `k` rows reach: the whole scores of rows that the first lists say most about; 0 if too few."""
    many, read, at = np.int64(0), np.int64(0), 0
    while at < size and read < SAMPLE:
        one, times = key[order[at]], scale[order[at]]
        high = min(lists[one + 1], lists[one] + SAMPLE)
        if at and read + high - lists[one] > SAMPLE and many >= k:
            break
        for posting in range(lists[one], high):
            own = row[index(posting)]
            if free or passed[index(own)]:
                old = sums[index(own)]
                touched[index(many)] = own
                many += np.int64(old == 0)
                sums[index(own)] = old + part_of(times, factors, grade[index(posting)])
        read += high - lists[one]
        at += 1
    edge, some = reached_by(sums, touched, many, k, shift, counts), np.int64(0)
    for number in range(many):
        own = touched[index(number)]
        if many >= k and sums[index(own)] >= edge and some < 2 * k:
            cells[index(some)] = own
            some += 1
        sums[index(own)] = 0
    if some < k:
        return edge
    score[:some] = 0
    for other in range(size):
        one, times = key[order[other]], scale[order[other]]
        for number in range(some):
            posting = posting_of(
                cells[index(number)], lists[one], lists[one + 1], row, line[one], words, before_word
            )
            if posting >= 0:
                score[index(number)] += part_of(times, factors, grade[index(posting)])
    front(score, some, k)
    return score[:k].min()


@loop(*ARGUMENTS)
def best_of_many(
    first, last, many_, starts, pairs, key, setting, scale, bounds, factor,
    lists, row, grade, line, words, before_word, peak, gates, gate, k, rank, bits, found, keys, places,
) -> None:  # fmt: skip
    """What `best_of_few` finds, for the sub-queries from `first` to `last` that are of `many_` postings."""
    rows, most = len(rank), 0
    for sub in range(first, last):
        most = max(most, starts[sub + 1] - starts[sub])
    sums, counts = np.zeros(rows, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    touched, cells = np.empty(rows + 1, dtype=np.int32), np.empty(rows + 1, dtype=np.int32)
    score, place, cell = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    totals, order, rest = np.empty(rows, np.int64), np.empty(most, np.int64), np.zeros(most + 1, np.int64)
    short, next_ = np.zeros(most + 1, np.int64), np.empty(most, np.int64)
    width = rows // 64 + 1
    later, seen = np.zeros(width, dtype=np.int32), np.zeros(width, dtype=np.uint64)
    for sub in range(first, last):
        size = starts[sub + 1] - starts[sub]
        if size == 0 or not many_[sub]:
            continue
        shift = ordered(pairs[starts[sub] : starts[sub + 1]], bounds, order, rest)
        factors, free, passed = factor[setting[order[0]]], gate[sub] < 0, gates[max(gate[sub], np.int64(0))]
        least = _sampled(
            order, size, k[sub], shift, scale, key, factors, lists, row, grade, line, words, before_word, passed, free,
            sums, cells, touched, counts, score,
        )  # fmt: skip
        unit, read = np.int64(0), 0
        while rest[0] >> unit >= 1 << 24:
            unit += 1
        later[:] = 0
        short[size] = 0
        for at in range(size - 1, -1, -1):
            own_line = line[key[order[at]]]
            short[at] = short[at + 1] + (bounds[order[at]] if own_line < 0 else np.int64(0))
            if own_line >= 0:
                step, own_peak = np.int32((bounds[order[at]] >> unit) // 255 + 1), peak[own_line]
                for word in range(width):
                    later[word] += own_peak[word] * step
        while read < size and rest[read] >= least:
            next_[read] = lists[key[order[read]]]
            read += 1
        counts[:] = 0
        live = np.int64(0)
        for block in range(0, rows, BLOCK):
            end = min(rows, block + BLOCK)
            for at in range(read):
                one, times, posting = key[order[at]], scale[order[at]], next_[at]
                high, whole = lists[one + 1], line[one] >= 0
                while posting < high and row[index(posting)] < end:
                    own = row[index(posting)]
                    word, bit = index(own >> 6), np.uint64(1) << np.uint64(own & 63)
                    part = part_of(times, factors, grade[index(posting)])
                    if seen[word] & bit:
                        sums[index(own)] += part
                    else:
                        hope = short[at + 1] + (np.int64(later[word]) << unit) + (np.int64(0) if whole else part)
                        if hope >= least and (free or passed[index(own)]):
                            sums[index(own)] = part
                            seen[word] |= bit
                    posting += 1
                next_[at] = posting
            for word in range(block >> 6, (end + 63) >> 6):
                bits_left = seen[index(word)]
                if bits_left:
                    seen[index(word)] = 0
                    hope = short[read] + (np.int64(later[index(word)]) << unit)
                    while bits_left:
                        lowest = bits_left & (~bits_left + np.uint64(1))
                        own = (word << 6) + ones(lowest - np.uint64(1))
                        bits_left ^= lowest
                        total = sums[index(own)]
                        sums[index(own)] = 0
                        cells[index(live)] = own
                        totals[index(live)] = total
                        place[index(live)] = hope
                        counts[index(total >> shift)] += 1
                        live += np.int64(total + hope >= least)
            if live >= k[sub]:
                least = max(least, histogram_edge(counts, k[sub]) << shift)
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
                        place[index(kept)] = hope - bounds[order[at]]
                    else:
                        place[index(kept)] = hope - ((np.int64(peak[own_line, own >> 6]) * step) << unit)
                    kept += 1
            live = kept
            if live > 2 * k[sub]:
                least = max(least, reached(totals, live, k[sub], shift, counts))
        if live > k[sub]:
            least = max(least, reached(totals, live, k[sub], shift, counts))
        write(sub, cells, totals, live, least, k[sub], rank, bits, score, place, cell, found, keys, places)
