"""The posting lists of rows, built with array operations; a row's postings depend on that row only.

Fields (prefixes in `nodes/frames.py`): terms of text, path, title and section; definitions; references; path; ids;
conflict set. Only the terms count towards a row's `length`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.frames import FIELDS, SegmentPostings
from ...nodes.index_keys import conflict_keys, id_keys
from ...nodes.plain_keys import keys_of_definitions, keys_of_paths
from ...nodes.ragged import Ragged, distinct, starts_of
from ...nodes.siphash import siphash
from ...nodes.text_analysis import analyzer_for, terms_of
from ..cores import cores

_KEYED_COLUMNS: tuple[tuple[str, str, Callable[[Ragged], Ragged]], ...] = (
    ("definition", "symbols", keys_of_definitions),
    ("reference", "calls", keys_of_definitions),
    ("path", "path", keys_of_paths),
    ("id", "entity", lambda ids: ids.expand(id_keys)),
    ("id", "uri", lambda ids: ids.expand(id_keys)),
    ("conflict", "conflict_set", lambda names: names.expand(conflict_keys)),
)

_TEXT_COLUMNS = ("title", "path", "section", "text")
INDEXED_COLUMNS = ("evidence_id", "evidence_kind", *_TEXT_COLUMNS, *(column for _, column, _ in _KEYED_COLUMNS))
"""Columns of EVIDENCE that decide a row's postings and its length."""

CORES = cores()
PIECE = 8_192
"""Rows that are worth a thread."""
SORTED_APART = 1 << 18
"""Numbers that are worth a thread to sort."""

_EMPTY = pa.scalar("", pa.large_string())


@dataclass(frozen=True)
class Postings:
    """Postings in no order: key `keys[key[i]]` occurs `freq[i]` times in row `row[i]`; pairs may repeat."""

    keys: pa.LargeStringArray
    key: NDArray[np.int64]
    row: NDArray[np.int64]
    freq: NDArray[np.int32]

    @classmethod
    def none(cls) -> Postings:
        """No postings."""
        none = np.empty(0, dtype=np.int64)
        return cls(pa.array([], pa.large_string()), none, none, none.astype(np.int32))

    def moved(self, rows: NDArray[np.int64]) -> Postings:
        """The same with row `i` at `rows[i]`; rows at -1 are gone."""
        row = rows[self.row]
        kept = row >= 0
        return Postings(self.keys, self.key[kept], row[kept], self.freq[kept])

    def shifted(self, by: int) -> Postings:
        """The same with `by` added to every row."""
        return Postings(self.keys, self.key, self.row + by, self.freq)


def joined(parts: Sequence[Postings]) -> Postings:
    """All the postings of some parts (at least one) under one list of keys."""
    keys, codes = distinct([part.keys for part in parts])
    starts = starts_of(np.array([len(part.keys) for part in parts]))
    return Postings(
        keys,
        np.concatenate([codes[start + part.key] for start, part in zip(starts, parts, strict=False)]),
        np.concatenate([part.row for part in parts]),
        np.concatenate([part.freq for part in parts]),
    )


