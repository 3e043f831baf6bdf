"""The graph that a run keeps in `lineage.json`: whether it has the form that pictures, pages and events are made of.

Gives: `expect_graph`. A crash may have taken the line in LOG that names the graph of an interactive run: what is there then
is looked at as input of any author.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Any

from ...nodes.errors import StoreError

__all__ = ["expect_graph"]


def expect_graph(found: Any, at: str) -> None:
    """Refuse anything but a graph of nodes without a circle, each with its table and columns.

    Raises:
        StoreError: it has another form.
    """
    try:
        nodes = {node["name"] for node in found["nodes"] if _is_node(node)}
        made_of: dict[str, list[str]] = {name: [] for name in nodes}
        for source, target in found["edges"]:
            made_of[target].append(source)
        known = len(nodes) == len(found["nodes"]) and all(nodes.issuperset(sources) for sources in made_of.values())
        TopologicalSorter(made_of).prepare()
    except (KeyError, TypeError, ValueError):
        known = False
    if not known:
        raise StoreError(f"Expected the nodes and edges of a dataflow, got another form - at {at}")


def _is_node(node: Any) -> bool:
    words = [node[name] for name in ("name", "kind", "doc")]
    words += [node[name] or "" for name in ("step", "table")]
    words += [column[name] for column in node["columns"] for name in ("name", "type")]
    return all(isinstance(word, str) for word in words)
