"""Tenants: principals in projects, and which of them can be tested together.

Reads grants. Gives tenants in order of name, and groups in which no tenant reaches the project of another, so the
canaries of each are out of scope for all the others, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

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

    @property
    def name(self) -> str:
        return f"{self.principal} in {self.project}"


def tenants_of(grants: pa.Table, principal: str | None = None, project: str | None = None) -> list[Tenant]:
    """Every principal in every project that they may ask in, limited to those named."""
    opened: dict[tuple[str, str], str] = {}
    users: dict[str, set[str]] = {}
    reached: dict[str, set[str]] = {}
    columns = ("principal", "project", "own_project", "zone", "users")
    for row in grants.filter(grants["project"].is_valid()).select(columns).to_pylist():
        who, where = row["principal"], row["project"]
        users.setdefault(who, {who}).update(row["users"] or ())
        reached.setdefault(who, set()).add(where)
        if row["own_project"] and principal in (None, who) and project in (None, where):
            opened[who, where] = row["zone"]
    return [
        Tenant(who, where, zone, frozenset(users[who]), frozenset(reached[who]))
        for (who, where), zone in sorted(opened.items())
    ]


def apart(tenants: Sequence[Tenant]) -> list[list[Tenant]]:
    """The tenants in groups: each joins the first group in which no tenant would reach another's project."""
    groups: list[list[Tenant]] = []
    for tenant in tenants:
        free = (group for group in groups if not any(_meet(tenant, other) for other in group))
        if (group := next(free, None)) is None:
            groups.append([tenant])
        else:
            group.append(tenant)
    return groups


def _meet(one: Tenant, other: Tenant) -> bool:
    """Whether one of them reaches the project of the other."""
    return one.project in other.reached or other.project in one.reached


def others_of(group: Sequence[Tenant], known: Collection[str]) -> list[tuple[str, str]]:
    """For each tenant of a group, principal and project of another tenant in it, so that the batch opens the rows of both.

    If there is none, one of the `known` projects out of reach, or one that does not exist.
    """
    found = []
    for number, tenant in enumerate(group):
        around = [*group[number + 1 :][:_NEAR], *group[:_NEAR]]
        other = next((one for one in around if _strangers(tenant, one)), None)
        elsewhere = next((name for name in known if name not in tenant.reached), NOBODY)
        found.append((NOBODY, elsewhere) if other is None else (other.principal, other.project))
    return found


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


_NEAR = 20
"""Tenants of a group that are examined to find a stranger."""


def _strangers(one: Tenant, other: Tenant) -> bool:
    """Whether neither may read the other's rows."""
    return one.principal not in other.users and other.principal not in one.users
