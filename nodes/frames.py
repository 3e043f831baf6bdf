"""A frame: the segments a shard can reach, opened as one flat row space over memory-mapped columns.

Nodes receive its parts as inputs (`evidence`, `placements`, `segments`, `row_index`, `postings`, `vectors`). Row `i` of
every part is the same row of evidence. A frame does not decide what a request may see: the gates do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import first_of_runs, flat
from .columns.ragged import expand_ranges, starts_of

FIELDS = {"text": "t", "definition": "d", "reference": "r", "path": "p", "id": "i", "conflict": "c", "literal": "l",
          "regex": "x"}  # fmt: skip
"""Fields of the posting index and their key prefixes. Only `text` keys count towards a row's length, and `literal` and `regex`
keys are not stored: recall finds their rows by the texts."""

MICROS_PER_DAY = 86_400_000_000
"""Times are int64 microseconds since 1970."""
OPEN_END = np.iinfo(np.int64).max
OPEN_START = np.iinfo(np.int64).min


def posting_keys(field: str, terms: Sequence[str]) -> list[str]:
    """The index keys of terms in a field: `t:parse`, `d:parse_user`, `p:src/app.py`, `i:DEL-12345`."""
    prefix = FIELDS[field]
    return [f"{prefix}:{term}" for term in terms]


def key_hashes(keys: Sequence[str] | NDArray[np.object_]) -> NDArray[np.uint64]:
    """SipHash of each key with pandas' fixed key; the same on every run and platform."""
    return pd.util.hash_array(np.asarray(keys, dtype=object), categorize=False).astype(np.uint64)


