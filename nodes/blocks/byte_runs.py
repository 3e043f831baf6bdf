"""`approx-bpe/1` over bytes: counts many plain texts in a few passes over bytes, ten times as fast as the expressions.

Reads bytes of ASCII texts. Gives the tokens of each. A token of the base counter lies within one run of characters of a
class, possibly with the space or the capital before the run, so counts follow from the lengths of runs.

Note: this is the same counter, not a second one. `token_counting.TOKEN` defines it, a property test keeps the two
equal, and texts that are not ASCII are counted by the expressions.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..columns.keys import first_of_runs

Int = NDArray[np.int64]
Bytes = NDArray[np.uint8]

BYTES_AT_ONCE = 1 << 18
"""Bytes processed together, so that their runs stay in the processor's cache. Does not affect results."""
_LOWER, _UPPER, _DIGIT, _SIGN, _BREAK, _OTHER, _CONTROL, _SPACE, _TAB, _NONE = 0, 2, 4, 6, 8, 10, 11, 12, 13, 14
"""Classes of characters; `_NONE` follows the last character. The characters of a run differ in class at most in the
lowest bit; a run of blanks has the class of its last one."""
_LONGEST = np.repeat([7, 4, 3, 2, 1, 1, 16, 1], 2)
"""The maximum number of characters in a token, by class; see `token_counting.TOKEN`."""
_LENGTHS = 64
"""Runs shorter than this are looked up."""

_CLASS = np.full(256, _OTHER, dtype=np.uint8)
_CLASS[33:127] = _SIGN
_CLASS[ord("a") : ord("z") + 1] = _LOWER
_CLASS[ord("A") : ord("Z") + 1] = _UPPER
_CLASS[ord("0") : ord("9") + 1] = _DIGIT
_CLASS[:32] = _CONTROL
_CLASS[ord(" ")], _CLASS[ord("\t")], _CLASS[ord("\n")] = _SPACE, _TAB, _BREAK
_CLASSES = _CLASS.tobytes()
_JOINED = np.isin(np.arange(16), (_LOWER, _UPPER, _SIGN))
"""Classes whose first token includes the space before it."""


def _counted() -> NDArray[np.int32]:
    """Tokens of a run by its class, the class after it and its length: int32[16 * 16 * _LENGTHS]."""
    kind, after, length = np.indices((16, 16, _LENGTHS))
    longest = _LONGEST[kind]
    tokens = (length + longest - 1) // longest
    # A final single capital joins the lower-case letters after it; a final single space joins a word, capitals or signs.
    tokens -= (kind == _UPPER) & (length % 4 == 1) & (after == _LOWER)
    tokens -= (kind == _SPACE) & (length % 16 == 1) & _JOINED[after]
    return tokens.astype(np.int32).reshape(-1)


_TOKENS = _counted()


def text_tokens(offsets: Int, data: Bytes) -> Int:
    """Tokens of each ASCII text; text `i` is `data[offsets[i]:offsets[i + 1]]`."""
    some = (offsets[1:] - offsets[:-1]).nonzero()[0]
    tokens, starts = np.zeros(len(offsets) - 1, dtype=np.int64), offsets[some]
    cuts = [0, *first_of_runs(starts // BYTES_AT_ONCE)[1:].tolist(), len(starts)]
    for low, high in pairwise(cuts if len(starts) else []):
        end = starts[high] if high < len(starts) else len(data)
        tokens[some[low:high]] = _of_bytes(data[starts[low] : end], starts[low:high] - starts[low])
    return tokens


def _of_bytes(data: Bytes, starts: Int) -> Int:
    class_ = np.frombuffer(data.tobytes().translate(_CLASSES), np.uint8)
    begins = np.empty(len(data), dtype=bool)
    of_run = class_ | 1
    np.not_equal(of_run[1:], of_run[:-1], out=begins[1:])
    begins[starts] = True
    run = begins.nonzero()[0]
    length = np.diff(run, append=len(data))
    of_text = run.searchsorted(starts)
    kind = class_[run + length - 1].astype(np.int64)
    after = np.empty_like(kind)
    after[:-1], after[-1] = kind[1:], _NONE
    after[of_text[1:] - 1] = _NONE
    return np.add.reduceat(_run_tokens(kind, after, length), of_text)


def _run_tokens(kind: Int, after: Int, length: Int) -> Int:
    """Tokens of runs by class, class after them, and length."""
    above = (length >= _LENGTHS).nonzero()[0]
    if not len(above):
        return _TOKENS[(kind << 10) + (after << 6) + length].astype(np.int64)
    longest = _LONGEST[kind[above]]
    whole = (length[above] - 1) // longest
    shorter = length.copy()
    shorter[above] -= whole * longest
    tokens = _run_tokens(kind, after, shorter)
    tokens[above] += whole
    return tokens
