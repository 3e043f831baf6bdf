"""The text of a `RecallXraySnapshot`, line for line as document 002 lays it out (S2.10 to S2.15, S2.28).

Reads: the snapshot as plain values. Gives: `render_recall`, text with a newline at the end.

Note: fields that a result does not have are left out; the header has every line, with `-` for absent values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .xray import line_of, text_of

__all__ = ["TERMS", "provenance_line", "render_markdown", "render_recall", "score_line"]

TERMS = {
    "vector": "vector", "bm25": "bm25", "importance": "importance", "mmrPenalty": "mmr_penalty", "tierPrior": "tier_prior",
    "reinforcementBoost": "reinforcement_boost",
}  # fmt: skip
"""Score terms in their order after `final`: the name in JSON and in text."""


def render_recall(snapshot: Mapping[str, Any]) -> str:
    """The snapshot as text."""
    captured = text_of(datetime.fromtimestamp(snapshot["capturedAt"] / 1000, UTC))
    lines = [
        "=== Recall X-ray ===",
        f"query: {line_of(snapshot['query'])}",
        f"snapshot-id: {snapshot['snapshotId']}",
        f"captured-at: {captured}",
        f"session: {text_of(snapshot.get('sessionKey'))}",
        f"namespace: {text_of(snapshot.get('namespace'))}",
        f"trace-id: {text_of(snapshot.get('traceId'))}",
        f"budget: {snapshot['budget']['used']} / {snapshot['budget']['chars']} chars",
    ]
    if snapshot["filters"]:
        lines += ["", "--- filters ---"]
    for trace in snapshot["filters"]:
        reason = f" ({trace['reason']})" if trace.get("reason") else ""
        lines.append(f"- {trace['name']}: {trace['admitted']}/{trace['considered']} admitted{reason}")
    lines += ["", "--- results ---"]
    for place, result in enumerate(snapshot["results"], start=1):
        lines.append(f"[{place}] {line_of(result['memoryId'])} — served-by={result['servedBy']}")
        lines += [f"    {line}" for line in _of_result(result)]
    if not snapshot["results"]:
        lines.append("none")
    if explained := snapshot.get("tierExplain"):
        lines += [
            "", "--- tier explain ---", f"tier: {explained['tier']}", f"reason: {explained['reason']}",
            f"candidates-considered: {explained['candidatesConsidered']}",
            f"latency-ms: {text_of(explained.get('latencyMs'))}",
            f"filtered-by: {', '.join(explained['filteredBy']) or '-'}", "source-anchors:",
            *(f"  - {line_of(anchor)}" for anchor in explained["sourceAnchors"]),
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def score_line(score: Mapping[str, float]) -> str:
    """`final=` first, then the present terms, four decimals each."""
    named = {"final": score["final"], **{text: score[name] for name, text in TERMS.items() if name in score}}
    return " ".join(f"{name}={value:.4f}" for name, value in named.items())


def provenance_line(known: Mapping[str, Any]) -> str:
    """Source to safety, in the document's order."""
    corrected = known["correctionState"] if known["correctionState"] != "none" else text_of(known["corrected"])
    return (
        f"source={line_of(known['source'])} created={text_of(known.get('created'))} scope={line_of(known['scope'])} "
        f"confidence={known['confidence']:.2f} stale={text_of(known['stale'])} corrected={corrected} "
        f"safe={text_of(known['safeToUse'])}"
    )


