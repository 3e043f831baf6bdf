"""Compiled loops over posting lists: the same numbers as `posting_recall` makes, without its passes over arrays.

Reads and fills the arrays that `compiled_recall` prepares. Needs numba; `compiled.kernels` decides whether it is loaded.

The one thing to know: scores are whole multiples of 2**-30 as int64, so a sum is exact in any order, and a row may be left
alone as soon as what it could still gain is known to be too little. No fast-math: a division rounds as NumPy's does.
"""

from __future__ import annotations

import numpy as np
from numba import types  # pyright: ignore[reportMissingImports]

from .selection_kernels import BINS, CHUNK, before, choose, filled, given, index, loop, shrink, sort

BLOCK = 4096
"""Rows scored at once: their sums fit the first-level cache."""
TILE = 64
"""Sub-queries that go through the blocks together: what they look up most stays in the second-level cache."""


_I8, _I4, _U8, _U1, _F8, _B = types.int64, types.int32, types.uint64, types.uint8, types.float64, types.boolean


@loop(given(_U8), given(_I8), given(_U1), given(_U8), given(_I8), given(_U1), filled(_I8))
def find(hashes, starts, texts, stored, stored_starts, stored_texts, position) -> None:
    """Where each key stands in a segment's list of keys, -1 where it does not.

    Both lists are sorted by hash; the text of key `i` is `texts[starts[i]:starts[i + 1]]`. Equal hashes are told apart by
    their texts.
    """
    at, end = 0, len(stored)
    for key in range(len(hashes)):
        wanted = hashes[key]
        position[key] = -1
        step = 1
        while at + step < end and stored[at + step] < wanted:
            at += step
            step *= 2
        high = min(at + step, end)
        while at < high:
            middle = (at + high) // 2
            if stored[middle] < wanted:
                at = middle + 1
            else:
                high = middle
        other = at
        size = starts[key + 1] - starts[key]
        while other < end and stored[other] == wanted:
            first = stored_starts[other]
            if stored_starts[other + 1] - first == size:
                same = True
                for letter in range(size):
                    if stored_texts[first + letter] != texts[starts[key] + letter]:
                        same = False
                        break
                if same:
                    position[key] = other
                    break
            other += 1


@loop(given(_I8), given(_I8), given(_I4), given(_I4), _B, filled(_I8))
def count(position, starts, rows, local, whole, counts) -> None:
    """Adds to each key's count its postings in a segment's rows that are in scope: `local` is not -1 (`whole`: nowhere)."""
    for key in range(len(position)):
        at = position[key]
        if at >= 0 and whole:
            counts[key] += starts[at + 1] - starts[at]
        elif at >= 0:
            found = 0
            for posting in range(starts[at], starts[at + 1]):
                found += local[rows[posting]] >= 0
            counts[key] += found


@loop(given(_I8), given(_I8), given(_I4), given(_I4), given(_I4), filled(_I8), filled(_I4), filled(_I4))
def gather(position, starts, rows, freqs, local, ends, row, freq) -> None:
    """Writes the postings that `count` counted behind what each key has already; `ends` says where that is."""
    for key in range(len(position)):
        at = position[key]
        if at >= 0:
            end = ends[key]
            for posting in range(starts[at], starts[at + 1]):
                own = local[rows[posting]]
                if own >= 0:
                    row[end] = own
                    freq[end] = freqs[posting]
                    end += 1
            ends[key] = end


@loop(given(_I8), given(_I4), given(_I8), given(_I8), given(_B, 2), filled(_I8))
def frequencies(starts, row, key, setting, open_, found) -> None:
    """In how many rows that are open each pair's key occurs."""
    for pair in range(len(key)):
        held = 0
        for posting in range(starts[key[pair]], starts[key[pair] + 1]):
            held += open_[setting[pair], row[posting]]
        found[pair] = held


