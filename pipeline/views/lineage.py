"""The lineage of the line: every node, the table it returns and its inputs, and the same by steps; in all formats.

Reads: a Hamilton driver, once built; rows by table and seconds by node if known. Gives: `lineage_of`, plain JSON in sorted order;
`drawn`, the bytes of a file; `to_dot`, the one DOT writer.

Note: two steps may feed each other, as ranking and feedback do: arrows back to an earlier step are marked. Pictures need
the extra `viz` and are drawn from the DOT text alone.
"""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from graphlib import TopologicalSorter
from html import escape
from typing import Any, get_args

from ...nodes.errors import InputError
from ...nodes.schema import Table
from ..extras import package
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


def steps_of(lineage: Mapping[str, Any]) -> dict[str, list[str]]:
    """The nodes of each step in execution order, by step in the order of the line."""
    nodes, depth = {node["name"]: node for node in lineage["nodes"]}, dict[str, int]()
    sources = _sources(lineage["edges"], nodes)
    for name in TopologicalSorter(sources).static_order():
        depth[name] = 1 + max((depth[source] for source in sources[name]), default=-1)
    steps: dict[str, list[str]] = {}
    for name in sorted(nodes, key=lambda name: (depth[name], name)):
        if step := nodes[name]["step"]:
            steps.setdefault(step, []).append(name)
    return dict(sorted(steps.items(), key=lambda step: (depth[step[1][-1]], step[0])))


def _sources(edges: Iterable[Sequence[str]], names: Iterable[str]) -> dict[str, list[str]]:
    """What each of these reads, in the order of the edges."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        found[target].append(source)
    return found


def _unimplied(edges: Iterable[Sequence[str]], names: Iterable[str]) -> list[tuple[str, str]]:
    """The edges of the transitive reduction, sorted: those not implied by a longer path."""
    made_of, above = _sources(edges, names), dict[str, set[str]]()
    for name in TopologicalSorter(made_of).static_order():
        above[name] = set(made_of[name]).union(*(above[source] for source in made_of[name]))
    return sorted(
        (source, target)
        for target, sources in made_of.items()
        for source in sources
        if not any(source in above[other] for other in sources)
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
    """The file, with rows by table and seconds by node as far as they are known.

    Args:
        format_: one of `FORMATS`; JSON has every node.
        of: `steps`, `all` for every node in one picture, or the name of a step. DOT has all by default, a picture the steps.
            Ignored for JSON.

    Raises:
        InputError: there is no such step, or the extra `viz` that the picture needs is not installed.
    """
    names = (STEPS, ALL, *steps_of(lineage))
    if of not in (None, *names):
        raise InputError.one_of(names, of, "--of")
    if format_ == "json":
        found = {**lineage, **({"rows": dict(rows)} if rows else {}), **({"seconds": dict(seconds)} if seconds else {})}
        return (to_json(found, sort_keys=True) + "\n").encode()
    dot = to_dot(lineage, of or (ALL if format_ == "dot" else STEPS), rows or {}, seconds or {})
    return dot.encode() if format_ == "dot" else picture(dot, format_)


def to_dot(lineage: Mapping[str, Any], of: str, rows: Mapping[str, int], seconds: Mapping[str, float]) -> str:
    """The steps, all nodes by step, or the nodes of one step and what they read of others, as DOT.

    Arrows of steps name the tables that are passed. An arrow that a longer path implies is left out.
    """
    nodes, steps = {node["name"]: node for node in lineage["nodes"]}, steps_of(lineage)
    homes = {name: step for step, names in steps.items() for name in names}
    between = [(source, target) for source, target in lineage["edges"] if source in homes]

    def known(names: Sequence[str]) -> list[str]:
        """Rows and time of some nodes together, as far as they are known."""
        counts = [rows[table] for name in names if (table := nodes[name]["table"]) in rows]
        times = [seconds[name] for name in names if name in seconds]
        return [counted(sum(counts), "row")] * bool(counts) + [duration(sum(times))] * bool(times)

    def box(name: str) -> str:
        inputs = [source for source, target in lineage["edges"] if target == name and source not in homes]
        lines = [", ".join(inputs[low : low + _NAMED]) for low in range(0, len(inputs), _NAMED)]
        columns = ", ".join(column["name"] for column in nodes[name]["columns"])
        tooltip = (nodes[name]["doc"] + (f" ({columns})" if columns else "")).replace("\\", "\\\\").replace('"', '\\"')
        figures = known([name])
        return _box(name, name, [", ".join(figures)] * bool(figures) + lines, more=f', tooltip="{tooltip}"')

    if of == STEPS:
        lines = [_HEAD, "  rankdir=TB;"]
        for step, names in steps.items():
            lines.append(_box(step, _title(step), [", ".join([counted(len(names), "node"), *known(names)])]))
        return "\n".join([*lines, *_passed(between, homes, list(steps)), "}", ""])
    lines, shown = [_HEAD, "  rankdir=LR;"], [step for step in steps if of in (ALL, step)]
    for step in shown:
        lines += [f'  subgraph "cluster_{step}" {{', f'    label="{_title(step)}"; color="#cccccc"; style=rounded;']
        lines += [f"  {box(name)}" for name in steps[step]]
        lines.append("  }")
    edges = [(source, target) for source, target in between if homes[target] in shown]
    others = sorted({source for source, _ in edges if homes[source] not in shown})
    lines += [_box(name, name, [_title(homes[name])], more=', style="rounded,dashed"') for name in others]
    lines += [_arrow(source, target) for source, target in _unimplied(edges, homes)]
    return "\n".join([*lines, "}", ""])


def _passed(between: Sequence[tuple[str, str]], homes: Mapping[str, str], steps: Sequence[str]) -> list[str]:
    """The arrows of tables that steps pass to each other; those back to an earlier step are marked."""
    found: dict[tuple[str, str], set[str]] = {}
    for source, target in between:
        if homes[source] != homes[target]:
            found.setdefault((homes[source], homes[target]), set()).add(source)
    place = {step: number for number, step in enumerate(steps)}
    back = [(source, target) for source, target in found if place[source] > place[target]]
    kept = [*_unimplied(found.keys() - set(back), steps), *back]
    return [
        _arrow(source, target, sorted(found[source, target]), back=(source, target) in back)
        for source, target in sorted(kept, key=lambda edge: (place[edge[0]], place[edge[1]]))
    ]


def _title(step: str) -> str:
    """The name of a step in words."""
    return step.replace("_", " ")


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
        ModelError: the extra `viz` is not installed.
    """
    return package("pygraphviz", "viz").AGraph(string=dot).draw(format=format_, prog="dot")
