"""The lineage of the line: every node, the table it returns and its inputs.

Reads: a Hamilton driver, once built. Gives: plain JSON in sorted order, DOT text, and SVG or PNG if the `viz` extra is
installed. All four are byte-identical on every run; the picture is drawn from the DOT text alone.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from ...nodes.errors import InputError
from ...nodes.schema import Table

__all__ = ["FORMATS", "current_lineage", "lineage_of", "picture", "to_dot", "write_picture"]

FORMATS = ("json", "dot", "svg", "png")
_INPUTS_A_LINE = 3
_LEGEND = "small: inputs of the line; an arrow that a longer path implies is left out, `lineage --json` has every edge"


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


def to_dot(lineage: Mapping[str, Any]) -> str:
    """The graph as DOT: a box per node, grouped by step, with the inputs of the line that it reads named inside.

    An arrow is an edge that is not implied by a longer path; the JSON form has every edge.
    """
    inputs = {n["name"] for n in lineage["nodes"] if n["kind"] == "input"}
    reads: dict[str, list[str]] = {n["name"]: [] for n in lineage["nodes"]}
    made_of: dict[str, set[str]] = {n["name"]: set() for n in lineage["nodes"]}
    for source, target in lineage["edges"]:
        if source in inputs:
            reads[target].append(source)
        else:
            made_of[target].add(source)
    lines = [
        "digraph lineage {",
        "  rankdir=LR; ranksep=0.45; nodesep=0.12; compound=true;",
        '  fontname="Helvetica"; fontsize=10; fontcolor="#777777"; labelloc=b; labeljust=l;',
        f"  label={_quoted(_LEGEND)};",
        '  node [shape=box, style="rounded,filled", fillcolor="#dce9f7", color="#9db8d6", fontname="Helvetica", fontsize=11];',
        '  edge [color="#5f7893", arrowsize=0.7];',
    ]
    steps = sorted({n["step"] for n in lineage["nodes"] if n["step"]})
    for step in steps:
        lines += [f"  subgraph {_quoted(f'cluster_{step}')} {{", f"    label={_quoted(step.replace('_', ' '))};"]
        lines += ['    color="#cccccc"; style=rounded; fontsize=12; fontcolor="#333333"; labelloc=t;']
        lines += [f"    {_dot_node(n, reads[n['name']])}" for n in lineage["nodes"] if n["step"] == step]
        lines.append("  }")
    lines += [f"  {_quoted(source)} -> {_quoted(target)};" for source, target in _unimplied(made_of)]
    return "\n".join([*lines, "}", ""])


def _unimplied(made_of: Mapping[str, set[str]]) -> list[tuple[str, str]]:
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
    with _without_font_warnings():
        drawn = pygraphviz.AGraph(string=dot).draw(format=format_, prog="dot")
    assert drawn is not None  # without a path, the picture is returned
    return drawn


@contextmanager
def _without_font_warnings() -> Iterator[None]:
    """Suppress standard error within the block: fontconfig writes warnings about the system's font settings there.

    Graphviz runs in this process, so the file descriptor itself must be redirected. Its errors are exceptions.
    """
    sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def write_picture(lineage: Mapping[str, Any], path: Path) -> Path:
    """Draw the graph into `path`; its suffix names the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture(to_dot(lineage), path.suffix.removeprefix(".")))
    return path


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
    """Hamilton's version of a node: the digest of its source without docstring and comments.

    Source lines come from the compiled function; Hamilton finds them with the tokenizer, which is ten times slower.
    """
    from hamilton.graph_types import hash_source_code

    code = function.__code__
    end = max(end for _, end, _, _ in code.co_positions() if end)
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 : end]
    return hash_source_code("".join(lines), strip=True)


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().partition("\n")[0].strip()


def _dot_node(node: Mapping[str, Any], reads: Sequence[str]) -> str:
    columns = ", ".join(c["name"] for c in node["columns"])
    tooltip = node["doc"] + (f" ({columns})" if columns else "")
    lines = (", ".join(reads[low : low + _INPUTS_A_LINE]) for low in range(0, len(reads), _INPUTS_A_LINE))
    small = "".join(f'<BR/><FONT POINT-SIZE="8" COLOR="#666666">{line}</FONT>' for line in lines)
    return f"{_quoted(node['name'])} [label=<{node['name']}{small}>, tooltip={_quoted(tooltip)}];"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
