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
from .xray import (
    Item,
    Row,
    Rows,
    Rung,
    caller_rows,
    header_of,
    items_of,
    ladder,
    line_of,
    one_of,
    text_of,
    withheld_of,
)

_TONES = {"ok": "ok", "empty": "warn", "partial": "warn", "denied": "bad", "failed": "bad", "erased": "warn"}
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
    rungs = ladder(rows)
    rows = rows if audit else caller_rows(rows)
    contract, snapshot, block = (one_of(rows, t) for t in ("contracts", "snapshots", "blocks"))
    head, status, found = header_of(rows), text_of(snapshot.get("status")), items_of(rows)
    known = (*SCORE_TERMS, *terms_of_plugins(next((item.ranked for item in found), {})))
    terms = [term for term in known if any(row.get(term) for row in rows.get("ranked", ()))]
    items = _items(found, terms)
    used, most = block.get("tokens") or 0, contract.get("max_tokens") or 0
    return rendered(
        "snapshot.html",
        title=f"Snapshot {text_of(snapshot.get('snapshot_id'))}",
        made_of=f"Snapshot {text_of(snapshot.get('snapshot_id'))}, digest {text_of(snapshot.get('snapshot_digest'))}.",
        question=head.pop("question", ""),
        status=status,
        tone=_TONES.get(status, "warn"),
        summary=f"{counted(len(items), 'item')} shown",
        head=[*head.items(), *_of_snapshot(contract, snapshot, block), *_took(took)],
        budget=min(1.0, used / most) if most else 0.0,
        block=_linked(block.get("text"), items),
        conditions=[[named(c), c["action"], c["message"]] for c in rows.get("conditions", ())],
        terms=[{"name": term, "color": _color(term)} for term in terms],
        whole=max([_SCALE, *(item["total"] for item in items)]),
        items=items,
        rungs=_rungs(rungs) if audit else [],
        withheld=[
            [d["outcome"], d["stage"], d["reason_code"], text_of(d["rank"]), line_of(d["path"] or d["source_id"]), d["evidence_id"]]
            for d in (withheld_of(rows) if audit else ())
        ],
        plan=_plan(rows) if audit else [],
    )  # fmt: skip


def _color(term: str) -> int:
    """The color of a score term, the same on every page; terms of plugins share one."""
    return (SCORE_TERMS.index(term) if term in SCORE_TERMS else len(SCORE_TERMS)) % COLORS


def _took(took: Timings | None) -> list[tuple[str, str]]:
    return [] if took is None else [("answered in", f"{duration(took[0])}{_beside(took)}")]


def _beside(took: Timings) -> str:
    others = took[1] - 1
    return f", with {counted(others, 'other request')}" if others else ""


def _of_snapshot(contract: Row, snapshot: Row, block: Row) -> list[tuple[str, str]]:
    named = (
        ("captured at", snapshot.get("created_at")), ("mode", contract.get("mode")), ("role", contract.get("role")),
        ("block reference", snapshot.get("block_ref")), ("bound by", block.get("bound_by")),
        ("contract", contract.get("contract_id")),
    )  # fmt: skip
    return [(name, text_of(value)) for name, value in named if value not in (None, "")]


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


def _items(found: Sequence[Item], terms: Sequence[str]) -> list[dict[str, Any]]:
    listed = []
    for item in found:
        citation, ranked, detail = item.citation, item.ranked, item.detail
        parts = [
            {"name": term, "value": ranked[term], "shown": f"{ranked[term]:.4f}", "color": _color(term)}
            for term in terms
            if ranked.get(term)
        ]
        facts = {
            "evidence": citation["evidence_id"], "title": detail.get("title"), "updated": detail.get("updated_at"),
            "freshness": detail.get("freshness"), "tokens": item.shown.get("tokens"),
            "SHA-256 of the text shown": citation["visible_sha256"],
        }  # fmt: skip
        listed.append(
            {
                "position": citation["position"], "label": citation["label"], "locator": line_of(citation["locator"]),
                "lines": item.lines,
                "final": f"{ranked['final']:.4f}" if ranked else "", "total": ranked.get("final", 0.0), "parts": parts,
                "text": item.shown.get("visible_text"),
                "facts": [(name, text_of(value)) for name, value in facts.items() if value not in (None, "")],
            }
        )  # fmt: skip
    return listed


def named(condition: Row) -> str:
    """The name of a condition with its subject."""
    return f"{condition['condition']} ({condition['subject']})" if condition["subject"] else condition["condition"]


def _rungs(rungs: Sequence[Rung]) -> list[dict[str, Any]]:
    """The ladder: gates, recall, and the stages that dropped rows."""
    return [
        {
            "name": rung.name.replace("_", " "),
            "considered": rung.considered,
            "admitted": rung.admitted,
            "share": rung.admitted / rung.considered if rung.considered else 0.0,
            "reason": rung.reasons,
        }
        for rung in rungs
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
