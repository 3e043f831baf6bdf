"""Compiled loops over posting lists: the same numbers as `posting_recall` makes, without its passes over arrays.

Reads and fills the arrays that `compiled_recall` prepares. Needs numba; `compiled.kernels` decides whether it is loaded.

The one thing to know: scores are whole multiples of 2**-30 as int64, so a sum is exact in any order, and a row may be left
alone as soon as what it could still gain is known to be too little. No fast-math: every step rounds as NumPy's does.
"""

from __future__ import annotations

import numpy as np
from numba import types  # pyright: ignore[reportMissingImports]

from .list_kernels import bound, grade, posting_of
from .lookup_kernels import alike, count, find, gather
from .selection_kernels import BINS, before, choose, filled, front, given, index, loop, sort

__all__ = [
    "alike", "best_held", "best_shown", "bound", "count", "find", "frequencies", "gather", "grade", "read_keys",
    "withheld",
]  # fmt: skip

SEED = 64
"""Postings left per row asked for, from which on it pays to score some rows whole first."""
SHORT = 8
"""A list of as many postings per row that it is asked about is read from end to end."""

_I8, _I4, _U8, _U1, _F8, _B = types.int64, types.int32, types.uint64, types.uint8, types.float64, types.boolean


@loop(_I8, _I8, given(_I8), given(_I4), given(_I8), given(_I8), given(_B, 2), filled(_I8))
def frequencies(first, last, starts, row, key, judged, open_, found) -> None:
    """In how many rows that are open the keys of the pairs from `first` to `last` occur; `judged` is the line of `open_`
    that says which are, -1 where all are.
    """
    for pair in range(first, last):
        low, high, held = starts[key[pair]], starts[key[pair] + 1], np.int64(0)
        if judged[pair] < 0:
            held = high - low
        else:
            own = open_[judged[pair]]
            for posting in range(low, high):
                held += own[index(row[posting])]
        found[pair] = held


@loop(
    _I8, _I8, given(_I8), given(_I4), given(_I4), given(_I8), given(_I8), given(_F8), given(_F8, 2), given(_I8),
    given(_B, 2), given(_I8), filled(_I4), filled(_I8),
)  # fmt: skip
def withheld(
    first, last, starts, row, grade_, key, setting, scale, factor, judged, open_, held, held_row, held_part,
) -> None:  # fmt: skip
    """The rows that are not open of the pairs from `first` to `last`, and what each adds to a score, from `held[pair]` on."""
    for pair in range(first, last):
        if judged[pair] >= 0:
            at, own, factors = held[pair], open_[judged[pair]], factor[setting[pair]]
            for posting in range(starts[key[pair]], starts[key[pair] + 1]):
                if not own[index(row[posting])]:
                    held_row[at] = row[posting]
                    held_part[at] = np.int64(np.rint(scale[pair] * factors[index(grade_[posting])]))
                    at += 1


@loop(given(_I8), _I8, gives=_I8)
def _edge(counts, k) -> np.int64:
    """The highest bin of a histogram that has the `k`-th best; there are as many."""
    above, bin_ = np.int64(0), len(counts)
    while above < k:
        bin_ -= 1
        above += counts[bin_]
    return np.int64(bin_)


@loop(given(_I8), given(_I4), _I8, _I8, _I8, filled(_I8), gives=_I8)
def _least(sums, cells, size, k, shift, counts) -> np.int64:
    """A score that at least `k` of some cells have, by a histogram; 0 if there are fewer."""
    if size < k:
        return np.int64(0)
    counts[:] = 0
    for at in range(size):
        counts[index(sums[index(cells[index(at)])] >> shift)] += 1
    return _edge(counts, k) << shift


