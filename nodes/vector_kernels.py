"""Compiled loops over products of vectors: a shortlist from rounded products, and exact ones of what is on it.

Fills the arrays that `vector_recall` prepares, where the margin is proven. Needs numba; see `compiled.kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types  # pyright: ignore[reportMissingImports]

from .selection_kernels import BINS, CHUNK, choose, filled, given, index, loop, sort, trim

_I8, _I4, _I2, _F4, _B = types.int64, types.int32, types.int16, types.float32, types.boolean


@njit(inline="always")
def _bits(number) -> np.int64:
    """A positive float32 as a whole number: of two of them the greater is the greater number."""
    return np.int64(np.float32(number).view(np.int32))


@loop(
    _I8, _I8, given(_F4, 2), given(_I4, 2), given(_I8), _I8, given(_B, 2), given(_I8), given(_I8), given(_I8),
    filled(_I8), filled(_I8), filled(_I8, 2), filled(_I8, 2),
)  # fmt: skip
def near(first, last, product, bits, line, base, masks, mask, k, slack, edge, held, score, cell) -> None:
    """Adds to the shortlists of the sub-queries from `first` to `last` what a block of rows has within `slack` of the best.

    `product[line[sub]]` holds the rounded products of a sub-query with the rows from `base` on, `bits` the same as whole
    numbers. At least `k` rows of a list have `edge`. A list that does not become shorter is given up: `held` is -1.
    """
    counts = np.zeros(BINS, dtype=np.int64)
    size, room = product.shape[1], score.shape[1]
    for sub in range(first, last):
        own, seen = line[sub], held[sub]
        if seen < 0:
            continue
        bound = max(edge[sub], 0) - slack[sub]
        line_product, numbers = product[own], bits[own]
        for chunk in range(0, size, CHUNK):
            end = min(chunk + CHUNK, size)
            if bound > 16 and end == chunk + CHUNK:
                below, reached = np.int32(_bits(bound) - 2), np.int32(0)  # a unit for its rounding, one for equality
                for offset in range(CHUNK):
                    other = max(numbers[index(chunk + offset)], np.int32(0))
                    reached = np.int32(reached | np.int32(below - other))
                if reached >= 0:
                    continue
            for at in range(chunk, end):
                value = line_product[index(at)]
                if value < bound or not masks[mask[sub], base + at]:
                    continue
                score[sub, seen], cell[sub, seen] = np.int64(np.floor(value)), base + at
                seen += 1
                if seen == room:
                    seen, least = trim(score[sub], cell[sub], room, k[sub], slack[sub], counts)
                    edge[sub] = max(edge[sub], least)
                    bound = max(edge[sub], 0) - slack[sub]
                    if seen + CHUNK > room:
                        seen = -1
                        break
            if seen < 0:
                break
        held[sub] = seen


@loop(_I8, _I8, given(_I8), given(_I8), filled(_I8), filled(_I8, 2), filled(_I8, 2))
def shorten(first, last, k, slack, held, score, cell) -> None:
    """Leaves on each list what is within `slack` of its `k`-th."""
    counts = np.zeros(BINS, dtype=np.int64)
    for sub in range(first, last):
        if held[sub] > k[sub]:
            held[sub], _ = trim(score[sub], cell[sub], held[sub], k[sub], slack[sub], counts)


@loop(
    _I8, _I8, given(_I2, 2), given(_I8), given(_I2, 2), given(_I8), given(_I8), given(_I8), given(_I8),
    filled(_I8, 2), filled(_I8, 2), filled(_I8, 2),
)  # fmt: skip
def exact(first, last, queries, line, rows, stored, place, k, held, score, cell, found) -> None:
    """The keys of the `k` best of each list by the exact product, if positive: the product above the 31 bits of the last
    place less the row's. The vector of cell `c` is `rows[stored[c]]`, its place `place[c]`.
    """
    room = score.shape[1]
    places = np.empty(room, dtype=np.int64)
    for sub in range(first, last):
        kept, query = 0, queries[line[sub]]
        for at in range(held[sub]):
            own = rows[stored[cell[sub, at]]]
            total = np.int32(0)  # below 2**31, so what overflows on the way comes back
            for part in range(len(own)):
                total = np.int32(total + np.int32(np.int32(query[index(part)]) * np.int32(own[index(part)])))
            if total > 0:
                score[sub, kept], cell[sub, kept], places[kept] = np.int64(total), cell[sub, at], place[cell[sub, at]]
                kept += 1
        if kept > k[sub]:
            choose(score[sub], places, cell[sub], kept, k[sub])
            kept = k[sub]
        sort(score[sub], places, cell[sub], kept)
        for at in range(kept):
            found[sub, at] = (score[sub, at] << 31) | (2147483647 - places[at])
