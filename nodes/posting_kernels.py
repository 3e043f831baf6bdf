"""Compiled loops over posting lists: the same numbers as `posting_recall` makes, without its passes over arrays.

Reads and fills the arrays that `compiled_recall` prepares. Needs numba; `compiled.kernels` decides whether it is loaded.

The one thing to know: scores are whole multiples of 2**-30 as int64, so a sum is exact in any order, and a row may be left
alone as soon as what it could still gain is known to be too little. No fast-math: a division rounds as NumPy's does.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types  # pyright: ignore[reportMissingImports]

BLOCK = 4096
"""Rows scored at once: their sums fit the first-level cache."""
TILE = 64
"""Sub-queries that go through the blocks together: what they look up most stays in the second-level cache."""
CHUNK = 64
"""Sums compared at once."""
BINS = 512
"""Of a histogram of scores."""
FEW = 512
"""Cells that are sorted by insertion."""


def _of(kind: types.Type, dimensions: int = 1) -> types.Array:
    """A read-only array: mapped files are, and arrays of other kinds pass as one."""
    return types.Array(kind, dimensions, "C", readonly=True)


def _out(kind: types.Type, dimensions: int = 1) -> types.Array:
    return types.Array(kind, dimensions, "C")


_I8, _I4, _U8, _U1, _F8, _B = types.int64, types.int32, types.uint64, types.uint8, types.float64, types.boolean


def _compiled(*arguments: types.Type, gives: types.Type = types.void):  # noqa: ANN202
    return njit(gives(*arguments), cache=True, nogil=True, error_model="numpy")


@_compiled(_of(_U8), _of(_I8), _of(_U1), _of(_U8), _of(_I8), _of(_U1), _out(_I8))
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


@_compiled(_of(_I8), _of(_I8), _of(_I4), _of(_I4), _B, _out(_I8))
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


@_compiled(_of(_I8), _of(_I8), _of(_I4), _of(_I4), _of(_I4), _out(_I8), _out(_I4), _out(_I4))
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


@_compiled(_of(_I8), _of(_I4), _of(_I8), _of(_I8), _of(_B, 2), _out(_I8))
def frequencies(starts, row, key, setting, open_, found) -> None:
    """In how many rows that are open each pair's key occurs."""
    for pair in range(len(key)):
        held = 0
        for posting in range(starts[key[pair]], starts[key[pair] + 1]):
            held += open_[setting[pair], row[posting]]
        found[pair] = held


