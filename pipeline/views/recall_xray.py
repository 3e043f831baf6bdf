"""The `RecallXraySnapshot` of document 002, schema version 1 (S2.15 to S2.30).

Reads: the rows of one snapshot by table name. Gives: `recall_xray`, the snapshot as plain JSON values in the document's
names, checked by `RecallXraySnapshot`. Its text and Markdown are in `recall_text`.

Note: the tiers of the document are lanes here. An item that several lanes found is served by the first of: exact
look-ups (direct-answer), any lane but the following (hybrid), links (graph), the newest rows (recent-scan). Project
rules are procedural regardless of lane, and rows chained by a review mode are review-context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .xray import Row, Rows, caller_rows, ladder, line_of, one_of, text_of

__all__ = ["RecallXraySnapshot", "recall_xray"]

USER_SCOPES = ("work", "repo", "private", "do-not-use-outside-this-context")
"""Tags of a row that name where it may be used (S2.24)."""
_FILTERS = {"namespace": "namespace-scope", "lifecycle": "status-active", "zone": "trust-zone", "pack": "mmr-diversify",
            "trim": "budget-fit"}  # fmt: skip
"""Gates and stages that document 002 names (S2.12); packing decides on variety and near-duplicates."""


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

    `vector` is the `semantic` term, `bm25` BM25 as a share of its reach, `importance` what its record states
    (the plugin `importance` weighs it), `tierPrior` its authority. `mmrPenalty` is what the score lacks because a better item is of the same kind: the weight of
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
    """For auditors: what others stored may change it."""
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


def recall_xray(rows: Rows, *, audit: bool = True, looked_up_ms: float | None = None) -> dict[str, Any]:
    """The snapshot as plain values, absent optional fields left out.

    Args:
        rows: rows of one request by table name; a missing table reads as empty.
        audit: False leaves out counts, times and everything about rows that the caller may not know of.
        looked_up_ms: the milliseconds of the exact look-ups, if measured.
    """
    scores = {row["evidence_id"]: row for row in rows.get("ranked", ())}
    terms = {row["evidence_id"]: row for row in rows.get("score_terms", ())}
    weights = one_of(rows, "rerank_weights")
    if all(hit["lane"] != "semantic" for hit in rows.get("hits", ())):  # off or failed: no term rather than 0
        terms = {name: {**row, "semantic": None} for name, row in terms.items()}
    found = {row["evidence_id"]: row for row in rows.get("candidates", ())}
    decisions = {row["evidence_id"]: row for row in rows.get("decisions", ())}
    shown = rows if audit else caller_rows(rows)
    request, contract, snapshot, block = (one_of(shown, t) for t in ("requests", "contracts", "snapshots", "blocks"))
    failure = one_of(shown, "failures")
    items = {row["label"]: row for row in shown.get("trimmed", ())}
    details = {row["evidence_id"]: row for row in shown.get("item_details", ())}
    walked = _edges_walked(rows.get("hits", ()))
    cited = {c["evidence_id"]: _name_of(c, details.get(c["evidence_id"], {})) for c in shown.get("citations", ())}
    results = []
    for citation in shown.get("citations", ()):
        id_ = citation["evidence_id"]
        item, detail, decision = items.get(citation["label"], {}), details.get(id_, {}), decisions.get(id_, {})
        served = _served_by(found.get(id_, {}), citation, contract)
        path, confidences = _graph_path(id_, walked, cited, audit=audit) if served == "graph" else ([], [])
        results.append(
            Result(
                memoryId=cited[id_],
                path=line_of(citation.get("path") or citation["locator"]),
                servedBy=served,
                scoreDecomposition=_decomposed(served, scores.get(id_, {}), terms.get(id_, {}), weights, detail),
                graphPath=path or None,
                graphEdgeConfidences=confidences or None,
                auditEntryId=f"{snapshot.get('snapshot_id')}/{id_}",
                admittedBy=[
                    _filter_name(gate) for gate in text_of(decision.get("admitted_by") or "").split() if gate != "-"
                ],
                rejectedBy=_filter_name(gate) if audit and (gate := decision.get("would_reject_by")) else None,
                provenance=_provenance(citation, item, detail, contract, scores.get(id_, {}), found.get(id_, {})),
            )
        )
    return RecallXraySnapshot(
        schemaVersion="1",
        query=line_of(request.get("question") or failure.get("question")),
        snapshotId=text_of(snapshot.get("snapshot_id")),
        capturedAt=_milliseconds(snapshot.get("created_at")),
        tierExplain=_explained(results, shown, snapshot, audit, looked_up_ms),
        results=results,
        filters=_filters(rows, audit),
        budget=Budget(chars=contract.get("max_chars") or 0, used=block.get("chars") or 0),
        sessionKey=request.get("session_id"),
        namespace=contract.get("namespace") or request.get("namespace"),
        traceId=request.get("trace_id"),
    ).model_dump(exclude_none=True) | ({} if results and _has_exact(results) else {"tierExplain": None})


def _edges_walked(hits: Sequence[Row]) -> dict[str, tuple[str, float, str]]:
    """Kind, confidence and start of the edge by which the graph lane reached each row."""
    found = {}
    for hit in hits:
        if hit["lane"] == "graph" and not hit["withheld"] and hit["via"]:
            kind, confidence, start = hit["via"].split(" ")
            found[hit["evidence_id"]] = (kind, float(confidence), start)
    return found


def _graph_path(
    id_: str, walked: Mapping[str, tuple[str, float, str]], cited: Mapping[str, str], *, audit: bool
) -> tuple[list[str], list[float]]:
    """The rows from the start of the walk to this one, each after the first with the relation that leads to it, and the
    confidence of each edge; for a caller nothing if a row is not among those that are cited.
    """
    path, confidences, at = list[str](), list[float](), id_
    while at in walked and len(path) <= len(walked):
        relation, confidence, start = walked[at]
        path.insert(0, f"{relation} -> {cited.get(at, at)}")
        confidences.insert(0, confidence)
        if not audit and start not in cited:
            return [], []
        at = start
    return ([cited.get(at, at), *path], confidences) if path else ([], [])


def _name_of(citation: Row, detail: Row) -> str:
    """The id of an item: of a memory the one that its record has, where it has one (S2.47)."""
    named = detail.get("entity") if citation.get("evidence_kind") == "memory" else None
    return line_of(named or citation["evidence_id"])


def _filter_name(gate: str) -> str:
    return _FILTERS.get(gate, gate.replace("_", "-"))


def _has_exact(results: Sequence[Result]) -> bool:
    return any(result.servedBy == "direct-answer" for result in results)


def _served_by(candidate: Row, citation: Row, contract: Row) -> ServedBy:
    lanes = set(candidate.get("lanes") or ())
    if citation.get("standing") == "instruction":
        return "procedural"
    if "exact" in lanes:
        return "direct-answer"
    if not lanes or lanes - {"expansion", "graph", "recent"}:
        return "hybrid"
    if lanes & {"expansion", "graph"}:
        return "review-context" if contract.get("mode") == "review" else "graph"
    return "recent-scan"


def _decomposed(served: ServedBy, ranked: Row, terms: Row, weights: Row, detail: Row) -> ScoreDecomposition:
    """The terms that a tier reports (S2.28), and the final score, which every tier has."""
    final = ranked.get("final", 0.0)
    boost = ranked.get("reinforcement.boost") or None  # its contribution to the score
    if served == "direct-answer":
        importance, prior = detail.get("importance"), terms.get("authority")
        return ScoreDecomposition(importance=importance, tierPrior=prior, reinforcementBoost=boost, final=final)
    penalty = (0.0 if ranked["diversity"] else weights["diversity"]) if weights and ranked else None
    vector, bm25 = terms.get("semantic"), terms.get("lexical")
    return ScoreDecomposition(vector=vector, bm25=bm25, mmrPenalty=penalty, reinforcementBoost=boost, final=final)


def _provenance(citation: Row, item: Row, detail: Row, contract: Row, ranked: Row, candidate: Row) -> Provenance:
    namespace = contract.get("namespace")
    stale = detail.get("freshness") == "stale"
    state = _correction(item, detail, candidate)
    reasons: list[str] = [f"status={state}"] if state not in ("none", "correction") else []
    reasons += ["stale=true"] if stale else []
    reasons += ["standing=untrusted"] if citation.get("standing") == "untrusted" else []
    reasons += [f"lifecycle={detail['lifecycle']}"] if detail.get("lifecycle") not in (None, "verified") else []
    confidence, created, recorded = (detail.get(name) for name in ("confidence", "updated_at", "recorded_at"))
    return Provenance(
        source=text_of(citation.get("source_id")),
        created=_iso(created),
        updated=_iso(recorded) if created and recorded and recorded > created else None,
        namespace=namespace,
        scope=f"namespace:{namespace}" if namespace else f"project:{text_of(contract.get('project'))}",
        userContextScopes=[scope for scope in USER_SCOPES if scope in (detail.get("tags") or ())],
        retrievalReason=ranked.get("selected_reason") or "selected",
        confidence=1.0 if confidence is None else min(1.0, max(0.0, confidence)),  # as ranking reads it
        stale=stale,
        corrected=state in ("correction", "superseded"),
        correctionState=state,
        safeToUse=not reasons,
        safety="blocked" if state == "forgotten" else "requires-review" if reasons else "safe",
        safetyReasons=reasons,
    )


def _correction(item: Row, detail: Row, candidate: Row) -> CorrectionState:
    """The state of a claim: `correction` replaced another; `forgotten` is never shown, unless a record is old."""
    if detail.get("lifecycle") == "revoked":
        return "forgotten"
    if item.get("history"):
        return "superseded"
    if detail.get("disputed"):
        return "disputed"
    return (
        "correction"
        if "superseding" in text_of(candidate.get("via")).split() or "correction" in (detail.get("tags") or ())
        else "none"
    )


def _explained(
    results: Sequence[Result], rows: Rows, snapshot: Row, audit: bool, looked_up_ms: float | None
) -> TierExplain | None:
    exact = {result.auditEntryId for result in results if result.servedBy == "direct-answer"}
    if not exact:
        return None
    lost = {d["reason_code"] for d in rows.get("decisions", ()) if d["outcome"] != "selected"} if audit else set()
    return TierExplain(
        tier="direct-answer",
        reason="an id that the request names",
        candidatesConsidered=snapshot.get("recalled") or 0 if audit else len(results),
        latencyMs=looked_up_ms if audit else None,
        filteredBy=sorted(lost),
        sourceAnchors=[
            _anchor(row)
            for row in rows.get("citations", ())
            if f"{snapshot.get('snapshot_id')}/{row['evidence_id']}" in exact
        ],
    )


def _anchor(citation: Row) -> str:
    """`path:from-to`; what the citation says of an item without a path or lines."""
    if citation.get("path") and citation.get("line_start"):
        return line_of(f"{citation['path']}:{citation['line_start']}-{citation['line_end']}")
    return line_of(citation["locator"])


def _filters(rows: Rows, audit: bool) -> list[FilterTrace]:
    return [
        FilterTrace(
            name=_filter_name(rung.name),
            considered=rung.considered,
            admitted=rung.admitted,
            reason=(", ".join(rung.lost) if rung.gate else rung.reasons) or None,
        )
        for rung in ladder(rows, audit=audit)
    ]


def _iso(value: Any) -> str | None:
    return None if value is None else text_of(value)


def _milliseconds(value: datetime | None) -> int:
    return 0 if value is None else int(value.timestamp() * 1000)
