"""A generation opened for reading: its manifest, its mapped packs, and the changes to their rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from ...nodes.columns.kept import Kept
from ..storage.places import Place
from .commits import COMMITS, FILE, commits_of
from .deltas import Deltas
from .frame import CorpusFrame, corpus_frame, stored_evidence
from .heads import chain
from .manifest import ANALYZERS, Manifest
from .packs import Pack, PackSegment, has_sums
from .trust import Trust


@dataclass(frozen=True)
class Generation:
    """One state of a corpus; later writes do not change it."""

    path: Place
    manifest: Manifest
    packs: Mapping[str, Pack]
    trust: Trust

    @classmethod
    def open(cls, path: Place, generation: str | None, trust: Trust) -> Generation:
        """The generation with this id, by default the current one."""
        manifest = Manifest.read(path, generation, trust)
        packs = {name: Pack(path / "packs" / name, files) for name, files in manifest.packs.items()}
        return cls(path, manifest, packs, trust)

    def with_sums(self) -> Generation:
        """The same content, its manifest rewritten with checksums of the blocks of all files; itself if it has them.

        The caller holds the lock.

        Raises:
            StoreError: a file does not match its checksum.
        """
        lacking = [name for name, files in self.manifest.packs.items() if not has_sums(files)]
        if not lacking:
            return self
        packs = {**self.manifest.packs, **{name: self.packs[name].files_with_sums() for name in lacking}}
        return self._again(packs=packs)

    def with_signature(self) -> Generation:
        """The same content under a signed head; itself if it has one or there is no key. The caller holds the lock."""
        if self.trust.signing_key is None or self.trust.is_signed(chain(self.trust.place(self.path))[-1]):
            return self
        return self._again()

    def _again(self, **changes: Any) -> Generation:
        manifest = replace(self.manifest, sequence=self.manifest.sequence + 1, **changes)
        return replace(self, manifest=manifest.write(self.path, self.trust))

    @cached_property
    def deltas(self) -> Deltas:
        """Changes to rows of all segments since they were written."""
        pack = self.manifest.changes
        return Deltas() if pack is None else Deltas.of(self.packs[pack])

    def commits(self, project: str) -> pa.Table:
        """COMMITS of a project; empty if no history of it was imported."""
        pack = self.manifest.commits.get(project)
        return COMMITS.empty_table() if pack is None else commits_of(self.packs[pack].table(FILE), project)

    def projects(self) -> list[str]:
        """The projects that own rows, sorted."""
        return sorted({segment.owner_project for segment in self.manifest.segments})

    def segments(self, projects: Collection[str] | None, users: Collection[str] | None) -> Sequence[PackSegment]:
        """The segments of these projects that belong to the whole project or to one of these users (None = any)."""
        these = None if projects is None else set(projects)
        them = None if users is None else {None, *users}
        return [
            segment
            for segment in self.manifest.segments
            if (these is None or segment.owner_project in these) and (them is None or segment.owner_user in them)
        ]

    def evidence(self) -> pa.Table:
        """EVIDENCE with `row_digest` of all rows."""
        return stored_evidence(self.manifest.segments, self.packs, self.deltas.descriptions)

    def frame(self, segments: Sequence[PackSegment], lists: Kept[Any]) -> CorpusFrame:
        """The frame of these segments, in their order; `lists` caches its lists of whole scopes."""
        manifest = self.manifest
        return corpus_frame(manifest.generation, segments, self.packs, self.deltas, manifest.encoder_profile, lists)

    def facts(self) -> dict[str, Any]:
        """Statistics of the stored content: rows, placements, owners, sources, sizes, analyzers, detectors, encoder."""
        manifest, sources = self.manifest, self.evidence().select(["owner_project", "source_id"])
        return {
            "created": manifest.created,
            "rows": manifest.rows,
            "placements": manifest.placements,
            "encoded_rows": sum(segment.size for segment in manifest.segments if segment.encoded),
            "segments": len(manifest.segments),
            "packs": len(manifest.packs),
            "owners": len({segment.owner for segment in manifest.segments}),
            "projects": self.projects(),
            "sources": sources.group_by(["owner_project", "source_id"]).aggregate([]).num_rows,
            "bytes": sum(file["bytes"] for files in manifest.packs.values() for file in files.values()),
            "encoder_profile": manifest.encoder_profile,
            "analyzers": list(ANALYZERS),
            "redactors": list(manifest.redactors),
        }
