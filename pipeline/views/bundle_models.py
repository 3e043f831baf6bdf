"""The `RetrievalBundle` 1.0 of document 004 as declared types, to make or read one (S4.7, S4.10 to S4.14, S4.18).

Gives: `RetrievalBundle` and its parts, `PacketKnowledge`, `EvidenceProvenance`, `FallbackDecision`, `validate_bundle`.
Names are snake_case, as in the document's own schema.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from ..parsing.documents import checked

ContentType = Literal["paragraph", "table", "list", "code", "excerpt"]
TrustTier = Literal["authoritative", "preferred", "general", "untrusted"]
Freshness = Literal["fresh", "aging", "stale", "undated"]
RejectionReason = Literal[
    "forbidden_source", "stale", "low_score", "role_mismatch", "duplicate", "conflict_downrank", "budget_cut"
]
WarningCode = Literal[
    "NO_HIGH_TRUST_MATCH",
    "ONLY_SHARED_CORPUS",
    "STALE_DOMINANT",
    "FORBIDDEN_SOURCE_HIT",
    "LOW_DIVERSITY",
    "CONFLICTING_EVIDENCE",
    "SEMANTIC_UNAVAILABLE",
]
TrustPosture = Literal["strong", "mixed", "weak"]
FreshnessPosture = Literal["fresh", "mixed", "stale"]
KnowledgeStatus = Literal["strong", "weak", "stale", "conflicted", "none"]
FallbackAction = Literal["continue", "warn", "degrade", "block"]
State = Literal["healthy", "no_overlay", "no_strong_match", "stale_dominant", "forbidden_hit", "conflicting"]
FilterOp = Literal["eq", "neq", "in", "not_in", "gt", "lt", "contains"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class AppliedFilter(_Part):
    """One condition on every row."""

    field: str
    op: FilterOp
    value: Any


class QueryTrace(_Part):
    """The derivation of the query (S4.10)."""

    task_text: str
    packet_context_summary: str | None = None
    lexical_query: list[str]
    semantic_query: list[str]
    applied_overlay_rules: list[str]
    applied_filters: list[AppliedFilter]
    generated_at: AwareDatetime


class RetrievalSummary(_Part):
    """Counts (S4.11)."""

    total_candidates: int = Field(ge=0)
    selected_count: int = Field(ge=0)
    stale_count: int = Field(ge=0)
    forbidden_hits: int = Field(ge=0)
    trust_tier_breakdown: dict[TrustTier, int]
    source_breakdown: dict[str, int]
    rerank_strategy: str


class Scores(_Part):
    """The score classes by kind; the four add up to `final` exactly."""

    lexical: float
    semantic: float
    metadata: float
    rerank: float
    final: float


class ChunkFreshness(_Part):
    """The age of a chunk, and the age from which it is stale."""

    status: Freshness
    updated_at: AwareDatetime | None = None
    max_age_days: float | None = None


class ChunkMetadata(_Part):
    """Metadata of a chunk."""

    trust_tier: TrustTier
    freshness: ChunkFreshness
    tags: list[str]
    applicable_roles: list[str] | None = None
    excluded_roles: list[str] | None = None
    document_type: str | None = None
    domain: str | None = None
    version: str | None = None


class Citation(_Part):
    """The label in the block, and its target."""

    reference: str
    locator: str | None = None


class RetrievedChunk(_Part):
    """One item of the block (S4.12)."""

    chunk_id: str
    document_id: str
    source_id: str
    source_type: str
    title: str | None = None
    uri: str | None = None
    content: str
    content_type: ContentType
    scores: Scores
    reasons_selected: list[str]
    overlay_hits: list[str]
    metadata: ChunkMetadata
    citation: Citation


class RejectedCandidate(_Part):
    """A candidate that is not in the block, and why."""

    chunk_id: str
    document_id: str
    source_id: str
    reason: RejectionReason
    detail: str
    score: float | None = None


class ProvenanceSummary(_Part):
    """The reliability of the whole."""

    trust_posture: TrustPosture
    freshness_posture: FreshnessPosture
    sources: list[str]


class RetrievalWarning(_Part):
    """A signal of degradation."""

    code: WarningCode
    message: str


class RetrievalDiagnostics(_Part):
    """Sizes and duration; the duration is null if a snapshot is read again."""

    latency_ms: float | None = Field(ge=0)
    candidate_pool_size: int = Field(ge=0)
    deduped_count: int = Field(ge=0)
    dropped_forbidden_count: int = Field(ge=0)
    dropped_stale_count: int = Field(ge=0)
    lanes_unavailable: list[str] = []


class RetrievalBundle(_Part):
    """The governed output of a retrieval (S4.7)."""

    version: Literal["1.0"]
    role_id: str
    query: QueryTrace
    summary: RetrievalSummary
    selected: list[RetrievedChunk]
    rejected: list[RejectedCandidate]
    provenance: ProvenanceSummary
    warnings: list[RetrievalWarning]
    diagnostics: RetrievalDiagnostics


class PacketKnowledge(_Part):
    """A bundle with one word for its quality (S4.18)."""

    retrieval_bundle: RetrievalBundle
    status: KnowledgeStatus


class EvidenceProvenance(_Part):
    """The origin of one item (S4.18)."""

    source_id: str
    document_id: str
    chunk_id: str
    trust_tier: TrustTier
    freshness_status: Freshness
    citation_reference: str


class FallbackDecision(_Part):
    """A state of the answer, and its action (S4.9, S4.18)."""

    state: State
    action: FallbackAction
    message: str


def validate_bundle(value: Any, file: str = "bundle") -> dict[str, Any]:
    """`{valid, errors}` (S4.5): every error names file, key, expected and actual value; no text is quoted."""
    _, errors = checked(RetrievalBundle, value, file)
    return {"valid": not errors, "errors": errors}
