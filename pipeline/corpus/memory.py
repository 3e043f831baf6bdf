"""A corpus in memory: imported rows as frames, with nothing written.

Reads: import rows, normalized and redacted. Gives: the interface that the line uses (`generation`, `frame`). Identity,
postings and vectors equal those of a stored corpus, so the same rows return the same answers from either.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.kept import Kept
from ...nodes.frames import PostingIndex, SegmentPostings, VectorIndex
from ...nodes.tables import EVIDENCE, SEGMENTS
from ..encoders.unit_vectors import Encoder
from .commits import COMMITS
from .frame import CorpusFrame, KeptFrames
from .incoming import incoming, sorted_placements
from .parts import Part, moved
from .postings import posting_lists
from .vectors import vectors_of


class MemoryCorpus:
    """One generation of rows in memory; read-only."""

    path = pin = None

    def __init__(self, rows: pa.Table, *, now: datetime, encoder: Encoder | None = None) -> None:
        """`rows` are IMPORT_ROWS with `redactions`; see `sources/importing.py`."""
        new = incoming(rows, now)
        vectors = vectors_of(new.evidence, (), encoder) if encoder is not None else None
        self.encoder_profile = encoder.profile if encoder is not None else None
        placements = sorted_placements(new.placements)
        self._part = Part.of_new(new.evidence, placements, vectors, self.encoder_profile or "").sorted()
        self._bounds = self._part.segment_starts()
        of = pa.array(self._bounds[:-1])
        self._owners = self._part.evidence.select(["owner_project", "owner_user"]).take(of).to_pylist()
        self._lists, self._keys = posting_lists(self._part.postings, self._bounds)
        self._ids = self._part.segment_ids(self._bounds.tolist())
        self.generation = self._part.content().digest("memory/1")[:32]
        self._frames = KeptFrames()

    def view(self) -> MemoryCorpus:
        """Itself: it never changes."""
        return self

    def expect_unerased(self) -> None:
        """Does nothing: no rows are erased from it."""

    def projects(self) -> list[str]:
        """The projects that own rows, sorted."""
        return sorted(set(self._part.evidence["owner_project"].to_pylist()))

    def commits(self, project: str) -> pa.Table:
        """COMMITS of a project: empty, as rows in memory have no history."""
        del project
        return COMMITS.empty_table()

    def frame(self, projects: Collection[str] | None = None, users: Collection[str] | None = None) -> CorpusFrame:
        """The rows of these projects that belong to the whole project or to one of these users (None = any)."""
        chosen = [
            at
            for at, owner in enumerate(self._owners)
            if (projects is None or owner["owner_project"] in projects)
            and (users is None or owner["owner_user"] in (None, *users))
        ]
        return self._frames.get(tuple(self._ids[at] for at in chosen), lambda lists: self._frame(chosen, lists))

    def _frame(self, chosen: list[int], lists: Kept[Any]) -> CorpusFrame:
        part, bounds, owners = self._part, self._bounds, self._owners
        keep = np.zeros(part.evidence.num_rows, dtype=bool)
        for at in chosen:
            keep[bounds[at] : bounds[at + 1]] = True
        sizes = np.diff(bounds)[chosen].astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        placements = moved(part.placements, np.where(keep, np.cumsum(keep) - 1, -1))
        return CorpusFrame(
            generation=self.generation,
            evidence=part.evidence.filter(pa.array(keep)).select(EVIDENCE.names()),
            placements=placements.filter(pc.greater_equal(placements["row"], 0)),
            segments=SEGMENTS.build(
                {
                    "segment_id": [self._ids[at] for at in chosen],
                    "owner_project": [owners[at]["owner_project"] for at in chosen],
                    "owner_user": [owners[at]["owner_user"] for at in chosen],
                    "row_start": starts,
                    "row_end": starts + sizes,
                },
                rows=len(chosen),
            ),
            postings=PostingIndex(tuple(self._postings(at) for at in chosen), starts, lists),
            vectors=self._vectors(chosen, starts),
            encoder_profile=self.encoder_profile,
        )

    def _postings(self, segment: int) -> SegmentPostings:
        lists, (start, end) = self._lists, self._keys[segment : segment + 2]
        keys = lists.keys.slice(start, end - start)
        return SegmentPostings(lists.hashes[start:end], keys, lists.starts[start : end + 1], lists.rows, lists.freqs)

    def _vectors(self, segments: list[int], starts: np.ndarray) -> VectorIndex | None:
        if self._part.vectors is None or self.encoder_profile is None:
            return None
        column, encoded = self._part.vectors["vector"].combine_chunks(), self._part.encoded()
        width = column.type.list_size
        parts = []
        for at in segments:
            start, end = self._bounds[at : at + 2]
            own = column.slice(start, end - start)
            parts.append(np.asarray(own.flatten()).reshape(-1, width) if encoded[start] else None)
        return VectorIndex(self.encoder_profile, tuple(parts), starts, np.empty((0, width), dtype=np.int16))
