"""Explains a contract: gate by gate, in plain language, what it admits and which rule decides; counts its rows; and finds
likely mistakes.

Each gate supplies its own wording. Only rows that the contract could see are counted. Every finding follows from what the
same principal could see under the same grants with some fields of the request removed, never from rows outside their
reach. So a finding never discloses a row that its reader may not know of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import gathered
from ...nodes.scope.selectors import AND, allows_pathless, glob_mask, selected
from ...nodes.scope_resolution import REFUSALS
from ...nodes.text.anchor_patterns import normalized_paths
from ..reading.grants import grants_in_force
from ..requests.narrowing import PLACES, Fields
from .scope import ContractResolver, ContractScope

_COUNTED = {
    "project": "owner_project",
    "source": "source_id",
    "origin_class": "origin_class",
    "evidence_kind": "evidence_kind",
    "zone": "zone",
    "lifecycle": "lifecycle",
}


def explain(scope: ContractScope) -> dict[str, Any]:
    """The contract in plain language: principal, `as_of`, per gate the deciding rule and what it admits, and counts.

    `by` has the number of visible rows per value of some columns, the most frequent first; `month` is that of the event
    time, else of the recorded time, in UTC.

    Raises:
        SchemaError: the `explain` of a plugin's gate failed.
    """
    contract, bounds = scope.contract, scope.bounds
    asked_by = f", asked by {contract['asked_by']}" if contract["asked_by"] else ""
    gates = []
    for gate in scope.gates if not contract["denied"] else ():
        rule, says = gate.explained(contract, bounds)
        gates.append({"gate": gate.name, "gate_class": gate.gate_class, "rule": rule, "says": says})
    counts = {name: _counts(scope.column(column)) for name, column in _COUNTED.items()}
    recorded = gathered(scope.frame.placements["recorded_time"], scope.placement)
    happened = pc.coalesce(scope.column("event_time"), recorded)
    months = _counts(pc.strftime(happened, format="%Y-%m"))
    return {
        "contract_id": contract["contract_id"],
        "who": f"{contract['principal']} in {contract['project']} for {contract['purpose']}{asked_by}",
        "denied_reason": contract["denied_reason"],
        "refusal": REFUSALS[contract["denied_reason"]] if contract["denied"] else None,
        "clocks": {"as_of": contract["as_of"], "asked_at": contract["asked_at"]},
        "gates": gates,
        "rows": len(scope.rows),
        "documents": pc.count_distinct(scope.column("path"), mode="only_valid").as_py(),
        "by": {**counts, "month": dict(sorted(months.items()))},
    }


def _counts(column: pa.Array) -> dict[str, int]:
    counted = pc.value_counts(column)
    found = dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
    return dict(sorted(((str(value), count) for value, count in found.items()), key=lambda pair: (-pair[1], pair[0])))


_KEPT = frozenset(PLACES) - {"namespace", "branch", "test_suite", "role", "as_of"}
_LISTS = ("allowed_sources", "denied_sources", "allowed_paths", "denied_paths")


_Findings = Iterator[dict[str, str]]
"""Level, rule, field or rule of grants, message. An `error` is a definite mistake, a `warning` a possible one."""


def lint(resolver: ContractResolver, fields: Fields) -> list[dict[str, str]]:
    """The findings about a contract, errors first, by `level`, `rule`, `at` and `message`; empty if there are none."""
    scope = resolver.scope(fields)
    denied = scope.contract["denied_reason"] if scope.contract["denied"] else None
    message = REFUSALS[denied] if denied else "No row passes every gate."
    nothing = {"level": "error", "rule": "allows_nothing", "at": denied or "contract", "message": message}
    if denied:
        return [nothing]
    found = [] if len(scope.rows) else [nothing]
    return [*found, *idle_lists(resolver, fields), *_idle_grants(resolver, fields, scope.bounds)]


def idle_lists(resolver: ContractResolver, fields: Fields) -> _Findings:
    """A pattern of the request matches no row that is visible without its list, or a file being worked on is none of the
    visible ones.
    """
    for name in _LISTS:
        if patterns := fields.given.get(name):
            others = {other: value for other, value in fields.given.items() if other != name}
            open_ = resolver.scope(replace(fields, given=others))
            yield from _idle(open_, patterns, f"request.{name}", sources=name.endswith("sources"))
    if files := fields.given.get("current_files"):
        paths = [f"/{path}" for path in pc.unique(resolver.scope(fields).column("path").drop_null()).to_pylist()]
        for file, name in zip(files, normalized_paths(pa.array(files, pa.large_string())).to_pylist(), strict=True):
            below = f"/{name.removeprefix('/')}"  # a path of the machine ends with that of the row
            if not any(path.endswith(below) or below.endswith(path) for path in paths):
                yield _unmatched("request.current_files", f"{file} is the path of nothing that could be seen.")


def _idle_grants(resolver: ContractResolver, fields: Fields, bounds: Sequence[dict[str, Any]]) -> _Findings:
    """A pattern allowed by a grant matches no row that the same principal could see in the project now, without any
    narrowing, or one that it denies no row at all: an auditor hears of it.
    """
    open_ = resolver.scope(Fields({name: value for name, value in fields.given.items() if name in _KEPT}))
    grants = grants_in_force(resolver.grants.table, resolver.principal)
    audited = grants.filter(grants["audit"])["project"].to_pylist()
    for bound in bounds:
        if bound["denied_paths"] and bound["project"] in audited:
            rows = open_.frame.evidence
            path = rows["path"].filter(pc.equal(rows["owner_project"], bound["project"]))
            for pattern in bound["denied_paths"]:
                if not glob_mask(path, [pattern]).any():
                    message = f"{pattern} denies no path of the corpus."
                    yield _unmatched(f"{bound['rule_id']}.denied_paths", message)
        for name in ("sources", "paths"):
            yield from _idle(open_, bound[name] or (), f"{bound['rule_id']}.{name}", sources=name == "sources")


def _idle(scope: ContractScope, patterns: Sequence[str], at: str, *, sources: bool) -> _Findings:
    for pattern in patterns:
        if sources:
            found = selected([pattern], scope.column("origin_class"), scope.column("source_id"))
        else:
            found = glob_mask(scope.column("path"), [pattern], pathless=allows_pathless([pattern]))
        if not found.any():
            yield _unmatched(at, f"{' and '.join(pattern.split(AND))} matches nothing that could be seen.")


def _unmatched(at: str, message: str) -> dict[str, str]:
    return {"level": "warning", "rule": "matches_nothing", "at": at, "message": message}
