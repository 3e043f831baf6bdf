"""When a commit was recorded: what `as_of: commit:SHA` means, for a principal who may ask in its project."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from .corpus import Corpus


@dataclass
class Commits:
    """Recorded times by commit, for one principal. An unknown commit and a foreign project read alike: None."""

    corpus: Corpus
    principal: str
    projects: Collection[str]
    _known: dict[str, pa.Table] = field(default_factory=dict)

    def commit_time(self, sha: str, project: str) -> datetime | None:
        """When the commit was recorded; None if no text of it is known, or the prefix means several commits."""
        if project not in self.projects:
            return None
        versions = self._versions(project)
        found = versions.filter(pc.starts_with(versions["version"], sha))
        if len(pc.unique(found["version"])) != 1:
            return None
        return pc.min(found["recorded_time"]).as_py()

    def _versions(self, project: str) -> pa.Table:
        """Versions of the project's placements with the first time each was recorded."""
        if project not in self._known:
            frame = self.corpus.frame([project], [self.principal])
            kept = _plain(frame.evidence).take(frame.placements["row"])
            placements = frame.placements.select(["version", "recorded_time"]).filter(kept)
            distinct = (
                placements.drop_null().group_by("version", use_threads=False).aggregate([("recorded_time", "min")])
            )
            self._known[project] = distinct.rename_columns({"recorded_time_min": "recorded_time"})
        return self._known[project]


def _plain(evidence: pa.Table) -> pa.ChunkedArray:
    """Rows without a boundary of their own: only these may tell when a commit was, whoever asks."""
    open_zone = pc.is_in(evidence["zone"], value_set=pa.array(["public", "internal"]))
    everyone = pc.and_(pc.is_null(evidence["principals"]), pc.is_null(evidence["owner_user"]))
    visible = pc.equal(evidence["declared_visibility"], "model-visible")
    return pc.fill_null(pc.and_(pc.and_(open_zone, everyone), visible), False)
