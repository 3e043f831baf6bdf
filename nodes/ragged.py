"""Lists of strings, one per row, by code into their distinct values: what analysis and indexing hand around.

Work on a string is done once per distinct string (`expand`), then spread to its occurrences with array operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .frames import expand_ranges

__all__ = ["Ragged", "distinct", "starts_of"]


FEW = 64
"""Strings that are sooner done one by one than all at once."""


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
        """Every string replaced by row `code` of `lists`, in place and order."""
        counts = np.diff(lists.starts)[self.codes]
        codes = lists.codes[expand_ranges(lists.starts[self.codes], counts)]
        return Ragged(lists.vocabulary, codes, starts_of(counts)[self.starts])

    def expand(self, strings: Callable[[str], Sequence[str]]) -> Ragged:
        """Every string replaced by `strings(string)`, called once per distinct string."""
        return self.then(Ragged.of_lists(map(strings, self.vocabulary.to_pylist())))

    def in_two_ways(
        self, plain: NDArray[np.bool_], fast: Callable[[pa.Array], Ragged], slow: Callable[[str], Sequence[str]]
    ) -> Ragged:
        """Every string replaced: `fast` takes all those of the vocabulary that are plain at once, `slow` each other one."""
        if len(plain) < FEW:
            return self.expand(slow)
        at = np.flatnonzero(plain), np.flatnonzero(~plain)
        place = np.empty(len(self.vocabulary), dtype=np.int64)
        place[np.concatenate(at)] = np.arange(len(place))
        some = fast(self.vocabulary.take(pa.array(at[0])))
        others = Ragged.of_lists(map(slow, self.vocabulary.take(pa.array(at[1])).to_pylist()))
        vocabulary, codes = distinct([some.vocabulary, others.vocabulary.cast(some.vocabulary.type)])
        count = len(some.vocabulary)
        lists = Ragged(
            vocabulary,
            np.concatenate([codes[:count][some.codes], codes[count:][others.codes]]),
            np.append(some.starts[:-1], others.starts + some.starts[-1]),
        )
        return Ragged(vocabulary, place[self.codes], self.starts).then(lists)

    def to_lists(self) -> pa.ListArray:
        """The same as list<string>, one list per row."""
        return pa.ListArray.from_arrays(pa.array(self.starts, pa.int32()), self.vocabulary.take(pa.array(self.codes)))


def distinct(arrays: Sequence[pa.Array]) -> tuple[pa.Array, NDArray[np.int64]]:
    """The distinct strings of some arrays (at least one) in order of first use, and the code of every string."""
    encoded = pa.chunked_array(arrays).dictionary_encode()
    if not encoded.num_chunks:
        return arrays[0].slice(0, 0), np.empty(0, dtype=np.int64)
    codes = [chunk.indices.to_numpy() for chunk in encoded.chunks]
    return encoded.chunk(encoded.num_chunks - 1).dictionary, np.concatenate(codes).astype(np.int64)


def starts_of(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where each of consecutive groups of these sizes starts, and the end of the last."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    counts.cumsum(out=starts[1:])
    return starts
