"""Explains a contract: gate by gate, in plain language, what it admits and which rule decides; counts its rows; and finds
likely mistakes.

Each gate supplies its own wording. Only rows that the contract could see are counted. Every finding follows from what the
same principal could see under the same grants with some fields of the request removed, never from rows outside their
reach. So a finding never discloses a row that its reader may not know of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import gathered
from ...nodes.frames import micros
from ...nodes.scope.selectors import AND, allows_pathless, glob_mask, selected
from ...nodes.vocabulary import EVIDENCE_NEEDS
from ..reading.grants import grants_in_force
from ..requests.narrowing import PLACES, Fields
from .scope import ContractResolver, ContractScope

REFUSALS = {
    "act_as_not_granted": "You may not act as this principal, or it does not exist.",
    "nothing_granted": "No grant that holds now lets this principal ask in this project.",
    "no_source_allowed": "The request allows no source.",
    "no_path_allowed": "The request allows no path.",
    "no_authority_accepted": "The request accepts no class of source.",
}
"""Why a contract is denied, in words."""


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
        "refusal": refusal_of(contract["denied_reason"]) if contract["denied"] else None,
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


def refusal_of(denied_reason: str) -> str:
    """Why a contract is denied, in words."""
    return REFUSALS.get(denied_reason, denied_reason)


_KEPT = frozenset(PLACES) - {"namespace", "branch", "test_suite", "role", "as_of"}
_LISTS = ("allowed_sources", "denied_sources", "allowed_paths", "denied_paths")


_Findings = Iterator[tuple[str, str, str, str]]
"""Level, rule, field or rule of grants, message. An `error` is a definite mistake, a `warning` a possible one."""


def lint(resolver: ContractResolver, fields: Fields) -> list[dict[str, str]]:
    """The findings about a contract, errors first, by `level`, `rule`, `at` and `message`; empty if there are none."""
    case = _Case(resolver, fields)
    contract = case.scope.contract
    if contract["denied"]:
        found = [("error", "allows_nothing", contract["denied_reason"], refusal_of(contract["denied_reason"]))]
    else:
        none = ("error", "allows_nothing", "contract", "No row passes every gate.")
        found = [none] * (not len(case.scope.rows))
        found += [*_before_data(case), *_matches_nothing(case), *_grants_match_nothing(case), *_denies_needed(case)]
    named = ("level", "rule", "at", "message")
    return [dict(zip(named, one, strict=True)) for one in sorted(found, key=lambda one: one[0])]


@dataclass(frozen=True)
class _Case:
    resolver: ContractResolver
    fields: Fields

    @cached_property
    def scope(self) -> ContractScope:
        return self.resolver.scope(self.fields)

    @cached_property
    def open(self) -> ContractScope:
        """The widest scope: the same principal and project, now, without any narrowing."""
        given = {name: value for name, value in self.fields.given.items() if name in _KEPT}
        return self.resolver.scope(Fields(given))

    def audits(self, project: str) -> bool:
        """Whether the principal may know of rows that a grant of the project denies."""
        grants = grants_in_force(self.resolver.grants.table, self.resolver.principal)
        return project in grants.filter(grants["audit"])["project"].to_pylist()

    def without(self, name: str) -> ContractScope:
        given = {other: value for other, value in self.fields.given.items() if other != name}
        return self.resolver.scope(replace(self.fields, given=given))


def _before_data(case: _Case) -> _Findings:
    """`as_of` is earlier than the first visible row was recorded."""
    recorded = micros(gathered(case.open.frame.placements["recorded_time"], case.open.placement), 0)
    as_of = case.scope.contract["as_of"]
    if len(recorded) and "as_of" in case.fields.given and not len(case.scope.rows):
        first = pa.scalar(int(recorded.min()), pa.timestamp("us", "UTC")).as_py()
        if as_of < first:
            message = f"as_of is {as_of.isoformat()}; the first row was recorded at {first.isoformat()}."
            yield ("error", "as_of_before_data", "request.as_of", message)


def _matches_nothing(case: _Case) -> _Findings:
    """A pattern of the request matches no row that is visible without its list."""
    for name in _LISTS:
        if patterns := case.fields.given.get(name):
            yield from _idle(case.without(name), patterns, f"request.{name}", sources=name.endswith("sources"))


def _grants_match_nothing(case: _Case) -> _Findings:
    """A pattern allowed by a grant matches no visible row, or one that it denies no row at all: an auditor hears of it."""
    for bound in case.scope.bounds:
        if bound["denied_paths"] and case.audits(bound["project"]):
            rows = case.open.frame.evidence
            path = rows["path"].filter(pc.equal(rows["owner_project"], bound["project"]))
            for pattern in bound["denied_paths"]:
                if not glob_mask(path, [pattern]).any():
                    message = f"{pattern} denies no path of the corpus."
                    yield ("warning", "matches_nothing", f"{bound['rule_id']}.denied_paths", message)
        for name in ("sources", "paths"):
            yield from _idle(case.open, bound[name] or (), f"{bound['rule_id']}.{name}", sources=name == "sources")


def _idle(scope: ContractScope, patterns: Sequence[str], at: str, *, sources: bool) -> _Findings:
    for pattern in patterns:
        if not np.any(_matched(scope, [pattern], sources=sources)):
            parts = " and ".join(pattern.split(AND))
            yield ("warning", "matches_nothing", at, f"{parts} matches nothing that could be seen.")


def _matched(scope: ContractScope, patterns: Sequence[str], *, sources: bool) -> NDArray[np.bool_]:
    if sources:
        return selected(patterns, scope.column("origin_class"), scope.column("source_id"))
    return glob_mask(scope.column("path"), patterns, pathless=allows_pathless(patterns))


def _denies_needed(case: _Case) -> _Findings:
    """Evidence that the request requires, or that its purpose plans to look for, cannot come back."""
    for need in case.scope.contract["required_evidence"]:
        kind, state = EVIDENCE_NEEDS[need]
        yield from _unserved(case, "error", f"request.required_evidence: {need}", [kind], [], state)
    rules = case.resolver.policies.plan_rules
    for rule in rules.filter(pc.equal(rules["purpose"], case.scope.contract["purpose"])).to_pylist():
        at = f"purpose {rule['purpose']}: {rule['intent']}"
        yield from _unserved(case, "warning", at, rule["kinds"], rule["sources"], None)


def _unserved(
    case: _Case, level: str, at: str, kinds: Sequence[str], sources: Sequence[str], state: str | None
) -> _Findings:
    if np.any(_serves(case.scope, kinds, sources, state)):
        return
    denied = np.any(_serves(case.open, kinds, sources, state))
    if not denied and level == "warning":  # a plan may look for evidence that a project does not have
        return
    why = "the contract denies every row of this kind" if denied else "no row that could be shown is of this kind"
    what = ", ".join([*kinds, *sources]) or "any evidence"
    yield (level, "denies_needed", at, f"{what} is needed, and {why}.")


def _serves(scope: ContractScope, kinds: Sequence[str], sources: Sequence[str], state: str | None) -> Any:
    served = np.ones(len(scope.rows), dtype=bool)
    if kinds:
        served &= np.asarray(pc.is_in(scope.column("evidence_kind"), value_set=pa.array(list(kinds), pa.string())))
    if state:
        served &= np.asarray(pc.equal(scope.column("lifecycle"), state).fill_null(False))
    return served & _matched(scope, sources, sources=True) if sources else served