@_compiled(
    _I8, _I8, _of(_I8), _of(_I4), _of(_I4), _of(_I8), _of(_I8), _of(_F8), _of(_B, 2), _of(_F8, 2),
    _of(_I8), _of(_I8), _out(_I4), _out(_I8), _out(_I4), _out(_I8), _out(_I8, 2), _out(_I8, 2),
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


@njit(inline="always")
def _index(number) -> int:
    """A position that is not negative: numba then leaves out the step that makes -1 the last."""
    return np.uint64(number)


@njit(inline="always")
def _before(score, rank, other, than) -> bool:
    return score > other or (score == other and rank < than)


@_compiled(_out(_I8), _out(_I8), _out(_I8), _I8, _I8)
def _choose(score, rank, cell, size, k) -> None:
    """Moves the `k` best of `size` cells to the front, by score descending, then rank."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        best, place = score[middle], rank[middle]
        left, right = low, high
        while left <= right:
            while _before(score[left], rank[left], best, place):
                left += 1
            while _before(best, place, score[right], rank[right]):
                right -= 1
            if left <= right:
                score[left], score[right] = score[right], score[left]
                rank[left], rank[right] = rank[right], rank[left]
                cell[left], cell[right] = cell[right], cell[left]
                left += 1
                right -= 1
        if k - 1 <= right:
            high = right
        elif k - 1 >= left:
            low = left
        else:
            break


@_compiled(_out(_I8), _out(_I8), _out(_I8), _I8, _I8)
def _sink(score, rank, cell, root, end) -> None:
    """Moves a cell down a heap whose root is the last of its cells."""
    while True:
        child = 2 * root + 1
        if child >= end:
            break
        if child + 1 < end and _before(score[child], rank[child], score[child + 1], rank[child + 1]):
            child += 1
        if not _before(score[root], rank[root], score[child], rank[child]):
            break
        score[root], score[child] = score[child], score[root]
        rank[root], rank[child] = rank[child], rank[root]
        cell[root], cell[child] = cell[child], cell[root]
        root = child


@_compiled(_out(_I8), _out(_I8), _out(_I8), _I8)
def _sort(score, rank, cell, size) -> None:
    """Sorts cells by score descending, then rank: few by insertion, many by a heap."""
    if size <= FEW:
        for at in range(1, size):
            own, behind, moved, to = score[at], rank[at], cell[at], at
            while to > 0 and _before(own, behind, score[to - 1], rank[to - 1]):
                score[to], rank[to], cell[to] = score[to - 1], rank[to - 1], cell[to - 1]
                to -= 1
            score[to], rank[to], cell[to] = own, behind, moved
        return
    for root in range(size // 2 - 1, -1, -1):
        _sink(score, rank, cell, root, size)
    for end in range(size - 1, 0, -1):
        score[0], score[end] = score[end], score[0]
        rank[0], rank[end] = rank[end], rank[0]
        cell[0], cell[end] = cell[end], cell[0]
        _sink(score, rank, cell, 0, end)


@_compiled(_out(_I8), _out(_I8), _I8, _I8, _I8, _out(_I8), gives=types.UniTuple(_I8, 2))
def _trim(score, cell, size, k, slack, counts) -> tuple[int, int]:
    """Keeps the cells within `slack` of a score that at least `k` of them have, by a histogram: how many, and that score."""
    low, high = score[0], score[0]
    for at in range(size):
        low, high = min(low, score[at]), max(high, score[at])
    shift = 0
    while (high - low) >> shift >= BINS:
        shift += 1
    counts[:] = 0
    for at in range(size):
        counts[_index((score[at] - low) >> shift)] += 1
    above, bin_ = 0, BINS
    while above < k:
        bin_ -= 1
        above += counts[bin_]
    edge = low + (np.int64(bin_) << shift)
    kept = 0
    for at in range(size):
        own = score[at]
        score[kept], cell[kept] = own, cell[at]
        kept += np.int64(own >= edge - slack)
    return kept, edge


@_compiled(
    _out(_I8), _out(_I8), _out(_I8), _of(_I8), _I8, _I8, _out(_I8), gives=types.UniTuple(_I8, 3)
)  # fmt: skip
def _shrink(score, place, cell, rank, size, k, counts) -> tuple[int, int, int]:
    """Leaves the `k` best of at least `k` cells and few others: how many; a score that none of the `k` is below; and the
    rank from which on a row of that score is not among them.
    """
    kept, least = _trim(score, cell, size, k, 0, counts)
    if kept <= 2 * k + 32:
        return kept, least, len(rank)
    for at in range(kept):
        place[at] = rank[cell[at]]
    _choose(score, place, cell, kept, k)
    worst = 0
    for at in range(1, k):
        if _before(score[worst], place[worst], score[at], place[at]):
            worst = at
    return k, score[worst], place[worst]


@_compiled(
    _I8, _I8, _of(_I8), _of(_I8), _of(_I8, 2), _of(_I4), _of(_I8),
    _of(_B, 2), _of(_I8), _of(_I8), _of(_I8), _of(_I8), _out(_I8), _out(_I8), _out(_I8),
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
                        sums[_index(row[_index(posting)] - base)] += part[_index(posting)]
                own = sub - tile
                for chunk in range((size + CHUNK - 1) // CHUNK):
                    below = least[own] - 1
                    reached = np.int64(0)
                    for offset in range(CHUNK):
                        reached |= below - sums[_index(chunk * CHUNK + offset)]
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
                                held[own], least[own], worst[own] = _shrink(
                                    score[own], place, cell[own], rank, room, k[sub], counts
                                )
                    for offset in range(CHUNK):
                        sums[_index(chunk * CHUNK + offset)] = 0
        for sub in range(tile, min(tile + TILE, last)):
            own = sub - tile
            size = held[own]
            if size > k[sub]:
                size, _, _ = _shrink(score[own], place, cell[own], rank, size, k[sub], counts)
            for at in range(size):
                place[at] = rank[cell[own, at]]
            _sort(score[own], place, cell[own], size)
            found[sub] = min(size, k[sub])
            for at in range(found[sub]):
                to = ends[sub] - k[sub] + at
                found_row[to], found_score[to] = cell[own, at], score[own, at]


@_compiled(
    _I8, _I8, _of(_I8), _of(_I8), _of(_I8), _of(_I8), _of(_I4), _of(_I8), _of(_B, 2), _of(_I8),
    _of(_I8), _I8, _of(_I8, 2), _of(_I8), _of(_I8), _of(_I8), _of(_I8),
    _out(_I8), _out(_I8), _out(_I8), _out(_I8),
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
                if other < 0 or _before(total[at], rank[at_row[at]], total[other], rank[at_row[other]]):
                    best[which] = at
        size = 0
        for at in range(many):
            chosen = best[seen[at]]
            score[size], place[size], cell[size] = total[chosen], rank[at_row[chosen]], chosen
            size += 1
            best[seen[at]] = -2
        if size > k[request]:
            _choose(score, place, cell, size, k[request])
            size = k[request]
        _sort(score, place, cell, size)
        found[request] = size
        for at in range(size):
            to = ends[request] - k[request] + at
            found_sub[to], found_row[to], found_score[to] = of[cell[at]], at_row[cell[at]], score[at]
