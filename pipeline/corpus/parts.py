"""Rows in memory on their way into a pack: new ones, and stored ones that are rewritten into larger segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.ragged import starts_of
from ...nodes.tables import EVIDENCE
from .identity import MultisetHash, elements
from .postings import Postings, joined, postings_of

STORED_EVIDENCE = EVIDENCE.schema.append(pa.field("occurrence", pa.int32(), False)).append(
    pa.field("row_digest", pa.binary(32), False)
)
"""EVIDENCE as a pack stores it, with everything that its ids and digests are computed from."""


@dataclass(frozen=True)
class Part:
    """Rows with all their data; row `i` of every field is the same row.

    `evidence` is `STORED_EVIDENCE`; `placements` is sorted by row, then time; `vectors` has `text_digest` and `vector` of
    every row, or is None if the rows are not encoded, whose `profile` is "".
    """

    evidence: pa.Table
    placements: pa.Table
    postings: Postings
    vectors: pa.Table | None
    profile: str

    @classmethod
    def of_new(cls, evidence: pa.Table, placements: pa.Table, vectors: pa.Table | None, profile: str) -> Part:
        """New rows: their postings and lengths are computed here."""
        postings, length = postings_of(evidence)
        at = evidence.schema.get_field_index("length")
        evidence = evidence.set_column(at, evidence.schema.field(at), length)
        return cls(evidence, placements, postings, vectors, "" if vectors is None else profile)

    @classmethod
    def joined(cls, parts: Sequence[Part]) -> Part:
        """The rows of all parts (at least one), all encoded or none, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        starts = starts_of(np.array([part.evidence.num_rows for part in parts]))
        vectors = [part.vectors for part in parts if part.vectors is not None]
        return cls(
            pa.concat_tables(part.evidence for part in parts).combine_chunks(),
            pa.concat_tables(shifted(part.placements, int(start)) for part, start in zip(parts, starts, strict=False)),
            joined([part.postings.shifted(int(start)) for part, start in zip(parts, starts, strict=False)]),
            pa.concat_tables(vectors) if vectors else None,
            parts[0].profile,
        )

    def sorted(self) -> Part:
        """Sorted by owner, then in EVIDENCE order, by the line of a row's last placement."""
        last = self.placement_starts()[1:] - 1
        keys = self.evidence.select(["owner_project", "owner_user", "source_id", "path", "evidence_id"])
        keys = keys.append_column("line_start", self.placements["line_start"].take(pa.array(last)))
        names = ("owner_project", "owner_user", "source_id", "path", "line_start", "evidence_id")
        order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names])
        place = np.empty(len(order), dtype=np.int64)
        place[order.to_numpy()] = np.arange(len(order))
        placements = moved(self.placements, place)
        return replace(
            self,
            evidence=self.evidence.take(order),
            placements=placements.take(pa.array(np.argsort(placements["row"].to_numpy(), kind="stable"))),
            postings=self.postings.moved(place),
            vectors=None if self.vectors is None else self.vectors.take(order),
        )

    def kept(self, keep: NDArray[np.bool_]) -> Part:
        """Only the rows where `keep` is true."""
        place = np.where(keep, np.cumsum(keep) - 1, -1)
        return replace(
            self,
            evidence=self.evidence.filter(pa.array(keep)),
            placements=moved(self.placements, place),
            postings=self.postings.moved(place),
            vectors=None if self.vectors is None else self.vectors.filter(pa.array(keep)),
        )

    def placement_starts(self) -> NDArray[np.int64]:
        """The start of each row's placements, and the end of the last."""
        return starts_of(np.bincount(self.placements["row"].to_numpy(), minlength=self.evidence.num_rows))

    def segment_starts(self) -> NDArray[np.int64]:
        """The start of each segment of sorted rows, and the end of the last: one segment per owner."""
        rows = self.evidence.num_rows
        cut = np.zeros(rows, dtype=bool)
        cut[:1] = True
        for name in ("owner_project", "owner_user"):
            codes = self.evidence[name].combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
            cut[1:] |= codes[1:] != codes[:-1]
        return np.append(np.flatnonzero(cut), rows)

    def content(self) -> MultisetHash:
        """The multiset hash of the rows, independent of their order."""
        return MultisetHash.of(elements(self.evidence, self.placements, [self.profile] * self.evidence.num_rows))


def with_rows(placements: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """The placements with these row numbers, in the same order."""
    at = placements.schema.get_field_index("row")
    return placements.set_column(at, placements.schema.field(at), pa.array(rows))


def moved(placements: pa.Table, place: NDArray[np.int64]) -> pa.Table:
    """The placements with row `i` at `place[i]`, in the same order; those of rows at -1 are removed."""
    rows = place[placements["row"].to_numpy()]
    placements = with_rows(placements, rows)
    return placements.filter(pa.array(rows >= 0)) if rows.min(initial=0) < 0 else placements


def shifted(placements: pa.Table, by: int) -> pa.Table:
    """The placements with `by` added to their rows; zero-copy where `by` is 0."""
    return with_rows(placements, placements["row"].to_numpy() + by) if by else placements
