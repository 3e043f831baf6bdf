"""The `RecallXraySnapshot` as GitHub Markdown (S2.15 to S2.30).

Reads: the snapshot as plain values. Gives: `render_markdown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .recall_text import provenance_line, score_line
from .xray import line_of, text_of

__all__ = ["render_markdown"]


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
        lines += _table(("field", "value"), list(_of_result(result)))
    if not snapshot["results"]:
        lines += ["", "none"]
    if explained := snapshot.get("tierExplain"):
        told = (("tier", "tier"), ("reason", "reason"), ("candidates-considered", "candidatesConsidered"), ("latency-ms", "latencyMs"),
                ("filtered-by", "filteredBy"), ("source-anchors", "sourceAnchors"))  # fmt: skip
        rows = [
            (name, ", ".join(value) if isinstance(value := explained.get(key), list) else value) for name, key in told
        ]
        lines += ["", "### Tier explain", "", *_table(("field", "value"), rows)]
    return "\n".join(lines) + "\n"


def _of_result(result: Mapping[str, Any]) -> Sequence[tuple[str, Any]]:
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
    """A value in a cell: evidence opens no column, link, image, mention or HTML."""
    text = line_of(value)
    for sign in ("\\", "|", "`", "*", "_", "[", "]", "<", ">", "#", "@"):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("://", ":\\//").replace("www.", "www\\.")  # which GitHub makes links of
