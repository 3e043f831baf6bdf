"""The ranking under other weights, for every request of a run, from its frozen score terms: no packing, no block.

Reads: score terms, contracts and ranking of a run. Gives: `reranked`, a `Reranking`: the order under the changed
weights next to the stored one, per request.

Note: it is the cheap part of `what_if`, a fraction of a millisecond per request. Use `what_if` for the resulting block.
Ranks cover rows that a caller was not shown, so this is for auditors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ....nodes.columns.keys import flat
from ....nodes.errors import AccessError, InputError
from ...config.settings import Settings
from ...line.driver import run_ranked
from ...requests.allowed_names import AllowedNames
from ...requests.fields import place_of
from ...runs.ids import is_snapshot
from ..access import audience_of, expect_reader, open_run
from ..snapshots import audits_whole
from .difference import frame_of, records
from .frozen_plugins import frozen_plugins, recorded_terms
from .reproduce import SHARD
from .rerun import Recorded, line_of
from .what_if import changed_columns

__all__ = ["TOP", "Reranking", "reranked"]

TOP = 10
"""Number of top ranks that are compared."""
_ROW = ["request_id", "evidence_id"]


@dataclass(frozen=True)
class Reranking:
    """The order of the candidates of each request, as recorded and as changed."""

    name: str
    changes: Mapping[str, Any]
    before: pa.Table = field(repr=False)
    after: pa.Table = field(repr=False)
    """RANKED under the changed weights, equal to that of `what_if` and of a fresh run."""
    top: int = TOP

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The top rows of either side: request_id, evidence_id, recorded rank, changed rank (0: below the top)."""
        sides = [
            frame_of(table.select([*_ROW, "rank"]).filter(pc.less_equal(table["rank"], self.top)))
            for table in (self.before, self.after)
        ]
        found = sides[0].merge(sides[1], on=_ROW, how="outer", suffixes=("_before", "_after"))
        found = found.fillna({"rank_before": 0, "rank_after": 0}).astype({"rank_before": int, "rank_after": int})
        return found.sort_values(["request_id", "rank_after", "rank_before"], ignore_index=True)

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row per request: how many top rows entered, left, moved and stayed; most changed first."""
        rows, was, now = self.rows, self.rows["rank_before"], self.rows["rank_after"]
        change = pd.DataFrame(
            {
                "request_id": rows["request_id"], "entered": was == 0, "left": now == 0,
                "moved": (was > 0) & (now > 0) & (was != now), "same": was == now,
            }
        )  # fmt: skip
        found = change.groupby("request_id").sum().astype(int).reset_index()
        order = np.lexsort((found["request_id"], -found["moved"], -found["entered"]))
        return found.iloc[order].reset_index(drop=True)

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name, "changes": dict(self.changes), "top": self.top, "requests": records(self.requests),
            "rows": records(self.rows),
        }  # fmt: skip


def reranked(settings: Settings, name: str, changes: Mapping[str, Any], top: int = TOP) -> Reranking:
    """Rank a snapshot or every request of a run under other weights.

    Raises:
        AccessError: the principal does not audit all of it.
        ErasedError: texts of the requests were erased.
        InputError: a change is not a weight.
        StoreError: the generation that the run pinned is gone.
    """
    written, changes = changes, changed_columns(changes, "changes")
    if other := sorted(column for column in changes if not column.startswith("weight")):
        raise InputError.expected("weights alone", other[0], "changes", hint="other columns change more than the order")
    run = open_run(settings, name)
    snapshot = name if is_snapshot(name) else None
    if not snapshot:
        expect_reader(settings, run)
    if not (audience_of(settings, run, snapshot) == "audit" if snapshot else audits_whole(settings, run)):
        raise AccessError(
            f"Permission denied: only an auditor of every request may rank it again - at {name}",
            hint="run `what-if` without --ranking for your own requests",
        )
    known = AllowedNames(score_terms=recorded_terms(run))
    known.expect(changes, lambda column: place_of(written, column, "changes"), "changes")
    recorded = Recorded.of(run, snapshot).changed(changes)
    line = line_of(settings, run, models=False, plugins=frozen_plugins(run, judging=False))
    scored = run.table("score_terms", texts=True, snapshot_id=snapshot)
    parts = []
    for low in range(0, recorded.requests.num_rows, SHARD):
        requests = recorded.requests.slice(low, SHARD)
        own = scored.filter(pc.is_in(scored["request_id"], flat(requests["request_id"])))
        parts.append(run_ranked(requests, recorded.captures, line, own.combine_chunks()))
    before = run.table("ranked", snapshot_id=snapshot)
    return Reranking(name, changes, before, pa.concat_tables(parts) if parts else before.slice(0, 0), top)
