"""The overview of the steps as a picture that wraps to a page, and one picture per step.

Reads: `Step`s and the tables passed between them. Gives: `overview_svg`, drawn here, `overview_dot` for other formats
and `step_dot`, which Graphviz draws (`lineage.picture`). Equal steps give equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from ..progress import counted
from .steps import Node, Passed, Step, passed

__all__ = ["duration", "inline_svg", "overview_dot", "overview_svg", "step_dot", "summary_of"]

COLUMNS = 3
_BOX, _GAP, _HEIGHT, _DOWN, _PAD = 236, 112, 70, 62, 12
_LABELS = 3
_SHOWN_COLUMNS = 4
_LINE = 12
_NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
"""The namespace of a file; an element of an HTML page has it implicitly."""
_INK = "#010203"
"""Placeholder for the color of the text around a picture, see `inline_svg`."""


def overview_svg(steps: Sequence[Step], *, links: bool = False) -> str:
    """The steps in order, in rows of alternating direction, with the tables passed along each arrow.

    Args:
        links: each step links to `#step-NAME` on the surrounding page, and text has the color of the page.
    """
    between = passed(list(steps))
    place = {step.name: number for number, step in enumerate(steps)}
    spots = [_spot(number) for number in range(len(steps))]
    rows = -(-len(steps) // COLUMNS)
    width = COLUMNS * _BOX + (COLUMNS - 1) * _GAP + 2 * _PAD
    height = rows * _HEIGHT + (rows - 1) * _DOWN + 2 * _PAD
    ink = "currentColor" if links else "#1c1d1f"
    parts = [
        f'<svg{"" if links else _NAMESPACE} viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="group" aria-label="{counted(len(steps), "step")} of the dataflow, in their order" font-family="system-ui, sans-serif">',
    ]
    if not links:
        parts.append(f'<rect width="{width}" height="{height}" fill="#ffffff"/>')
    parts += [_arrow(spots[place[one.source]], spots[place[one.target]], one, ink) for one in between]
    for step, (x, y) in zip(steps, spots, strict=True):
        box = (
            f'<rect x="{x}" y="{y}" width="{_BOX}" height="{_HEIGHT}" rx="8" fill="#8fb3dc" fill-opacity="0.22" '
            f'stroke="#6b8fb8"/><text x="{x + 12}" y="{y + 26}" font-size="15" font-weight="600" fill="{ink}">'
            f"{escape(step.title)}</text>"
            f'<text x="{x + 12}" y="{y + 50}" font-size="12.5" fill="{ink}">{escape(summary_of(step))}</text>'
        )
        parts.append(f'<a href="#step-{escape(step.name)}">{box}</a>' if links else box)
    return "".join([*parts, "</svg>"])


def overview_dot(steps: Sequence[Step]) -> str:
    """The overview as DOT, wrapped in the same way."""
    lines = [
        "digraph overview {",
        "  rankdir=TB; nodesep=1.1; ranksep=0.5; pad=0.3;",
        '  node [shape=box, style="rounded,filled", fillcolor="#dce9f7", color="#9db8d6", fontname="Helvetica", fontsize=12, width=2.6];',
        '  edge [color="#5f7893", arrowsize=0.7, fontname="Helvetica", fontsize=9, fontcolor="#555555"];',
    ]
    for number, row in enumerate(_rows(steps)):
        row = row if number % 2 == 0 else row[::-1]
        lines.append("  { rank=same; " + " ".join(f'"{step.name}";' for step in row) + " }")
        lines += [f'  "{left.name}" -> "{right.name}" [style=invis];' for left, right in pairwise(row)]
    for step in steps:
        lines.append(
            f'  "{step.name}" [label=<<B>{step.title}</B><BR/><FONT POINT-SIZE="9">{escape(summary_of(step))}</FONT>>];'
        )
    for one in passed(list(steps)):
        style = ", style=dashed" if one.back else ""
        lines.append(f'  "{one.source}" -> "{one.target}" [label="{_stacked(one.nodes)}", constraint=false{style}];')
    firsts = [(row if n % 2 == 0 else row[::-1])[0].name for n, row in enumerate(_rows(steps))]
    lines += [f'  "{a}" -> "{b}" [style=invis];' for a, b in pairwise(firsts)]
    return "\n".join([*lines, "}", ""])


def step_dot(step: Step, nodes: Mapping[str, Node], homes: Mapping[str, str], ink: str = _INK) -> str:
    """One step: its nodes with rows and time, their inputs from other steps, and columns on the first edge of each.

    Args:
        nodes: every node of the line by name.
        homes: the step of each node; a node without one is an input.
    """
    lines = [
        f'digraph "{step.name}" {{',
        '  rankdir=LR; ranksep=0.6; nodesep=0.15; bgcolor="transparent";',
        f'  node [shape=box, style=rounded, color="#6b8fb8", fontname="Helvetica", fontsize=11, fontcolor="{ink}"];',
        f'  edge [color="#6b7f96", arrowsize=0.7, fontname="Helvetica", fontsize=8, fontcolor="{ink}"];',
    ]
    own = {node.name for node in step.nodes}
    others = sorted({source for node in step.nodes for source in node.made_of if source in homes} - own)
    lines += [
        f'  "{node.name}" [label=<{node.name}{_small(_figures(node))}{_small(_inputs(node, homes))}>, penwidth=1.6];'
        for node in step.nodes
    ]
    lines += [
        f'  "{name}" [label=<{name}{_small([homes[name].replace("_", " ")])}>, style="rounded,dashed"];'
        for name in others
    ]
    named: set[str] = set()
    for node in step.nodes:
        for source in node.made_of:
            if source in homes:
                label = _stacked([n for n, _ in nodes[source].columns if n != "request_id"], _SHOWN_COLUMNS)
                lines.append(f'  "{source}" -> "{node.name}"' + (";" if source in named else f' [label="{label}"];'))
                named.add(source)
    return "\n".join([*lines, "}", ""])


def inline_svg(picture: bytes) -> str:
    """A Graphviz picture as an element of a page: without prologue, its text in the color of the page."""
    text = picture.decode("utf-8")
    element = text[text.index("<svg") :].strip().replace(_INK, "currentColor")
    return re.sub(r' xmlns(:xlink)?="[^"]*"', "", element, count=2)


def summary_of(step: Step) -> str:
    """The counts of a step, in one line."""
    return ", ".join([counted(len(step.nodes), "node"), *_counts(step.rows, step.seconds)])


def _figures(node: Node) -> list[str]:
    return [", ".join(_counts(node.rows, node.seconds))] if _counts(node.rows, node.seconds) else []


def _counts(rows: int | None, seconds: float | None) -> list[str]:
    found = [counted(rows, "row")] if rows is not None else []
    return found if seconds is None else [*found, duration(seconds)]


def duration(seconds: float) -> str:
    """A duration for people."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1_000 * seconds:.3g} ms"


