"""The lineage by steps: the nodes of each step and the tables passed between steps, in execution order.

Reads: a lineage (`lineage.lineage_of`), rows by table and seconds by node if known. Gives: `steps_of`, `Step`s
in order, and `passed`, the tables between them.

Note: two steps may feed each other, as ranking and feedback do: edges back to an earlier step are marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Node", "Passed", "Step", "passed", "steps_of"]


@dataclass(frozen=True)
class Node:
    """A node of the line, its inputs, and its rows and time."""

    name: str
    doc: str
    columns: tuple[tuple[str, str], ...]
    """Name and type."""
    made_of: tuple[str, ...]
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
    def rows(self) -> int | None:
        """The rows of all its tables, if any is known."""
        known = [node.rows for node in self.nodes if node.rows is not None]
        return sum(known) if known else None

    @property
    def seconds(self) -> float | None:
        """The time of all its nodes, if any is known."""
        known = [node.seconds for node in self.nodes if node.seconds is not None]
        return sum(known) if known else None


@dataclass(frozen=True)
class Passed:
    """The nodes that one step passes to another."""

    source: str
    target: str
    nodes: tuple[str, ...]
    back: bool
    """Whether the target comes before the source."""


def steps_of(
    lineage: Mapping[str, Any], rows: Mapping[str, int] | None = None, seconds: Mapping[str, float] | None = None
) -> list[Step]:
    """The steps in the order of the line, their nodes in execution order.

    Args:
        lineage: `{"nodes": [...], "edges": [...]}`.
        rows: rows by name of table.
        seconds: seconds by name of node.
    """
    made_of = _made_of(lineage)
    depth = _depths(lineage, made_of)
    steps: dict[str, list[Mapping[str, Any]]] = {}
    for node in lineage["nodes"]:
        if node["step"]:
            steps.setdefault(node["step"], []).append(node)
    ordered = sorted(steps.items(), key=lambda step: (max(depth[n["name"]] for n in step[1]), step[0]))
    return [
        Step(
            name,
            tuple(
                Node(
                    n["name"], n["doc"], tuple((c["name"], c["type"]) for c in n["columns"]),
                    tuple(sorted(made_of.get(n["name"], ()))), (rows or {}).get(n["table"] or ""),
                    (seconds or {}).get(n["name"]),
                )
                for n in sorted(nodes, key=lambda n: (depth[n["name"]], n["name"]))
            ),
        )
        for name, nodes in ordered
    ]  # fmt: skip


def passed(steps: list[Step]) -> list[Passed]:
    """The edges between steps, without those implied by a chain of steps."""
    home = {node.name: step.name for step in steps for node in step.nodes}
    place = {step.name: number for number, step in enumerate(steps)}
    found: dict[tuple[str, str], set[str]] = {}
    for step in steps:
        for node in step.nodes:
            for source in node.made_of:
                if home.get(source, step.name) != step.name:
                    found.setdefault((home[source], step.name), set()).add(source)
    before: dict[str, set[str]] = {step.name: set() for step in steps}
    for source, target in sorted(found, key=lambda edge: place[edge[1]]):
        if place[source] < place[target]:
            before[target] |= {source}
    above: dict[str, set[str]] = {}
    for step in steps:
        above[step.name] = before[step.name].union(*(above[source] for source in before[step.name]))
    return [
        Passed(source, target, tuple(sorted(nodes)), place[source] > place[target])
        for (source, target), nodes in sorted(found.items(), key=lambda one: (place[one[0][0]], place[one[0][1]]))
        if place[source] > place[target]
        or not any(source in above[other] for other in before[target] - {source})
    ]  # fmt: skip


def _made_of(lineage: Mapping[str, Any]) -> dict[str, list[str]]:
    """The nodes and inputs that each node reads; a name without inputs is omitted."""
    made_of: dict[str, list[str]] = {}
    for source, target in lineage["edges"]:
        made_of.setdefault(target, []).append(source)
    return made_of


def _depths(lineage: Mapping[str, Any], made_of: Mapping[str, list[str]]) -> dict[str, int]:
    """The longest path from an input to each node."""
    depth: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((of(source) for source in made_of.get(name, ())), default=-1)
        return depth[name]

    for node in lineage["nodes"]:
        of(node["name"])
    return depth
