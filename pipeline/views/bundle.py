"""The `RetrievalBundle` 1.0 of document 004 (S4.7, S4.10 to S4.14, S4.18): its types, built from the tables of one snapshot.

Reads: rows of one request by table name. Gives: `bundle`, plain values in the document's snake_case, its check
`validate_bundle`, and the document's derived values: `packet_knowledge`, `evidence_provenance`, `fallback_decisions`.

Note: a caller's bundle covers only admissible rows. Rows that a gate withheld, including forbidden sources, are neither
listed nor counted there; an auditor's bundle has them. A caller's bundle is masked as the contract requires, including
the places of rejected rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from ...nodes.score_terms import TERMS, terms_of_plugins
from ...nodes.vocabulary import ACTIONS, AUTHORITY
from ..parsing.documents import checked
from .xray import Row, Rows, items_of, masked_places, one_of

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


TABLES_READ = ("requests", "failures", "contracts", "snapshots", "sub_queries", "ranked", "trimmed", "citations", "item_details",
               "decisions", "conditions", "score_terms")  # fmt: skip
RERANK_STRATEGY = "weighted-classes/1 with greedy diversity"
NO_ROLE = "shared"
"""The role id of a bundle without a role."""

LANES_OUT = ("lane_failed", "lane_off")
"""Conditions under which a lane returned nothing."""
STATES: tuple[State, ...] = get_args(State)
"""The six states of S4.9; each is a condition of the same name."""

REASONS: Mapping[str, RejectionReason] = {
    "forbidden_source": "forbidden_source",
    "role_mismatch": "role_mismatch",
    "duplicate": "duplicate",
    "near_duplicate": "duplicate",
    "conflict_downrank": "conflict_downrank",
    "source_cap": "budget_cut",
    "budget_items": "budget_cut",
    "budget_tokens": "budget_cut",
    "budget_part": "budget_cut",
    "superseded": "stale",
    "replaced": "stale",
    "expired": "stale",
    "before_window": "stale",
    "stale": "stale",
}
"""Reason codes in the document's words; every other one is `low_score`. Stale rows are older than the role or the
window allows, no longer valid, or replaced. Unverified, revoked and deleted rows are not stale.
"""
WARNINGS: Mapping[str, WarningCode] = {
    "no_overlay": "ONLY_SHARED_CORPUS",
    "no_strong_match": "NO_HIGH_TRUST_MATCH",
    "stale_dominant": "STALE_DOMINANT",
    "forbidden_hit": "FORBIDDEN_SOURCE_HIT",
    "low_diversity": "LOW_DIVERSITY",
    "conflicting": "CONFLICTING_EVIDENCE",
}
"""The warning for each condition."""
UNAVAILABLE: WarningCode = "SEMANTIC_UNAVAILABLE"
"""The one warning not in the document: the semantic lane was requested, and failed or was off."""
_STATES = {code: state for state, code in WARNINGS.items() if state in STATES}
_HEALTHY = ("healthy", "continue", "nothing to remark")
_ACTIONS = {"no_overlay": "continue", "forbidden_hit": "continue"}
"""Action by state, for states without a warning."""

_CLASSES = {
    group: tuple(term.name for term in TERMS if term.group == group)
    for group in ("lexical", "semantic", "metadata", "rerank")
}
_KINDS: tuple[ContentType, ...] = get_args(ContentType)
_COPIED = ("applicable_roles", "excluded_roles", "document_type", "domain")
_CONTENT: Mapping[str, ContentType] = {"code": "code", "test-log": "excerpt", "tool-output": "excerpt"}
_HIGH_TRUST = ("authoritative", "preferred")


def bundle(
    rows: Rows,
    *,
    audit: bool = False,
    latency_ms: float | None = None,
    max_age_days: float | None = None,
    chunk_ids: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The bundle of one request, as plain values.

    Args:
        rows: rows of one request by table name, those of `TABLES_READ`; a missing table reads as empty.
        audit: include rows that a gate withheld.
        latency_ms: the duration of the retrieval, if known.
        max_age_days: the role's maximum age, if it has one.
        chunk_ids: names of chunks by evidence id, which replace the ids.
    """
    names = chunk_ids or {}
    ranked = {row["evidence_id"] for row in rows.get("ranked", ())}
    selected = _selected(rows, max_age_days, names)
    stale = {row["evidence_id"] for row in rows.get("score_terms", ()) if row["freshness"] == "stale"}
    decisions = [d for d in rows.get("decisions", ()) if audit or d["evidence_id"] in ranked]
    if not audit:
        decisions = masked_places(decisions, rows.get("contracts", ()))
    decisions = sorted(decisions, key=lambda d: (d["rank"] is None, d["rank"] or 0, d["evidence_id"]))
    rejected = [_rejected(d, stale, names) for d in decisions if d["outcome"] != "selected"]
    reasons = Counter(one.reason for one in rejected)
    conditions = [c for c in rows.get("conditions", ()) if audit or c.get("audience", "caller") == "caller"]
    tiers = Counter[str](chunk.metadata.trust_tier for chunk in selected)
    sources = Counter(chunk.source_id for chunk in selected)
    old = sum(chunk.metadata.freshness.status == "stale" for chunk in selected)
    made = RetrievalBundle(
        version="1.0",
        role_id=one_of(rows, "requests").get("role") or NO_ROLE,
        query=QueryTrace.model_validate(query_trace(rows, one_of(rows, "snapshots")["created_at"])),
        summary=RetrievalSummary(
            total_candidates=len(decisions),
            selected_count=len(selected),
            stale_count=old,
            forbidden_hits=reasons["forbidden_source"],
            trust_tier_breakdown=dict(sorted(tiers.items())),  # type: ignore[arg-type]  # words of its vocabulary
            source_breakdown=dict(sorted(sources.items())),
            rerank_strategy=RERANK_STRATEGY,
        ),
        selected=selected,
        rejected=rejected,
        provenance=ProvenanceSummary(
            trust_posture=_trust_posture(tiers),
            freshness_posture=_freshness_posture(old, len(selected)),
            sources=sorted(sources),
        ),
        warnings=_warnings(conditions, bool(selected), tiers),
        diagnostics=RetrievalDiagnostics(
            latency_ms=latency_ms,
            candidate_pool_size=len(decisions),
            deduped_count=reasons["duplicate"],
            dropped_forbidden_count=reasons["forbidden_source"],
            dropped_stale_count=reasons["stale"],
            lanes_unavailable=sorted({c["subject"] for c in conditions if c["condition"] in LANES_OUT}),
        ),
    )
    return made.model_dump(mode="json")


