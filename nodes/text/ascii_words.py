"""Distinct ASCII words taken apart all at once: the compounds of identifiers and their parts, over bytes.

Gives: `is_plain`, which words these rules are for, and `parts_of`. They say for such words what the regular expression
`text_analysis._PARTS` says one by one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.array_bytes import offsets_and_bytes

__all__ = ["is_plain", "parts_of"]

_SEPARATOR, _DIGIT, _UPPER, _LOWER = range(4)
_CLASS = np.zeros(256, dtype=np.uint8)
_CLASS[list(b"0123456789")] = _DIGIT
_CLASS[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")] = _UPPER
_CLASS[list(b"abcdefghijklmnopqrstuvwxyz")] = _LOWER
_LOWERED = np.arange(256, dtype=np.uint8)
_LOWERED[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")] += 32
_PLAIN = r"^[0-9A-Za-z_](?:[0-9A-Za-z_.\-]*[0-9A-Za-z_])?$"


def is_plain(words: pa.Array, longest: int) -> NDArray[np.bool_]:
    """Which words are ASCII letters, digits, `_`, `.` and `-`, with none of the last two at an end, and not too long."""
    plain = pc.and_(pc.match_substring_regex(words, _PLAIN), pc.less_equal(pc.binary_length(words), longest))
    return plain.to_numpy(zero_copy_only=False)


def parts_of(words: pa.Array) -> tuple[pa.StringArray, NDArray[np.int64], pa.StringArray]:
    """The parts of plain words in lower case, in order; how many each word has; and the words in lower case.

    A part is a run of digits; `HTTP` before `Server` and capitals that nothing follows; `URLs`; `Server` and `parse`.
    """
    offsets, data = offsets_and_bytes(words)
    kind = _CLASS[data]
    first = np.zeros(len(data) + 1, dtype=bool)
    first[offsets[:-1]] = True
    first[1:-1] |= kind[1:] != kind[:-1]
    begin = first[:-1].nonzero()[0]
    size = np.diff(begin, append=len(data))
    of = kind[begin]
    new_word = np.zeros(len(data) + 1, dtype=bool)
    new_word[offsets] = True

    starts = of != _SEPARATOR
    joins = np.zeros(len(begin), dtype=bool)
    joins[1:] = (of[1:] == _LOWER) & (of[:-1] == _UPPER) & ~new_word[begin[1:]]
    starts[joins] = False
    lower = joins.nonzero()[0]
    many = size[lower - 1] >= 2
    plural = many & (size[lower] == 1) & (data[begin[lower]] == ord("s"))
    at = np.zeros(len(data) + 1, dtype=bool)
    at[begin[starts]] = True
    at[begin[lower[many & ~plural]] - 1] = True  # the last capital begins the part that follows

    breaks = (at[:-1] | new_word[:-1] | ((kind == _SEPARATOR) & first[:-1])).nonzero()[0]
    ends = np.append(breaks[1:], len(data))
    is_part = at[breaks]
    sizes = (ends - breaks)[is_part]
    counts = np.diff(breaks[is_part].searchsorted(offsets))
    lowered = _LOWERED[data]
    return _strings(lowered[kind != _SEPARATOR], sizes), counts, _strings(lowered, np.diff(offsets))


def _strings(data: NDArray[np.uint8], sizes: NDArray[np.int64]) -> pa.StringArray:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(data))
