"""The HTML reports of a snapshot and of a run, each a single self-contained file.

Reads: the rows of a snapshot by table name; the tables of a run, and the rows of its snapshots that the reader may see.
Gives: `snapshot_page` and `run_report`, HTML as text, byte-identical for the same rows. A run's has counts of statuses,
limits, conditions and losses, the slowest nodes and requests, and its requests.

Note: evidence may contain anything. Everything is escaped by the template engine, the page has no script, and its
content policy allows only its own style sheet: the browser makes no requests.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

import pyarrow as pa

from ...nodes.score_terms import terms_of_plugins
from ...nodes.vocabulary import SCORE_TERMS
from ..progress import counted
from .lineage import duration
from .printed import printed
from .xray import (
    Item,
    Row,
    Rows,
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
    head, status, items = header_of(rows), text_of(snapshot.get("status")), items_of(rows)
    known = (*SCORE_TERMS, *terms_of_plugins(next((item.ranked for item in items), {})))
    used, most = block.get("tokens") or 0, contract.get("max_tokens") or 0
    beside = f", with {counted(took[1] - 1, 'other request')}" if took and took[1] > 1 else ""
    return rendered(
        "snapshot.html",
        title=f"Snapshot {text_of(snapshot.get('snapshot_id'))}",
        made_of=f"Snapshot {text_of(snapshot.get('snapshot_id'))}, digest {text_of(snapshot.get('snapshot_digest'))}.",
        question=head.pop("question", ""),
        status=status,
        tone=_TONES.get(status, "warn"),
        summary=f"{counted(len(items), 'item')} shown",
        head=[
            *head.items(), ("captured at", snapshot.get("created_at")), ("mode", contract.get("mode")),
            ("role", contract.get("role")), ("block reference", snapshot.get("block_ref")),
            ("bound by", block.get("bound_by")), ("contract", contract.get("contract_id")),
            ("answered in", took and f"{duration(took[0])}{beside}"),
        ],
        budget=min(1.0, used / most) if most else 0.0,
        block=_linked(block.get("text"), items),
        conditions=[[named(c), c["action"], c["message"]] for c in rows.get("conditions", ())],
        terms=[term for term in known if any(row.get(term) for row in rows.get("ranked", ()))],
        whole=max([_SCALE, *(item.ranked.get("final", 0.0) for item in items)]),
        items=items,
        rungs=rungs if audit else [],
        withheld=[
            [d["outcome"], d["stage"], d["reason_code"], text_of(d["rank"]), line_of(d["path"] or d["source_id"]), d["evidence_id"]]
            for d in (withheld_of(rows) if audit else ())
        ],
        plan=[
            [q["sub_query_id"], q["intent"], ", ".join(q["lanes"]), str(q["lane_k"]), line_of(q.get("query_text"))]
            for q in (rows.get("sub_queries", ()) if audit else ())
        ],
    )  # fmt: skip


def _color(term: str) -> int:
    """The color of a score term, the same on every page; terms of plugins share one."""
    return (SCORE_TERMS.index(term) if term in SCORE_TERMS else len(SCORE_TERMS)) % COLORS


def _linked(block: str | None, items: Sequence[Item]) -> list[dict[str, Any]]:
    """The block in pieces: a label at the start of a line links to its item."""
    places = {f"[{item.citation['label']}] ": item.citation["position"] for item in items}
    pieces: list[dict[str, Any]] = []
    for line in (block or "").splitlines(keepends=True):
        label = line[: line.find("] ") + 2] if line.startswith("[") else ""
        if label in places:
            pieces.append({"text": label.rstrip(), "item": places[label]})
            line = line[len(label) - 1 :]
        if pieces and pieces[-1]["item"] is None:
            pieces[-1]["text"] += line
        else:
            pieces.append({"text": line, "item": None})
    return pieces


def named(condition: Row) -> str:
    """The name of a condition with its subject."""
    return f"{condition['condition']} ({condition['subject']})" if condition["subject"] else condition["condition"]


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
    environment.filters |= {"text": text_of, "line": line_of, "color": _color}
    return environment, environment.get_template("report.css").render(colors=COLORS)


TABLES_READ = ("blocks", "conditions", "decisions")
"""The tables of the run that are counted."""
LISTED = 500
"""The most requests in the table; those that need attention come first."""
AUDITORS_GET = "Time and losses are shown to auditors only."
"""The note for callers at the top, instead of those sections."""
_SLOWEST = 12
_COLUMNS = (
    {"name": "request"}, {"name": "status"}, {"name": "question"}, {"name": "items", "number": True},
    {"name": "tokens", "number": True}, {"name": "bound by"}, {"name": "snapshot"},
)  # fmt: skip


def run_report(
    run_id: str,
    snapshots: Sequence[Mapping[str, Any]],
    tables: Mapping[str, pa.Table],
    *,
    audit: bool,
    settings: Mapping[str, Any],
    seconds: Mapping[str, float],
    took: Mapping[str, Timings],
) -> str:
    """The report of a run.

    Args:
        snapshots: rows of the snapshots that the reader may see, with question, project and purpose.
        tables: those of `TABLES_READ`, restricted to these snapshots.
        audit: whether the reader audits all of them; otherwise rows that were not shown are omitted.
        settings: the settings in the manifest.
        seconds: for auditors, the seconds of each node, if measured.
        took: for auditors, by snapshot the seconds of its line, if each was measured.
    """
    blocks, conditions, decisions = (tables[name].to_pylist() for name in TABLES_READ)
    statuses = Counter(row["status"] for row in snapshots)
    parts = [
        _part("Statuses", "How the requests ended", "requests", statuses),
        _part("Limits", "The limit that bound a block", "requests", Counter(row["bound_by"] or "none" for row in blocks)),
        _part("Conditions", "Conditions reported to users", "requests", Counter(named(row) for row in conditions if audit or row["audience"] == "caller")),
        _part("Time", f"Seconds of all requests together, {sum(seconds.values()):.2f} in all: the slowest nodes", "seconds",
              seconds),
        _part("Slowest requests", "Seconds from the first node to the last", "seconds",
              {f"{_short(row.get('question'))} ({name})": took[name][0] for row in snapshots if (name := row["snapshot_id"]) in took}),
    ]  # fmt: skip
    if audit:
        lost = Counter(
            f"{row['stage']}: {row['reason_code'] or '-'}" for row in decisions if row["outcome"] != "selected"
        )
        parts.append(
            _part("Losses", "Candidates that were not shown, by stage and reason", "candidates", lost, most=None)
        )
    items = {row["request_id"]: row["items"] for row in blocks}
    listed = sorted(
        snapshots, key=lambda row: (row["status"] == "ok", items.get(row["request_id"], 0), row["request_id"])
    )
    head = {"principal": settings.get("principal"), "corpus generation": settings.get("generation"),
            "lanes": settings.get("lanes"), "BM25": settings.get("bm25"),
            "tokens": f"{sum(row['tokens'] for row in blocks):,} in all blocks together"}  # fmt: skip
    return rendered(
        "run.html",
        title=f"Run {run_id}",
        made_of=f"Run {run_id}.",
        run_id=run_id,
        summary=", ".join(f"{count:,} {status}" for status, count in statuses.most_common()),
        note="" if audit else AUDITORS_GET,
        head=[(name, value) for name, value in head.items() if value],
        parts=[part for part in parts if part["rows"]],
        caption=f"{counted(min(LISTED, len(listed)), 'request')}: what failed or shows least comes first",
        columns=_COLUMNS,
        requests=[
            [row["request_id"], row["status"], _short(row.get("question")), items.get(row["request_id"], 0),
             row.get("estimated_tokens") or 0, row.get("bound_by") or "-", row["snapshot_id"]]
            for row in listed[:LISTED]
        ],
    )  # fmt: skip


def _part(
    title: str, caption: str, unit: str, counts: Mapping[str, float], most: int | None = _SLOWEST
) -> dict[str, Any]:
    """A table of counts, the largest first, with bars."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:most]
    rows = [
        {
            "name": name,
            "shown": f"{count:,}" if isinstance(count, int) else duration(count),
            "share": count / (ordered[0][1] or 1),
        }
        for name, count in ordered
    ]
    return {"title": title, "caption": caption, "unit": unit, "rows": rows}


def _short(question: str | None) -> str:
    words = " ".join((question or "").split())
    return words if len(words) <= 120 else words[:119] + "…"
