"""The `RetrievalAuditSnapshot` of document 000 (S0.57 to S0.59), with scope, plan and citation map in its names.

Reads: the rows of one snapshot by table name. Gives: `audit_snapshot`, plain JSON values checked by `RetrievalAuditSnapshot`.

Note: rejected items have an id, a stage and a reason, but never a text. A caller gets the same shape without counts of
other rows, without rejected items and without the sub-queries.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_snake

from .harness_forms import citation_map
from .xray import Row, Rows, caller_rows, items_of, line_of, one_of, text_of

_LEVELS = ("low", "medium", "high", "high")
"""The names of authorities 0 to 3 in document 000."""
Instant = Annotated[str, BeforeValidator(text_of)]


class _Part(BaseModel):
    """A part in the names of document 000, made of a row whose columns have the same names in snake case."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, alias_generator=to_snake, validate_by_name=True)


class PermissionContext(_Part):
    """The principal whose rights applied, and whether the request was denied."""

    principal: str | None = None
    askedBy: str | None = None
    groups: list[str] | None = None
    denied: bool = False
    deniedReason: str | None = None


class TimeBoundary(_Part):
    """The instant at which facts are judged, and the time window."""

    asOf: Instant | None = None
    includeAfter: Instant | None = Field(default=None, alias="window_start")
    excludeAfter: Instant | None = Field(default=None, alias="window_end")
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
    userId: str | None = Field(default=None, alias="principal")
    projectId: str | None = Field(default=None, alias="project")
    workspaceRoot: str | None = None
    branch: str | None = None
    taskId: str | None = None
    purpose: str | None = None
    allowedSources: list[str] | None = None
    deniedSources: list[str] = []
    permissionContext: PermissionContext
    timeBoundary: TimeBoundary
    evidencePolicy: EvidencePolicy
    budget: RetrievalBudget


class RetrievalSubQuery(_Part):
    """One question of the plan."""

    id: str = Field(alias="sub_query_id")
    intent: str
    queryText: str | None = None
    sources: list[str] = []
    topK: int = Field(alias="lane_k")
    minAuthority: Literal["low", "medium", "high"]
    maxAge: str | None = None


class RetrievalPlan(_Part):
    """How the scope was searched."""

    requestId: str | None = None
    scopeId: str | None = Field(default=None, alias="contract_id")
    subQueries: list[RetrievalSubQuery]
    mergePolicy: str | None = None
    outputShape: str | None = None


class CandidateStats(_Part):
    """Counts; `filtered` are hidden and rejected rows. A caller sees only the number of selected rows."""

    recalled: int | None = Field(default=None, ge=0)
    filtered: int | None = Field(default=None, ge=0)
    selected: int = Field(default=0, ge=0, alias="selected_rows")
    redacted: int | None = Field(default=None, ge=0)


class SnapshotItem(_Part):
    """One item as shown; without `visibleText` and `sourceRef` where these were erased."""

    candidateId: str = Field(alias="evidence_id")
    sourceRef: Annotated[str, BeforeValidator(line_of)] | None = Field(default=None, alias="locator")
    sourceVersion: str | None = Field(default=None, alias="version")
    capturedAt: Instant | None = Field(default=None, alias="captured_time")
    evidenceKind: Annotated[str, BeforeValidator(text_of)]
    selectedReason: str = "selected"
    visibleText: str | None = None
    visibleTextHash: str = Field(alias="visible_sha256")
    citationId: str = Field(alias="label")


class RejectedSnapshotItem(_Part):
    """One candidate that was not shown: its id, stage and reason, without text."""

    candidateId: str = Field(alias="evidence_id")
    outcome: str
    stage: str
    reason: str = Field(alias="reason_code")


class SnapshotBudget(_Part):
    """Token limit and tokens of the block."""

    maxTokens: int = Field(default=0, ge=0)
    estimatedTokens: int = Field(default=0, ge=0)
    trimmingPolicy: Annotated[str, BeforeValidator(text_of)] = "-"


class ContextProjection(_Part):
    """The block for the model, by reference and hash, and the targets of its labels."""

    messageBlockRef: str | None = Field(default=None, alias="block_ref")
    visibleTextHash: str | None = Field(default=None, alias="visible_sha256")
    citationMap: dict[str, dict[str, Any]]


class RetrievalAuditSnapshot(_Part):
    """The shape of document 000."""

    id: Annotated[str, BeforeValidator(text_of)] = Field(alias="snapshot_id")
    sessionId: str | None = None
    turnId: str | None = None
    modelRequestId: str | None = None
    createdAt: Instant
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
    ranked = rows.get("ranked", ())
    rows = rows if audit else caller_rows(rows)
    request, contract, snapshot = (_known(one_of(rows, name)) for name in ("requests", "contracts", "snapshots"))
    asked = request or _known(one_of(rows, "failures"))  # of a row that was refused on arrival
    scope = {**asked, **contract}
    filtered = {"filtered": snapshot.get("hidden", 0) + snapshot.get("rejected", 0)} if audit else {}
    found = {
        **asked,
        **snapshot,
        "scope": {
            **scope, "permission_context": scope, "time_boundary": contract, "evidence_policy": contract, "budget": contract,
        },
        "plan": {
            **scope,
            "sub_queries": [
                _known(q) | {"min_authority": _LEVELS[q.get("min_authority") or 0], "max_age": _age(q, contract)}
                for q in (rows.get("sub_queries", ()) if audit else ())
            ],
        },
        "candidate_stats": {**snapshot, **filtered},
        "selected_items": [
            _known({**item.citation, **item.ranked, "visible_text": item.shown.get("visible_text")})
            for item in items_of({**rows, "ranked": ranked})
        ],
        "rejected_items": [d for d in rows.get("decisions", ()) if d["outcome"] != "selected"],
        "budget": {**contract, **snapshot},
        "context_projection": {**snapshot, "citation_map": citation_map(rows.get("citations", ()))},
    }  # fmt: skip
    return RetrievalAuditSnapshot.model_validate(found).model_dump(exclude_none=True)


def _known(row: Row) -> dict[str, Any]:
    """The values of a row that are not absent."""
    return {name: value for name, value in row.items() if value is not None}


def _age(sub_query: Row, contract: Row) -> str | None:
    """Maximum age of a row at `as_of`, in days."""
    oldest: datetime | None = sub_query.get("oldest")
    return f"{(contract['as_of'] - oldest).total_seconds() / 86_400:g}d" if oldest and "as_of" in contract else None
