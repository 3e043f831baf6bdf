"""The posting lists of rows, built with array operations; a row's postings depend on that row only.

Fields (prefixes in `nodes/frames.py`): terms of text, path, title and section; definitions; references; path; ids;
conflict set. Only the terms count towards a row's `length`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.ragged import Ragged, starts_of
from ...nodes.frames import FIELDS, key_hashes
from ...nodes.text.index_keys import conflict_keys, definition_keys, id_keys, path_keys
from ...nodes.text.text_analysis import TEXT_COLUMNS, index_text, terms_by_kind
from ..cores import cores

_KEYED_COLUMNS: tuple[tuple[str, str, Callable[[str], list[str]]], ...] = (
    ("definition", "symbols", definition_keys),
    ("reference", "calls", definition_keys),
    ("path", "path", path_keys),
    ("id", "entity", id_keys),
    ("id", "supersedes", id_keys),
    ("id", "uri", id_keys),
    ("conflict", "conflict_set", conflict_keys),
)

INDEXED_COLUMNS = ("evidence_id", "evidence_kind", *TEXT_COLUMNS, *(column for _, column, _ in _KEYED_COLUMNS))
"""Columns of EVIDENCE that determine a row's postings and its length."""

CORES = cores()
PIECE = 2_048
"""Fewest rows per thread."""
_EMPTY = pa.scalar("", pa.large_string())


@dataclass(frozen=True)
class Postings:
    """Postings in no order: key `keys[key[i]]` occurs `freq[i]` times in row `row[i]`; pairs and keys may repeat.

    `hashes` are those of `keys`.
    """

    keys: pa.LargeStringArray
    hashes: NDArray[np.uint64]
    key: NDArray[np.int64]
    row: NDArray[np.int64]
    freq: NDArray[np.int32]

    @classmethod
    def none(cls) -> Postings:
        """No postings."""
        none = np.empty(0, dtype=np.int64)
        return cls(pa.array([], pa.large_string()), none.astype(np.uint64), none, none, none.astype(np.int32))

    def moved(self, rows: NDArray[np.int64]) -> Postings:
        """The postings with row `i` at `rows[i]`; rows at -1 are removed."""
        row = rows[self.row]
        if rows.min(initial=0) >= 0:
            return replace(self, row=row)
        kept = row >= 0
        return replace(self, key=self.key[kept], row=row[kept], freq=self.freq[kept])

    def shifted(self, by: int) -> Postings:
        """The postings with `by` added to every row."""
        return replace(self, row=self.row + by) if by else self


def joined(parts: Sequence[Postings]) -> Postings:
    """The postings of all parts (at least one)."""
    starts = starts_of(np.array([len(part.keys) for part in parts]))
    return Postings(
        pa.concat_arrays([part.keys for part in parts]),
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.key + start for start, part in zip(starts, parts, strict=False)]),
        np.concatenate([part.row for part in parts]),
        np.concatenate([part.freq for part in parts]),
    )


