"""The `RetrievalAuditSnapshot` of document 000 (S0.57 to S0.59), with scope, plan and citation map in its names.

Reads: the rows of one snapshot by table name. Gives: `audit_snapshot`, plain JSON values checked by `RetrievalAuditSnapshot`.

Note: rejected items have an id, a stage and a reason, but never a text. A caller gets the same shape without counts of
other rows, without rejected items and without the sub-queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_snake

from .harness_forms import citation_map
from .xray import Row, Rows, caller_rows, line_of, one_of, text_of

__all__ = ["RetrievalAuditSnapshot", "audit_snapshot"]

_LEVELS = ("low", "medium", "high", "high")
"""The names of authorities 0 to 3 in document 000."""


class _Part(BaseModel):
    """A part in the names of document 000; `of` reads the columns of the same names, in snake case."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @classmethod
    def of(cls, row: Row, **others: Any) -> Self:
        known = {name: row.get(to_snake(name)) for name in cls.model_fields if name not in others}
        return cls(**{name: value for name, value in (known | others).items() if value is not None})


class PermissionContext(_Part):
    """The principal whose rights applied, and whether the request was denied."""

    principal: str | None = None
    askedBy: str | None = None
    groups: list[str] | None = None
    denied: bool = False
    deniedReason: str | None = None


class TimeBoundary(_Part):
    """The instant at which facts are judged, and the time window."""

    asOf: str | None = None
    includeAfter: str | None = None
    excludeAfter: str | None = None
    allowStaleMemory: bool = False


class EvidencePolicy(_Part):
    """Conditions on evidence."""

    requireCitation: bool = False
    requireSnapshot: bool = False
    acceptedAuthority: list[str] | None = None
    maxUnverifiedItems: int | None = None


class RetrievalBudget(_Part):
    """Limits of the block."""

    maxTokens: int | None = None
    maxChars: int | None = None
    maxItems: int | None = None


class RetrievalScope(_Part):
    """The resolved contract; `allowedSources` null means all granted sources."""

    sessionId: str | None = None
    userId: str | None = None
    projectId: str | None = None
    workspaceRoot: str | None = None
    branch: str | None = None
    taskId: str | None = None
    purpose: str | None = None
    allowedSources: list[str] | None = None
    deniedSources: list[str]
    permissionContext: PermissionContext
    timeBoundary: TimeBoundary
    evidencePolicy: EvidencePolicy
    budget: RetrievalBudget


class RetrievalSubQuery(_Part):
    """One question of the plan."""

    id: str
    intent: str
    queryText: str | None = None
    sources: list[str]
    topK: int
    minAuthority: Literal["low", "medium", "high"]
    maxAge: str | None = None


class RetrievalPlan(_Part):
    """How the scope was searched."""

    requestId: str | None = None
    scopeId: str | None = None
    subQueries: list[RetrievalSubQuery]
    mergePolicy: str | None = None
    outputShape: str | None = None


class CandidateStats(_Part):
    """Counts; `filtered` are hidden and rejected rows. A caller sees only the number of selected rows."""

    recalled: int | None = Field(default=None, ge=0)
    filtered: int | None = Field(default=None, ge=0)
    selected: int = Field(ge=0)
    redacted: int | None = Field(default=None, ge=0)


class SnapshotItem(_Part):
    """One item as shown; `visibleText` null means that it was erased."""

    candidateId: str
    sourceRef: str
    sourceVersion: str | None = None
    capturedAt: str | None = None
    evidenceKind: str
    selectedReason: str
    visibleText: str | None = None
    visibleTextHash: str
    citationId: str


class RejectedSnapshotItem(_Part):
    """One candidate that was not shown: its id, stage and reason, without text."""

    candidateId: str
    outcome: str
    stage: str
    reason: str


class SnapshotBudget(_Part):
    """Token limit and tokens of the block."""

    maxTokens: int = Field(ge=0)
    estimatedTokens: int = Field(ge=0)
    trimmingPolicy: str


class ContextProjection(_Part):
    """The block for the model, by reference and hash, and the targets of its labels."""

    messageBlockRef: str | None = None
    visibleTextHash: str | None = None
    citationMap: dict[str, dict[str, Any]]


class RetrievalAuditSnapshot(_Part):
    """The shape of document 000."""

    id: str
    sessionId: str | None = None
    turnId: str | None = None
    modelRequestId: str | None = None
    createdAt: str
    scope: RetrievalScope
    plan: RetrievalPlan
    candidateStats: CandidateStats
    selectedItems: list[SnapshotItem]
    rejectedItems: list[RejectedSnapshotItem]
    budget: SnapshotBudget
    contextProjection: ContextProjection


