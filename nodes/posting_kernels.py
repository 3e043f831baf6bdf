"""Compiled loops over posting lists: the same numbers as `posting_recall` makes, without its passes over arrays.

Reads and fills the arrays that `compiled_recall` prepares. Needs numba; `compiled.kernels` decides whether it is loaded.

The one thing to know: scores are whole multiples of 2**-30 as int64, so a sum is exact in any order, and a row may be left
alone as soon as what it could still gain is known to be too little. No fast-math: every step rounds as NumPy's does.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types  # pyright: ignore[reportMissingImports]

from .lookup_kernels import alike, count, find, gather
from .selection_kernels import BINS, before, choose, filled, first_from, front, given, index, loop, sort

__all__ = [
    "alike", "best_held", "best_shown", "contributions", "count", "find", "frequencies", "gather", "read_keys",
]  # fmt: skip

SHORT = 8
"""A list of as many postings per row that it is asked about is read from end to end."""

_I8, _I4, _U8, _F8, _B = types.int64, types.int32, types.uint64, types.float64, types.boolean


@loop(_I8, _I8, given(_I8), given(_I4), given(_I8), given(_I8), given(_B, 2), filled(_I8))
def frequencies(first, last, starts, row, key, setting, open_, found) -> None:
    """In how many rows that are open the keys of the pairs from `first` to `last` occur."""
    for pair in range(first, last):
        held = 0
        for posting in range(starts[key[pair]], starts[key[pair] + 1]):
            held += open_[setting[pair], row[posting]]
        found[pair] = held


@loop(
    _I8, _I8, given(_I8), given(_I4), given(_I4), given(_I8), given(_I8), given(_F8), given(_B, 2),
    given(_I8), given(_F8), _F8, _F8, given(_I8), given(_I8),
    filled(_I4), filled(_I8), filled(_I4), filled(_I8), filled(_I8, 2), given(_I8), filled(_U8, 2), filled(_I4, 2),
)  # fmt: skip
def contributions(
    first, last, starts, row, freq, key, setting, weight, open_, length, mean, k1, b, shown, held,
    shown_row, shown_part, held_row, held_part, bounds, line, words, before_word,
) -> None:  # fmt: skip
    """What each posting of the pairs from `first` to `last` adds to a score under BM25 (lucene): of open rows from
    `shown[pair]` on, of others from `held[pair]`. `bounds[pair]` becomes the least and the greatest part.

    Pairs are sorted by setting. A pair with a `line` of words gets a bit per open row there, and the number of its rows
    before each word.
    """
    half, of = np.empty(len(length)), np.int64(-1)
    for pair in range(first, last):
        if setting[pair] != of:
            of = setting[pair]
            for at in range(len(length)):  # as `Bm25.half`, step by step
                ratio = length[at] / mean[of] if mean[of] > 0 else 1.0
                half[at] = k1 * ((1.0 - b) + b * ratio)
        at, beside = shown[pair], held[pair]
        least, most = np.int64(1) << 62, np.int64(0)
        for posting in range(starts[key[pair]], starts[key[pair] + 1]):
            own = row[posting]
            times = np.float64(freq[posting])
            whole = np.int64(np.rint(weight[pair] * (times / (times + half[own])) * 1073741824.0))
            least, most = min(least, whole), max(most, whole)
            if open_[of, own]:
                shown_row[at], shown_part[at] = own, whole
                at += 1
            else:
                held_row[beside], held_part[beside] = own, whole
                beside += 1
        bounds[pair, 0], bounds[pair, 1] = least, most
        if line[pair] >= 0:
            own_words, word = words[line[pair]], np.int64(0)
            for posting in range(shown[pair], at):
                own_words[index(shown_row[posting] >> 6)] |= np.uint64(1) << np.uint64(shown_row[posting] & 63)
            for posting in range(shown[pair], at):
                while word <= shown_row[posting] >> 6:
                    before_word[line[pair], word] = posting - shown[pair]
                    word += 1


@njit(inline="always")
def _ones(word) -> np.int64:
    """How many bits of a word are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(inline="always")
def _part_of(own, low, high, row, part) -> np.int64:
    """What a row has in a sorted list from `low` to `high`, 0 where it is not in it."""
    at = first_from(row, own, low, high)
    return part[at] if at < high and row[at] == own else np.int64(0)


@loop(given(_I8), given(_I4), _I8, _I8, _I8, filled(_I8), gives=_I8)
def _edge(sums, cells, size, k, shift, counts) -> np.int64:
    """A score that at least `k` of some cells have, by a histogram; 0 if there are fewer."""
    if size < k:
        return np.int64(0)
    counts[:] = 0
    for at in range(size):
        counts[index(sums[index(cells[index(at)])] >> shift)] += 1
    above, bin_ = 0, len(counts)
    while above < k:
        bin_ -= 1
        above += counts[bin_]
    return np.int64(bin_) << shift


