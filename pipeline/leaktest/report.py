"""The result of a leak test: counts, names and places, no evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from ..progress import counted


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

    def text(self) -> str:
        """One line per leak, then what was compared."""
        lines = [
            f"leak: {leak.principal} in {leak.project}, {leak.angle}: {leak.kind} in {leak.surface} of {leak.probe}, "
            f"{leak.state}: {leak.detail}"
            for leak in self.leaks
        ]
        lines += [f"skipped: {one}" for one in self.skipped]
        lines.append(
            f"{counted(self.tenants, 'tenant')}, {counted(self.probes, 'probe')}, "
            f"{counted(self.canaries, 'canary', 'canaries')} in {counted(len(self.roles), 'role')} behind "
            f"{counted(len(self.gates), 'gate')}, {counted(self.comparisons, 'comparison')}: "
            f"{counted(self.differences, 'difference')}, {counted(len(self.leaks), 'leak')}"
        )
        return "\n".join(lines) + "\n"