def postings_of(evidence: pa.Table) -> tuple[Postings, pa.Array]:
    """The postings of rows (EVIDENCE without `length`), and the `length` of each: its text terms, with repetitions.

    Many rows are processed in pieces, one per core: a row's postings do not depend on the others.
    """
    count = max(min(CORES, evidence.num_rows // PIECE), 1)
    size = -(-evidence.num_rows // count)
    pieces = [evidence.slice(at * size, size) for at in range(count)]
    if count == 1:
        found = list(map(_postings_of, pieces))
    else:
        with ThreadPoolExecutor(count) as pool:
            found = list(pool.map(_postings_of, pieces))
    parts = [part.shifted(at * size) for at, (own, _) in enumerate(found) for part in own]
    return joined(parts), pa.array(np.concatenate([length for _, length in found]), pa.int32())


def _postings_of(evidence: pa.Table) -> tuple[list[Postings], NDArray[np.int64]]:
    terms = terms_by_kind(index_text(evidence), evidence["evidence_kind"].combine_chunks())
    parts = [_postings("text", terms)]
    parts += [_postings(field, Ragged.of(evidence[column]).expand(keys)) for field, column, keys in _KEYED_COLUMNS]
    parts.append(_postings("id", Ragged.of(evidence["evidence_id"])))  # lower case by construction
    return parts, np.diff(terms.starts)


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
    """The postings sorted into lists, and the start of each segment's keys (and the end of the last).

    Segment `s` has the rows `row_starts[s]:row_starts[s + 1]`.
    """
    distinct, rank = _ranks(postings)
    sizes = np.diff(row_starts)
    segments, span = len(sizes), int(sizes.max(initial=1))
    if (segments + 1) * len(distinct) * span >= 2**63:
        raise OverflowError("too many segments, keys and rows for one pack")
    first = np.arange(segments) * (len(distinct) * span) - row_starts[:-1]
    code = (rank * span)[postings.key]
    code += (np.repeat(first, sizes) + np.arange(row_starts[-1]))[postings.row]
    used, counts, rows, freqs = _lists(code, postings.freq, span)
    stored = distinct[used % max(len(distinct), 1)]
    lists = PostingLists(postings.hashes[stored], postings.keys.take(pa.array(stored)), starts_of(counts), rows, freqs)
    return lists, np.searchsorted(used, np.arange(segments + 1) * len(distinct))


def _ranks(postings: Postings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The position of one key per set of equal keys, in order of (hash, text), and the rank of each key's set."""
    hashes, keys = postings.hashes, postings.keys
    order = np.argsort(hashes)
    new = np.zeros(len(order), dtype=bool)
    new[_changes(hashes[order])] = True
    again = np.flatnonzero(~new)
    if not _equal(keys, order[again - 1], order[again]).all():
        order = np.array(sorted(range(len(keys)), key=lambda i: (hashes[i], keys[i].as_py())))
        new[1:] = ~_equal(keys, order[:-1], order[1:])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(new) - 1
    return order[new], rank


def _equal(keys: pa.LargeStringArray, some: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether keys at some positions equal those at others, pairwise."""
    return np.asarray(pc.equal(keys.take(pa.array(some)), keys.take(pa.array(others))), dtype=bool)


def _lists(
    code: NDArray[np.int64], freq: NDArray[np.int32], span: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """The non-empty lists, rows per list, and rows and frequencies in order: code = list * span + row."""
    order = _order(code // span)
    ordered = code[order]
    if np.any(ordered[1:] < ordered[:-1]):  # rows were moved; as read, they are in order
        order = np.argsort(code, kind="stable")
        ordered = code[order]
    first = _changes(ordered)
    freqs = np.add.reduceat(freq[order], first) if len(first) else freq
    code = ordered[first]
    group = code // span
    starts = _changes(group)
    rows = (code - group * span).astype(np.int32)
    return group[starts], np.diff(starts, append=len(code)), rows, freqs.astype(np.int32)


def _changes(numbers: NDArray[np.integer]) -> NDArray[np.int64]:
    """The positions where a number differs from the one before."""
    new = np.ones(len(numbers), dtype=bool)
    np.not_equal(numbers[1:], numbers[:-1], out=new[1:])
    return np.flatnonzero(new)


def _order(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The stable order of numbers from 0, by 16 bits at a time, for which NumPy uses a much faster radix sort."""
    order = np.arange(len(numbers))
    for bits in range(0, int(numbers.max(initial=0)).bit_length(), 16):
        digits = (numbers >> bits).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")] if bits else np.argsort(digits, kind="stable")
    return order


def _postings(field: str, terms: Ragged) -> Postings:
    prefix = pa.scalar(f"{FIELDS[field]}:", pa.large_string())
    keys = pc.binary_join_element_wise(prefix, terms.vocabulary.cast(pa.large_string()), _EMPTY)
    return Postings(
        keys, key_hashes(keys.to_pylist()), terms.codes, terms.rows, np.ones(len(terms.codes), dtype=np.int32)
    )