@dataclass(frozen=True)
class SegmentPostings:
    """The posting lists of one segment, memory-mapped.

    `hashes` is sorted ascending, uint64[T]; `keys` are the texts in the same order; `starts` is int64[T + 1] into
    `rows` (int32, local rows, ascending inside a key) and `freqs` (int32, occurrences in the row).
    """

    hashes: NDArray[np.uint64]
    keys: pa.Array
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    freqs: NDArray[np.int32]

    def find(self, keys: pa.Array, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Position of each key, -1 where it has no postings. Equal hashes are distinguished by their texts."""
        if not len(self.hashes) or not len(hashes):
            return np.full(len(hashes), -1, dtype=np.int64)
        position = self.hashes.searchsorted(hashes)
        found = np.full(len(hashes), -1, dtype=np.int64)
        open_ = (position < len(self.hashes)).nonzero()[0]
        while len(open_ := open_[self.hashes[position[open_]] == hashes[open_]]):
            stored = self.keys.take(pa.array(position[open_]))
            same = np.asarray(pc.equal(stored, keys.take(pa.array(open_)).cast(stored.type)))
            found[open_[same]] = position[open_[same]]
            open_ = open_[~same]
            position[open_] += 1
            open_ = open_[position[open_] < len(self.hashes)]
        return found


def segments_of(rows: NDArray[np.int64], row_starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The segment of each row, in any order; segment `s` has the rows `row_starts[s]:row_starts[s + 1]`."""
    return row_starts.searchsorted(rows, side="right") - 1


@dataclass(frozen=True)
class Matches:
    """Postings of several keys: those of key `k` are `rows[starts[k]:starts[k + 1]]`, frame rows."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    freqs: NDArray[np.int32]


@dataclass(frozen=True)
class PostingIndex:
    """The posting lists of a frame: one part per segment, in the order of SEGMENTS."""

    parts: tuple[SegmentPostings, ...]
    row_starts: NDArray[np.int64]

    def lookup(self, keys: Sequence[str], segments: NDArray[np.int64]) -> Matches:
        """The postings of each key (distinct, any order) in the given segments (positions in SEGMENTS, ascending).

        The cost depends on the postings found and the number of segments, not on the size of the corpus.
        """
        texts = pa.array(keys, type=pa.large_string())
        hashes = key_hashes(keys)
        found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]] = []
        for segment in segments:
            part = self.parts[segment]
            position = part.find(texts, hashes)
            key = (position >= 0).nonzero()[0]
            start = part.starts[position[key]]
            count = part.starts[position[key] + 1] - start
            index = expand_ranges(start, count)
            found.append((key, count, part.rows[index] + self.row_starts[segment], part.freqs[index]))
        if not found:
            return Matches(np.zeros(len(keys) + 1, dtype=np.int64), np.empty(0, np.int64), np.empty(0, np.int32))
        owner = np.concatenate([key.repeat(count) for key, count, _, _ in found])
        rows = np.concatenate([rows for _, _, rows, _ in found])
        freqs = np.concatenate([freqs for _, _, _, freqs in found])
        if len(found) > 1:
            order = owner.argsort(kind="stable")
            owner, rows, freqs = owner[order], rows[order], freqs[order]
        return Matches(starts_of(np.bincount(owner, minlength=len(keys))), rows, freqs)

    def merged(
        self, segments: NDArray[np.int64], starts: NDArray[np.int64], place: NDArray[np.int32]
    ) -> SegmentPostings | None:
        """The lists of some rows of the given segments as one part; None where two keys have the same hash.

        `place[starts[s] + r]` is the number of row `r` of the `s`-th of them, -1 leaves it out.
        """
        parts = [self.parts[segment] for segment in segments.tolist()]
        hashes, keys, counts, rows, freqs = [], [], [], [], []
        for part, start in zip(parts, starts.tolist(), strict=True):
            own = slice(part.starts[0], part.starts[-1])  # segments of one file share its arrays
            row = place[start:][part.rows[own]]
            kept = row >= 0
            count = np.diff(starts_of(kept)[part.starts - own.start])
            used = count.nonzero()[0]
            hashes.append(part.hashes[used])
            keys.append(part.keys.take(pa.array(used)))
            counts.append(count[used])
            rows.append(row[kept])
            freqs.append(part.freqs[own][kept])
        hash_, count = np.concatenate(hashes), np.concatenate(counts)
        order = hash_.argsort(kind="stable")
        first = first_of_runs(hash_[order])
        text = pa.concat_arrays(keys).take(pa.array(order))
        own = text.take(pa.array(first))
        if not pc.all(
            pc.equal(text, own.take(pa.array(np.arange(len(first)).repeat(np.diff(first, append=len(order))))))
        ).as_py():
            return None
        starts, count = starts_of(count)[order], count[order]
        at = expand_ranges(starts, count)
        return SegmentPostings(
            hash_[order][first],
            own,
            starts_of(count)[np.append(first, len(order))],
            np.concatenate(rows)[at],
            np.concatenate(freqs)[at],
        )


@dataclass(frozen=True)
class VectorIndex:
    """Unit vectors of a frame's rows under one encoder profile, and those of the shard's queries.

    Components are multiples of 2**-15 stored as int16, so that a float64 product of two of them is exact and its sum
    the same in any order. `parts` has one int16[rows, dimensions] array per segment, or None where a segment has none.
    """

    profile: str
    parts: tuple[NDArray[np.int16] | None, ...]
    row_starts: NDArray[np.int64]
    queries: NDArray[np.int16]

    def encoded(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each row, in any order, is of a segment that has vectors."""
        has = np.array([part is not None for part in self.parts], dtype=bool)
        return has[segments_of(rows, self.row_starts)]


@dataclass(frozen=True)
class RowIndex:
    """NumPy views of the columns that gates and kernels read for many (request, row) pairs at once.

    Times are int64 microseconds since 1970 UTC; an open start or end is `OPEN_START` or `OPEN_END`.
    """

    id_rank: NDArray[np.int64]
    """Rank of the row's evidence id among the sorted ids of the frame: sorts rows like `evidence_id`."""
    length: NDArray[np.int64]
    valid_from: NDArray[np.int64]
    valid_until: NDArray[np.int64]
    event_time: NDArray[np.int64]
    """event_time, `OPEN_START` where null; windows then use the placement's recorded time."""
    placement_starts: NDArray[np.int64]
    """Placements of row `i` are `placement_starts[i]:placement_starts[i + 1]`, by recorded time."""
    recorded: NDArray[np.int64]
    superseded: NDArray[np.int64]
    deleted: NDArray[np.int64]

    @cached_property
    def by_id(self) -> NDArray[np.int64]:
        """The rows in the order of their ids."""
        rows = np.empty(len(self.id_rank), dtype=np.int64)
        rows[self.id_rank] = np.arange(len(rows))
        return rows

    def recorded_at(self, placement: NDArray[np.int64]) -> NDArray[np.int64]:
        """When each placement was recorded, `OPEN_START` for -1."""
        if not len(self.recorded):
            return np.full(len(placement), OPEN_START)
        return np.where(placement >= 0, self.recorded[placement], OPEN_START)

    def happened_at(self, rows: NDArray[np.int64], placement: NDArray[np.int64]) -> NDArray[np.int64]:
        """When each row happened: its event time, else when the placement was recorded."""
        event = self.event_time[rows]
        return np.where(event == OPEN_START, self.recorded_at(placement), event)

    @classmethod
    def of(cls, evidence: pa.Table, placements: pa.Table) -> RowIndex:
        """The views of a frame's tables; `placements` is sorted by row, then recorded time."""
        rows = placements["row"].to_numpy()
        starts = np.zeros(evidence.num_rows + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=evidence.num_rows), out=starts[1:])
        return cls(
            id_rank=id_ranks(evidence["evidence_id"]),
            length=evidence["length"].cast(pa.int64()).fill_null(0).to_numpy(),
            valid_from=micros(evidence["valid_from"], OPEN_START),
            valid_until=micros(evidence["valid_until"], OPEN_END),
            event_time=micros(evidence["event_time"], OPEN_START),
            placement_starts=starts,
            recorded=micros(placements["recorded_time"], OPEN_START),
            superseded=micros(placements["superseded_at"], OPEN_END),
            deleted=micros(placements["deleted_at"], OPEN_END),
        )


def id_ranks(ids: pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """The rank of each id among the sorted ids, from 0."""
    rank = np.empty(len(ids), dtype=np.int64)
    rank[pc.array_sort_indices(flat(ids)).to_numpy()] = np.arange(len(ids))
    return rank


def micros(column: pa.ChunkedArray | pa.Array, null: int) -> NDArray[np.int64]:
    """A timestamp column as int64 microseconds, `null` where it has none."""
    if column.null_count == len(column):
        return np.full(len(column), null, dtype=np.int64)
    values = flat(column).view(pa.int64())
    return (values.fill_null(null) if values.null_count else values).to_numpy()