def audit_snapshot(rows: Rows, *, audit: bool = True) -> dict[str, Any]:
    """The snapshot as plain values, absent optional fields left out.

    Args:
        rows: rows of one request by table name, those of an x-ray; a missing table reads as empty.
        audit: False leaves out everything about rows that the caller may not know of.
    """
    reasons = {row["evidence_id"]: row.get("selected_reason") for row in rows.get("ranked", ())}
    rows = rows if audit else caller_rows(rows)
    request, contract, snapshot = (one_of(rows, name) for name in ("requests", "contracts", "snapshots"))
    failure = one_of(rows, "failures")
    rejected = [d for d in rows.get("decisions", ()) if d["outcome"] != "selected"]
    lost = {"recalled": snapshot.get("recalled"), "redacted": snapshot.get("redacted")}
    if audit:
        lost["filtered"] = (snapshot.get("hidden") or 0) + (snapshot.get("rejected") or 0)
    return RetrievalAuditSnapshot(
        id=text_of(snapshot.get("snapshot_id")),
        sessionId=request.get("session_id"),
        turnId=request.get("turn_id"),
        modelRequestId=request.get("model_request_id"),
        createdAt=text_of(snapshot.get("created_at")),
        scope=_scope(request or failure, contract),
        plan=_plan(rows.get("sub_queries", ()) if audit else (), request or failure, contract),
        candidateStats=CandidateStats(selected=snapshot.get("selected_rows") or 0, **lost),
        selectedItems=_selected(rows, reasons),
        rejectedItems=[
            RejectedSnapshotItem(
                candidateId=d["evidence_id"], outcome=d["outcome"], stage=d["stage"], reason=d["reason_code"]
            )
            for d in rejected
        ],
        budget=SnapshotBudget(
            maxTokens=snapshot.get("max_tokens") or contract.get("max_tokens") or 0,
            estimatedTokens=snapshot.get("estimated_tokens") or 0,
            trimmingPolicy=text_of(snapshot.get("trimming_policy")),
        ),
        contextProjection=ContextProjection(
            messageBlockRef=snapshot.get("block_ref"),
            visibleTextHash=snapshot.get("visible_sha256"),
            citationMap=citation_map(rows.get("citations", ())),
        ),
    ).model_dump(exclude_none=True)


def _scope(request: Row, contract: Row) -> RetrievalScope:
    asked = {
        name: contract.get(name) or request.get(name) for name in ("principal", "project", "purpose", "session_id")
    }
    return RetrievalScope.of(
        {**contract, **asked, "task_id": request.get("task_id")},
        userId=asked["principal"],
        projectId=asked["project"],
        deniedSources=contract.get("denied_sources") or [],
        permissionContext=PermissionContext.of({**contract, "principal": asked["principal"]}),
        timeBoundary=TimeBoundary.of(
            contract,
            asOf=_iso(contract.get("as_of")),
            includeAfter=_iso(contract.get("window_start")),
            excludeAfter=_iso(contract.get("window_end")),
        ),
        evidencePolicy=EvidencePolicy.of(contract),
        budget=RetrievalBudget.of(contract),
    )


def _plan(sub_queries: Sequence[Row], request: Row, contract: Row) -> RetrievalPlan:
    return RetrievalPlan(
        requestId=request.get("request_id"),
        scopeId=contract.get("contract_id"),
        subQueries=[
            RetrievalSubQuery(
                id=q["sub_query_id"],
                intent=q["intent"],
                queryText=q.get("query_text"),
                sources=q.get("sources") or [],
                topK=q["lane_k"],
                minAuthority=_LEVELS[q.get("min_authority") or 0],
                maxAge=_age(q.get("oldest"), contract.get("as_of")),
            )
            for q in sub_queries
        ],
        mergePolicy=contract.get("merge_policy"),
        outputShape=contract.get("output_shape"),
    )


def _selected(rows: Rows, reasons: Row) -> list[SnapshotItem]:
    texts = {row["label"]: row.get("visible_text") for row in rows.get("trimmed", ())}
    return [
        SnapshotItem(
            candidateId=c["evidence_id"],
            sourceRef=line_of(c["locator"]),
            sourceVersion=c.get("version"),
            capturedAt=_iso(c.get("captured_time")),
            evidenceKind=text_of(c.get("evidence_kind")),
            selectedReason=reasons.get(c["evidence_id"]) or "selected",
            visibleText=texts.get(c["label"]),
            visibleTextHash=c["visible_sha256"],
            citationId=c["label"],
        )
        for c in rows.get("citations", ())
    ]


def _age(oldest: datetime | None, as_of: datetime | None) -> str | None:
    """Maximum age of a row at `as_of`, in days."""
    if oldest is None or as_of is None:
        return None
    return f"{(as_of - oldest).total_seconds() / 86_400:g}d"


def _iso(value: Any) -> str | None:
    return None if value is None else text_of(value)
