"""A generation opened for reading: its manifest, its mapped packs, and the changes to their rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from ...nodes.columns.ragged import starts_of
from ...nodes.errors import StoreError
from ...nodes.frames import PostingIndex, VectorIndex
from ...nodes.tables import EVIDENCE, SEGMENTS
from ..encoders.unit_vectors import Encoder
from ..storage.chain import Chain
from ..storage.places import Place
from .commits import COMMITS, FILE, on_branches
from .deltas import Deltas
from .frame import CorpusFrame, stored_evidence, stored_placements
from .manifest import ANALYZERS, Manifest
from .packs import Pack, PackSegment, in_use

SCOPES_KEPT = 32


@dataclass(frozen=True)
class Generation:
    """One state of a corpus; later writes do not change it."""

    path: Place
    manifest: Manifest
    packs: Mapping[str, Pack]
    chain: Chain

    @classmethod
    def open(cls, path: Place, chain: Chain, generation: str | None = None) -> Generation:
        """The generation with this id, by default the current one."""
        manifest = Manifest.read(path, chain, generation)
        packs = {name: Pack(path / "packs" / name, entry) for name, entry in manifest.packs.items()}
        return cls(path, manifest, packs, chain)

    @cached_property
    def deltas(self) -> Deltas:
        """Changes to rows of all segments since they were written."""
        pack = self.manifest.changes
        return Deltas() if pack is None else Deltas.of(self.packs[pack])

    @property
    def erased(self) -> list[Pack]:
        """The pack of each erasure, see `tombstones.py`."""
        return [self.packs[receipt.pack] for receipt in self.manifest.receipts]

    @property
    def commits(self) -> pa.Table:
        """COMMITS of all projects; empty if no history was imported."""
        pack = self.manifest.commits
        return COMMITS.empty_table() if pack is None else self.packs[pack].table(FILE)

    @cached_property
    def live(self) -> Mapping[str, int]:
        """The rows in use of each pack that has any."""
        gone = self.manifest.gone
        rows = {name: pack.sizes.sum() - pack.sizes[gone.get(name, [])].sum() for name, pack in self.packs.items()}
        return {name: int(count) for name, count in rows.items() if count}

    @property
    def rows(self) -> int:
        """Rows of evidence."""
        return sum(self.live.values())

    def projects(self) -> list[str]:
        """The projects that own rows, sorted."""
        return sorted({segment.owner_project for segment in self.segments()})

    def segments(
        self, projects: Collection[str] | None = None, users: Collection[str | None] | None = None
    ) -> Sequence[PackSegment]:
        """The segments of these projects that belong to the whole project or to one of these users (None = any), by owner,
        rows of the whole project first.
        """
        return self._find(*(None if names is None else frozenset(names) for names in (projects, users)))

    @cached_property
    def _find(self) -> Callable[..., Sequence[PackSegment]]:
        """Finding takes a tenth of a warm answer, so what was asked for last is kept."""

        @lru_cache(SCOPES_KEPT)
        def found(projects: frozenset[str] | None, users: frozenset[str | None] | None) -> Sequence[PackSegment]:
            return in_use(self.packs.values(), self.manifest.gone, projects, users)

        return found

    def evidence(self) -> pa.Table:
        """`STORED_EVIDENCE` of all rows."""
        return stored_evidence(self.segments(), self.packs, self.deltas.descriptions)

    def frame(self, segments: Sequence[PackSegment]) -> CorpusFrame:
        """The frame of these segments, in their order."""
        packs, profile = self.packs, self.manifest.encoder_profile
        starts = starts_of(np.array([segment.size for segment in segments], dtype=np.int64))
        parts = tuple(packs[segment.pack].matrix(segment) for segment in segments)
        vectors = None
        if profile is not None and any(part is not None for part in parts):
            dimensions = next(part.shape[1] for part in parts if part is not None)
            vectors = VectorIndex(profile, parts, starts[:-1], np.empty((0, dimensions), dtype=np.int16))
        names = ("segment_id", "owner_project", "owner_user")
        of_segments = {name: [getattr(segment, name) for segment in segments] for name in names}
        evidence = stored_evidence(segments, packs, self.deltas.descriptions).select(EVIDENCE.names())
        return CorpusFrame(
            generation=self.manifest.generation,
            evidence=on_branches(evidence, self.commits),
            placements=stored_placements(segments, packs, self.deltas.changes),
            segments=SEGMENTS.build(
                {**of_segments, "row_start": starts[:-1], "row_end": starts[1:]}, rows=len(segments)
            ),
            postings=PostingIndex(tuple(packs[segment.pack].postings(segment) for segment in segments), starts[:-1]),
            vectors=vectors,
            encoder_profile=profile,
        )

    def expect_encoder(self, encoder: Encoder) -> None:
        """
        Raises:
            StoreError: the corpus has vectors of another encoder.
        """
        if (profile := self.manifest.encoder_profile) not in (None, encoder.profile):
            hint = "index into a new corpus: vectors of two encoders cannot be compared."
            raise StoreError(f"Expected encoder {profile}, got {encoder.profile} - at {self.path}", hint=hint)

    def facts(self) -> dict[str, Any]:
        """Statistics of the stored content: rows, placements, owners, sources, sizes, analyzers, detectors, encoder."""
        manifest, segments = self.manifest, self.segments()
        sources = self.evidence().select(["owner_project", "source_id"])
        return {
            "created": manifest.created,
            "rows": self.rows,
            "placements": stored_placements(segments, self.packs, self.deltas.changes).num_rows,
            "encoded_rows": sum(segment.size for segment in segments if segment.encoded),
            "segments": len(segments),
            "packs": len(manifest.packs),
            "owners": len({segment.owner for segment in segments}),
            "projects": self.projects(),
            "sources": sources.group_by(["owner_project", "source_id"]).aggregate([]).num_rows,
            "bytes": sum(entry["bytes"] for entry in manifest.packs.values()),
            "encoder_profile": manifest.encoder_profile,
            "analyzers": list(ANALYZERS),
            "redactors": list(manifest.redactors),
        }
