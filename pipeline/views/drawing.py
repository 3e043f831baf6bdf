"""The lineage in the formats in which it can be had: all of it, its steps, or one step.

Reads: a lineage, rows by table and seconds by node where they are known. Gives: `drawn`, the bytes of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...nodes.errors import InputError
from .lineage import picture, to_dot
from .lineage_page import lineage_page
from .overview import overview_dot, overview_svg, step_dot
from .printed import to_json
from .steps import steps_of

__all__ = ["ALL", "FORMATS", "STEPS", "drawn"]

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
            JSON and HTML are of everything whatever it names.

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