def validate_bundle(value: Any, file: str = "bundle") -> dict[str, Any]:
    """`{valid, errors}` (S4.5): every error names file, key, expected and actual value; no text is quoted."""
    _, errors = checked(RetrievalBundle, value, file)
    return {"valid": not errors, "errors": errors}


def fallback_decisions(answer: Any) -> list[dict[str, Any]]:
    """The states of an answer as a set, worst action first (S4.9); no state hides another.

    `answer` is a bundle, or the conditions of a retrieval, which have the most detail per state.
    """
    if isinstance(answer, Mapping):
        states = [(_STATES[one["code"]], one["message"]) for one in answer["warnings"] if one["code"] in _STATES]
        found = [(state, _ACTIONS.get(state, "warn"), message) for state, message in states] or [_HEALTHY]
    else:
        found = [(c["condition"], c["action"], c["message"]) for c in answer if c["condition"] in STATES]
        if not found and all(c["action"] == "continue" for c in answer):
            found = [_HEALTHY]
    found.sort(key=lambda one: (-ACTIONS.values.index(one[1]), STATES.index(one[0])))
    named = ({"state": state, "action": action, "message": message} for state, action, message in found)
    return [FallbackDecision.model_validate(one).model_dump() for one in named]


def packet_knowledge(made: Mapping[str, Any]) -> dict[str, Any]:
    """The bundle with one word for its quality (S4.18), the first that applies."""
    codes = {warning["code"] for warning in made["warnings"]}
    weak = made["provenance"]["trust_posture"] == "weak" or "NO_HIGH_TRUST_MATCH" in codes
    found: dict[KnowledgeStatus, bool] = {
        "none": not made["selected"],
        "conflicted": "CONFLICTING_EVIDENCE" in codes,
        "stale": "STALE_DOMINANT" in codes,
        "weak": weak,
        "strong": True,
    }
    return {"retrieval_bundle": dict(made), "status": next(status for status, holds in found.items() if holds)}