@loop(
    _I8, _I8, given(_I8), given(_I8), given(_I8), given(_I8), given(_F8), given(_I8), given(_F8, 2),
    given(_I8), given(_I4), given(_I4), given(_I4), given(_U8, 2), given(_I4, 2), given(_U1, 2),
    given(_I8), given(_B, 2), given(_B, 2), given(_B), given(_I8), given(_I8), given(_I8), _I8,
    filled(_I8), filled(_I8, 2), filled(_I8, 2),
)  # fmt: skip
def best_shown(
    first, last, starts, pairs, key, setting, scale, bounds, factor,
    lists, row, grade_, line, words, before_word, peak,
    judged, open_, allowed, every, filter_, k, rank, bits, found, keys, places,
) -> None:  # fmt: skip
    """The keys of the best open rows of the sub-queries from `first` to `last`: at least `k` if there are so many, and
    no more than a line of `keys` holds. `found` is how many there are of the `k`.

    A key is a score, and behind it in `bits` bits how far the place of the row's id is from the last one. Where both
    need too many, `bits` is 0: then the `k` best are written in order, scores as keys, and `places`.

    The lists with the greatest parts come first (MaxScore, Turtle & Flood 1995), and the whole scores of the rows that
    are best so far say what a row needs (`least`). A row that its list and the `peak` of the later ones among its
    neighbors could not lift so high is passed over; as soon as none could, the lists left are only asked about rows
    that can still be among the best. `every` says which filters let every row pass.
    """
    rows, most = len(rank), 0
    for sub in range(first, last):
        most = max(most, starts[sub + 1] - starts[sub])
    sums, counts = np.empty(rows, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    touched, cells = np.empty(rows + 1, dtype=np.int32), np.empty(rows + 1, dtype=np.int32)
    score, place, cell = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    order, rest, short = (
        np.empty(most, dtype=np.int64), np.zeros(most + 1, dtype=np.int64), np.zeros(most + 1, dtype=np.int64)
    )  # fmt: skip
    later, seen = np.zeros(rows // 64 + 1, dtype=np.int32), np.zeros(rows // 64 + 1, dtype=np.uint64)
    limit = (np.int64(1) << bits) - 1
    for sub in range(first, last):
        size, left, of, long = starts[sub + 1] - starts[sub], np.int64(0), filter_[sub], np.int64(0)
        if size == 0:
            found[sub] = 0
            continue
        for at in range(size):
            pair, to = pairs[starts[sub] + at], at
            while to > 0 and bounds[order[to - 1]] < bounds[pair]:
                order[to] = order[to - 1]
                to -= 1
            order[to] = pair
            left += lists[key[pair] + 1] - lists[key[pair]]
            long += np.int64(line[key[pair]] >= 0)
        factors, own_open = factor[setting[order[0]]], max(judged[order[0]], np.int64(0))
        free = every[of] and judged[order[0]] < 0
        rest[size] = short[size] = 0
        for at in range(size - 1, -1, -1):
            rest[at] = rest[at + 1] + bounds[order[at]]
            short[at] = short[at + 1] + (bounds[order[at]] if line[key[order[at]]] < 0 else np.int64(0))
        shift, unit = np.int64(0), np.int64(0)
        while rest[0] >> shift >= BINS:
            shift += 1
        while rest[0] >> unit >= 1 << 24:
            unit += 1
        if long:
            later[:] = 0
            for at in range(size):
                own_line = line[key[order[at]]]
                if own_line >= 0:
                    step, own_peak = np.int32((bounds[order[at]] >> unit) // 255 + 1), peak[own_line]
                    for word in range(len(later)):
                        later[word] += own_peak[word] * step
        many, least, at = np.int64(0), np.int64(0), 0
        counts[:] = 0
        while at < size and rest[at] >= least:
            one, times, after = key[order[at]], scale[order[at]], short[at + 1]
            low, high, own_line = lists[one], lists[one + 1], line[one]
            if own_line >= 0:
                step, own_peak = np.int32((bounds[order[at]] >> unit) // 255 + 1), peak[own_line]
                for word in range(len(later)):
                    later[word] -= own_peak[word] * step
            if at == 0 and free:
                many = high - low
                for number in range(many):
                    own = row[index(low + number)]
                    part = np.int64(np.rint(times * factors[index(grade_[index(low + number)])]))
                    touched[index(number)] = own
                    sums[index(own)] = part
                    seen[index(own >> 6)] |= np.uint64(1) << np.uint64(own & 63)
                    counts[index(part >> shift)] += 1
            else:
                for posting in range(low, high):
                    own = row[index(posting)]
                    word, bit = index(own >> 6), np.uint64(1) << np.uint64(own & 63)
                    part = np.int64(np.rint(times * factors[index(grade_[index(posting)])]))
                    if seen[word] & bit:
                        old = sums[index(own)]
                        sums[index(own)] = old + part
                        counts[index(old >> shift)] -= 1
                        counts[index((old + part) >> shift)] += 1
                    elif part + after + (np.int64(later[word]) << unit) >= least and (
                        free or ((judged[order[0]] < 0 or open_[own_open, own]) and allowed[of, own])
                    ):
                        touched[index(many)] = own
                        many += 1
                        sums[index(own)] = part
                        seen[word] |= bit
                        counts[index(part >> shift)] += 1
            at += 1
            left -= high - low
            if many >= k[sub]:
                edge = _edge(counts, k[sub]) << shift
                least = max(least, edge)
                if at < size and left > SEED * k[sub]:
                    some, number = np.int64(0), np.int64(0)
                    while some < 2 * k[sub] and number < many:
                        own = touched[index(number)]
                        cells[index(some)] = own
                        score[index(some)] = sums[index(own)]
                        some += np.int64(sums[index(own)] >= edge)
                        number += 1
                    for other in range(at, size):
                        one, times = key[order[other]], scale[order[other]]
                        for number in range(some):
                            posting = posting_of(
                                cells[index(number)], lists[one], lists[one + 1], row, line[one], words, before_word
                            )
                            if posting >= 0:
                                score[index(number)] += np.int64(np.rint(times * factors[index(grade_[posting])]))
                    front(score, some, k[sub])
                    edge = score[0]
                    for number in range(k[sub]):
                        edge = min(edge, score[number])
                    least = max(least, edge)
        live = np.int64(0)
        for number in range(many):
            own = touched[index(number)]
            hope = short[at] + (np.int64(later[index(own >> 6)]) << unit)
            cells[index(live)] = own
            place[index(live)] = hope
            live += np.int64(sums[index(own)] + hope >= least)
        while at < size:
            pair, kept = order[at], np.int64(0)
            one, times = key[pair], scale[pair]
            low, high, own_line = lists[one], lists[one + 1], line[one]
            step = (bounds[pair] >> unit) // 255 + 1
            for number in range(live):
                own, hope = cells[index(number)], place[index(number)]
                if sums[index(own)] + hope >= least:
                    cells[index(kept)] = own
                    place[index(kept)] = hope - (
                        bounds[pair] if own_line < 0 else (np.int64(peak[own_line, own >> 6]) * step) << unit
                    )
                    kept += 1
            if own_line < 0 and high - low < SHORT * kept:
                for posting in range(low, high):
                    own = row[index(posting)]
                    if (seen[index(own >> 6)] >> np.uint64(own & 63)) & np.uint64(1):
                        sums[index(own)] += np.int64(np.rint(times * factors[index(grade_[posting])]))
            else:
                for number in range(kept):
                    own = cells[index(number)]
                    posting = posting_of(own, low, high, row, own_line, words, before_word)
                    if posting >= 0:
                        sums[index(own)] += np.int64(np.rint(times * factors[index(grade_[posting])]))
            live = kept
            at += 1
            if at < size and live > 2 * k[sub]:
                least = max(least, _least(sums, cells, live, k[sub], shift, counts))
        if live > k[sub]:
            least = max(least, _least(sums, cells, live, k[sub], shift, counts))
        kept = np.int64(0)
        if bits:
            for number in range(live):
                own = cells[index(number)]
                score[index(kept)] = (sums[index(own)] << bits) | (limit - rank[index(own)])
                kept += np.int64(sums[index(own)] >= least)
            found[sub] = min(kept, k[sub])
            if kept > keys.shape[1]:
                front(score, kept, found[sub])
                kept = found[sub]
            keys[sub, :kept] = score[:kept]
        else:
            for number in range(live):
                own = cells[number]
                if sums[own] >= least:
                    score[kept], place[kept], cell[kept] = sums[own], rank[own], own
                    kept += 1
            found[sub] = min(kept, k[sub])
            if kept > k[sub]:
                choose(score, place, cell, kept, k[sub])
            sort(score, place, cell, found[sub])
            keys[sub, : found[sub]], places[sub, : found[sub]] = score[: found[sub]], place[: found[sub]]
        for number in range(many):
            seen[index(touched[index(number)] >> 6)] = 0


@loop(
    _I8, _I8, given(_I8), given(_I8, 2), given(_I8, 2), _I8, given(_I8), given(_I8), filled(_I8), filled(_F8),
)  # fmt: skip
def read_keys(first, last, found, keys, places, bits, by_id, ends, row, score) -> None:
    """The rows and scores of the sub-queries from `first` to `last`, best first, of keys that ascend; before their `ends`.

    `by_id` says which row has the id of a place.
    """
    limit, width = (np.int64(1) << bits) - 1, keys.shape[1]
    for sub in range(first, last):
        low = ends[sub] - found[sub]
        for at in range(found[sub]):
            key = keys[sub, width - 1 - at] if bits else keys[sub, at]
            place = limit - (key & limit) if bits else places[sub, at]
            row[low + at], score[low + at] = by_id[index(place)], np.float64(key >> bits) / 1073741824.0


@loop(
    _I8, _I8, given(_I8), given(_I8), given(_I8), given(_I8), given(_I4), given(_I8), given(_B, 2), given(_I8),
    given(_I8), _I8, given(_I8, 2), given(_I8), given(_I8), given(_I8), given(_I8),
    filled(_I8), filled(_I8), filled(_I8), filled(_I8),
)  # fmt: skip
def best_held(
    first, last, requests, starts, pairs, held, row, part, allowed, filter_,
    document, documents, recorded, setting, k, rank, ends, found, found_sub, found_row, found_score,
) -> None:  # fmt: skip
    """The `k` best rows that are not open, of the requests from `first` to `last`: of a document the newest only.

    Request `i` has the sub-queries `requests[i]:requests[i + 1]`; those of one are written before its `ends`.
    """
    rows, room = len(rank), 0
    for request in range(first, last):
        cells = 0
        for sub in range(requests[request], requests[request + 1]):
            most = 0
            for at in range(starts[sub], starts[sub + 1]):
                most += held[pairs[at] + 1] - held[pairs[at]]
            cells += min(rows, most)
        room = max(room, cells)
    sums = np.zeros(rows, dtype=np.int64)
    touched, seen = np.empty(rows, dtype=np.int64), np.empty(documents, dtype=np.int64)
    best, newest = np.full(documents, -2, dtype=np.int64), np.empty(documents, dtype=np.int64)
    of, at_row, total = (np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64))
    score, place, cell = (
        np.empty(documents, dtype=np.int64), np.empty(documents, dtype=np.int64), np.empty(documents, dtype=np.int64)
    )  # fmt: skip
    for request in range(first, last):
        cells, many = 0, 0
        for sub in range(requests[request], requests[request + 1]):
            hit = 0
            for at in range(starts[sub], starts[sub + 1]):
                for posting in range(held[pairs[at]], held[pairs[at] + 1]):
                    own = row[posting]
                    if sums[own] == 0:
                        touched[hit] = own
                        hit += 1
                    sums[own] += part[posting]
            for at in range(hit):
                own = touched[at]
                if allowed[filter_[sub], own]:
                    of[cells], at_row[cells], total[cells] = sub, own, sums[own]
                    cells += 1
                    which, when = document[own], recorded[setting[request], own]
                    if best[which] == -2:
                        best[which], newest[which], seen[many] = -1, when, which
                        many += 1
                    newest[which] = max(newest[which], when)
                sums[own] = 0
        for at in range(cells):
            which = document[at_row[at]]
            if recorded[setting[request], at_row[at]] == newest[which]:
                other = best[which]
                if other < 0 or before(total[at], rank[at_row[at]], total[other], rank[at_row[other]]):
                    best[which] = at
        size = 0
        for at in range(many):
            chosen = best[seen[at]]
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
