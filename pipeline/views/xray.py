"""The x-ray of one snapshot as text: the request, what each gate admitted, and why each item was shown or not.

Reads: the rows of one request in a run's tables. Gives: text, byte-identical for the same rows. It reads a snapshot and
never retrieves. Field order follows the recall x-ray of document 002; every absent value prints as `-`.

Note: the view is for auditors unless `audit=False`. A caller's view has no counts, starts its ladder after the access
gates and lists only shown items, because counts and withheld ids disclose rows that the caller may not know of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ...nodes.score_terms import terms_of_plugins
from ...nodes.tables import TABLES
from ...nodes.vocabulary import SCORE_TERMS
from ..progress import counted

__all__ = [
    "TABLES_READ",
    "Row",
    "Rows",
    "caller_rows",
    "line_of",
    "one_of",
    "ranges_of",
    "render_text",
    "text_of",
]

Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]
"""Rows of one request by table name; `requests`, `contracts`, `snapshots` have one row each, a failed request has
`failures`.
"""

TABLES_READ = (
    "requests",
    "failures",
    "contracts",
    "snapshots",
    "blocks",
    "sub_queries",
    "filter_ladder",
    "candidates",
    "ranked",
    "trimmed",
    "trims",
    "citations",
    "decisions",
    "conditions",
)
"""The tables of an x-ray."""

_AFTER_GATES = ("merge", "rank", "select", "pack", "trim", "cite", "project")
_WITHHELD_SHOWN = 20


def caller_rows(rows: Rows) -> dict[str, list[dict[str, Any]]]:
    """The rows reduced to what their caller may see: declared caller columns, no access gates, no withheld rows."""
    shown: dict[str, list[dict[str, Any]]] = {}
    for name, table_rows in rows.items():
        columns = {k for k in (table_rows[0] if table_rows else ()) if TABLES[name].shows(k)}
        table_rows = [row for row in table_rows if row.get("audience") != "audit"]
        shown[name] = [{k: v for k, v in row.items() if k in columns} for row in table_rows]
    shown["filter_ladder"] = [row for row in shown.get("filter_ladder", []) if row.get("gate_class") != "access"]
    shown["decisions"] = []
    shown["candidates"] = []
    shown["ranked"] = []
    return shown


def render_text(rows: Rows, *, audit: bool = True) -> str:
    """The x-ray as text, newline at the end.

    Args:
        rows: rows of one request by table name, those of `TABLES_READ`; a missing table reads as empty.
        audit: False reduces the rows with `caller_rows` first.
    """
    rows = rows if audit else caller_rows(rows)
    sections = [
        _header(rows),
        _filters(rows, audit),
        _results(rows),
        _withheld(rows) if audit else [],
        _conditions(rows),
        _plan(rows, audit),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _header(rows: Rows) -> list[str]:
    request, contract, snapshot, block = (one_of(rows, t) for t in ("requests", "contracts", "snapshots", "blocks"))
    failure = one_of(rows, "failures")  # a row refused on arrival has neither request nor contract
    request, contract = request or failure, contract or failure
    return [
        "=== Recall X-ray ===",
        f"query: {line_of(request.get('question'))}",
        *([f"request-id: {failure['request_id']}"] if failure else []),
        f"snapshot-id: {text_of(snapshot.get('snapshot_id'))}",
        f"captured-at: {text_of(snapshot.get('created_at'))}",
        f"session: {text_of(request.get('session_id'))}",
        f"namespace: {text_of(request.get('namespace'))}",
        f"trace-id: {text_of(request.get('trace_id'))}",
        f"budget: {text_of(block.get('chars'))} / {text_of(contract.get('max_chars'))} chars, "
        f"{text_of(block.get('tokens'))} / {text_of(contract.get('max_tokens'))} tokens ({text_of(contract.get('tokenizer'))})",
        f"bound-by: {text_of(block.get('bound_by'))}",
        f"scope: principal={text_of(contract.get('principal'))} project={text_of(contract.get('project'))} "
        f"branch={text_of(contract.get('branch'))} test-suite={text_of(contract.get('test_suite'))} "
        f"contract={text_of(contract.get('contract_id'))}",
        f"purpose: {text_of(contract.get('purpose'))} merge={text_of(contract.get('merge_policy'))} "
        f"shape={text_of(contract.get('output_shape'))}",
        f"clocks: as-of={text_of(contract.get('as_of'))} asked-at={text_of(request.get('asked_at'))}",
        f"status: {text_of(snapshot.get('status'))} action={text_of(snapshot.get('action'))} "
        f"block-ref={text_of(snapshot.get('block_ref'))}",
    ]


def _filters(rows: Rows, audit: bool) -> list[str]:
    lines = ["--- filters ---"]
    for gate in rows.get("filter_ladder", ()):
        if not audit:
            lines.append(f"- {gate['gate']}")
            continue
        lost = gate["considered"] - gate["admitted"]
        reason = f" ({gate['reason_code']} {lost})" if lost else ""
        lines.append(f"- {gate['gate']}: {gate['admitted']}/{gate['considered']} admitted{reason}")
    decisions = rows.get("decisions", ())
    left = len(decisions) - sum(d["stage"] == "gate" for d in decisions if d["outcome"] != "selected")
    for stage in _AFTER_GATES:
        lost = Counter(d["reason_code"] for d in decisions if d["stage"] == stage and d["outcome"] != "selected")
        if lost:
            reasons = ", ".join(f"{code} {count}" for code, count in sorted(lost.items()))
            lines.append(f"- {stage}: {left - lost.total()}/{left} candidates ({reasons})")
            left -= lost.total()
    return lines if len(lines) > 1 else [*lines, "- none: the contract is denied or the request failed"]


def _results(rows: Rows) -> list[str]:
    lines = ["--- results ---"]
    ranked = {r["evidence_id"]: r for r in rows.get("ranked", ())}
    candidates = {r["evidence_id"]: r for r in rows.get("candidates", ())}
    decisions = {r["evidence_id"]: r for r in rows.get("decisions", ())}
    items = {r["label"]: r for r in rows.get("trimmed", ())}
    trims = {r["evidence_id"]: r for r in rows.get("trims", ())}
    for citation in rows.get("citations", ()):
        id_ = citation["evidence_id"]
        item, decision = items.get(citation["label"], {}), decisions.get(id_, {})
        lanes = "+".join(candidates.get(id_, {}).get("lanes") or ()) or "-"
        via = candidates.get(id_, {}).get("via")
        lines += [
            f"[{citation['position']}] {citation['label']} {id_} — served-by={lanes}{f' via={via}' if via else ''}",
            f"    path: {text_of(citation['locator'])}",
            *_score(ranked.get(id_)),
            f"    provenance: source={citation['source_id']} version={text_of(citation['version'])} "
            f"authority={citation['authority']} standing={citation['standing']} form={text_of(item.get('form'))} "
            f"resolves={text_of(citation['resolves'])}",
            f"    visible-sha256: {citation['visible_sha256']}",
        ]
        if ranked.get(id_):
            lines.append(f"    retrieval-reason: {ranked[id_]['selected_reason']}")
        if len(item.get("merged_rows") or ()) > 1:
            lines.append(f"    merged: {counted(len(item['merged_rows']), 'row')}")
        if item.get("history"):
            lines.append("    history: shown as history")
        if item.get("conflict_note"):
            lines.append("    conflict: a competing claim may exist")
        if decision.get("redacted"):
            lines.append("    redacted: a span is masked")
        if trim := trims.get(id_):
            lines.append(
                f"    trimmed: kept {ranges_of(trim['kept_ranges'])}, dropped {ranges_of(trim['dropped_ranges'])} "
                f"bytes ({trim['bound_by']}, {trim['policy']})"
            )
        if decision.get("admitted_by"):
            lines.append(f"    admitted-by: {', '.join(decision['admitted_by'].split())}")
        if decision.get("would_reject_by"):
            lines.append(f"    rejected-by: {decision['would_reject_by']}")
    return lines if len(lines) > 1 else [*lines, "none"]


def _score(ranked: Row | None) -> list[str]:
    if not ranked:
        return []
    known = (*SCORE_TERMS, *terms_of_plugins(ranked))
    terms = " ".join(f"{t}={ranked[t]:.4f}" for t in known if ranked.get(t))
    return [f"    score: final={ranked['final']:.4f} {terms}".rstrip()]


def _withheld(rows: Rows) -> list[str]:
    """Candidates that were not shown: hidden ones first, then by rank; without their text."""
    lost = [d for d in rows.get("decisions", ()) if d["outcome"] != "selected"]
    if not lost:
        return []
    lost.sort(key=lambda d: (d["outcome"], d["rank"] is None, d["rank"] or 0, d["evidence_id"]))
    lines = [f"--- not shown ({len(lost)}) ---"]
    for d in lost[:_WITHHELD_SHOWN]:
        where = line_of(d["path"] or d["source_id"])
        lines.append(f"- {d['outcome']} at {d['stage']}: {d['evidence_id']} {where} ({d['reason_code']})")
    if len(lost) > _WITHHELD_SHOWN:
        lines.append(f"- and {len(lost) - _WITHHELD_SHOWN} more in tables/decisions")
    return lines


def _conditions(rows: Rows) -> list[str]:
    lines = ["--- conditions ---"]
    for c in rows.get("conditions", ()):
        subject = f" [{c['subject']}]" if c["subject"] else ""
        lines.append(f"- {c['condition']}{subject}: {c['action']}: {c['message']}")
    return lines if len(lines) > 1 else []


def _plan(rows: Rows, audit: bool) -> list[str]:
    queries = rows.get("sub_queries", ())
    if not audit or not queries:
        return []
    lines = ["--- tier explain ---", f"candidates-considered: {text_of(one_of(rows, 'snapshots').get('recalled'))}"]
    for q in queries:
        limits = f"k={q['lane_k']} min-authority={q['min_authority']} oldest={text_of(q['oldest'])}"
        lines.append(f"- {q['sub_query_id']} {q['intent']} via {', '.join(q['lanes'])} {limits}")
        if q["kinds"] or q["sources"]:
            lines.append(f"    only: kinds={', '.join(q['kinds']) or '-'} sources={', '.join(q['sources']) or '-'}")
    return lines


def one_of(rows: Rows, name: str) -> Row:
    """The only row of a table; an empty one if there is none."""
    found = rows.get(name, ())
    return found[0] if found else {}


def text_of(value: Any) -> str:
    """A value as text: `-` for an absent one, times as ISO 8601 in UTC."""
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def line_of(value: Any) -> str:
    """Free text on one line, so that a label or a question cannot start a line of its own."""
    return text_of(" ".join(str(value).split()) if value is not None else None)


def ranges_of(spans: Sequence[Mapping[str, int]]) -> str:
    """Byte ranges as text."""
    return ", ".join(f"{s['start']}-{s['end']}" for s in spans) or "none"