def evidence_provenance(made: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The origin of each item of a bundle (S4.18)."""
    return [
        EvidenceProvenance(
            **{name: chunk[name] for name in ("source_id", "document_id", "chunk_id")},
            trust_tier=chunk["metadata"]["trust_tier"],
            freshness_status=chunk["metadata"]["freshness"]["status"],
            citation_reference=chunk["citation"]["reference"],
        ).model_dump()
        for chunk in made["selected"]
    ]


def _selected(rows: Rows, max_age_days: float | None, names: Mapping[str, str]) -> list[RetrievedChunk]:
    chunks = []
    for item in items_of(rows):
        citation, detail, score, id_ = item.citation, item.detail, item.ranked, item.citation["evidence_id"]
        kind, freshness = detail["content_type"], detail["freshness"]
        updated = None if freshness == "undated" else detail["updated_at"]
        chunks.append(
            RetrievedChunk(
                chunk_id=names.get(id_, id_),
                document_id=citation["path"] or citation["source_id"],
                source_id=citation["source_id"],
                source_type=detail["origin_class"],
                title=detail["title"],
                uri=detail["uri"],
                content=item.shown["visible_text"] or "",
                content_type=kind if kind in _KINDS else _CONTENT.get(citation["evidence_kind"], "paragraph"),
                scores=_scores(score),
                reasons_selected=[score["selected_reason"]],
                overlay_hits=_overlay_hits(score, item.terms),
                metadata=ChunkMetadata(
                    trust_tier=AUTHORITY.values[detail["authority"]],  # type: ignore[arg-type]  # words of its vocabulary
                    freshness=ChunkFreshness(status=freshness, updated_at=updated, max_age_days=max_age_days),
                    tags=detail["tags"] or [],
                    **{name: detail[name] for name in _COPIED},
                    version=citation["version"],
                ),
                citation=Citation(reference=citation["label"], locator=citation["locator"]),
            )
        )
    return chunks


def _scores(score: Row) -> Scores:
    """The four scores and their sum; terms of plugins count as reranking."""
    four = {name: sum(score[term] for term in of) for name, of in _CLASSES.items()}
    four["rerank"] += sum(score[name] for name in terms_of_plugins(score))
    return Scores(**four, final=score["final"])


def _overlay_hits(score: Row, term: Row) -> list[str]:
    """The parts of the overlay that favor a chunk."""
    hits = [name for name in ("vocabulary", "metadata") if score[name] > 0]
    return [*hits, *([f"preferred_source: {term['role_signal']}"] if term.get("role_signal") else [])]


def _rejected(decision: Row, stale: set[str], names: Mapping[str, str]) -> RejectedCandidate:
    reason = REASONS.get(decision["reason_code"], "low_score")
    if reason == "low_score" and decision["evidence_id"] in stale:
        reason = "stale"  # its score is low because of its age
    return RejectedCandidate(
        chunk_id=names.get(decision["evidence_id"], decision["evidence_id"]),
        document_id=decision["path"] or decision["source_id"],
        source_id=decision["source_id"],
        reason=reason,
        detail=decision["reason_code"],
        score=decision["final"],
    )


def query_trace(rows: Rows, generated_at: datetime) -> dict[str, Any]:
    """The derivation of the query (S4.10), from `requests`, `contracts` and `sub_queries`."""
    queries, contract = rows.get("sub_queries", ()), one_of(rows, "contracts")
    lexical = [
        " ".join(filter(None, (query["query_text"], query["expansion"])))
        for query in queries
        if "lexical" in query["lanes"]
    ]
    rules = [
        *(["vocabulary"] if any(query["expansion"] for query in queries) else []),
        *(["source_policy.allowed_sources"] if contract.get("role_sources") is not None else []),
        *(["source_policy.forbidden_sources"] if contract.get("forbidden_sources") else []),
        *(["retrieval_policy"] if contract.get("role") else []),
        *(["retrieval_policy.require_source_diversity"] if contract.get("source_diversity") else []),
        *(["synthesis_policy"] if contract.get("role") else []),
    ]
    asked = one_of(rows, "requests") or one_of(rows, "failures")
    return QueryTrace(
        task_text=asked.get("question") or "",
        packet_context_summary=asked.get("context_summary"),
        lexical_query=list(dict.fromkeys(lexical)),
        semantic_query=list(
            dict.fromkeys(q["query_text"] for q in queries if "semantic" in q["lanes"] and q["query_text"] is not None)
        ),
        applied_overlay_rules=rules,
        applied_filters=_filters(contract) if contract else [],
        generated_at=generated_at,
    ).model_dump(mode="json")


def _filters(contract: Row) -> list[AppliedFilter]:
    """The conditions on every row, in the document's seven operators."""
    given = [
        ("owner_project", "eq", contract["project"]),
        ("namespace", "eq", contract["namespace"]),
        ("branch", "eq", contract["branch"]),
        ("test_suite", "eq", contract["test_suite"]),
        ("source_id", "in", contract["allowed_sources"]),
        ("source_id", "in", contract["role_sources"]),
        ("source_id", "not_in", contract["denied_sources"] or None),
        ("source_id", "not_in", contract["forbidden_sources"] or None),
        ("path", "in", contract["allowed_paths"]),
        ("path", "in", contract["search_paths"]),
        ("path", "not_in", [*contract["denied_paths"], *contract["excluded_paths"]] or None),
        ("level", "not_in", contract["excluded_levels"] or None),
        ("zone", "not_in", contract["excluded_zones"] or None),
        ("excluded_roles", "not_in", [contract["role"]] if contract["role"] else None),
        ("lifecycle", "in", contract["include_states"]),
        ("authority", "gt", contract["min_authority"] - 1 if contract["min_authority"] else None),
        ("recorded_time", "lt", (contract["as_of"] + timedelta(microseconds=1)).isoformat()),
    ]
    return [AppliedFilter(field=field, op=op, value=value) for field, op, value in given if value is not None]  # type: ignore[arg-type]  # words of its vocabulary


def _warnings(conditions: Sequence[Row], any_selected: bool, tiers: Counter[str]) -> list[RetrievalWarning]:
    found: dict[WarningCode, str] = {
        WARNINGS[c["condition"]]: c["message"] for c in conditions if c["condition"] in WARNINGS
    }
    out = [c["message"] for c in conditions if c["condition"] in LANES_OUT and c["subject"] == "semantic"]
    if out:
        found[UNAVAILABLE] = out[0]
    if any_selected and not any(tiers[tier] for tier in _HIGH_TRUST):
        found.setdefault("NO_HIGH_TRUST_MATCH", "nothing shown is preferred or authoritative")
    return [RetrievalWarning(code=code, message=found[code]) for code in sorted(found)]


def _trust_posture(tiers: Counter[str]) -> TrustPosture:
    high, total = sum(tiers[tier] for tier in _HIGH_TRUST), tiers.total()
    if not high:
        return "weak"
    return "strong" if 2 * high >= total and not tiers["untrusted"] else "mixed"


def _freshness_posture(stale: int, total: int) -> FreshnessPosture:
    if not stale:
        return "fresh" if total else "mixed"
    return "stale" if 2 * stale > total else "mixed"
