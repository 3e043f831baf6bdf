"""An answer in a notebook: small HTML, everything escaped, no script, no network access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..progress import counted
from .printed import html_text as text


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
    cited = _opened("Citations", ("label", "locator", "source_id", "evidence_id"), citations)
    return head + shown + cited + _opened("Conditions", ("condition", "action", "message"), conditions)


def _opened(summary: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """A table that opens, if there are rows."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{text(row[name])}</td>" for name in columns) + "</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<details><summary>{text(summary)}</summary>{table}</details>"
