"""The lineage in all of its formats: all of it, its steps, or one step.

Reads: a lineage, rows by table and seconds by node if known. Gives: `drawn`, the bytes of a file; `to_dot`, the one DOT writer.

Note: pictures need the extra `viz` and are drawn from the DOT text alone; what is in JSON needs no extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ...nodes.errors import InputError
from .lineage import Node, Step, passed, steps_of, unimplied
from .printed import to_json

FORMATS = ("json", "dot", "svg", "png")
ALL, STEPS = "all", "steps"
_NAMED = 3
"""Names on an arrow, and in a line of a box; others are counted."""
_HEAD = """\
digraph lineage {
  bgcolor="white"; compound=true; nodesep=0.15; ranksep=0.5; fontname="Helvetica"; fontsize=12;
  node [shape=box, style="rounded,filled", fillcolor="#dce9f7", color="#9db8d6", fontname="Helvetica", fontsize=11];
  edge [color="#5f7893", arrowsize=0.7, fontname="Helvetica", fontsize=9, fontcolor="#555555"];"""


def drawn(
    lineage: Mapping[str, Any],
    format_: str,
    of: str | None = None,
    *,
    rows: Mapping[str, int] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> bytes:
    """The file.

    Args:
        format_: one of `FORMATS`; JSON has every node.
        of: `steps`, `all` for every node in one picture, or the name of a step. DOT has all by default, a picture the steps.
            Ignored for JSON.

    Raises:
        InputError: there is no such step, or the extra `viz` that the picture needs is not installed.
    """
    steps = steps_of(lineage, rows, seconds)
    names = (STEPS, ALL, *(step.name for step in steps))
    if of not in (None, *names):
        raise InputError.one_of(names, of, "--of")
    if format_ == "json":
        found = {**lineage, **({"rows": dict(rows)} if rows else {}), **({"seconds": dict(seconds)} if seconds else {})}
        return (to_json(found, sort_keys=True) + "\n").encode()
    dot = to_dot(steps, of or (ALL if format_ == "dot" else STEPS))
    return dot.encode() if format_ == "dot" else picture(dot, format_)


def to_dot(steps: Sequence[Step], of: str = ALL) -> str:
    """The steps, all nodes by step, or the nodes of one step and what they read of others, as DOT.

    Arrows of steps name the tables that are passed. In other pictures, an arrow that a longer path implies is left out.
    """
    lines = [_HEAD]
    if of == STEPS:
        lines += ["  rankdir=TB;", *(_box(step.name, step.title, [step.summary]) for step in steps)]
        lines += [_arrow(one.source, one.target, one.nodes, back=one.back) for one in passed(steps)]
        return "\n".join([*lines, "}", ""])
    lines.append("  rankdir=LR;")
    homes = {node.name: step for step in steps for node in step.nodes}
    shown = [step for step in steps if of in (ALL, step.name)]
    for step in shown:
        lines += [f'  subgraph "cluster_{step.name}" {{', f'    label="{step.title}"; color="#cccccc"; style=rounded;']
        lines += [f"  {_node(node)}" for node in step.nodes]
        lines.append("  }")
    made_of = {node.name: set(node.made_of) for step in shown for node in step.nodes}
    others = {source for sources in made_of.values() for source in sources} - made_of.keys()
    lines += [_box(name, name, [homes[name].title], more=', style="rounded,dashed"') for name in sorted(others)]
    lines += [_arrow(source, target) for source, target in unimplied(made_of | {name: set() for name in others})]
    return "\n".join([*lines, "}", ""])


def _node(node: Node) -> str:
    inputs = [", ".join(node.inputs[low : low + _NAMED]) for low in range(0, len(node.inputs), _NAMED)]
    columns = ", ".join(name for name, _ in node.columns)
    tooltip = (node.doc + (f" ({columns})" if columns else "")).replace("\\", "\\\\").replace('"', '\\"')
    figures = [", ".join(node.figures)] if node.figures else []
    return _box(node.name, node.name, [*figures, *inputs], more=f', tooltip="{tooltip}"')


def _box(name: str, title: str, small: Sequence[str], more: str = "") -> str:
    lines = "".join(f'<BR/><FONT POINT-SIZE="8" COLOR="#666666">{escape(line)}</FONT>' for line in small)
    return f'  "{name}" [label=<{escape(title)}{lines}>{more}];'


def _arrow(source: str, target: str, names: Sequence[str] = (), *, back: bool = False) -> str:
    few = names if len(names) <= _NAMED else [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
    style = ", style=dashed, constraint=false" if back else ""
    label = "\\n".join(few)
    return f'  "{source}" -> "{target}"' + (f' [label="{label}"{style}];' if names else ";")


def picture(dot: str, format_: str = "svg") -> bytes:
    """The DOT text drawn as SVG or PNG.

    Raises:
        InputError: the `viz` extra is not installed.
    """
    try:
        import pygraphviz
    except ImportError as error:
        raise InputError(
            "Expected the package pygraphviz, got none - at lineage picture",
            hint='install it with `pip install "scoped-retrieval[viz]"`; JSON and DOT need no extra.',
        ) from error
    found = pygraphviz.AGraph(string=dot).draw(format=format_, prog="dot")
    assert found is not None  # without a path, the picture is returned
    return found
