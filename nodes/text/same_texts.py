"""Texts of a request that are nearly the same: equal except for case, punctuation and spacing.

Reads texts of rows. Gives a number per request and text, equal where the texts are.

Note: texts are split into words only where their letters and digits are equal, so the comparison is cheap where no
texts are alike.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, flat, gathered
from .role_words import words_apart

_LOWER = bytes(range(256)).lower()
"""With `_OTHERS`, the letters and digits of ASCII in lower case: equal for texts of equal words, and quickly compared."""
_OTHERS = bytes(code for code in range(256) if not (code < 128 and chr(code).isalnum()))

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

    Rows not in `among` are not compared and have -1.
    """
    number = np.full(len(row), -1, dtype=np.int64)
    rows, inverse = distinct_numbers(row[among])
    letters = [text.encode().translate(_LOWER, _OTHERS) for text in gathered(texts, rows).to_pylist()]
    number[among] = numbers_of(owner[among], pa.array(letters, pa.large_binary()).take(pa.array(inverse)))
    shared = among & (np.bincount(number[among], minlength=len(row))[number] > 1)
    if shared.any():
        rows, inverse = distinct_numbers(row[shared])
        plain = pc.utf8_lower(gathered(texts, rows))
        words = words_apart(plain)
        # A text of punctuation only has no words to compare.
        words = pc.if_else(pc.equal(words, ""), plain, words).take(pa.array(inverse))
        number[shared] = len(row) + numbers_of(owner[shared], words)
    return number
