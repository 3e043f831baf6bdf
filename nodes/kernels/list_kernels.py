"""Compiled loops over whole posting lists: the grades of postings, and bounds of what a list can add to scores.

Fills the arrays that `score_bounds` prepares. Needs numba; see `compiled.kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types  # pyright: ignore[reportMissingImports]

from .selection_kernels import filled, first_from, given, index, loop

_I8, _I4, _U8, _F8 = types.int64, types.int32, types.uint64, types.float64


@loop(given(_I4), filled(_I4), given(_I8), filled(_I4, 2))
def grade(row, freq, length, slots) -> None:
    """Replaces each frequency by the number of its (frequency, length of the row); `slots` is -1 where unset."""
    grades = np.int32(0)
    for posting in range(len(row)):
        times, span = index(freq[posting]), index(length[index(row[posting])])
        if slots[times, span] < 0:
            slots[times, span] = grades
            grades += np.int32(1)
        freq[posting] = slots[times, span]


@loop(
    _I8, _I8, given(_I8), given(_I4), given(_I4), given(_F8),
    filled(_F8), given(_I4), filled(_U8, 2), filled(_I4, 2),
)  # fmt: skip
def bound(first, last, starts, row, grade_, usual, top, line, words, before_word) -> None:
    """Writes the greatest factor of the lists from `first` to `last`; for a list with a line also the bits of its rows
    and the number of its postings before each word.
    """
    for one in range(first, last):
        low, high, most = starts[one], starts[one + 1], 0.0
        for posting in range(low, high):
            most = max(most, usual[index(grade_[posting])])
        top[one] = most
        if line[one] >= 0:
            own_words, own_before = words[line[one]], before_word[line[one]]
            word = np.int64(0)
            for posting in range(low, high):
                own = np.int64(row[posting])
                while word <= own >> 6:
                    own_before[word] = posting - low
                    word += 1
                own_words[index(own >> 6)] |= np.uint64(1) << np.uint64(own & 63)
            while word < len(own_before):
                own_before[word] = high - low
                word += 1


@njit(inline="always")
def ones(word) -> np.int64:
    """The number of bits set in a word."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(inline="always")
def posting_of(own, low, high, row, own_line, words, before_word):
    """The place of a row in a list from `low` to `high`, -1 if absent; `own_line` is the line of the list, or -1."""
    if own_line >= 0:
        at = index(own >> 6)
        bit, word = np.uint64(own & 63), words[own_line, at]
        if (word >> bit) & np.uint64(1):
            return low + before_word[own_line, at] + ones(word & ((np.uint64(1) << bit) - np.uint64(1)))
        return np.int64(-1)
    at = first_from(row, own, low, high)
    return at if at < high and row[at] == own else np.int64(-1)
