"""The lineage in all of its formats: all of it, its steps, or one step.

Reads: a lineage, rows by table and seconds by node if known. Gives: `drawn`, the bytes of a file.

`lineage_page` is an HTML page: the steps as a picture first, each opening into its nodes, tables and columns; pictures
of single steps need the extra `viz`; without it, their tables have the same content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...nodes.errors import InputError
from ..progress import counted
from .lineage import picture, to_dot
from .overview import duration, inline_svg, overview_dot, overview_svg, step_dot, summary_of
from .printed import to_json
from .report import rendered
from .steps import Node, Step, steps_of

__all__ = ["ALL", "FORMATS", "STEPS", "drawn", "lineage_fragment", "lineage_page"]

FORMATS = ("json", "dot", "svg", "png", "html")
ALL, STEPS = "all", "steps"


def drawn(
    lineage: Mapping[str, Any],
    format_: str,
    of: str | None = None,
    *,
    title: str,
    rows: Mapping[str, int] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> bytes:
    """The file.

    Args:
        format_: one of `FORMATS`; JSON and HTML have every step and node.
        of: `steps`, the overview; `all`, every node in one picture; or the name of a step. DOT has all by default.
            Ignored for JSON and HTML.

    Raises:
        InputError: there is no such step, or the extra `viz` that the picture needs is not installed.
    """
    steps = steps_of(lineage, rows, seconds)
    named = {step.name: step for step in steps}
    if of not in (None, STEPS, ALL, *named):
        raise InputError.one_of((STEPS, ALL, *named), of, "--of")
    if format_ == "json":
        found = {**lineage, **({"rows": dict(rows)} if rows else {}), **({"seconds": dict(seconds)} if seconds else {})}
        return (to_json(found, sort_keys=True) + "\n").encode()
    if format_ == "html":
        return lineage_page(lineage, title=title, rows=rows, seconds=seconds).encode()
    of = of or (ALL if format_ == "dot" else STEPS)
    if of == STEPS and format_ == "svg":
        return (overview_svg(steps) + "\n").encode()
    if of == STEPS:
        dot = overview_dot(steps)
    elif of == ALL:
        dot = to_dot(lineage)
    else:
        nodes = {node.name: node for step in steps for node in step.nodes}
        dot = step_dot(named[of], nodes, {node.name: step.name for step in steps for node in step.nodes}, ink="#1c1d1f")
    return dot.encode() if format_ == "dot" else picture(dot, format_)


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
        summary=f"{counted(len(steps), 'step')}, {counted(len(nodes), 'node')}, {counted(len(lineage['edges']), 'edge')}",
        head=[(name, str(value)) for name, value in head if value not in (None, "")],
        overview=Markup(overview_svg(steps, links=True)),
        steps=[
            {
                "name": step.name, "title": step.title, "summary": summary_of(step), "rows": [_row(node) for node in step.nodes],
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