@loop(
    _I8, _I8, given(_I8), given(_I4), given(_I4), given(_I8), given(_I8), given(_F8), given(_B, 2), given(_F8, 2),
    given(_I8), given(_I8), filled(_I4), filled(_I8), filled(_I4), filled(_I8), filled(_I8, 2), filled(_I8, 2),
)  # fmt: skip
def contributions(
    first, last, starts, row, freq, key, setting, weight, open_, half, shown, held, shown_row, shown_part, held_row, held_part, blocks, bounds,
) -> None:  # fmt: skip
    """What each posting of the pairs from `first` to `last` adds to a score under BM25 (lucene): of open rows from
    `shown[pair]` on, of others from `held[pair]`. `half` is the frequency at which a row, under a setting, reaches half of the weight.

    `blocks[pair]` becomes where each block of rows starts among the shown, `bounds[pair]` the least and the greatest part.
    """
    for pair in range(first, last):
        of = setting[pair]
        at, beside = shown[pair], held[pair]
        block, edge = 1, BLOCK
        blocks[pair, 0] = at
        least, most = np.int64(1) << 62, np.int64(0)
        for posting in range(starts[key[pair]], starts[key[pair] + 1]):
            own = row[posting]
            times = np.float64(freq[posting])
            whole = np.int64(np.rint(weight[pair] * (times / (times + half[of, own])) * 1073741824.0))
            least, most = min(least, whole), max(most, whole)
            if open_[of, own]:
                while own >= edge:
                    blocks[pair, block] = at
                    block += 1
                    edge += BLOCK
                shown_row[at], shown_part[at] = own, whole
                at += 1
            else:
                held_row[beside], held_part[beside] = own, whole
                beside += 1
        for rest in range(block, blocks.shape[1]):
            blocks[pair, rest] = at
        bounds[pair, 0], bounds[pair, 1] = least, most


@loop(
    _I8, _I8, given(_I8), given(_I8), given(_I8, 2), given(_I4), given(_I8),
    given(_B, 2), given(_I8), given(_I8), given(_I8), given(_I8), filled(_I8), filled(_I8), filled(_I8),
)  # fmt: skip
def best_shown(
    first, last, starts, pairs, blocks, row, part, allowed, filter_, k, rank, ends, found, found_row, found_score
) -> None:
    """The `k` best open rows of the sub-queries from `first` to `last`; those of one are written before its `ends`.

    Block of rows by block, and inside a block sub-query by sub-query, so that sums and the block's parts stay in caches.
    """
    most = 0
    for sub in range(first, last):
        most = max(most, k[sub])
    room = min(4 * most, len(rank)) + 64
    sums, counts = np.zeros(BLOCK, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    place = np.empty(room, dtype=np.int64)
    score, cell = np.empty((TILE, room), dtype=np.int64), np.empty((TILE, room), dtype=np.int64)
    held, least, worst = np.empty(TILE, dtype=np.int64), np.empty(TILE, dtype=np.int64), np.empty(TILE, dtype=np.int64)
    for tile in range(first, last, TILE):
        held[:], least[:], worst[:] = 0, 1, len(rank)
        for block in range(blocks.shape[1] - 1):
            base = block * BLOCK
            size = min(BLOCK, len(rank) - base)
            for sub in range(tile, min(tile + TILE, last)):
                for at in range(starts[sub], starts[sub + 1]):
                    pair = pairs[at]
                    for posting in range(blocks[pair, block], blocks[pair, block + 1]):
                        sums[index(row[index(posting)] - base)] += part[index(posting)]
                own = sub - tile
                for chunk in range((size + CHUNK - 1) // CHUNK):
                    below = least[own] - 1
                    reached = np.int64(0)
                    for offset in range(CHUNK):
                        reached |= below - sums[index(chunk * CHUNK + offset)]
                    if reached < 0:  # the sign of one of them
                        for offset in range(chunk * CHUNK, (chunk + 1) * CHUNK):
                            total, at = sums[offset], base + offset
                            if total < least[own] or not allowed[filter_[sub], at]:
                                continue
                            if total == least[own] and rank[at] >= worst[own]:
                                continue
                            score[own, held[own]], cell[own, held[own]] = total, at
                            held[own] += 1
                            if held[own] == room:
                                held[own], least[own], worst[own] = shrink(
                                    score[own], place, cell[own], rank, room, k[sub], counts
                                )
                    for offset in range(CHUNK):
                        sums[index(chunk * CHUNK + offset)] = 0
        for sub in range(tile, min(tile + TILE, last)):
            own = sub - tile
            size = held[own]
            if size > k[sub]:
                size, _, _ = shrink(score[own], place, cell[own], rank, size, k[sub], counts)
            for at in range(size):
                place[at] = rank[cell[own, at]]
            sort(score[own], place, cell[own], size)
            found[sub] = min(size, k[sub])
            for at in range(found[sub]):
                to = ends[sub] - k[sub] + at
                found_row[to], found_score[to] = cell[own, at], score[own, at]


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
