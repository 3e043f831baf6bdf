"""The posting lists of a scope: those of some keys, found segment by segment, or those of every term, in one piece.

Reads a scope and the posting index. Gives `KeyPostings`.

Note: a scope that is spread over many segments costs a search in each of them, and its rows are picked from lists that
contain others as well. Where a batch has enough look-ups, the lists of all terms are merged once and cached with the
index; every later batch of the scope finds its terms in one list of keys.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.ragged import starts_of
from ..frames import LISTS_KEPT, PostingIndex, SegmentPostings, key_hashes, posting_keys
from .recall_scope import Int, ScopeGroup
from .score_bounds import KeyPostings, graded

PER_LOOK_UP = 1 << 14
"""Postings of a scope's segments per look-up up to which merging all lists pays."""
PER_POSTING = 8
"""Bytes of a posting: its row and its frequency."""
LEAST = 1 << 10
"""The minimum number of look-ups of a scope at once for which it pays."""


class Whole(NamedTuple):
    """The lists of every text term of a scope, and its keys by hash."""

    lists: KeyPostings
    hashes: NDArray[np.uint64]
    starts: Int
    texts: NDArray[np.uint8]


def lists_of(
    kernels: ModuleType, scope: ScopeGroup, postings: PostingIndex, keys: list[str], look_ups: int
) -> tuple[KeyPostings, Int]:
    """Posting lists, and the list of each key, -1 for none. The keys are text keys."""
    hashes = key_hashes(keys)
    order = np.argsort(hashes)
    starts, texts = texts_of(pa.array(keys, pa.large_string()).take(pa.array(order)))
    place = np.empty(len(order), dtype=np.int64)
    if whole := whole_lists(kernels, scope, postings, look_ups):
        position = np.empty(len(order), dtype=np.int64)
        kernels.find(hashes[order], starts, texts, whole.hashes, whole.starts, whole.texts, position)
        place[order] = position
        return whole.lists, place
    place[order] = np.arange(len(order))
    segments = _segments(scope, postings)
    positions = np.empty((len(segments), len(keys)), dtype=np.int64)
    counts = np.zeros(len(keys), dtype=np.int64)
    for position, (part, own) in zip(positions, segments, strict=True):
        kernels.find(hashes[order], starts, texts, part.hashes, *texts_of(part.keys), position)
        kernels.count(position, part.starts, part.rows, own, _all(own), counts)
    bounds = starts_of(counts)
    ends = bounds[:-1].copy()
    row, freq = (np.empty(int(bounds[-1]), dtype=np.int32) for _ in range(2))
    for position, (part, own) in zip(positions, segments, strict=True):
        kernels.gather(position, part.starts, part.rows, part.freqs, own, ends, row, freq)
    return graded(kernels, bounds, row, freq, _lengths(scope)), place


def whole_lists(kernels: ModuleType, scope: ScopeGroup, postings: PostingIndex, look_ups: int) -> Whole | None:
    """The lists of every term, if they are cached or pay; None also if two terms have the same hash."""
    kept, known = postings.whole_scopes, (scope.rows, scope.segments)
    if whole := kept.get(known):
        return whole
    starts = (postings.parts[number].starts for number in scope.segments)  # rows are those of a whole pack
    held = sum(int(own[-1] - own[0]) for own in starts)
    if look_ups < LEAST or held > look_ups * PER_LOOK_UP or held * PER_POSTING > LISTS_KEPT:
        return None
    if whole := drawn_together(kernels, scope, postings):
        arrays = (*known, *whole.lists, *whole[1:])
        kept.put(known, whole, sum(array.nbytes for array in arrays))
    return whole


def drawn_together(kernels: ModuleType, scope: ScopeGroup, postings: PostingIndex) -> Whole | None:
    """The lists of every text term of a scope; None if two terms have the same hash."""
    segments = _segments(scope, postings)
    sizes = starts_of(np.array([len(part.hashes) for part, _ in segments]))
    counts = np.zeros(int(sizes[-1]), dtype=np.int64)
    every = [np.arange(len(part.hashes)) for part, _ in segments]
    for low, high, position, (part, own) in zip(sizes[:-1], sizes[1:], every, segments, strict=True):
        kernels.count(position, part.starts, part.rows, own, _all(own), counts[low:high])
    keys = pa.concat_arrays([part.keys.cast(pa.large_string()) for part, _ in segments])
    starts, texts = texts_of(keys)
    chosen = np.flatnonzero((counts > 0) & _is_text(starts, texts))
    hashes = np.concatenate([part.hashes for part, _ in segments])[chosen]
    order = np.argsort(hashes, kind="stable")
    chosen, hashes = chosen[order], hashes[order]
    first = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1]))) if len(hashes) else chosen
    if not kernels.alike(hashes, chosen, starts, texts):
        return None
    ends = np.full(len(counts), -1, dtype=np.int64)
    bounds = starts_of(counts[chosen])
    ends[chosen] = bounds[:-1]
    row, freq = (np.empty(int(bounds[-1]), dtype=np.int32) for _ in range(2))
    for low, high, position, (part, own) in zip(sizes[:-1], sizes[1:], every, segments, strict=True):
        wanted = np.where(ends[low:high] >= 0, position, -1)
        kernels.gather(wanted, part.starts, part.rows, part.freqs, own, ends[low:high], row, freq)
    lists = graded(kernels, np.append(bounds[first], bounds[-1]), row, freq, _lengths(scope))
    return Whole(lists, hashes[first], *texts_of(keys.take(pa.array(chosen[first]))))


def _lengths(scope: ScopeGroup) -> Int:
    """The number of terms of each row of a scope."""
    return scope.tables.row_index.length[scope.rows]


def _is_text(starts: Int, texts: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which keys are text terms."""
    prefix = np.frombuffer(posting_keys("text", [""])[0].encode(), dtype=np.uint8)
    long = np.diff(starts) >= len(prefix)
    at = np.where(long, starts[:-1], 0)[:, None] + np.arange(len(prefix))
    return long & np.all(texts[np.minimum(at, len(texts) - 1)] == prefix, axis=1)


def _segments(scope: ScopeGroup, postings: PostingIndex) -> list[tuple[SegmentPostings, NDArray[np.int32]]]:
    """The postings of each segment, and the position in the scope of each of its rows."""
    return [(postings.parts[number], own) for number, own in zip(scope.segments, scope.by_segment, strict=True)]


def _all(own: NDArray[np.int32]) -> bool:
    """Every row of a segment is in scope."""
    return bool(len(own) and own.min() >= 0)


def texts_of(keys: pa.Array) -> tuple[Int, NDArray[np.uint8]]:
    """The start of each text, and the end of the last, in the bytes of all; zero-copy."""
    _, offsets, data = keys.buffers()
    if not len(keys):
        return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    starts = np.frombuffer(offsets, dtype=np.int64)[keys.offset : keys.offset + len(keys) + 1]
    return starts, np.frombuffer(data or b"", dtype=np.uint8)
