"""Lists of strings, one per row, as codes into their distinct values: the data type of analysis and indexing.

Work on a string is done once per distinct string (`expand`), then spread to its occurrences with array operations. Also
operations on the ranges of such groups: starts, elements, and slabs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .keys import first_of_runs

AT_ONCE = 1 << 15
"""Codes processed at once: their temporary arrays stay in the processor's cache."""


@dataclass(frozen=True)
class Ragged:
    """The strings of row `i` are `vocabulary[codes[starts[i]:starts[i + 1]]]`; the vocabulary has no duplicates."""

    vocabulary: pa.Array
    codes: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, values: pa.Array | pa.ChunkedArray) -> Ragged:
        """From an array of strings (a null row has none) or of lists of strings."""
        array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
            counts = array.value_lengths().fill_null(0).to_numpy()
            flat = array.flatten()
        else:
            counts = array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
            flat = array.drop_null()
        return cls(*distinct([flat]), starts_of(counts))

    @classmethod
    def of_lists(cls, lists: Iterable[Sequence[str]]) -> Ragged:
        """From Python lists."""
        codes: dict[str, int] = {}
        counts, flat = [], []
        for items in lists:
            counts.append(len(items))
            flat.extend([codes.setdefault(item, len(codes)) for item in items])
        return cls(pa.array(list(codes), pa.string()), np.array(flat, dtype=np.int64), starts_of(np.array(counts, int)))

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of each code."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def then(self, lists: Ragged) -> Ragged:
        """Every string replaced by row `code` of `lists`, in order."""
        codes = [np.empty(0, dtype=np.int64)]
        ends = np.empty(len(self.codes) + 1, dtype=np.int64)
        ends[0] = 0
        sizes = np.diff(lists.starts)
        first = np.append(lists.codes, 0)[lists.starts[:-1]]
        for low in range(0, len(self.codes), AT_ONCE):
            own = self.codes[low : low + AT_ONCE]
            counts = sizes[own]
            end = ends[low + 1 : low + 1 + len(own)]
            np.cumsum(counts, out=end)
            found = first[np.repeat(own, counts)]
            many = np.flatnonzero(counts > 1)  # most lists have one string or none
            if len(many):
                own, counts = own[many], counts[many]
                found[expand_ranges(end[many] - counts, counts)] = lists.codes[expand_ranges(lists.starts[own], counts)]
            codes.append(found)
            end += ends[low]
        return Ragged(lists.vocabulary, np.concatenate(codes), ends[self.starts])

    def expand(self, strings: Callable[[str], Sequence[str]]) -> Ragged:
        """Every string replaced by `strings(string)`, called once per distinct string."""
        return self.then(Ragged.of_lists(map(strings, self.vocabulary.to_pylist())))


def distinct(arrays: Sequence[pa.Array]) -> tuple[pa.Array, NDArray[np.int64]]:
    """The distinct strings of some arrays (at least one) in order of first use, and the code of every string."""
    encoded = pa.chunked_array(arrays).dictionary_encode()
    if not encoded.num_chunks:
        return arrays[0].slice(0, 0), np.empty(0, dtype=np.int64)
    codes = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    return encoded.chunk(encoded.num_chunks - 1).dictionary, np.concatenate(codes, dtype=np.int64)


def starts_of(counts: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """The start of each of consecutive groups of these sizes, and the end of the last."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    counts.cumsum(out=starts[1:])
    return starts


def expand_ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The concatenation of `arange(start, start + count)` for each pair."""
    ends = counts.cumsum()
    if not len(ends) or not ends[-1]:
        return np.empty(0, dtype=np.int64)
    return np.arange(ends[-1], dtype=np.int64) + (starts - ends + counts).repeat(counts)


def spread(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For ranges `start, start + count`: the range number and the index of every element."""
    return np.arange(len(counts)).repeat(counts), expand_ranges(starts, counts)


def slabs(counts: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of entries that expand to about `most` elements each, at least one entry; `counts` is per entry."""
    cut = first_of_runs((counts.cumsum() - counts) // most)
    yield from pairwise([*cut.tolist(), len(counts)])
