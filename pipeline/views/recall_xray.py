"""The `RecallXraySnapshot` of document 002, schema version 1 (S2.15 to S2.30).

Reads: the rows of one snapshot by table name. Gives: `recall_xray`, the snapshot as plain JSON values in the document's
names, and `envelope`. Its types are in `recall_models`, its text and Markdown in `recall_text`.

Note: the tiers of the document are lanes here. An item that several lanes found is served by the first of: exact
look-ups (direct-answer), any lane but the following (hybrid), links (graph), the newest rows (recent-scan). Project
rules are procedural regardless of lane, and rows chained by a review mode are review-context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from .recall_models import (
    Budget,
    CorrectionState,
    FilterTrace,
    Provenance,
    RecallXraySnapshot,
    Result,
    ScoreDecomposition,
    ServedBy,
    TierExplain,
)
from .xray import Row, Rows, caller_rows, line_of, one_of, text_of

__all__ = ["TABLES_READ", "envelope", "recall_xray"]

TABLES_READ = ("hits", "item_details", "rerank_weights", "score_terms")
"""Tables that are read in addition to those of an x-ray."""

USER_SCOPES = ("work", "repo", "private", "do-not-use-outside-this-context")
"""Tags of a row that name where it may be used (S2.24)."""
_FILTERS = {"namespace": "namespace-scope", "lifecycle": "status-active", "zone": "trust-zone", "pack": "mmr-diversify",
            "trim": "budget-fit"}  # fmt: skip
"""Gates and stages that document 002 names (S2.12); packing decides on variety and near-duplicates."""


def envelope(snapshot: Mapping[str, Any] | None) -> dict[str, Any]:
    """The envelope of an answer."""
    return {"snapshotFound": False} if snapshot is None else {"snapshotFound": True, "snapshot": dict(snapshot)}


def recall_xray(rows: Rows, *, audit: bool = True, own_names: bool = False) -> dict[str, Any]:
    """The snapshot as plain values, absent optional fields left out.

    Args:
        rows: rows of one request by table name, those of an x-ray and of `TABLES_READ`; a missing table reads as empty.
        audit: False leaves out counts and everything about rows that the caller may not know of.
        own_names: names gates and stages as `why`, `sql` and `contract` do, for text; False uses the filter names
            of document 002.
    """
    filter_name = str if own_names else _filter_name
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
    results = []
    for citation in shown.get("citations", ()):
        id_ = citation["evidence_id"]
        item, detail, decision = items.get(citation["label"], {}), details.get(id_, {}), decisions.get(id_, {})
        served = _served_by(found.get(id_, {}), citation, contract)
        path, confidences = _graph_path(id_, walked) if audit and served == "graph" else ([], [])
        results.append(
            Result(
                memoryId=id_,
                path=line_of(citation["locator"]),
                servedBy=served,
                scoreDecomposition=_decomposed(served, scores.get(id_, {}), terms.get(id_, {}), weights),
                graphPath=path or None,
                graphEdgeConfidences=confidences or None,
                auditEntryId=f"{snapshot.get('snapshot_id')}/{id_}",
                admittedBy=[filter_name(gate) for gate in _words(decision.get("admitted_by"))] if audit else [],
                rejectedBy=filter_name(gate) if audit and (gate := decision.get("would_reject_by")) else None,
                provenance=_provenance(citation, item, detail, contract, scores.get(id_, {}), found.get(id_, {})),
            )
        )
    return RecallXraySnapshot(
        schemaVersion="1",
        query=line_of(request.get("question") or failure.get("question")),
        snapshotId=text_of(snapshot.get("snapshot_id")),
        capturedAt=_milliseconds(snapshot.get("created_at")),
        tierExplain=_explained(results, shown, snapshot, audit),
        results=results,
        filters=_filters(shown, filter_name) if audit else [],
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


def _graph_path(id_: str, walked: Mapping[str, tuple[str, float, str]]) -> tuple[list[str], list[float]]:
    """The rows from the start of the walk to this one, and the confidence of each edge between them."""
    path, confidences = [id_], []
    while path[0] in walked and len(path) <= len(walked):
        _, confidence, start = walked[path[0]]
        path.insert(0, start)
        confidences.insert(0, confidence)
    return ([], []) if len(path) == 1 else (path, confidences)


def _filter_name(gate: str) -> str:
    return _FILTERS.get(gate, gate.replace("_", "-"))


def _words(text: str | None) -> list[str]:
    return (text or "").split()


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


def _decomposed(served: ServedBy, ranked: Row, terms: Row, weights: Row) -> ScoreDecomposition:
    """The terms that a tier reports (S2.28), and the final score, which every tier has."""
    final = ranked.get("final", 0.0)
    boost = ranked.get("reinforcement.boost") or None  # its contribution to the score
    if served == "direct-answer":
        importance, prior = terms.get("actionability"), terms.get("authority")
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
    confidence = detail.get("confidence")
    return Provenance(
        source=text_of(citation.get("source_id")),
        created=_iso(citation.get("captured_time")),
        updated=_iso(detail.get("updated_at")),
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


def _explained(results: Sequence[Result], rows: Rows, snapshot: Row, audit: bool) -> TierExplain | None:
    exact = [result for result in results if result.servedBy == "direct-answer"]
    if not exact:
        return None
    lost = {d["reason_code"] for d in rows.get("decisions", ()) if d["outcome"] != "selected"} if audit else set()
    return TierExplain(
        tier="direct-answer",
        reason="an id that the request names",
        candidatesConsidered=snapshot.get("recalled") or 0 if audit else len(results),
        filteredBy=sorted(lost),
        sourceAnchors=[result.path for result in exact],
    )


def _filters(rows: Rows, filter_name: Callable[[str], str]) -> list[FilterTrace]:
    """The gates in the order of the ladder, then the stages that lost candidates."""
    found = [
        FilterTrace(
            name=filter_name(gate["gate"]),
            considered=gate["considered"],
            admitted=gate["admitted"],
            reason=gate["reason_code"] if gate["admitted"] < gate["considered"] else None,
        )
        for gate in rows.get("filter_ladder", ())
    ]
    decisions = rows.get("decisions", ())
    left = len(decisions) - sum(d["stage"] == "gate" for d in decisions if d["outcome"] != "selected")
    for stage in ("merge", "rank", "select", "pack", "trim", "cite", "project"):
        lost = Counter(d["reason_code"] for d in decisions if d["stage"] == stage and d["outcome"] != "selected")
        if lost:
            reasons = ", ".join(f"{code} {count}" for code, count in sorted(lost.items()))
            found.append(
                FilterTrace(name=filter_name(stage), considered=left, admitted=left - lost.total(), reason=reasons)
            )
            left -= lost.total()
    return found


def _iso(value: Any) -> str | None:
    return None if value is None else text_of(value)


def _milliseconds(value: datetime | None) -> int:
    return 0 if value is None else int(value.timestamp() * 1000)
