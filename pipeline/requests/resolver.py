"""Resolves the requests of one principal over one corpus under the current grants: `RequestResolver`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..config.grants import GrantsFile
from ..corpus import Corpus
from .allowed_names import AllowedNames
from .commits import Commits
from .files import Row
from .presets import Preset
from .resolve import resolve_requests

__all__ = ["RequestResolver"]


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
