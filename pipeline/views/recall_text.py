"""The `RecallXraySnapshot` of document 002 as text and Markdown, line for line as the document lays it out (S2.10 to S2.15).

Reads: the snapshot as plain values, as JSON has it. Gives: `render_xray`, so that a client renders what it received as the
server would.

Note: both formats have the same names and values; fields that a result does not have are left out, and the header has every line,
with `-` for absent values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .printed import json_document
from .xray import line_of, text_of

__all__ = ["envelope", "render_xray"]

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
        yield "provenance", _provenance(known)
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


def _provenance(known: Mapping[str, Any]) -> str:
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
