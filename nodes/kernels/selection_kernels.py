"""Compiled: the best of some cells, and building blocks of the other loops.

A cell is a score (int64, whole multiples of something), the place of its row's id, and a number that identifies it.
Needs numba; see `compiled.kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types  # pyright: ignore[reportMissingImports]

BINS = 512
"""The number of bins of a histogram of scores."""
FEW_CELLS = 512
"""The number of cells up to which insertion sort is used."""
_I8 = types.int64


def given(kind: types.Type, dimensions: int = 1) -> types.Array:
    """The type of a read-only array, such as a mapped file; it also accepts writable arrays."""
    return types.Array(kind, dimensions, "C", readonly=True)


def filled(kind: types.Type, dimensions: int = 1) -> types.Array:
    return types.Array(kind, dimensions, "C")


def loop(*arguments: types.Type, gives: types.Type = types.void):
    return njit(gives(*arguments), cache=True, nogil=True, error_model="numpy")


@njit(inline="always")
def index(number) -> np.uint64:
    """A position that is not negative: numba then omits the wraparound of negative indices."""
    return np.uint64(number)


@njit(inline="always")
def before(score, rank, other, than) -> bool:
    return score > other or (score == other and rank < than)


@njit(inline="always")
def first_from(values, wanted, low, high):
    """The first position from `low` to `high` in ascending values whose value is at least `wanted`; `high` if none."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@loop(filled(_I8), filled(_I8), filled(_I8), _I8, _I8)
def choose(score, rank, cell, size, k) -> None:
    """Moves the `k` best of `size` cells to the front, by score descending, then rank."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        best, place = score[middle], rank[middle]
        left, right = low, high
        while left <= right:
            while before(score[left], rank[left], best, place):
                left += 1
            while before(best, place, score[right], rank[right]):
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


@loop(filled(_I8), filled(_I8), filled(_I8), _I8, _I8)
def _sink(score, rank, cell, root, end) -> None:
    """Moves a cell down a heap whose root is the last of its cells."""
    while True:
        child = 2 * root + 1
        if child >= end:
            break
        if child + 1 < end and before(score[child], rank[child], score[child + 1], rank[child + 1]):
            child += 1
        if not before(score[root], rank[root], score[child], rank[child]):
            break
        score[root], score[child] = score[child], score[root]
        rank[root], rank[child] = rank[child], rank[root]
        cell[root], cell[child] = cell[child], cell[root]
        root = child


@loop(filled(_I8), filled(_I8), filled(_I8), _I8)
def sort(score, rank, cell, size) -> None:
    """Sorts cells by score descending, then rank: few by insertion, many by a heap."""
    if size <= FEW_CELLS:
        for at in range(1, size):
            own, behind, moved, to = score[at], rank[at], cell[at], at
            while to > 0 and before(own, behind, score[to - 1], rank[to - 1]):
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
