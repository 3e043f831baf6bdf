"""Runs, answers and retrievers in a notebook: small HTML, everything escaped, no script, no network access.

Reads: plain values, rows of a snapshot, a lineage. Gives: `run_html`, `answer_html`, `retriever_html`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..progress import counted
from .lineage import Step, duration, steps_of
from .printed import html_text as text

__all__ = ["answer_html", "retriever_html", "run_html"]

SLOWEST = 8


def run_html(
    run_id: str,
    facts: Iterable[tuple[str, Any]],
    lineage: Mapping[str, Any],
    rows: Mapping[str, int],
    seconds: Mapping[str, float],
) -> str:
    """A run: its facts, its slowest nodes, and its steps with rows and time."""
    parts = [f"<p><strong>Run {text(run_id)}</strong></p>", _facts(facts)]
    if seconds:
        most = sorted(seconds.items(), key=lambda one: (-one[1], one[0]))[:SLOWEST]
        homes = {node.name: step.title for step in steps_of(lineage) for node in step.nodes}
        table = _table(("node", "step", "time"), [(node, homes.get(node, ""), duration(spent)) for node, spent in most])
        parts.append(f"<details><summary>Slowest nodes</summary>{table}</details>")
    return "".join([*parts, _opened("Steps", _steps(steps_of(lineage, rows, seconds)))])


def answer_html(
    snapshot_id: str | None,
    status: str,
    block: str,
    citations: Sequence[Mapping[str, Any]],
    conditions: Sequence[Mapping[str, Any]],
) -> str:
    """An answer: its block, its citations, and notes for the user."""
    head = f"<p><strong>{text(snapshot_id or 'no snapshot')}</strong> ({text(status)}), {counted(len(citations), 'item')}</p>"
    shown = f"<pre>{text(block)}</pre>" if block else "<p>The block is empty.</p>"
    cited = _table(
        ("label", "where", "source", "evidence"),
        [(c["label"], c["locator"], c["source_id"], c["evidence_id"]) for c in citations],
    )
    rows = [(c["condition"], c["action"], c["message"]) for c in conditions]
    parts = [head, shown, _opened("Citations", cited) if citations else ""]
    return "".join([*parts, _opened("Conditions", _table(("condition", "action", "message"), rows)) if rows else ""])


def retriever_html(facts: Iterable[tuple[str, Any]], lineage: Mapping[str, Any]) -> str:
    """A retriever: its principal, its corpus, and the steps of its line."""
    return f"<p><strong>Retriever</strong></p>{_facts(facts)}{_opened('Steps', _steps(steps_of(lineage)))}"


def _steps(steps: Sequence[Step]) -> str:
    return _table(("step", "counts"), [(step.title, step.summary) for step in steps])


def _facts(pairs: Iterable[tuple[str, Any]]) -> str:
    return _table((), [(name, value) for name, value in pairs if value not in (None, "")])


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def _opened(summary: str, content: str) -> str:
    return f"<details><summary>{text(summary)}</summary>{content}</details>"
