"""What would admit a row: the gates that stop it opened one by one, each judged again by the second wall.

Reads: a contract, its bounds and one stored row. Gives: per gate the deciding rule and what would have to be otherwise,
until the row passes or only the row itself could change. For auditors: it speaks of rows that a caller may not know of.
What opens a gate, the gate itself says (`Gate.remedy`).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from ...nodes.plugins import NO_PLUGINS, Plugins
from ...nodes.tables import CONTRACT_BOUNDS, CONTRACTS
from ...nodes.walls.gates.gate import Case
from ..views.refusal import refusals

__all__ = ["Remedy", "remedies"]


@dataclass(frozen=True)
class Remedy:
    """One gate that stops the row: the rule that decides there, and what would open it."""

    gate: str
    rule: str
    needed: str
    possible: bool = True
    """Whether a contract can open it; otherwise only the row itself could change."""


def remedies(
    contract: dict[str, Any],
    bounds: list[dict[str, Any]],
    frame: Any,
    position: int,
    plugins: Plugins = NO_PLUGINS,
) -> list[Remedy]:
    """The gates that stop a frame row, in the order they are met; empty for a row that passes them all.

    Raises:
        SchemaError: the `remedy` of a plugin's gate failed.
    """
    row = frame.evidence.slice(position, 1).to_pylist()[0]
    starts = frame.row_index.placement_starts
    placed = frame.placements.slice(starts[position], starts[position + 1] - starts[position]).to_pylist()
    case = Case(copy.deepcopy(contract) | {"denied": False}, copy.deepcopy(bounds), row, placed)
    gates = {gate.name: gate for gate in plugins.order.gates}
    found: list[Remedy] = []
    for _ in gates:
        name = _stopped_by(case, frame, position, plugins)
        if name is None or (found and name == found[-1].gate):
            break
        found.append(Remedy(name, *gates[name].opening(case)))
        if not found[-1].possible:
            break
    return found


def _stopped_by(case: Case, frame: Any, position: int, plugins: Plugins = NO_PLUGINS) -> str | None:
    contracts, bounds = CONTRACTS.from_rows([case.contract]), CONTRACT_BOUNDS.from_rows(case.bounds)
    return refusals(contracts, bounds, frame, [position], plugins)[0]["decided_by"]
