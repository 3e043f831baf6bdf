"""The types of the `RecallXraySnapshot` of document 002, schema version 1, from which a schema is derived."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "Budget",
    "CorrectionState",
    "FilterTrace",
    "Provenance",
    "RecallXraySnapshot",
    "Result",
    "Safety",
    "ScoreDecomposition",
    "ServedBy",
    "TierExplain",
]

ServedBy = Literal["direct-answer", "hybrid", "graph", "recent-scan", "procedural", "review-context"]
CorrectionState = Literal["none", "correction", "superseded", "disputed", "forgotten"]
Safety = Literal["safe", "requires-review", "blocked"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Budget(_Part):
    """Characters that the block may have, and has."""

    chars: int = Field(ge=0)
    used: int = Field(ge=0)


class FilterTrace(_Part):
    """One filter: `considered` = admitted + rejected."""

    name: str
    considered: int = Field(ge=0)
    admitted: int = Field(ge=0)
    reason: str | None = None


class ScoreDecomposition(_Part):
    """Terms of the score as each tier reports them (S2.28), `final` always there.

    `vector` is the `semantic` term, `bm25` BM25 as a share of its reach, `importance` how far the item's kind supports what the purpose does
    next, `tierPrior` its authority. `mmrPenalty` is what the score lacks because a better item is of the same kind: the weight of
    diversity, which the best item of a kind gets. `reinforcementBoost` is there for memories that were confirmed, where the setting
    `plugins` names `reinforcement`.
    """

    vector: float | None = None
    bm25: float | None = None
    importance: float | None = None
    mmrPenalty: float | None = None
    tierPrior: float | None = None
    reinforcementBoost: float | None = None
    final: float


class Provenance(_Part):
    """Where an item comes from, and whether it is safe to use now."""

    source: str
    created: str | None = None
    updated: str | None = None
    namespace: str | None = None
    scope: str
    userContextScopes: list[str]
    retrievalReason: str
    confidence: float = Field(ge=0, le=1)
    stale: bool
    corrected: bool
    correctionState: CorrectionState
    safeToUse: bool
    safety: Safety
    safetyReasons: list[str]


class Result(_Part):
    """Why one item is there."""

    memoryId: str
    path: str
    servedBy: ServedBy
    scoreDecomposition: ScoreDecomposition
    graphPath: list[str] | None = None
    graphEdgeConfidences: list[float] | None = None
    auditEntryId: str | None = None
    admittedBy: list[str]
    rejectedBy: str | None = None
    provenance: Provenance | None = None


class TierExplain(_Part):
    """What an exact look-up answered, where one did."""

    tier: Literal["direct-answer"]
    reason: str
    candidatesConsidered: int
    latencyMs: float | None = None
    """No digest covers times, so a snapshot does not have it."""
    filteredBy: list[str]
    sourceAnchors: list[str]


class RecallXraySnapshot(_Part):
    """The canonical shape of version 1."""

    schemaVersion: Literal["1"]
    query: str
    snapshotId: str
    capturedAt: int
    tierExplain: TierExplain | None
    results: list[Result]
    filters: list[FilterTrace]
    budget: Budget
    sessionKey: str | None = None
    namespace: str | None = None
    traceId: str | None = None
