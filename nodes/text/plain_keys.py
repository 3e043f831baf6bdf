"""The keys of ordinary paths and identifiers, all at once: the same as `index_keys` for each of them.

Gives: `keys_of_paths` and `keys_of_definitions`, of distinct strings. Ordinary strings are ASCII and need no special
rule of `index_keys`, such as its depth limit; the others go through it one by one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.array_bytes import offsets_and_bytes
from ..columns.ragged import Ragged, distinct, expand_ranges, starts_of
from .index_keys import DEPTH, definition_keys, path_keys

__all__ = ["keys_of_definitions", "keys_of_paths"]

_ODD_PATH = r"[\x00-\x1f\x7f\\]|(?:^|/)\.?(?:/|$)|^ | $"
"""Control characters, backslashes, empty parts, `.` as a part, leading or trailing spaces."""
_PLAIN_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
_SLASH, _DOT = b"/."


def keys_of_paths(paths: Ragged) -> Ragged:
    """Every path replaced by its `path_keys`."""
    some = paths.vocabulary
    odd = pc.or_(pc.match_substring_regex(some, _ODD_PATH), pc.invert(pc.string_is_ascii(some)))
    deep = pc.greater_equal(pc.count_substring(some, "/"), DEPTH)  # its suffixes take the square of its length
    return paths.in_two_ways(pc.invert(pc.or_(odd, deep)).to_numpy(zero_copy_only=False), _suffixes, path_keys)


def keys_of_definitions(names: Ragged) -> Ragged:
    """Every name replaced by its `definition_keys`."""
    plain = pc.match_substring_regex(names.vocabulary, _PLAIN_NAME).to_numpy(zero_copy_only=False)
    return names.in_two_ways(plain, _and_lowered, definition_keys)


def _suffixes(paths: pa.Array) -> Ragged:
    """The keys of each path, in lower case: itself, every suffix at a `/`, and the file name without its ending."""
    offsets, data = offsets_and_bytes(pc.ascii_lower(paths))
    starts_here = np.zeros(len(data) + 1, dtype=bool)
    starts_here[1:] = data == _SLASH
    starts_here[offsets[:-1]] = True
    begin = np.flatnonzero(starts_here[: len(data)])
    counts = np.diff(np.searchsorted(begin, offsets))
    path = np.repeat(np.arange(len(counts)), counts)
    name = begin[np.cumsum(counts) - 1] if len(counts) else begin

    dots = np.append(np.flatnonzero(data == _DOT), -1)  # sentinel: no dot
    dot = dots[np.searchsorted(dots[:-1], offsets[1:]) - 1]
    ended = np.flatnonzero(dot > name)
    order = np.argsort(np.concatenate([path, ended]), kind="stable")
    begins = np.concatenate([begin, name[ended]])[order]
    ends = np.concatenate([offsets[1:][path], dot[ended]])[order]
    keys = _cut(data, begins, ends)
    return Ragged(*distinct([keys]), starts_of(counts + (dot > name)))


def _and_lowered(names: pa.Array) -> Ragged:
    """Each name and, where different, the name in lower case."""
    lowered = pc.ascii_lower(names)
    other = pc.not_equal(names, lowered).to_numpy(zero_copy_only=False)
    starts = starts_of(1 + other)
    vocabulary, found = distinct([names, lowered.filter(pa.array(other))])
    codes = np.empty(starts[-1], dtype=np.int64)
    codes[starts[:-1]] = found[: len(names)]
    codes[starts[:-1][other] + 1] = found[len(names) :]
    return Ragged(vocabulary, codes, starts)


def _cut(data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> pa.LargeStringArray:
    sizes = ends - begins
    buffers = [None, pa.py_buffer(starts_of(sizes)), pa.py_buffer(data[expand_ranges(begins, sizes)])]
    return pa.Array.from_buffers(pa.large_string(), len(sizes), buffers)
