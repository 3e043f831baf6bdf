"""The access that grants give each request: who may ask on whose behalf, the active grants, and the resulting bounds.

Reads requests and grants. Gives `Reach` of each request, CONTRACT_BOUNDS, and the columns that contracts take from grants.
Rights are judged at `asked_at`: no other instant revives an expired grant or a removed principal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ..columns.kept import OfTable
from ..tables import CONTRACT_BOUNDS
from ..vocabulary import LIFECYCLES

Grant = dict[str, Any]
"""A row of GRANTS."""
Request = Mapping[str, Any]
"""A request: of its columns, `principal`, `asked_by`, `project` and `asked_at` determine its grants."""
_COPIED = ("project", "zone", "rule_id")


class Reach(NamedTuple):
    """What grants give a request."""

    grants: list[Grant]
    """Those that are active at `asked_at`, by project and rule; none unless one of the request's own project is."""
    bounds: list[dict[str, Any]]
    """The bounds that they set, without the request. Requests with the same grants share the list."""
    acting: bool
    """The caller is its principal, or may act as it."""
    refused: str | None = None
    """The reason for refusing it, None where it is accepted."""

    @property
    def own(self) -> list[Grant]:
        """The grants of its own project."""
        return [grant for grant in self.grants if grant["own_project"]]

    @property
    def groups(self) -> list[str]:
        """The principal's groups."""
        return sorted({name for grant in self.grants for name in grant["groups"] or ()})

    @property
    def states(self) -> set[str]:
        """The LIFECYCLES that the grants of the own project allow; all where none narrows them."""
        lists = [grant["states"] for grant in self.own]
        return {*LIFECYCLES.values} if not lists or None in lists else {state for states in lists for state in states}


def active_grants_of(requests: Iterable[Request], grants: pa.Table) -> list[Reach]:
    """What grants give each request; one with an empty list of sources or paths gives no access."""
    found = []
    known: dict[tuple[int, ...], tuple[list[Grant], list[dict[str, Any]]]] = {}
    for request in requests:
        acting = _may_act(request, grants)
        usable = [grant for grant in _opening(grants).get(request["principal"], ()) if _usable(grant, request)]
        held = usable if acting and any(_is_own(grant, request) for grant in usable) else []
        same = tuple(map(id, held))
        if same not in known:
            known[same] = held, _bounds(held)
        found.append(Reach(*known[same], acting))
    return found


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


def bounds_of(requests: pa.Table, reach: Iterable[Reach]) -> pa.Table:
    """CONTRACT_BOUNDS of the requests that are not refused."""
    asked = zip(requests["request_id"].to_pylist(), reach, strict=True)
    return CONTRACT_BOUNDS.from_rows(
        [{"request_id": id_, **bound} for id_, one in asked if one.refused is None for bound in one.bounds]
    )


def distinct(values: Iterable[str] | None) -> list[str] | None:
    """Distinct values in order; None stays None."""
    return None if values is None else sorted(set(values))
