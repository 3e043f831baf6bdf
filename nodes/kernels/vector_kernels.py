"""Compiled loops over products of vectors: every product is exact, so the best by it are the best.

Fills the arrays that `vector_recall` and `pair_scores` prepare. Needs numba; see `compiled.kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import types  # pyright: ignore[reportMissingImports]

from .loops import filled, given, index, loop
from .product_tiles import QUERIES, ROWS, lowest, reaching, tile

_I8, _I4, _I2, _B = types.int64, types.int32, types.int16, types.boolean
BINS = 512
"""The number of bins of a histogram of products."""
_LAST = 2147483647
"""The 31 bits of a key below the product: the last place minus that of the row's id."""


@loop(filled(_I8), _I8, _I8)
def front(keys, size, k) -> None:
    """Moves the `k` greatest of `size` keys to the front, in any order."""
    low, high = 0, size - 1
    while low < high:
        best = keys[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while keys[left] > best:
                left += 1
            while best > keys[right]:
                right -= 1
            if left <= right:
                keys[left], keys[right] = keys[right], keys[left]
                left += 1
                right -= 1
        if k - 1 <= right:
            high = right
        elif k - 1 >= left:
            low = left
        else:
            break


@loop(_I8, _I8, given(_I4, 2), filled(_I4, 3))
def side_by_side(first, last, rows, panels) -> None:
    """Writes the rows of the panels from `first` to `last` pair by pair: `ROWS` rows a panel; the rest of the last panel is not read."""
    for panel in range(first, last):
        low = panel * ROWS
        size = min(ROWS, len(rows) - low)
        for pair in range(rows.shape[1]):
            for at in range(size):
                panels[panel, pair, index(at)] = rows[index(low + at), index(pair)]


@loop(
    _I8, _I8, given(_I4, 3), given(_I4, 3), given(_I8), given(_I8), given(_I8), given(_B, 2), given(_I8), given(_I8),
    filled(_I8), filled(_I8), filled(_I8, 2),
)  # fmt: skip
def best(first, last, queries, panels, starts, subs, place, masks, mask, k, edge, held, keys) -> None:
    """Adds to the keys of each sub-query those of a block of rows that can be among its `k` best.

    The tiles of vectors from `first` to `last` are processed; vector `v` has the sub-queries `subs[starts[v]:starts[v +
    1]]`. `place` contains the places of the ids of the block's rows; masks without rows let every row pass. No key of
    at most `edge` is among the best.
    """
    out = np.empty((QUERIES, ROWS), dtype=np.int32)
    pairs, size, room, every = panels.shape[1], len(place), keys.shape[1], masks.shape[1] == 0
    for panel in range(len(panels)):
        low = panel * ROWS
        within = (np.int64(1) << min(ROWS, size - low)) - 1
        for own in range(first, last):
            tile(queries[own].ctypes.data, panels[panel].ctypes.data, pairs, out.ctypes.data)  # pyright: ignore[reportCallIssue]
            for line in range(min(QUERIES, len(starts) - 1 - own * QUERIES)):
                vector = own * QUERIES + line
                for number in range(starts[vector], starts[vector + 1]):
                    sub = subs[number]
                    bits = reaching(out[line].ctypes.data, np.int32(edge[sub] >> 31)) & within
                    if bits == 0:
                        continue
                    count = held[sub]
                    while bits:
                        at = low + lowest(bits)
                        bits &= bits - 1
                        key = (np.int64(out[line, index(at - low)]) << 31) | (_LAST - place[index(at)])
                        if key > edge[sub] and (every or masks[mask[sub], index(at)]):
                            keys[sub, index(count)] = key
                            count += 1
                    if count > room - ROWS:
                        front(keys[sub], count, k[sub])
                        count = k[sub]
                        edge[sub] = keys[sub, :count].min()
                    held[sub] = count


@loop(_I8, _I8, given(_I8), given(_I8), given(_I8, 2), filled(_I8, 2))
def leading(first, last, k, held, keys, found) -> None:
    """Writes the `k` greatest keys of the sub-queries from `first` to `last` to lines of `found`, and more if they fit.

    A histogram finds a number that `k` keys reach.
    """
    counts, kept = np.empty(BINS, dtype=np.int64), np.empty(keys.shape[1], dtype=np.int64)
    for sub in range(first, last):
        size, line = held[sub], keys[sub]
        if size <= found.shape[1]:
            found[sub, :size] = line[:size]
            continue
        low, high = line[0], line[0]
        for at in range(size):
            low, high = min(low, line[at]), max(high, line[at])
        shift = 0
        while (high - low) >> shift >= BINS:
            shift += 1
        counts[:] = 0
        for at in range(size):
            counts[index((line[index(at)] - low) >> shift)] += 1
        above, bin_ = 0, BINS
        while above < k[sub]:
            bin_ -= 1
            above += counts[bin_]
        edge, many = low + (np.int64(bin_) << shift), np.int64(0)
        for at in range(size):
            kept[index(many)] = line[index(at)]
            many += np.int64(line[index(at)] >= edge)
        if many > found.shape[1]:
            front(kept, many, k[sub])
            many = k[sub]
        found[sub, :many] = kept[:many]


@loop(given(_I2, 2), given(_I8), given(_I4, 2), given(_I8), filled(_I8))
def products(rows, at, others, which, found) -> None:
    """Writes the product of each vector `rows[at]` with `others[which]`."""
    for pair in range(len(at)):
        row, other, total = at[pair], which[pair], np.int64(0)
        for place in range(rows.shape[1]):
            total += np.int64(rows[index(row), index(place)]) * np.int64(others[index(other), index(place)])
        found[pair] = total
