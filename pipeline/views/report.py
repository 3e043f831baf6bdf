"""The HTML report of a snapshot, as a single self-contained file.

Reads: the rows of a snapshot by table name. Gives: `snapshot_page`, HTML as text, byte-identical for the same rows, and
`rendered`, which fills the template of any page.

Note: evidence may contain anything. Everything is escaped by the template engine, the page has no script, and its
content policy allows only its own style sheet: the browser makes no requests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from ...nodes.score_terms import terms_of_plugins
from ...nodes.vocabulary import SCORE_TERMS
from ..progress import counted
from .lineage import duration
from .printed import printed
from .xray import STAGES, Row, Rows, Rung, caller_rows, ladder, line_of, one_of, ranges_of, text_of

__all__ = ["Timings", "rendered", "snapshot_page"]

_TONES = {"ok": "ok", "empty": "warn", "partial": "warn", "denied": "bad", "failed": "bad", "erased": "warn"}
_AFTER = {"recall": "recalled", "merge": "merged", "rank": "ranked", "select": "selected", "pack": "packed",
          "trim": "inside the budget", "cite": "cited", "project": "visible"}  # fmt: skip
"""The name of the rows that remain after each stage."""
_SCALE = 1.0
Timings = tuple[float, int, Mapping[str, float]]
"""Seconds of a pass, how many requests it answered together, and the seconds of each node."""
COLORS = 20
"""Colors of score terms in the style sheet."""


def snapshot_page(
    rows: Rows,
    *,
    audit: bool = True,
    took: Timings | None = None,
) -> str:
    """The report of one snapshot.

    Args:
        rows: rows of one request by table name; a missing table reads as empty.
        audit: False leaves out everything about rows that the caller may not know of.
        took: for auditors, the seconds of the line, and how many requests it answered together, if measured: a caller's page does not depend on the rest of the corpus.
    """
    scores = {row["evidence_id"]: row for row in rows.get("ranked", ())} if audit else {}
    rungs = ladder(rows)
    rows = rows if audit else caller_rows(rows)
    request, contract, snapshot, block = (one_of(rows, t) for t in ("requests", "contracts", "snapshots", "blocks"))
    failure = one_of(rows, "failures")
    status = text_of(snapshot.get("status"))
    known = (*SCORE_TERMS, *terms_of_plugins(next(iter(scores.values()), ())))
    terms = [term for term in known if any(row.get(term) for row in scores.values())]
    items = _items(rows, scores, terms)
    return rendered(
        "snapshot.html",
        title=f"Snapshot {text_of(snapshot.get('snapshot_id'))}",
        made_of=f"Snapshot {text_of(snapshot.get('snapshot_id'))}, digest {text_of(snapshot.get('snapshot_digest'))}.",
        question=line_of(request.get("question") or failure.get("question")),
        status=status,
        tone=_TONES.get(status, "warn"),
        summary=_summary(rows, items),
        head=[*_head(request or failure, contract, snapshot, block), *_took(took)],
        budget=_budget(block, contract),
        block=_linked(block.get("text"), items),
        conditions=[[_named(c), c["action"], c["message"]] for c in rows.get("conditions", ())],
        funnel=_funnel(rungs) if audit else [],
        terms=[{"name": term, "color": _color(term)} for term in terms],
        whole=max([_SCALE, *(item["total"] for item in items)]),
        items=items,
        ladder=_ladder(rungs) if audit else [],
        withheld=_withheld(rows) if audit else [],
        plan=_plan(rows) if audit else [],
    )


def _color(term: str) -> int:
    """The color of a score term, the same on every page; terms of plugins share one."""
    return (SCORE_TERMS.index(term) if term in SCORE_TERMS else len(SCORE_TERMS)) % COLORS


def _took(took: Timings | None) -> list[tuple[str, str]]:
    return [] if took is None else [("answered in", f"{duration(took[0])}{_beside(took)}")]


def _beside(took: Timings) -> str:
    others = took[1] - 1
    return f", with {counted(others, 'other request')}" if others else ""


def _summary(rows: Rows, items: Sequence[Any]) -> str:
    decisions = rows.get("decisions", ())
    shown = f"{counted(len(items), 'item')} shown"
    selected = sum(decision["outcome"] == "selected" for decision in decisions)
    return f"{shown}, made of {selected} of {len(decisions)} candidates" if decisions else shown


def _head(request: Row, contract: Row, snapshot: Row, block: Row) -> list[tuple[str, str]]:
    named = (
        ("snapshot", snapshot.get("snapshot_id")), ("captured at", snapshot.get("created_at")),
        ("principal", contract.get("principal")), ("project", contract.get("project") or request.get("project")),
        ("purpose", contract.get("purpose") or request.get("purpose")), ("mode", contract.get("mode")),
        ("role", contract.get("role")), ("as of", contract.get("as_of")), ("asked at", request.get("asked_at")),
        ("block reference", snapshot.get("block_ref")), ("bound by", block.get("bound_by")),
        ("contract", contract.get("contract_id")),
    )  # fmt: skip
    return [(name, text_of(value)) for name, value in named if value not in (None, "")]


def _budget(block: Row, contract: Row) -> dict[str, Any]:
    used, most = block.get("tokens") or 0, contract.get("max_tokens") or 0
    text = f"{used} of {most} tokens ({text_of(contract.get('tokenizer'))}), {counted(block.get('chars') or 0, 'character')}"
    return {"text": text, "share": min(1.0, used / most) if most else 0.0}


def _linked(block: str | None, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The block in pieces: a label at the start of a line links to its item."""
    if not block:
        return []
    places = {f"[{item['label']}] ": item["position"] for item in items}
    pieces: list[dict[str, Any]] = []
    for line in block.splitlines(keepends=True):
        label = line[: line.find("] ") + 2] if line.startswith("[") else ""
        if label in places:
            pieces.append({"text": label.rstrip(), "item": places[label]})
            line = line[len(label) - 1 :]
        if pieces and pieces[-1]["item"] is None:
            pieces[-1]["text"] += line
        else:
            pieces.append({"text": line, "item": None})
    return pieces


