"""The `RecallXraySnapshot` of document 002, schema version 1 (S2.15 to S2.30).

Reads: the rows of one snapshot by table name. Gives: `recall_xray`, the snapshot as plain JSON values in the document's
names, checked by `RecallXraySnapshot`; and `render_xray`, its text and Markdown, line for line as the document lays them
out (S2.10 to S2.15), made of the plain values, so that a client renders what it received as the server would.

Note: the tiers of the document are lanes here. An item that several lanes found is served by the first of: exact
look-ups (direct-answer), any lane but the following (hybrid), links (graph), the newest rows (recent-scan). Project
rules are procedural regardless of lane, and rows chained by a review mode are review-context.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .printed import json_document
from .xray import Item, Row, Rows, caller_rows, items_of, ladder, line_of, one_of, text_of

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
    shown = rows if audit else caller_rows(rows)
    request, contract, snapshot, block = (one_of(shown, t) for t in ("requests", "contracts", "snapshots", "blocks"))
    failure, weights = one_of(shown, "failures"), one_of(rows, "rerank_weights")
    # A caller may know how each shown item was found and judged.
    items = items_of({**shown, **{t: rows.get(t, ()) for t in ("ranked", "score_terms", "candidates", "decisions")}})
    vectors = any(
        hit["lane"] == "semantic" for hit in rows.get("hits", ())
    )  # else off or failed: no term rather than 0
    walked = _edges_walked(rows.get("hits", ()))
    cited = {item.citation["evidence_id"]: _name_of(item) for item in items}
    passed, results = [_filter_name(gate["gate"]) for gate in rows.get("filter_ladder", ())], []
    for item in items:
        citation, decision, id_ = item.citation, item.decision, item.citation["evidence_id"]
        served = _served_by(item, contract)
        path, confidences = _graph_path(id_, walked, cited, audit=audit) if served == "graph" else ([], [])
        results.append(
            Result(
                memoryId=cited[id_],
                path=line_of(citation.get("path") or citation["locator"]),
                servedBy=served,
                scoreDecomposition=_decomposed(served, item, weights, vectors),
                graphPath=path or None,
                graphEdgeConfidences=confidences or None,
                auditEntryId=f"{snapshot.get('snapshot_id')}/{id_}",
                admittedBy=passed,
                rejectedBy=_filter_name(gate) if audit and (gate := decision.get("would_reject_by")) else None,
                provenance=_provenance(item, contract),
            )
        )
    exact = [i.citation for i, result in zip(items, results, strict=True) if result.servedBy == "direct-answer"]
    lost = {d["reason_code"] for d in rows.get("decisions", ()) if d["outcome"] != "selected"} if audit else set()
    explained = TierExplain(
        tier="direct-answer",
        reason="an id that the request names",
        candidatesConsidered=snapshot.get("recalled") or 0 if audit else len(results),
        latencyMs=looked_up_ms if audit else None,
        filteredBy=sorted(lost),
        sourceAnchors=list(map(_anchor, exact)),
    )
    return RecallXraySnapshot(
        schemaVersion="1",
        query=line_of(request.get("question") or failure.get("question")),
        snapshotId=text_of(snapshot.get("snapshot_id")),
        capturedAt=int(snapshot["created_at"].timestamp() * 1000) if snapshot.get("created_at") else 0,
        tierExplain=explained if exact else None,
        results=results,
        filters=[
            FilterTrace(
                name=_filter_name(rung.name),
                considered=rung.considered,
                admitted=rung.admitted,
                reason=(", ".join(rung.lost) if rung.gate else rung.reasons) or None,
            )
            for rung in ladder(rows, audit=audit)
        ],
        budget=Budget(chars=contract.get("max_chars") or 0, used=block.get("chars") or 0),
        sessionKey=request.get("session_id"),
        namespace=contract.get("namespace") or request.get("namespace"),
        traceId=request.get("trace_id"),
    ).model_dump(exclude_none=True) | ({} if exact else {"tierExplain": None})


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


def _name_of(item: Item) -> str:
    """The id of an item: of a memory the one that its record has, where it has one (S2.47)."""
    named = item.detail.get("entity") if item.citation.get("evidence_kind") == "memory" else None
    return line_of(named or item.citation["evidence_id"])


def _filter_name(gate: str) -> str:
    return _FILTERS.get(gate, gate.replace("_", "-"))


def _served_by(item: Item, contract: Row) -> ServedBy:
    lanes = set(item.found.get("lanes") or ())
    if item.citation.get("standing") == "instruction":
        return "procedural"
    if "exact" in lanes:
        return "direct-answer"
    if not lanes or lanes - {"expansion", "graph", "recent"}:
        return "hybrid"
    if lanes & {"expansion", "graph"}:
        return "review-context" if contract.get("mode") == "review" else "graph"
    return "recent-scan"


def _decomposed(served: ServedBy, item: Item, weights: Row, vectors: bool) -> ScoreDecomposition:
    """The terms that a tier reports (S2.28), and the final score, which every tier has."""
    ranked, terms = item.ranked, item.terms
    boost = ranked.get("reinforcement.boost") or None  # its contribution to the score
    if served == "direct-answer":
        found = {"importance": item.detail.get("importance"), "tierPrior": terms.get("authority")}
    else:
        penalty = (0.0 if ranked["diversity"] else weights["diversity"]) if weights and ranked else None
        vector = terms.get("semantic") if vectors else None
        found = {"vector": vector, "bm25": terms.get("lexical"), "mmrPenalty": penalty}
    return ScoreDecomposition(**found, reinforcementBoost=boost, final=ranked.get("final", 0.0))


def _provenance(item: Item, contract: Row) -> Provenance:
    namespace, citation, detail = contract.get("namespace"), item.citation, item.detail
    stale, state = detail.get("freshness") == "stale", _correction(item)
    reasons: list[str] = [f"status={state}"] if state not in ("none", "correction") else []
    reasons += ["stale=true"] if stale else []
    reasons += ["standing=untrusted"] if citation.get("standing") == "untrusted" else []
    reasons += [f"lifecycle={detail['lifecycle']}"] if detail.get("lifecycle") not in (None, "verified") else []
    confidence, created, recorded = (detail.get(name) for name in ("confidence", "updated_at", "recorded_at"))
    return Provenance(
        source=text_of(citation.get("source_id")),
        created=created and text_of(created),
        updated=text_of(recorded) if created and recorded and recorded > created else None,
        namespace=namespace,
        scope=f"namespace:{namespace}" if namespace else f"project:{text_of(contract.get('project'))}",
        userContextScopes=[scope for scope in USER_SCOPES if scope in (detail.get("tags") or ())],
        retrievalReason=item.ranked.get("selected_reason") or "selected",
        confidence=1.0 if confidence is None else min(1.0, max(0.0, confidence)),  # as ranking reads it
        stale=stale,
        corrected=state in ("correction", "superseded"),
        correctionState=state,
        safeToUse=not reasons,
        safety="blocked" if state == "forgotten" else "requires-review" if reasons else "safe",
        safetyReasons=reasons,
    )


def _correction(item: Item) -> CorrectionState:
    """The state of a claim: `correction` replaced another; `forgotten` is never shown, unless a record is old."""
    if item.detail.get("lifecycle") == "revoked":
        return "forgotten"
    if item.shown.get("history"):
        return "superseded"
    if item.detail.get("disputed"):
        return "disputed"
    corrects = "superseding" in text_of(item.found.get("via")).split() or "correction" in (
        item.detail.get("tags") or ()
    )
    return "correction" if corrects else "none"


def _anchor(citation: Row) -> str:
    """`path:from-to`; what the citation says of an item without a path or lines."""
    if citation.get("path") and citation.get("line_start"):
        return line_of(f"{citation['path']}:{citation['line_start']}-{citation['line_end']}")
    return line_of(citation["locator"])


_TERMS = {"vector": "vector", "bm25": "bm25", "importance": "importance", "mmrPenalty": "mmr_penalty",
          "tierPrior": "tier_prior", "reinforcementBoost": "reinforcement_boost"}  # fmt: skip
"""Score terms in their order after `final`: the name in JSON and in text."""
Pairs = Sequence[tuple[str, Any]]


def envelope(snapshot: Mapping[str, Any] | None) -> dict[str, Any]:
    """The envelope of an answer."""
    return {"snapshotFound": False} if snapshot is None else {"snapshotFound": True, "snapshot": dict(snapshot)}


def render_xray(snapshot: Mapping[str, Any], format_: str = "text") -> str:
    """The snapshot as text, markdown or json, with a newline at the end."""
    if format_ == "json":
        return json_document(envelope(snapshot))
    return _markdown(snapshot) if format_ == "markdown" else _text(snapshot)


def _text(snapshot: Mapping[str, Any]) -> str:
    lines = ["=== Recall X-ray ===", *_lines(_header(snapshot))]
    if snapshot["filters"]:
        lines += ["", "--- filters ---"]
    for trace in snapshot["filters"]:
        reason = f" ({trace['reason']})" if trace.get("reason") else ""
        lines.append(f"- {trace['name']}: {trace['admitted']}/{trace['considered']} admitted{reason}")
    lines += ["", "--- results ---"]
    for place, result in enumerate(snapshot["results"], start=1):
        lines.append(f"[{place}] {line_of(result['memoryId'])} — served-by={result['servedBy']}")
        lines += [f"    {line}" for line in _lines(list(_result(result)))]
    lines += [] if snapshot["results"] else ["none"]
    if explained := snapshot.get("tierExplain"):
        lines += ["", "--- tier explain ---", *_lines(_tier(explained)), "source-anchors:"]
        lines += [f"  - {line_of(anchor)}" for anchor in explained["sourceAnchors"]]
    return "\n".join(lines) + "\n"


def _lines(pairs: Pairs) -> list[str]:
    return [f"{name}: {line_of(value)}" for name, value in pairs]


def _markdown(snapshot: Mapping[str, Any]) -> str:
    """GitHub Markdown: H2 for the whole, H3 for its sections and results, tables inside."""
    fields = ("field", "value")
    lines = ["## Recall X-ray", "", *_table(fields, _header(snapshot))]
    if snapshot["filters"]:
        rows = [(f["name"], f"{f['admitted']}/{f['considered']}", f.get("reason")) for f in snapshot["filters"]]
        lines += ["", "### Filters", "", *_table(("filter", "admitted", "reason"), rows)]
    lines += ["", "### Results"]
    for place, result in enumerate(snapshot["results"], start=1):
        lines += ["", f"### {place}. {_cell(result['memoryId'])} (served-by: {result['servedBy']})", ""]
        lines += _table(fields, list(_result(result)))
    lines += [] if snapshot["results"] else ["", "none"]
    if explained := snapshot.get("tierExplain"):
        rows = [*_tier(explained), ("source-anchors", ", ".join(explained["sourceAnchors"]))]
        lines += ["", "### Tier explain", "", *_table(fields, rows)]
    return "\n".join(lines) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines: list[str] = [f"| {' | '.join(columns)} |", f"|{'|'.join(' --- ' for _ in columns)}|"]
    return lines + [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]


def _cell(value: Any) -> str:
    """A value in a cell, escaped so that evidence cannot create a column, link, image, mention or HTML."""
    text = line_of(value)
    for sign in ("\\", "|", "`", "*", "_", "[", "]", "<", ">", "#", "@"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("://", ":\\//").replace("www.", "www\\.")  # which GitHub turns into links


def _header(snapshot: Mapping[str, Any]) -> Pairs:
    return [
        ("query", snapshot["query"]),
        ("snapshot-id", snapshot["snapshotId"]),
        ("captured-at", text_of(datetime.fromtimestamp(snapshot["capturedAt"] / 1000, UTC))),
        ("session", snapshot.get("sessionKey")),
        ("namespace", snapshot.get("namespace")),
        ("trace-id", snapshot.get("traceId")),
        ("budget", f"{snapshot['budget']['used']} / {snapshot['budget']['chars']} chars"),
    ]


def _result(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    score = result["scoreDecomposition"]
    terms = {"final": score["final"], **{text: score[name] for name, text in _TERMS.items() if name in score}}
    yield "path", result["path"]
    yield "score", " ".join(f"{name}={value:.4f}" for name, value in terms.items())
    if known := result.get("provenance"):
        yield "provenance", _provenance_line(known)
        yield "retrieval-reason", known["retrievalReason"]
        if known["userContextScopes"]:
            yield "context-scopes", ", ".join(known["userContextScopes"])
        if known["safety"] != "safe":
            yield "safety", f"{known['safety']} ({', '.join(known['safetyReasons'])})"
    if result.get("graphPath"):
        yield "graph-path", " -> ".join(result["graphPath"])
    if result.get("graphEdgeConfidences"):
        yield "edge-confidences", ", ".join(f"{value:.2f}" for value in result["graphEdgeConfidences"])
    if result["admittedBy"]:
        yield "admitted-by", ", ".join(result["admittedBy"])
    if result.get("rejectedBy"):
        yield "rejected-by", result["rejectedBy"]
    if result.get("auditEntryId"):
        yield "audit-entry", result["auditEntryId"]


def _provenance_line(known: Mapping[str, Any]) -> str:
    """Source to safety, in the document's order."""
    state = known["correctionState"]
    values = {
        "source": known["source"],
        "created": known.get("created"),
        "scope": known["scope"],
        "confidence": f"{known['confidence']:.2f}",
        "stale": known["stale"],
        "corrected": state if state != "none" else known["corrected"],
        "safe": known["safeToUse"],
    }
    return " ".join(f"{name}={line_of(value)}" for name, value in values.items())


def _tier(explained: Mapping[str, Any]) -> Pairs:
    return [
        ("tier", explained["tier"]),
        ("reason", explained["reason"]),
        ("candidates-considered", explained["candidatesConsidered"]),
        ("latency-ms", explained.get("latencyMs")),
        ("filtered-by", ", ".join(explained["filteredBy"])),
    ]
