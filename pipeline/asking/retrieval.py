"""The answer to a caller: the block with its citations and conditions, and the forms that other systems expect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from ...nodes.columns.digests import EMPTY_SHA256
from ...nodes.lanes import NO_VECTORS
from ...nodes.tables import TABLES
from ...nodes.vocabulary import ACTIONS
from ..line.lanes import advised
from ..line.planned_driver import Timing
from ..storage.places import Place
from ..views import harness_forms


@dataclass(frozen=True)
class Retrieval:
    """One answer. `tables` is the record for auditors; everything else may reach the caller."""

    request_id: str
    snapshot_id: str | None
    status: str
    action: str
    block: str
    block_ref: str | None
    conditions: tuple[dict[str, Any], ...]
    citations: list[dict[str, Any]]
    intent_id: str | None
    tables: Mapping[str, pa.Table] = field(repr=False)
    latency_ms: float | None = None
    max_age_days: float | None = None
    """Maximum age of a fresh row under the role, if it sets one."""
    timings: tuple[Timing, ...] = ()
    """When each node ran in the pass that answered this and concurrent requests; and `WRITING`."""
    together: int = 1
    """The number of requests that this pass answered."""

    def __str__(self) -> str:
        """The block, as it is printed."""
        return self.block

    @property
    def bundle(self) -> dict[str, Any]:
        """The `RetrievalBundle` 1.0 of S4.7, as its caller may see it; empty if the block was withheld."""
        from ..views.bundle import bundle
        from ..views.xray import rows_of

        rows = rows_of(self.tables)
        if not self.block:
            rows |= {"citations": [], "trimmed": [], "item_details": []}
        return bundle(rows, latency_ms=self.latency_ms, max_age_days=self.max_age_days)

    @property
    def fallback_decisions(self) -> list[dict[str, Any]]:
        """The states of document 004 that apply, worst action first (S4.9)."""
        from ..views.bundle import fallback_decisions

        return fallback_decisions(self.conditions)

    @property
    def citation_map(self) -> dict[str, dict[str, Any]]:
        """The citation map of S0.101: label to snapshot item, source, visible hash, authority and kind."""
        return harness_forms.citation_map(self.citations)

    @property
    def observation(self) -> dict[str, Any]:
        """The observation of S0.84, for the harness to pass on."""
        return harness_forms.observation(self._snapshot, self.block, self.citations)

    @property
    def event(self) -> dict[str, Any]:
        """The event of S0.83, for the event log: ids, a count and a hash, no text."""
        return harness_forms.event(self._snapshot, len(self.citations), self.intent_id)

    @property
    def context_block(self) -> dict[str, Any]:
        """The block of S0.69 as values, for a harness that renders it itself."""
        return harness_forms.context_block(self._snapshot, self.tables["trimmed"], self.citations)

    def _repr_html_(self) -> str:
        from ..views.notebook import answer_html

        return answer_html(self.snapshot_id, self.status, self.block, self.citations, self.conditions)

    @property
    def _snapshot(self) -> dict[str, Any]:
        """The fields that the forms above share; nothing of a withheld block."""
        hashed = self.tables["snapshots"]["visible_sha256"][0].as_py() if self.block else EMPTY_SHA256
        return {"snapshot_id": self.snapshot_id, "block_ref": self.block_ref, "visible_sha256": hashed}


_MORE = ("lane_off", "budget_unused")
"""Conditions that say `continue` although something else would give more."""


def warnings_of(conditions: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the user of an answer should know, in words: its conditions that do not say `continue`, and what would get more."""
    return [
        f"{advised(each['message'])} ({' '.join(filter(None, (each['condition'], each['subject'])))})"
        for each in conditions
        if each["action"] != "continue" or (each["condition"] in _MORE and each["message"] != NO_VECTORS)
    ]


@dataclass(frozen=True)
class RunSummary:
    """The result of a run of many requests."""

    run_id: str
    path: Place
    statuses: Mapping[str, int]
    seconds: float

    @property
    def snapshots(self) -> int:
        return sum(self.statuses.values())

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for printing."""
        return {
            "run_id": self.run_id,
            "path": str(self.path),
            "snapshots": self.snapshots,
            "statuses": dict(sorted(self.statuses.items())),
            "seconds": round(self.seconds, 3),
        }


def retrieval_of(tables: Mapping[str, pa.Table]) -> Retrieval:
    """The answer in the line's tables for one request."""
    snapshot = tables["snapshots"].to_pylist()[0]
    block = tables["blocks"].to_pylist()
    intents = tables["requests"]["intent_id"].to_pylist()
    return Retrieval(
        request_id=snapshot["request_id"],
        snapshot_id=snapshot["snapshot_id"],
        status=snapshot["status"],
        action=snapshot["action"],
        block=block[0]["text"] if block else "",
        block_ref=snapshot["block_ref"],
        conditions=tuple(_caller_rows(tables["conditions"], "conditions")),
        citations=_caller_rows(tables["citations"], "citations"),
        intent_id=intents[0] if intents else None,
        tables=tables,
    )


WRITING = "snapshot_file"
"""The step that is timed in addition to the nodes of the line: making the snapshot durable."""


def without_snapshot(found: Retrieval, *, required: bool, reason: str) -> Retrieval:
    """The answer when its snapshot could not be written: no block is returned if a snapshot is required."""
    action = "block" if required else "degrade"
    condition = {"condition": "snapshot_missing", "subject": "", "action": action, "message": reason}
    worst = max(found.action, action, key=ACTIONS.values.index)
    kept = tuple(c for c in found.conditions if c["condition"] != "healthy")
    answer = replace(found, snapshot_id=None, action=worst, conditions=(*kept, condition))
    return replace(answer, status="failed", block="", block_ref=None, citations=[]) if required else answer


def _caller_rows(table: pa.Table, name: str) -> list[dict[str, Any]]:
    return TABLES[name].for_callers(table).drop_columns(["request_id"]).to_pylist()
