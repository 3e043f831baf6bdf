"""Posting lists with bounds of their scores: the grade of each posting, and how much a list can add to a row.

Reads posting lists and the lengths of their rows. Gives `KeyPostings`.

Note: under BM25 a posting's factor depends on its frequency and its row's length alone, and a scope has few distinct
pairs of those, its *grades*. So a setting (mean length) costs a factor per grade, not per posting. The maximum that a
list can add is stored for one mean; for another, it grows by at most the greatest ratio of a grade's
two factors. Bounds only determine what can be skipped: no result depends on them.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers
from ..kernels.compiled import in_threads
from .bm25 import Bm25

Int = NDArray[np.int64]
Float = NDArray[np.float64]

SLOTS = 1 << 22
"""Frequencies times lengths up to which grades are found by a table."""
WORD = 64
"""Rows that a word has bits for: in lists of lower density most words would be zero."""
LONG = 1 << 10
"""Postings from which on a bit per row pays: a shorter list is searched quickly."""


class KeyPostings(NamedTuple):
    """The postings of some keys inside a scope: those of key `k` are `starts[k]:starts[k + 1]` of the others."""

    starts: Int
    row: NDArray[np.int32]
    """Position in `scope.rows`, ascending inside a key."""
    grade: NDArray[np.int32]
    times: NDArray[np.int32]
    """The frequency of each grade."""
    span: Int
    """The length of its rows, in terms."""
    usual: Float
    """The factor of each grade under the mean length of all rows of the scope."""
    top: Float
    """The greatest of those in each list."""
    line: NDArray[np.int32]
    """The line of each list in the others, -1 for short lists."""
    words: NDArray[np.uint64]
    """A bit per row that is in the list."""
    before: NDArray[np.int32]
    """The number of a list's postings before each word."""

    def counts(self, key: Int) -> Int:
        """The postings of some keys."""
        return self.starts[key + 1] - self.starts[key]


def graded(
    kernels: ModuleType, starts: Int, row: NDArray[np.int32], freq: NDArray[np.int32], length: Int
) -> KeyPostings:
    """Lists of frequencies, `freq`, which is overwritten with the grades; `length` is of each row of the scope."""
    times, span = _grades(kernels, row, freq, length)
    usual = Bm25().saturation(times, span, np.array([length.mean() if len(length) else 0.0]))
    counts = np.diff(starts)
    chosen = np.flatnonzero(counts >= max(len(length) // WORD, LONG))
    line = np.full(len(counts), -1, dtype=np.int32)
    line[chosen] = np.arange(len(chosen))
    shape = len(chosen), len(length) // WORD + 1
    words, before = np.zeros(shape, dtype=np.uint64), np.zeros(shape, dtype=np.int32)
    top = np.zeros(len(counts))
    in_threads(kernels.bound, counts, starts, row, freq, usual, top, line, words, before)
    return KeyPostings(starts, row, freq, times, span, usual, top, line, words, before)


def _grades(
    kernels: ModuleType, row: NDArray[np.int32], freq: NDArray[np.int32], length: Int
) -> tuple[NDArray[np.int32], Int]:
    """Frequency and length of each grade; `freq` becomes the grades."""
    shape = int(freq.max(initial=0)) + 1, int(length.max(initial=0)) + 1
    if shape[0] * shape[1] <= SLOTS:
        slots = np.full(shape, -1, dtype=np.int32)
        kernels.grade(row, freq, length, slots)
        times, span = np.nonzero(slots >= 0)
        order = np.argsort(slots[times, span])
        return times[order].astype(np.int32), span[order]
    codes, freq[:] = distinct_numbers(freq * np.int64(shape[1]) + length[row])
    times, span = np.divmod(codes, shape[1])
    return times.astype(np.int32), span
