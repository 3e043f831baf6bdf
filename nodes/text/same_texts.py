"""Texts of a request that are nearly the same: equal except for case, punctuation and spacing.

Reads texts of rows. Gives a number per request and text, equal where the texts are.

Note: texts are split into words only where the checksums of their letters and digits are equal, so the comparison is
cheap where no texts are alike.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.array_bytes import offsets_and_bytes
from ..columns.keys import distinct_numbers, first_of_runs, flat, gathered, order_by, run_lengths
from ..columns.ragged import slabs
from .role_words import words_apart

__all__ = ["alike", "numbers_of"]

BYTES_AT_ONCE = 1 << 18
"""Bytes whose checksums are computed at once: their temporary arrays stay in the processor's cache."""

_WEIGHT = np.zeros(256, dtype=np.uint32)
for _first, _last in ("09", "az"):
    _WEIGHT[ord(_first) : ord(_last) + 1] = np.arange(ord(_first), ord(_last) + 1) * 2_654_435_761 % (1 << 31)
_WEIGHT[ord("A") : ord("Z") + 1] = _WEIGHT[ord("a") : ord("z") + 1]

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


def numbers_of(owner: Int, *columns: pa.ChunkedArray | pa.Array) -> Int:
    """A number per distinct (request, values); nulls count as one more value."""
    number = owner
    for column in columns:
        encoded = flat(column).dictionary_encode(null_encoding="encode")
        width = len(encoded.dictionary)
        if width > 1:
            _, number = distinct_numbers(number * width + np.asarray(encoded.indices).astype(np.int64))
    return distinct_numbers(number)[1]


def alike(owner: Int, row: Int, texts: pa.ChunkedArray, among: Bool) -> Int:
    """A number per request and text, ignoring case, punctuation and spacing; words and digits still distinguish texts.

    Rows not in `among` are not compared and have -1. Texts are compared only where their ASCII letters and digits have
    the same checksum, which few have by chance.
    """
    number = np.full(len(row), -1, dtype=np.int64)
    owner, row = owner[among], row[among]
    rows, inverse = distinct_numbers(row)
    distinct = gathered(texts, rows)
    sums = _checksums(distinct)[inverse]
    order = order_by(owner, sums)
    starts = first_of_runs(owner[order], sums[order])
    lengths = run_lengths(starts, len(order))
    shared = np.empty(len(order), dtype=bool)
    shared[order] = (lengths > 1).repeat(lengths)
    if not shared.any():
        number[among] = np.arange(len(row))
        return number
    needed = np.unique(inverse[shared])
    plain = pc.utf8_lower(distinct.take(pa.array(needed)))
    words = words_apart(plain)
    # A text of punctuation only has no words to compare.
    words = pc.if_else(pc.equal(words, ""), plain, words).dictionary_encode()
    code = np.full(len(distinct), -1, dtype=np.int64)
    code[needed] = np.asarray(words.indices)
    alone = np.where(shared, -1, np.arange(len(row)))
    number[among] = numbers_of(owner, pa.array(code[inverse]), pa.array(alone))
    return number


def _checksums(texts: pa.Array) -> Int:
    """The sum, modulo 2**32, of fixed weights of each text's ASCII letters and digits, ignoring case."""
    offsets, data = offsets_and_bytes(texts)
    sums = np.empty(len(texts), dtype=np.int64)
    for low, high in slabs(np.diff(offsets), BYTES_AT_ONCE):
        starts = offsets[low : high + 1] - offsets[low]
        total = np.zeros(starts[-1] + 1, dtype=np.uint32)
        _WEIGHT[data[offsets[low] : offsets[high]]].cumsum(dtype=np.uint32, out=total[1:])
        sums[low:high] = total[starts[1:]] - total[starts[:-1]]
    return sums
