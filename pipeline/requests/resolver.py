"""Resolves the requests of one principal over one corpus under the current grants: `RequestResolver`.

`Commits` resolves `as_of: commit:SHA` for one request, from the commit tables that `index --history` keeps and the grants. A
principal may know a commit if a grant of the project, at the time of asking, opens its history, regardless of the filters of
the request and of rows of evidence. A commit that is unknown, of another project or of a history that no grant opens gives
the same answer: None.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.scope.active_grants import active_grants_of
from ...nodes.scope.selectors import selected_pairs, source_pairs
from ...nodes.tables import REQUESTS
from ..config.grants import GrantsFile
from ..corpus import Corpus
from ..sources.file_kinds import CLASSES
from .allowed_names import AllowedNames
from .files import Row
from .presets import Preset
from .resolve import resolve_requests

_ASKED = ("principal", "asked_by", "project", "asked_at")
"""The columns of a request that determine the applicable grants."""


@dataclass
class Commits:
    """Recorded times by commit, under one table of grants."""

    corpus: Corpus
    grants: pa.Table
    _opened_tables: dict[tuple[Any, ...], pa.Table] = field(default_factory=dict)

    def commit_time(self, sha: str, request: Mapping[str, Any]) -> datetime | None:
        """When the commit was recorded, if a grant of the request's principal opens its history.

        None if no such history contains it, or if the prefix is ambiguous.

        Args:
            sha: a commit, or the first digits of one.
            request: columns of REQUESTS, including `asked_at`; its `as_of` is not read.
        """
        key = tuple(request.get(name) for name in _ASKED)
        if key not in self._opened_tables:
            self._opened_tables[key] = self._opened(request)
        commits = self._opened_tables[key]
        found = commits.filter(pc.starts_with(commits["version"], sha.lower()))
        if len(pc.unique(found["version"])) != 1:
            return None
        return pc.min(found["recorded_time"]).as_py()

    def _opened(self, request: Mapping[str, Any]) -> pa.Table:
        """The commits of the histories that grants open for any class of files."""
        asked = pa.schema([REQUESTS.schema.field(name) for name in _ASKED])
        reach = active_grants_of(
            pa.Table.from_pylist([{name: request.get(name) for name in _ASKED}], schema=asked), self.grants
        )
        commits = self.corpus.commits(request["project"])
        sources = pc.unique(commits["source_id"])
        count = len(sources)
        pairs = source_pairs(
            pa.array(np.repeat(CLASSES, count), pa.string()), pa.concat_arrays([sources] * len(CLASSES))
        )
        opened = np.zeros(len(pairs.source_id), dtype=bool)
        for grant in reach.own[0]:
            opened |= selected_pairs(grant["sources"], pairs)
        return commits.filter(pc.is_in(commits["source_id"], value_set=pairs.source_id.filter(pa.array(opened))))


@dataclass(frozen=True)
class RequestResolver:
    """The common inputs for resolving a principal's requests; see `resolve_requests`."""

    principal: str
    corpus: Corpus
    grants: GrantsFile
    preset: Preset | None = None
    known: AllowedNames = field(default_factory=AllowedNames)
    work_trees: Collection[Path] = ()

    @cached_property
    def project(self) -> dict[str, Any]:
        """The default project of requests: the principal's only one; empty if there are several."""
        projects = self.grants.projects(self.principal)
        return {"project": projects[0]} if len(projects) == 1 else {}

    def resolve(
        self, rows: Iterable[Row], asked_at: datetime, defaults: Mapping[str, Any]
    ) -> tuple[pa.Table, pa.Table]:
        """Rows as REQUESTS and FAILURES; `defaults` are fields for rows that omit them."""
        return resolve_requests(
            rows, principal=self.principal, asked_at=asked_at, corpus=Commits(self.corpus, self.grants.table),
            defaults=defaults, preset=self.preset, known=self.known, work_trees=self.work_trees,
        )  # fmt: skip
