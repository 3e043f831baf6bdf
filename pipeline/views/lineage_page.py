"""The lineage as an HTML page: the steps as a picture first, each opening into its nodes, tables and columns.

Reads: a lineage, rows by table and seconds by node where they are known. Gives: `lineage_page`, HTML as text, and
`lineage_fragment`, the overview alone for a notebook.

Note: pictures of single steps need the extra `viz`; without it their tables say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...nodes.errors import InputError
from .lineage import picture
from .overview import duration, inline_svg, overview_svg, step_dot, summary_of
from .report import rendered
from .steps import Node, Step, steps_of

__all__ = ["lineage_fragment", "lineage_page"]


def lineage_page(
    lineage: Mapping[str, Any],
    *,
    title: str = "The dataflow",
    head: Iterable[tuple[str, Any]] = (),
    rows: Mapping[str, int] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> str:
    """The page.

    Args:
        lineage: `{"nodes": [...], "edges": [...]}`.
        head: names and values at the top.
        rows: rows by name of table.
        seconds: seconds by name of node.
    """
    from markupsafe import Markup

    steps = steps_of(lineage, rows, seconds)
    nodes = {node.name: node for step in steps for node in step.nodes}
    homes = {node.name: step.name for step in steps for node in step.nodes}
    return rendered(
        "lineage.html",
        title=title,
        made_of=f"{title}.",
        heading=title,
        summary=f"{len(steps)} steps, {len(nodes)} nodes, {len(lineage['edges'])} edges",
        head=[(name, str(value)) for name, value in head if value not in (None, "")],
        overview=Markup(overview_svg(steps, links=True)),
        steps=[
            {
                "name": step.name, "title": step.title, "said": summary_of(step), "rows": [_row(node) for node in step.nodes],
                "picture": Markup(found) if (found := _picture(step, nodes, homes)) else "",
                "tables": [
                    {"name": node.name, "doc": node.doc, "columns": node.columns} for node in step.nodes if node.columns
                ],
            }
            for step in steps
        ],
    )  # fmt: skip


def lineage_fragment(
    lineage: Mapping[str, Any], rows: Mapping[str, int] | None = None, seconds: Mapping[str, float] | None = None
) -> str:
    """The overview as one element of a page."""
    return overview_svg(steps_of(lineage, rows, seconds))


def _row(node: Node) -> list[str]:
    rows = "" if node.rows is None else f"{node.rows:,}"
    return [node.name, node.doc, rows, "" if node.seconds is None else duration(node.seconds), ", ".join(node.made_of)]


def _picture(step: Step, nodes: Mapping[str, Node], homes: Mapping[str, str]) -> str:
    try:
        return inline_svg(picture(step_dot(step, nodes, homes)))
    except InputError:
        return ""