def _items(rows: Rows, scores: Mapping[str, Row], terms: Sequence[str]) -> list[dict[str, Any]]:
    trimmed = {row["label"]: row for row in rows.get("trimmed", ())}
    details = {row["evidence_id"]: row for row in rows.get("item_details", ())}
    trims = {row["evidence_id"]: row for row in rows.get("trims", ())}
    found = []
    for citation in rows.get("citations", ()):
        id_ = citation["evidence_id"]
        item, detail, ranked = trimmed.get(citation["label"], {}), details.get(id_, {}), scores.get(id_, {})
        parts = [
            {"name": term, "value": ranked[term], "shown": f"{ranked[term]:.4f}", "color": _color(term)}
            for term in terms
            if ranked.get(term)
        ]
        trim = trims.get(id_)
        cut = f"{ranges_of(trim['dropped_ranges'])} bytes ({trim['bound_by']})" if trim else None
        found.append(
            {
                "position": citation["position"], "label": citation["label"],
                "locator": line_of(citation["locator"]),
                "labels": ", ".join(_labels(citation, item, detail)),
                "final": f"{ranked['final']:.4f}" if ranked else "", "total": ranked.get("final", 0.0), "parts": parts,
                "reason": ranked.get("selected_reason"), "text": item.get("visible_text"),
                "facts": _facts(citation, item, detail, cut),
            }
        )  # fmt: skip
    return found


def _labels(citation: Row, item: Row, detail: Row) -> list[str]:
    known = (
        citation.get("evidence_kind"), citation.get("standing"), item.get("form"), detail.get("freshness"),
        f"{item['tokens']} tokens" if item.get("tokens") is not None else None,
    )  # fmt: skip
    marks = (("conflict_note", "a competing claim may exist"), ("history", "shown as history"), ("masked", "masked"))
    return [str(value) for value in known if value] + [text for name, text in marks if item.get(name)]


def _facts(citation: Row, item: Row, detail: Row, cut: str | None) -> list[tuple[str, str]]:
    named = (
        ("evidence", citation["evidence_id"]), ("source", citation["source_id"]), ("version", citation["version"]),
        ("authority", citation["authority"]), ("title", detail.get("title")), ("updated", detail.get("updated_at")),
        ("resolves", citation["resolves"]), ("SHA-256 of the text shown", citation["visible_sha256"]),
        ("merged rows", len(item["merged_rows"]) if len(item.get("merged_rows") or ()) > 1 else None),
        ("cut", cut),
    )  # fmt: skip
    return [(name, text_of(value)) for name, value in named if value not in (None, "")]


def _named(condition: Row) -> str:
    return f"{condition['condition']} ({condition['subject']})" if condition["subject"] else condition["condition"]


def _funnel(rungs: Sequence[Rung]) -> list[dict[str, Any]]:
    """The rows that remain after recall and after each stage that dropped some."""
    stages = [rung for rung in rungs if not rung.gate]
    total = stages[0].admitted if stages else 0
    return [
        {
            "name": _AFTER[rung.name],
            "rows": rung.admitted,
            "share": rung.admitted / total,
            "lost": "" if rung.name == "recall" else rung.reasons,
        }
        for rung in (stages if total else ())
    ]


def _ladder(rungs: Sequence[Rung]) -> list[dict[str, Any]]:
    return [
        {
            "name": rung.name.replace("_", " "),
            "considered": rung.considered,
            "admitted": rung.admitted,
            "share": rung.admitted / rung.considered if rung.considered else 0.0,
            "reason": ", ".join(rung.lost),
        }
        for rung in rungs
        if rung.gate
    ]


def _withheld(rows: Rows) -> list[list[str]]:
    order = {stage: place for place, stage in enumerate(("gate", *STAGES))}
    lost = [d for d in rows.get("decisions", ()) if d["outcome"] != "selected"]
    lost.sort(key=lambda d: (order.get(d["stage"], 0), d["rank"] is None, d["rank"] or 0, d["evidence_id"]))
    return [
        [d["stage"], d["reason_code"], text_of(d["rank"]), line_of(d["path"] or d["source_id"]), d["evidence_id"]]
        for d in lost
    ]


def _plan(rows: Rows) -> list[list[str]]:
    return [
        [q["sub_query_id"], q["intent"], ", ".join(q["lanes"]), str(q["lane_k"]), line_of(q.get("query_text"))]
        for q in rows.get("sub_queries", ())
    ]


def rendered(template: str, **values: Any) -> str:
    """A template of `data/templates` as a page; everything but `Markup` is escaped, and all of it sanitized."""
    environment, css = _environment()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    from markupsafe import Markup

    return printed(environment.get_template(template).render(css=Markup(css), css_sha256=digest, **values) + "\n")


@lru_cache(maxsize=1)
def _environment() -> tuple[Any, str]:
    """The templates, which escape everything, and the style sheet."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    folder = resources.files(f"{__name__.rpartition('.pipeline')[0]}.data").joinpath("templates")
    texts = {
        file.name: file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith((".html", ".css"))
    }
    environment = Environment(
        loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment, environment.get_template("report.css").render(colors=COLORS)
