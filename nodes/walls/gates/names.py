"""Restrictions of a request by a single name: the gates `namespace`, `branch`, `workspace` and `test_suite`.

Note: committed text that a work tree shadows is stopped by `workspace` as well. That depends on other rows, so the step
`boundary_gates` does it after every row is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..segment_columns import SegmentColumns
from .gate import (
    BOUNDED,
    OPEN,
    Bounds,
    Canary,
    Case,
    Contract,
    Gate,
    Ground,
    Mask,
    Opening,
    Rule,
    asks,
    grants,
    listed,
    row_of,
)

ROOT = "/leak-test/tree"
"""The work tree of the leak test."""


def _elsewhere(field: str) -> Callable[[SegmentColumns, Contract], Mask | None]:
    def stops(segment: SegmentColumns, contract: Contract) -> Mask | None:
        if field not in segment.named or contract[field] is None:
            return None
        position, codes = segment.named[field]
        return (codes >= 0) & (codes != position.get(contract[field], -1))

    return stops


def _explained(field: str, what: str) -> Callable[[Contract, Bounds], Rule]:
    def rule(contract: Contract, bounds: Bounds) -> Rule:
        value = contract[field]
        if value is None:
            return "", f"Every {what}."
        return f"request.{field}", f"Rows of {what} {value}, and those without one."

    return rule


def _not_granted(segment: SegmentColumns, bound: Mapping[str, Any]) -> Mask | None:
    if "namespace" not in segment.named or bound["namespaces"] is None:
        return None
    position, codes = segment.named["namespace"]
    return (codes >= 0) & ~np.isin(codes, [position.get(name, -1) for name in bound["namespaces"]])


def _namespaces(contract: Contract, bounds: Bounds) -> Rule:
    if contract["namespace"] is not None or all(bound["namespaces"] is None for bound in bounds):
        return _explained("namespace", "namespace")(contract, bounds)
    names = sorted({name for bound in bounds for name in bound["namespaces"] or ()})
    return grants(bounds), f"Rows of the namespaces {listed(names)}, and those without one."


def _that_namespace(case: Case) -> Opening:
    name, asked = case.row["namespace"], case.contract["namespace"]
    refused = all(bound["namespaces"] is not None and name not in bound["namespaces"] for bound in case.here())
    for bound in case.here():
        bound["namespaces"] = None
    found = [Opening(case.rules(), f"a grant with namespaces: [{name}]")] if refused else []
    found += [_that_name("namespace")(case)] if asked not in (None, name) else []
    return Opening(", ".join(each.rule for each in found), " and ".join(each.needed for each in found))


def _that_name(field: str) -> Callable[[Case], Opening]:
    def opened(case: Case) -> Opening:
        asked, case.contract[field] = case.contract[field], case.row[field]
        return Opening(f"request.{field}: {asked or 'none'}", f"{field} {case.row[field]}")

    return opened


def _own_name(field: str) -> Callable[[Ground], Mapping[str, Any]]:
    return lambda ground: {field: ground.seen.get(field) or f"leak-test-{field}"}


def _named(field: str, reason_code: str, what: str, **own: Any) -> Gate:
    gate = Gate(
        field,
        "access",
        reason_code,
        f"it has no {what} or the request's",
        columns=(field,),
        contract_columns=(field,),
        stops=_elsewhere(field),
        explain=_explained(field, what),
        remedy=_that_name(field),
        canaries=(Canary(field, row_of(**{field: "leak-test-elsewhere"}), _own_name(field), (BOUNDED,)),),
    )
    return replace(gate, **own)


NAMESPACE = _named(
    "namespace", "wrong_namespace", "namespace", bound_stops=_not_granted, explain=_namespaces, remedy=_that_namespace
)
BRANCH = _named("branch", "wrong_branch", "branch")
TEST_SUITE = _named("test_suite", "wrong_test_suite", "test suite")


def _of_other_tree(segment: SegmentColumns, contract: Contract) -> Mask | None:
    if "workspace_root" not in segment.named:
        return None
    position, codes = segment.named["workspace_root"]
    return (codes >= 0) & (codes != position.get(contract["workspace_root"], -1))


def _workspace(contract: Contract, bounds: Bounds) -> Rule:
    root = contract["workspace_root"]
    if root is None:
        return "", "Committed text only."
    return "request.workspace_root", f"Uncommitted text of {root} in place of committed text of the same path."


WORKSPACE = Gate(
    "workspace",
    "access",
    "wrong_workspace",
    "committed text, unless the request's work tree shadows its path",
    columns=("workspace_root", "owner_project", "owner_user", "source_id", "path"),
    contract_columns=("workspace_root",),
    stops=_of_other_tree,
    explain=_workspace,
    remedy=_that_name("workspace_root"),
    canaries=(
        Canary("uncommitted", row_of(workspace_root=f"{ROOT}-elsewhere"), angles=(OPEN,)),
        Canary("workspace", row_of(workspace_root=f"{ROOT}-elsewhere"), asks(workspace_root=ROOT), (BOUNDED,)),
    ),
)
