"""Tenants: principals in projects, and which of them can be tested together.

Reads grants. Gives tenants in order of name, and groups in which no tenant reaches the project of another, so the
canaries of each are out of scope for all the others, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from ...nodes.tables import GRANTS
from ..config.grants import GrantsFile

NOBODY = "leak-test-nobody"
"""The owner and project of canaries if there is no other principal to own them."""
ASKER = "leak-test-asker"
"""The credential that asks for all tenants: it may act as each of them."""
READER = "leak-test-reader"
"""The principal that may read the rows of every user in every project."""


@dataclass(frozen=True)
class Tenant:
    """One principal in one project, with the reach of their grants there."""

    principal: str
    project: str
    zone: str
    users: frozenset[str]
    """Users whose rows the principal may read, including their own."""
    reached: frozenset[str]
    """Every project that the principal reaches."""

    def __str__(self) -> str:
        return f"{self.principal} in {self.project}"

    def meets(self, other: Tenant) -> bool:
        """Whether one of them reaches the project of the other."""
        return self.project in other.reached or other.project in self.reached

    def reads(self, other: Tenant) -> bool:
        """Whether one of them may read the other's rows."""
        return self.principal in other.users or other.principal in self.users


def tenants_of(grants: pa.Table, principal: str | None = None, project: str | None = None) -> list[Tenant]:
    """Every principal in every project that they may ask in, limited to those named."""
    of_principal: dict[str, list[dict[str, Any]]] = {}
    for row in grants.filter(grants["project"].is_valid()).to_pylist():
        of_principal.setdefault(row["principal"], []).append(row)
    found = {}
    for who, rows in of_principal.items():
        users = frozenset([who]).union(*(row["users"] or () for row in rows))
        reached = frozenset(row["project"] for row in rows)
        for row in rows:
            if row["own_project"] and principal in (None, who) and project in (None, row["project"]):
                found[who, row["project"]] = Tenant(who, row["project"], row["zone"], users, reached)
    return [found[key] for key in sorted(found)]


def apart(tenants: Sequence[Tenant]) -> list[list[Tenant]]:
    """The tenants in groups: each joins the first group in which no tenant would reach another's project."""
    groups: list[list[Tenant]] = []
    for tenant in tenants:
        free = (group for group in groups if not any(tenant.meets(other) for other in group))
        if (group := next(free, None)) is None:
            groups.append([tenant])
        else:
            group.append(tenant)
    return groups


def other_of(group: Sequence[Tenant], number: int, known: Collection[str]) -> tuple[str, str]:
    """Principal and project of another tenant of the group, preferably the next, so that the batch opens the rows of both.

    If there is none, one of the `known` projects out of reach, or one that does not exist.
    """
    tenant, around = group[number], (group[(number + step) % len(group)] for step in range(1, len(group)))
    if (other := next((one for one in around if not tenant.reads(one)), None)) is not None:
        return other.principal, other.project
    return NOBODY, next((name for name in known if name not in tenant.reached), NOBODY)


def asking_for_all(grants: GrantsFile, projects: Collection[str] = ()) -> GrantsFile:
    """The same grants, READER in these projects, and one credential that may act as every principal."""
    reading = {
        "principal": READER, "own_project": True, "zone": "restricted", "audit": False, "users": list(grants.principals),
    }  # fmt: skip
    asking = {
        "rule_id": ASKER, "principal": ASKER, "own_project": False, "zone": "public", "audit": False,
        "act_as": [*grants.principals, READER],
    }  # fmt: skip
    rows = [{**reading, "rule_id": f"{READER}.{project}", "project": project} for project in projects]
    table = pa.concat_tables([grants.table, GRANTS.from_rows([*rows, asking])]).sort_by("rule_id").combine_chunks()
    return replace(grants, table=table, principals=(*grants.principals, ASKER, READER))