@loop(
    _I8, _I8, given(_I8), given(_I8), given(_I8), given(_I4), given(_I8), given(_I8, 2), given(_I8),
    given(_U8, 2), given(_I4, 2), given(_B, 2), given(_B), given(_I8), given(_I8), given(_I8), _I8,
    filled(_I8), filled(_I8, 2), filled(_I8, 2),
)  # fmt: skip
def best_shown(
    first, last, starts, pairs, lists, row, part, bounds, line, words, before_word,
    allowed, every, filter_, k, rank, bits, found, keys, places,
) -> None:  # fmt: skip
    """The keys of the best open rows of the sub-queries from `first` to `last`: at least `k` if there are so many, and
    no more than a line of `keys` holds. `found` is how many there are of the `k`.

    A key is a score, and behind it in `bits` bits how far the place of the row's id is from the last one. Where both
    need too many, `bits` is 0: then the `k` best are written in order, scores as keys, and `places`.

    The lists with the greatest parts come first (MaxScore, Turtle & Flood 1995). As soon as what is left could not lift
    a new row to a score that `k` rows have already, the lists left are only asked about rows that can still be among
    them. `every` says which filters let every row pass.
    """
    rows, most = len(rank), 0
    for sub in range(first, last):
        most = max(most, starts[sub + 1] - starts[sub])
    sums, counts = np.zeros(rows, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    touched, cells = np.empty(rows + 1, dtype=np.int32), np.empty(rows + 1, dtype=np.int32)
    score, place, cell = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
    order, rest = np.empty(most, dtype=np.int64), np.zeros(most + 1, dtype=np.int64)
    limit = (np.int64(1) << bits) - 1
    for sub in range(first, last):
        size, left, of = starts[sub + 1] - starts[sub], np.int64(0), filter_[sub]
        for at in range(size):
            pair, to = pairs[starts[sub] + at], at
            while to > 0 and bounds[order[to - 1], 1] < bounds[pair, 1]:
                order[to] = order[to - 1]
                to -= 1
            order[to] = pair
            left += lists[pair + 1] - lists[pair]
        rest[size] = 0
        for at in range(size - 1, -1, -1):
            rest[at] = rest[at + 1] + bounds[order[at], 1]
        shift = np.int64(0)
        while rest[0] >> shift >= BINS:
            shift += 1
        many, least, at = np.int64(0), np.int64(0), 0
        while at < size and rest[at] >= least:
            low, high = lists[order[at]], lists[order[at] + 1]
            if every[of]:
                for posting in range(low, high):
                    own = row[index(posting)]
                    old = sums[index(own)]
                    touched[index(many)] = own
                    many += np.int64(old == 0)
                    sums[index(own)] = old + part[index(posting)]
            else:
                for posting in range(low, high):
                    own = row[index(posting)]
                    if allowed[of, own]:
                        touched[many] = own
                        many += np.int64(sums[own] == 0)
                        sums[own] += part[posting]
            at += 1
            left -= high - low
            if left > many + BINS:
                least = max(least, _edge(sums, touched, many, k[sub], shift, counts))
        live = many
        if at < size:
            live = np.int64(0)
            for number in range(many):
                own = touched[index(number)]
                cells[index(live)] = own
                live += np.int64(sums[index(own)] + rest[at] >= least)
            while at < size:
                pair, kept = order[at], np.int64(0)
                low, high = lists[pair], lists[pair + 1]
                for number in range(live):
                    own = cells[index(number)]
                    cells[index(kept)] = own
                    kept += np.int64(sums[index(own)] + rest[at] >= least)
                if high - low < SHORT * kept:
                    for posting in range(low, high):
                        own = row[index(posting)]
                        old = sums[index(own)]
                        sums[index(own)] = old + (part[index(posting)] if old else np.int64(0))
                elif line[pair] >= 0:
                    own_words, own_before = words[line[pair]], before_word[line[pair]]
                    for number in range(kept):
                        own = np.uint64(cells[index(number)])
                        word, bit = own_words[own >> np.uint64(6)], own & np.uint64(63)
                        if (word >> bit) & np.uint64(1):
                            ahead = _ones(word & ((np.uint64(1) << bit) - np.uint64(1)))
                            sums[own] += part[low + own_before[own >> np.uint64(6)] + ahead]
                else:
                    for number in range(kept):
                        own = cells[index(number)]
                        sums[index(own)] += _part_of(own, low, high, row, part)
                live = kept
                at += 1
                if at < size and live > 2 * k[sub]:
                    least = max(least, _edge(sums, cells, live, k[sub], shift, counts))
        else:
            for number in range(many):
                cells[index(number)] = touched[index(number)]
        if live > k[sub]:
            least = max(least, _edge(sums, cells, live, k[sub], shift, counts))
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
            sums[index(touched[index(number)])] = 0


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
