"""The lineage of the line: every node, the table it returns and its inputs, and the same by steps; in all formats.

Reads: a Hamilton driver, once built; rows by table and seconds by node if known. Gives: `lineage_of`, plain JSON in sorted order;
`steps_of`, the nodes of each step in execution order; `passed`, the tables between steps; `drawn`, the bytes of a file;
`to_dot`, the one DOT writer.

Note: two steps may feed each other, as ranking and feedback do: arrows back to an earlier step are marked. Pictures need
the extra `viz` and are drawn from the DOT text alone.
"""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any, get_args

from ...nodes.errors import InputError
from ...nodes.schema import Table
from ..progress import counted
from .printed import to_json


def lineage_of(driver: Any) -> dict[str, Any]:
    """The graph of a driver as `{"nodes": [...], "edges": [[from, to], ...]}`, sorted by name.

    A node has `name`, `kind` (input or node), `step` (the module that defines it), `doc` (first line), `table`,
    `columns` (name and type, in declared order; empty for an input that is not a table), `tags` and `version`.
    """
    nodes, edges = [], []
    for variable in sorted(driver.list_available_variables(), key=lambda v: v.name):
        table = _table(variable.type)
        modules = sorted({f.__module__.rpartition(".")[2] for f in variable.originating_functions or ()})
        nodes.append(
            {
                "name": variable.name,
                "kind": "input" if variable.is_external_input else "node",
                "step": modules[0] if modules and not variable.is_external_input else None,
                "doc": _first_line(variable.documentation) or (table.doc if table else ""),
                "table": table.name if table else None,
                "columns": [{"name": n, "type": str(c.type)} for n, c in table.columns.items()] if table else [],
                "tags": {k: v for k, v in sorted(variable.tags.items()) if k != "module"},
                "version": None if variable.is_external_input else _version(variable.originating_functions[0]),
            }
        )
        edges += [[d, variable.name] for d in variable.required_dependencies | variable.optional_dependencies]
    return {"nodes": nodes, "edges": sorted(edges)}


def current_lineage() -> dict[str, Any]:
    """The graph of the line as installed."""
    from ..line.driver import build_driver

    return lineage_of(build_driver())


@dataclass(frozen=True)
class Node:
    """A node of the line, the nodes and the inputs of the line that it reads, and its rows and time."""

    name: str
    doc: str
    columns: tuple[tuple[str, str], ...]
    """Name and type."""
    made_of: tuple[str, ...]
    inputs: tuple[str, ...]
    rows: int | None
    seconds: float | None


@dataclass(frozen=True)
class Step:
    """A module of the line."""

    name: str
    nodes: tuple[Node, ...]

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def summary(self) -> str:
        """Its nodes, and their rows and time together as far as they are known."""
        rows = [node.rows for node in self.nodes if node.rows is not None]
        seconds = [node.seconds for node in self.nodes if node.seconds is not None]
        known = figures(sum(rows) if rows else None, sum(seconds) if seconds else None)
        return ", ".join([counted(len(self.nodes), "node"), *known])


def figures(rows: int | None, seconds: float | None) -> list[str]:
    """Rows and time, as far as they are known."""
    found = [counted(rows, "row")] if rows is not None else []
    return found if seconds is None else [*found, duration(seconds)]


def steps_of(
    lineage: Mapping[str, Any], rows: Mapping[str, int] | None = None, seconds: Mapping[str, float] | None = None
) -> list[Step]:
    """The steps in the order of the line, their nodes in execution order, with rows by table and seconds by node."""
    nodes = {node["name"]: node for node in lineage["nodes"]}
    sources: dict[str, set[str]] = {name: set() for name in nodes}
    for source, target in lineage["edges"]:
        sources[target].add(source)
    depth: dict[str, int] = {}

    def depth_of(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max(map(depth_of, sources[name]), default=-1)
        return depth[name]

    steps: dict[str, list[str]] = {}
    for name in sorted(nodes, key=lambda name: (depth_of(name), name)):
        if step := nodes[name]["step"]:
            steps.setdefault(step, []).append(name)

    def node_of(name: str) -> Node:
        node, read = nodes[name], sorted(sources[name])
        made_of = tuple(each for each in read if nodes[each]["step"])
        inputs = tuple(each for each in read if not nodes[each]["step"])
        columns = tuple((column["name"], column["type"]) for column in node["columns"])
        count = (rows or {}).get(node["table"] or "")
        return Node(name, node["doc"], columns, made_of, inputs, count, (seconds or {}).get(name))

    ordered = sorted(steps.items(), key=lambda step: (max(map(depth_of, step[1])), step[0]))
    return [Step(name, tuple(map(node_of, of_step))) for name, of_step in ordered]


def passed(steps: Sequence[Step]) -> list[tuple[str, str, list[str], bool]]:
    """The tables that steps pass to each other, without arrows that a chain of steps implies: source, target, nodes, and
    whether the target comes before the source.
    """
    home = {node.name: step.name for step in steps for node in step.nodes}
    place = {step.name: number for number, step in enumerate(steps)}
    found: dict[tuple[str, str], set[str]] = {}
    for step in steps:
        for source in (source for node in step.nodes for source in node.made_of if home[source] != step.name):
            found.setdefault((home[source], step.name), set()).add(source)
    ahead: dict[str, set[str]] = {step.name: set() for step in steps}
    for source, target in found:
        if place[source] < place[target]:
            ahead[target].add(source)
    kept = {*unimplied(ahead), *((source, target) for source, target in found if place[source] > place[target])}
    return [
        (source, target, sorted(found[source, target]), place[source] > place[target])
        for source, target in sorted(kept, key=lambda edge: (place[edge[0]], place[edge[1]]))
    ]


def unimplied(made_of: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The edges of the transitive reduction, sorted: those not implied by a longer path."""
    above: dict[str, set[str]] = {}

    def ancestors(name: str) -> set[str]:
        if name not in above:
            above[name] = made_of[name].union(*(ancestors(one) for one in made_of[name]))
        return above[name]

    return sorted(
        (source, target)
        for target, sources in made_of.items()
        for source in sources
        if not any(source in ancestors(other) for other in sources - {source})
    )


def duration(seconds: float) -> str:
    """A duration for people."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1_000 * seconds:.3g} ms"


def _table(type_: Any) -> Table | None:
    """The declared table in an annotation, including `Optional[...]`."""
    for part in get_args(type_):
        if isinstance(part, Table):
            return part
        if found := _table(part):
            return found
    return None


@lru_cache(maxsize=256)
def _version(function: Callable[..., Any]) -> str:
    """SHA-256 of the source of a node.

    Source lines come from the compiled function: `inspect` finds them with the tokenizer, which is ten times slower.
    """
    code = function.__code__
    end = max(end for _, end, _, _ in code.co_positions() if end)
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 : end]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0].strip()


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
        lines += [_arrow(source, target, nodes, back=back) for source, target, nodes, back in passed(steps)]
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
    known = ", ".join(figures(node.rows, node.seconds))
    return _box(node.name, node.name, [*([known] if known else []), *inputs], more=f', tooltip="{tooltip}"')


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