def _of_result(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"path: {line_of(result['path'])}"
    yield f"score: {score_line(result['scoreDecomposition'])}"
    if known := result.get("provenance"):
        yield f"provenance: {provenance_line(known)}"
        yield f"retrieval-reason: {line_of(known['retrievalReason'])}"
        if known["userContextScopes"]:
            yield f"context-scopes: {', '.join(known['userContextScopes'])}"
        if known["safety"] != "safe":
            yield f"safety: {known['safety']} ({', '.join(known['safetyReasons'])})"
    if result.get("graphPath"):
        yield f"graph-path: {' -> '.join(line_of(part) for part in result['graphPath'])}"
    if result.get("graphEdgeConfidences"):
        yield f"edge-confidences: {', '.join(f'{value:.2f}' for value in result['graphEdgeConfidences'])}"
    if result["admittedBy"]:
        yield f"admitted-by: {', '.join(result['admittedBy'])}"
    if result.get("rejectedBy"):
        yield f"rejected-by: {result['rejectedBy']}"
    if result.get("auditEntryId"):
        yield f"audit-entry: {result['auditEntryId']}"


def render_markdown(snapshot: Mapping[str, Any]) -> str:
    """The snapshot as GitHub Markdown: H2 for the whole, H3 for its sections and results, tables inside."""
    head = [
        ("query", snapshot["query"]), ("snapshot-id", snapshot["snapshotId"]),
        ("captured-at", text_of(datetime.fromtimestamp(snapshot["capturedAt"] / 1000, UTC))),
        ("session", snapshot.get("sessionKey")), ("namespace", snapshot.get("namespace")), ("trace-id", snapshot.get("traceId")),
        ("budget", f"{snapshot['budget']['used']} / {snapshot['budget']['chars']} chars"),
    ]  # fmt: skip
    lines = ["## Recall X-ray", "", *_table(("field", "value"), head)]
    if snapshot["filters"]:
        rows = [(f["name"], f"{f['admitted']}/{f['considered']}", f.get("reason")) for f in snapshot["filters"]]
        lines += ["", "### Filters", "", *_table(("filter", "admitted", "reason"), rows)]
    lines += ["", "### Results"]
    for place, result in enumerate(snapshot["results"], start=1):
        lines += ["", f"### {place}. {_cell(result['memoryId'])} (served-by: {result['servedBy']})", ""]
        lines += _table(("field", "value"), list(_markdown_of_result(result)))
    if not snapshot["results"]:
        lines += ["", "none"]
    if explained := snapshot.get("tierExplain"):
        labels = (("tier", "tier"), ("reason", "reason"), ("candidates-considered", "candidatesConsidered"), ("latency-ms", "latencyMs"),
                ("filtered-by", "filteredBy"), ("source-anchors", "sourceAnchors"))  # fmt: skip
        rows = [
            (name, ", ".join(value) if isinstance(value := explained.get(key), list) else value) for name, key in labels
        ]
        lines += ["", "### Tier explain", "", *_table(("field", "value"), rows)]
    return "\n".join(lines) + "\n"


def _markdown_of_result(result: Mapping[str, Any]) -> Sequence[tuple[str, Any]]:
    known = result.get("provenance", {})
    rows = [
        ("path", result["path"]), ("score", score_line(result["scoreDecomposition"])),
        ("provenance", provenance_line(known) if known else None),
        ("retrieval-reason", known.get("retrievalReason")),
        ("context-scopes", ", ".join(known.get("userContextScopes") or ()) or None),
        ("safety", f"{known['safety']} ({', '.join(known['safetyReasons'])})" if known.get("safetyReasons") else None),
        ("graph-path", " -> ".join(result.get("graphPath") or ()) or None),
        ("edge-confidences", ", ".join(f"{value:.2f}" for value in result.get("graphEdgeConfidences") or ()) or None),
        ("admitted-by", ", ".join(result["admittedBy"]) or None),
        ("rejected-by", result.get("rejectedBy")),
        ("audit-entry", result.get("auditEntryId")),
    ]  # fmt: skip
    return [(name, value) for name, value in rows if value is not None]


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines: list[str] = [f"| {' | '.join(columns)} |", f"|{'|'.join(' --- ' for _ in columns)}|"]
    return lines + [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]


def _cell(value: Any) -> str:
    """A value in a cell, escaped so that evidence cannot create a column, link, image, mention or HTML."""
    text = line_of(value)
    for sign in ("\\", "|", "`", "*", "_", "[", "]", "<", ">", "#", "@"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("://", ":\\//").replace("www.", "www\\.")  # which GitHub turns into links