def _rows(steps: Sequence[Step]) -> list[list[Step]]:
    return [list(steps[low : low + COLUMNS]) for low in range(0, len(steps), COLUMNS)]


def _spot(number: int) -> tuple[int, int]:
    row, column = divmod(number, COLUMNS)
    column = column if row % 2 == 0 else COLUMNS - 1 - column
    return _PAD + column * (_BOX + _GAP), _PAD + row * (_HEIGHT + _DOWN)


def _arrow(start: tuple[int, int], end: tuple[int, int], one: Passed, ink: str) -> str:
    """A line between boxes, labeled with the tables passed: sideways, down to the next row, or bent around others."""
    (x1, y1), (x2, y2), names = start, end, _few(one.nodes)
    lines = len(names) - 1
    if y1 == y2 and abs(x1 - x2) == _BOX + _GAP:
        side = 1 if x2 > x1 else -1
        left, y = min(x1, x2) + _BOX, y1 + _HEIGHT // 2 + (18 if one.back else -8)
        begin, tip = (left, left + _GAP) if side > 0 else (left + _GAP, left)
        path, head = f"M{begin},{y} L{tip},{y}", f"{tip},{y} {tip - 9 * side},{y - 4} {tip - 9 * side},{y + 4}"
        x, first, anchor = left + _GAP // 2, y + 14 if one.back else y - 6 - _LINE * lines, "middle"
    elif x1 == x2 and y2 == y1 + _HEIGHT + _DOWN:
        middle = x1 + _BOX // 2
        path, head = (
            f"M{middle},{y1 + _HEIGHT} L{middle},{y2}",
            f"{middle},{y2} {middle - 4},{y2 - 9} {middle + 4},{y2 - 9}",
        )
        x, first, anchor = middle + 8, y1 + _HEIGHT + _DOWN // 2 + 4 - _LINE * lines // 2, "start"
    else:
        xa, ya, xb, yb = x1 + _BOX // 2, y1 + _HEIGHT, x2 + _BOX // 2, y2 + _HEIGHT
        path, head = (
            f"M{xa},{ya} C{xa},{ya + 40} {xb},{yb + 40} {xb},{yb}",
            f"{xb},{yb} {xb - 4},{yb + 9} {xb + 4},{yb + 9}",
        )
        x, first, anchor = (xa + xb) // 2, max(ya, yb) + 36, "middle"
    labels = "".join(
        f'<text x="{x}" y="{first + _LINE * n}" font-size="10.5" text-anchor="{anchor}" fill="{ink}">{escape(name)}</text>'
        for n, name in enumerate(names)
    )
    dash = ' stroke-dasharray="5 4"' if one.back else ""
    line = f'<path d="{path}" fill="none" stroke="#6b7f96" stroke-width="1.5"{dash}/>'
    return f'{line}<polygon points="{head}" fill="#6b7f96"/>{labels}'


def _few(names: Sequence[str], most: int = _LABELS) -> list[str]:
    return list(names) if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} more"]


def _stacked(names: Sequence[str], most: int = _LABELS) -> str:
    return "\\n".join(_few(names, most))


def _inputs(node: Node, homes: Mapping[str, str]) -> list[str]:
    inputs = [name for name in node.made_of if name not in homes]
    return [", ".join(inputs[low : low + _LABELS]) for low in range(0, len(inputs), _LABELS)]


def _small(lines: Sequence[str]) -> str:
    return "".join(f'<BR/><FONT POINT-SIZE="8">{escape(line)}</FONT>' for line in lines)
