"""The access that grants give each request: who may ask on whose behalf, the active grants, and the resulting bounds.

Reads requests and grants. Gives `ActiveGrants`, CONTRACT_BOUNDS, and the columns that contracts take from grants.
Rights are judged at `asked_at`: no other instant revives an expired grant or a removed principal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from ..columns.kept import OfTable
from ..tables import CONTRACT_BOUNDS
from ..vocabulary import LIFECYCLES

Grant = dict[str, Any]
"""A row of GRANTS."""
Request = dict[str, Any]
"""The columns of a request that determine its grants."""
_ASKED = ["principal", "asked_by", "project", "asked_at"]
_COPIED = ("project", "zone", "rule_id")


@dataclass(frozen=True)
class ActiveGrants:
    """What grants give each request."""

    held: list[list[Grant]]
    """Those that are active at `asked_at`, by project and rule; none unless one of the request's own project is. Requests
    with the same ones share a list."""
    own: list[list[Grant]]
    """Those of them of its own project."""
    acting: list[bool]
    """The caller is its principal, or may act as it."""
    refused: Sequence[str | None] = ()
    """The reason for refusing it, None where it is accepted."""

    @property
    def granted(self) -> list[bool]:
        """A grant of its own project is active, for a principal that the caller may act for."""
        return [bool(own) for own in self.own]

    @property
    def groups(self) -> list[list[str]]:
        """The principal's groups."""
        return [sorted({name for grant in held for name in grant["groups"] or ()}) for held in self.held]

    @cached_property
    def bounds(self) -> list[list[dict[str, Any]]]:
        """The bounds that each request's grants set, without the request; a denied path applies to all grants of its
        project.
        """
        of = {place: _bounds(held) for place, held in {id(held): held for held in self.held}.items()}
        return [of[id(held)] for held in self.held]

    @property
    def states(self) -> list[list[bool]]:
        """Whether the grants of the own project allow each of LIFECYCLES; all where none narrows them."""
        found = []
        for own in self.own:
            lists = [grant["states"] for grant in own]
            every = not own or None in lists
            allowed = {state for states in lists for state in states or ()}
            found.append([every or state in allowed for state in LIFECYCLES.values])
        return found


def active_grants_of(requests: pa.Table, grants: pa.Table) -> ActiveGrants:
    """The active grants of each request; one with an empty list of sources or paths gives no access."""
    held, own, acting = [], [], []
    known: dict[tuple[int, ...], list[Grant]] = {}
    for request in requests.select(_ASKED).to_pylist():
        acts = _may_act(request, grants)
        usable = [grant for grant in _opening(grants).get(request["principal"], ()) if _usable(grant, request)]
        home = [grant for grant in usable if _is_own(grant, request)] if acts else []
        acting.append(acts)
        own.append(home)
        reached = usable if home else []
        held.append(known.setdefault(tuple(map(id, reached)), reached))
    return ActiveGrants(held, own, acting)


def _may_act(request: Request, grants: pa.Table) -> bool:
    """Whether a request is made by its principal, or by one with an `act_as` grant that is active at `asked_at`."""
    if request["asked_by"] in (None, request["principal"]):
        return True
    rights = _rights(grants).get((request["asked_by"], request["principal"]), ())
    return any(right["project"] in (None, request["project"]) and _is_active(right, request) for right in rights)


def _usable(grant: Grant, request: Request) -> bool:
    """Whether a grant is active and opens its project to a request: its own, or another that its project may use."""
    shared = not grant["own_project"] and (grant["for_projects"] is None or request["project"] in grant["for_projects"])
    return _is_active(grant, request) and (_is_own(grant, request) or shared)


def _is_own(grant: Grant, request: Request) -> bool:
    return bool(grant["own_project"]) and grant["project"] == request["project"]


def _is_active(grant: Grant, request: Request) -> bool:
    return grant["expires"] is None or request["asked_at"] < grant["expires"]


def _opening_rows(grants: pa.Table) -> dict[str | None, list[Grant]]:
    """The grants that give any access, by principal; each one's by project and rule."""
    found: dict[str | None, list[Grant]] = {}
    for grant in grants.to_pylist():
        if grant["act_as"] is None and grant["project"] is not None and [] not in (grant["sources"], grant["paths"]):
            found.setdefault(grant["principal"], []).append(grant)
    return {who: sorted(rows, key=lambda row: (row["project"], row["rule_id"])) for who, rows in found.items()}


def _act_as_rows(grants: pa.Table) -> dict[tuple[str | None, str], list[Grant]]:
    """Who may ask on whose behalf, by caller and principal."""
    found: dict[tuple[str | None, str], list[Grant]] = {}
    for grant in grants.to_pylist():
        for other in grant["act_as"] or ():
            found.setdefault((grant["principal"], other), []).append(grant)
    return found


_opening = OfTable[dict[str | None, list[Grant]]](_opening_rows)
_rights = OfTable[dict[tuple[str | None, str], list[Grant]]](_act_as_rows)


def _bounds(held: Sequence[Grant]) -> list[dict[str, Any]]:
    shut: dict[str, set[str]] = {}
    for grant in held:
        shut.setdefault(grant["project"], set()).update(grant["denied_paths"] or ())
    return [
        {
            **{name: grant[name] for name in _COPIED},
            "users": sorted({*(grant["users"] or ()), grant["principal"]}),
            **{name: distinct(grant[name]) for name in ("sources", "paths", "namespaces", "states")},
            "denied_paths": sorted(shut[grant["project"]]),
        }
        for grant in held
    ]


def bounds_of(requests: pa.Table, reach: ActiveGrants, denied: Iterable[bool]) -> pa.Table:
    """CONTRACT_BOUNDS of the requests that are not denied."""
    rows, places, at, owner = list[dict[str, Any]](), dict[int, int](), list[int](), list[int]()
    for number, (bounds, refused) in enumerate(zip(reach.bounds, denied, strict=True)):
        if refused:
            continue
        if id(bounds) not in places:
            places[id(bounds)] = len(rows)
            rows += bounds
        at += range(places[id(bounds)], places[id(bounds)] + len(bounds))
        owner += [number] * len(bounds)
    ids = requests["request_id"].take(pa.array(owner, pa.int64()))
    table = CONTRACT_BOUNDS.from_rows([{"request_id": "", **row} for row in rows]).take(pa.array(at, pa.int64()))
    return table.set_column(0, table.schema.field(0), ids)


def distinct(values: Iterable[str] | None) -> list[str] | None:
    """Distinct values in order; None stays None."""
    return None if values is None else sorted(set(values))
