"""The `RetrievalAuditSnapshot` of document 000 (S0.57 to S0.59), with scope, plan and citation map in its names.

Reads: the rows of one snapshot by table name. Gives: `audit_snapshot`, plain JSON values.

Note: rejected items have an id, a stage and a reason, but never a text. A caller gets the same shape without counts of
other rows, without rejected items and without the sub-queries.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic.alias_generators import to_camel

from .harness_forms import citation_map
from .xray import Row, Rows, caller_rows, items_of, line_of, one_of, text_of

_LEVELS = ("low", "medium", "high", "high")
"""The names of authorities 0 to 3 in document 000."""
_UNSTATED = {
    "denied": False, "denied_sources": [], "allow_stale_memory": False, "require_citation": False, "require_snapshot": False,
}  # fmt: skip
"""The contract of a request that was refused on arrival."""


def audit_snapshot(rows: Rows, *, audit: bool = True) -> dict[str, Any]:
    """The snapshot as plain values, absent optional fields left out.

    Args:
        rows: rows of one request by table name, those of an x-ray; a missing table reads as empty.
        audit: False leaves out everything about rows that the caller may not know of.
    """
    ranked = rows.get("ranked", ())
    rows = rows if audit else caller_rows(rows)
    request, contract, snapshot = (one_of(rows, name) for name in ("requests", "contracts", "snapshots"))
    asked = request or one_of(rows, "failures")  # of a row that was refused on arrival
    scope = _UNSTATED | {name: value for name, value in {**asked, **contract}.items() if value is not None}
    lost = [d for d in rows.get("decisions", ()) if d["outcome"] != "selected"]
    stats = {"filtered": snapshot.get("hidden", 0) + snapshot.get("rejected", 0)} if audit else {}
    plan = [
        {**q, "level": _LEVELS[q.get("min_authority") or 0], "max_age": _age(q, contract)}
        for q in (rows.get("sub_queries", ()) if audit else ())
    ]
    return {
        "id": text_of(snapshot.get("snapshot_id")),
        **_named({**asked, **snapshot}, "session_id", "turn_id", "model_request_id", "created_at"),
        "scope": {
            **_named(scope, "session_id", userId="principal", projectId="project"),
            **_named(scope, "workspace_root", "branch", "task_id", "purpose", "allowed_sources", "denied_sources"),
            "permissionContext": _named(scope, "principal", "asked_by", "groups", "denied", "denied_reason"),
            "timeBoundary": _named(scope, "as_of", includeAfter="window_start", excludeAfter="window_end")
            | _named(scope, "allow_stale_memory"),
            "evidencePolicy": _named(
                scope, "require_citation", "require_snapshot", "accepted_authority", "max_unverified_items"
            ),
            "budget": _named(scope, "max_tokens", "max_chars", "max_items"),
        },
        "plan": {
            **_named(scope, "request_id", scopeId="contract_id"),
            "subQueries": [
                _named(q, "intent", "query_text", "sources", "max_age", id="sub_query_id", topK="lane_k", minAuthority="level")
                for q in plan
            ],
            **_named(scope, "merge_policy", "output_shape"),
        },
        "candidateStats": {
            "selected": snapshot.get("selected_rows", 0), **_named({**snapshot, **stats}, "recalled", "filtered", "redacted")
        },
        "selectedItems": [_item(each) for each in items_of({**rows, "ranked": ranked})],
        "rejectedItems": [
            _named(d, "outcome", "stage", candidateId="evidence_id", reason="reason_code") for d in lost
        ],
        "budget": {
            "maxTokens": contract.get("max_tokens") or 0,
            "estimatedTokens": snapshot.get("estimated_tokens") or 0,
            "trimmingPolicy": text_of(snapshot.get("trimming_policy")),
        },
        "contextProjection": _named(snapshot, messageBlockRef="block_ref", visibleTextHash="visible_sha256")
        | {"citationMap": citation_map(rows.get("citations", ()))},
    }  # fmt: skip


def _item(item: Any) -> dict[str, Any]:
    """One item as shown; without `visibleText` and `sourceRef` where these were erased."""
    found = {"selected_reason": "selected", **item.ranked, **item.citation}
    found["visible_text"] = item.shown.get("visible_text")
    found["locator"] = found["locator"] and line_of(found["locator"])
    return _named(
        found, "evidence_kind", "selected_reason", "visible_text", candidateId="evidence_id", sourceRef="locator",
        sourceVersion="version", capturedAt="captured_time", visibleTextHash="visible_sha256", citationId="label",
    )  # fmt: skip


def _named(row: Row, *names: str, **others: str) -> dict[str, Any]:
    """Values of a row under the names of the document, its own or others; absent ones are left out, times are text."""
    known = {**{to_camel(name): row.get(name) for name in names}, **{name: row.get(of) for name, of in others.items()}}
    return {
        name: text_of(value) if isinstance(value, datetime) else value
        for name, value in known.items()
        if value is not None
    }


def _age(sub_query: Row, contract: Row) -> str | None:
    """Maximum age of a row at `as_of`, in days."""
    oldest: datetime | None = sub_query.get("oldest")
    return f"{(contract['as_of'] - oldest).total_seconds() / 86_400:g}d" if oldest and "as_of" in contract else None