def postings_of(evidence: pa.Table) -> tuple[Postings, pa.Array]:
    """The postings of rows (EVIDENCE without `length`), and the `length` of each: its text terms, with repetitions.

    Many rows are taken in pieces, one on each core: a row's postings do not depend on the others.
    """
    count = min(CORES, evidence.num_rows // PIECE)
    if count < 2:
        return _postings_of(evidence)
    size = -(-evidence.num_rows // count)
    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(_postings_of, (evidence.slice(at * size, size) for at in range(count))))
    shifted = [postings.shifted(at * size) for at, (postings, _) in enumerate(found)]
    return joined(shifted), pa.concat_arrays([length for _, length in found])


def _postings_of(evidence: pa.Table) -> tuple[Postings, pa.Array]:
    parts, length = _text_postings(evidence)
    parts += [_postings(field, keys(Ragged.of(evidence[column]))) for field, column, keys in _KEYED_COLUMNS]
    parts.append(_postings("id", Ragged.of(evidence["evidence_id"])))  # lower case by construction
    return joined(parts), pa.array(length, pa.int32())


def index_text(evidence: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The given columns of each row on lines of their own, nulls left out."""
    texts = [evidence[name].combine_chunks().cast(pa.large_string()) for name in columns]
    return pc.binary_join_element_wise(*texts, pa.scalar("\n", pa.large_string()), null_handling="skip")


@dataclass(frozen=True)
class PostingLists:
    """Postings in stored order: segment, then key by hash and text, then row (local to its segment).

    Key `i` has `rows[starts[i]:starts[i + 1]]`.
    """

    hashes: NDArray[np.uint64]
    keys: pa.LargeStringArray
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    freqs: NDArray[np.int32]


def posting_lists(postings: Postings, row_starts: NDArray[np.int64]) -> tuple[PostingLists, NDArray[np.int64]]:
    """The postings sorted into lists, and where each segment's keys start (and the last one's end).

    Segment `s` has the rows `row_starts[s]:row_starts[s + 1]`.
    """
    hashes, keys, rank = _sorted_keys(postings.keys)
    segment = np.searchsorted(row_starts, postings.row, side="right") - 1
    span = int(np.diff(row_starts).max(initial=1))
    if len(row_starts) * len(keys) * span >= 2**63:
        raise OverflowError("too many segments, keys and rows for one pack")
    code = (segment * len(keys) + rank[postings.key]) * span + (postings.row - row_starts[segment])
    if np.all(postings.freq == 1):
        code = _sorted(code)
        freq = None
    else:
        order = np.argsort(code, kind="stable")
        code, freq = code[order], postings.freq[order]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    freqs = np.diff(first, append=len(code)) if freq is None else np.add.reduceat(freq, first) if len(first) else freq
    code = code[first]
    group = code // span
    rows = code - group * span
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    used = group[starts]
    stored = used % max(len(keys), 1)
    lists = PostingLists(
        hashes[stored],
        keys.take(pa.array(stored)),
        np.append(starts, len(rows)),
        rows.astype(np.int32),
        freqs.astype(np.int32),
    )
    return lists, np.searchsorted(used, np.arange(len(row_starts)) * len(keys))


def trimmed(lists: SegmentPostings, keep: NDArray[np.bool_]) -> PostingLists:
    """The posting lists of a segment without the rows where `keep` is false; the others move up, in the same order."""
    rows, freqs = (each[lists.starts[0] : lists.starts[-1]] for each in (lists.rows, lists.freqs))
    stays = keep[rows]
    before = starts_of(stays.astype(np.int64))[lists.starts - lists.starts[0]]
    used = np.diff(before) > 0
    place = (np.cumsum(keep) - 1).astype(np.int32)
    keys = lists.keys.filter(pa.array(used))
    starts = np.append(before[:-1][used], before[-1])
    return PostingLists(lists.hashes[used], keys, starts, place[rows[stays]], freqs[stays])


def _sorted(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers in order; halves are sorted side by side, then merged, which a stable sort does in one pass."""
    if CORES < 2 or len(numbers) < SORTED_APART:
        return np.sort(numbers)
    with ThreadPoolExecutor(2) as pool:
        halves = list(pool.map(np.sort, np.array_split(numbers, 2)))
    merged = np.concatenate(halves)
    merged.sort(kind="stable")
    return merged


def _sorted_keys(keys: pa.LargeStringArray) -> tuple[NDArray[np.uint64], pa.LargeStringArray, NDArray[np.int64]]:
    """Keys in order of (hash, text), and the place of each in it."""
    hashes = siphash(keys)
    order = np.argsort(hashes, kind="stable")
    if np.any(np.diff(hashes[order]) == 0):
        order = np.array(sorted(range(len(keys)), key=lambda i: (hashes[i], keys[i].as_py())))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return hashes[order], keys.take(pa.array(order)), rank


def _text_postings(evidence: pa.Table) -> tuple[list[Postings], NDArray[np.int64]]:
    kinds = pc.dictionary_encode(evidence["evidence_kind"].combine_chunks())
    names = np.array([analyzer_for(kind) for kind in kinds.dictionary.to_pylist()], dtype=object)
    of_row = names[kinds.indices.to_numpy()] if len(kinds) else names
    texts = index_text(evidence, _TEXT_COLUMNS)
    length = np.zeros(len(texts), dtype=np.int64)
    parts = []
    for name in sorted(set(names)):
        rows = np.flatnonzero(of_row == name)
        terms = terms_of(texts.take(pa.array(rows)), name)
        length[rows] = np.diff(terms.starts)
        parts.append(_postings("text", terms).moved(rows))
    return parts, length


def _postings(field: str, terms: Ragged) -> Postings:
    prefix = pa.scalar(f"{FIELDS[field]}:", pa.large_string())
    keys = pc.binary_join_element_wise(prefix, terms.vocabulary.cast(pa.large_string()), _EMPTY)
    return Postings(keys, terms.codes, terms.rows, np.ones(len(terms.codes), dtype=np.int32))
