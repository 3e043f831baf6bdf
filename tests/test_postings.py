"""Postings, sorted into lists."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from scoped_retrieval.nodes.frames import PostingIndex, SegmentPostings
from scoped_retrieval.pipeline.corpus.postings import Postings, posting_lists

Listed = list[tuple[str, list[int], list[int]]]


def made(*rows: tuple[str, int, int, int]) -> Postings:
    """Each (key, hash, row, freq) under a key of its own."""
    keys, hashes, row, freq = zip(*rows, strict=True)
    return Postings(
        pa.array(keys, pa.large_string()), np.array(hashes, np.uint64), np.arange(len(rows)), np.array(row),
        np.array(freq, np.int32),
    )  # fmt: skip


def lists(some: Postings, row_starts: list[int]) -> list[Listed]:
    """(key, rows, frequencies) of each list, by segment."""
    found, at = posting_lists(some, np.array(row_starts))
    every = [
        (key, found.rows[low:high].tolist(), found.freqs[low:high].tolist())
        for key, (low, high) in zip(found.keys.to_pylist(), pairwise(found.starts), strict=True)
    ]
    return [every[low:high] for low, high in pairwise(at)]


def test_keys_of_one_hash_are_told_apart_and_ordered_by_their_texts() -> None:
    some = made(("b", 5, 0, 1), ("a", 5, 1, 1), ("c", 4, 0, 1), ("b", 5, 2, 1), ("a", 5, 0, 1))
    assert lists(some, [0, 3]) == [[("c", [0], [1]), ("a", [0, 1], [1, 1]), ("b", [0, 2], [1, 1])]]


@pytest.mark.parametrize(("keys", "counted", "moved"), [(20, 3, True), (1 << 17, 1, False)])
def test_lists_are_those_of_a_plain_loop(keys: int, counted: int, moved: bool) -> None:
    chance = np.random.default_rng(1)
    key, row = chance.integers(0, keys, 3_000) ** 2 // keys, np.sort(chance.integers(0, 50, 3_000))
    some = made(*((str(k), int(k) + 7, int(r), int(k) % counted + 1) for k, r in zip(key, row, strict=True)))
    some = some.moved(chance.permutation(50)) if moved else some
    expected: dict[tuple[int, int], dict[int, int]] = {}
    for k, r, freq in zip(some.keys.to_pylist(), some.row.tolist(), some.freq.tolist(), strict=True):
        pairs = expected.setdefault((r >= 20, int(k)), {})
        pairs[r - 20 * (r >= 20)] = pairs.get(r - 20 * (r >= 20), 0) + freq
    by_hand = [
        [
            (str(k), sorted(pairs), [pairs[r] for r in sorted(pairs)])
            for (s, k), pairs in sorted(expected.items())
            if s == n
        ]
        for n in (0, 1)
    ]
    assert lists(some, [0, 20, 50]) == by_hand


def test_lists_of_some_rows_are_merged_unless_keys_of_one_hash_differ() -> None:
    parts = [
        SegmentPostings(
            np.array([4, 5], np.uint64),
            pa.array(keys, pa.large_string()),
            np.array([0, 2, 3]),
            *np.int32([rows, freqs]),
        )
        for keys, rows, freqs in ((["c", "a"], [0, 2, 1], [1, 2, 3]), (["c", "a"], [0, 1, 1], [4, 5, 6]))
    ]
    index = PostingIndex(tuple(parts), np.array([0, 3]))
    place = np.array([-1, 0, 1, 2, -1], np.int32)  # neither the first row nor the last
    merged = index.merged(np.array([0, 1]), np.array([0, 3]), place)
    assert merged is not None
    assert [merged.keys.to_pylist(), merged.starts.tolist(), merged.rows.tolist(), merged.freqs.tolist()] == [
        ["c", "a"], [0, 2, 3], [1, 2, 0], [2, 4, 3],
    ]  # fmt: skip
    other = replace(parts[1], keys=pa.array(["c", "b"], pa.large_string()))
    assert (
        PostingIndex((parts[0], replace(other, rows=np.int32([0, 0, 0]))), np.array([0, 3])).merged(
            np.array([0, 1]), np.array([0, 3]), place
        )
        is None
    )
