"""The interactive runs of one retriever in a folder of runs: `LiveRuns`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from ..views.lineage import current_lineage
from .adopting import heal
from .live import LiveRun
from .resume import left_open
from .store import RunStore

__all__ = ["LiveRuns"]


@dataclass(frozen=True)
class LiveRuns:
    """The folder in which runs are begun, and the settings that their manifests record."""

    store: RunStore
    settings: Mapping[str, Any]

    def begin(self, now: datetime, inputs: Mapping[str, pa.Table], asked: Collection[str]) -> LiveRun:
        """A run to write to: one that another session left and that has none of the requests `asked`, or a new one.

        `inputs` are the tables of `PER_RUN`.
        """
        heal(self.store)
        left = left_open(self.store, inputs=inputs, settings=self.settings, asked=asked)
        lineage = {} if left else current_lineage()
        return LiveRun(self.store, now=now, inputs=inputs, lineage=lineage, settings=self.settings, left=left)
