"""The result of a leak test: counts, names and places, no evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Leak:
    """One leak: to whom, from which angle, in which state, probe and surface, and its kind."""

    principal: str
    project: str
    angle: str
    state: str
    probe: str
    surface: str
    kind: str
    detail: str


@dataclass
class LeakReport:
    """The comparisons made and the leaks found."""

    tenants: int = 0
    probes: int = 0
    canaries: int = 0
    comparisons: int = 0
    differences: int = 0
    batches: int = 0
    """Runs of all probes from one angle, over tenants that do not reach each other's projects; two states each."""
    roles: dict[str, int] = field(default_factory=dict)
    """Canaries by role."""
    gates: dict[str, int] = field(default_factory=dict)
    """Canaries by the gate that excludes them."""
    leaks: list[Leak] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def count(self, roles_and_gates: Iterable[tuple[str, str]]) -> None:
        """Count canaries by their role and the gate that excludes them."""
        for role, gate in roles_and_gates:
            self.canaries += 1
            self.roles[role] = self.roles.get(role, 0) + 1
            self.gates[gate] = self.gates.get(gate, 0) + 1

    @property
    def ok(self) -> bool:
        return not self.leaks

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"ok": self.ok, **asdict(self)}
