"""Explain: gate by gate, in plain language, what a contract lets through and which rule says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...nodes.scope.selectors import denies_pathless
from ...nodes.walls.gates import GATES
from ..patterns import pattern_parts
from .scope import Scope

__all__ = ["explain", "in_words", "refusal_of"]

REFUSALS = {
    "act_as_not_granted": "You may not act as this principal here, or there is none of that name.",
    "nothing_granted": "No grant that holds now lets this principal ask in this project.",
    "no_source_allowed": "The request allows no source.",
    "no_path_allowed": "The request allows no path.",
    "no_authority_accepted": "The request accepts no class of source.",
}
"""Why a contract is denied, in words."""

Contract = dict[str, Any]
Bounds = Sequence[dict[str, Any]]
Rule = tuple[str, str]
"""The deciding rule, and what it lets through."""


def explain(scope: Scope) -> dict[str, Any]:
    """The contract in plain language: who asks, as of when, and per gate the deciding rule and what it lets through."""
    contract, bounds = scope.contract, scope.bounds
    asked_by = f", asked by {contract['asked_by']}" if contract["asked_by"] else ""
    who = f"{contract['principal']} in {contract['project']} for {contract['purpose']}{asked_by}"
    refusal = refusal_of(contract["denied_reason"]) if contract["denied"] else None
    gates = []
    for gate in GATES:
        rule, says = ("", refusal) if refusal else _EXPLAINED[gate.name](contract, bounds)
        gates.append({"gate": gate.name, "gate_class": gate.gate_class, "rule": rule, "says": says})
    return {
        "contract_id": contract["contract_id"],
        "who": who,
        "denied_reason": contract["denied_reason"],
        "refusal": refusal,
        "clocks": {"as_of": contract["as_of"], "asked_at": contract["asked_at"]},
        "layers": scope.tables["contract_layers"].drop_columns(["request_id"]).to_pylist(),
        "gates": [] if refusal else gates,
        "rows": len(scope.rows),
    }


def refusal_of(denied_reason: str) -> str:
    """Why a contract is denied, in words."""
    return REFUSALS.get(denied_reason, denied_reason)


def in_words(patterns: Sequence[str]) -> str:
    """A list of patterns: `src/ or (docs/ and *.md)`."""
    products = [pattern_parts(pattern) for pattern in patterns]
    if len(products) == 1:
        return " and ".join(products[0])
    return " or ".join(part[0] if len(part) == 1 else f"({' and '.join(part)})" for part in products) or "none"


def _grants(bounds: Bounds) -> str:
    return ", ".join(bound["rule_id"] for bound in bounds)


def _layer(contract: Contract, column: str) -> tuple[str, Sequence[str] | None]:
    """The policy that allows sources or paths beside grants and request, and what it allows."""
    if column == "paths":
        return f"mode {contract['mode']}", contract["search_paths"]
    return f"role {contract['role']}", contract["role_sources"]


def _by_mode(contract: Contract, chosen: Sequence[str] | None) -> list[str]:
    """The mode as a rule, where it chose something."""
    return [f"mode {contract['mode']}"] if chosen else []


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values) or "none"


def _project(contract: Contract, bounds: Bounds) -> Rule:
    return _grants(bounds), f"Rows of {_listed(sorted({bound['project'] for bound in bounds}))}."


def _owner(contract: Contract, bounds: Bounds) -> Rule:
    users = sorted({user for bound in bounds for user in bound["users"]})
    return _grants(bounds), f"Rows of the whole project, and those of {_listed(users)}."


def _principals(contract: Contract, bounds: Bounds) -> Rule:
    names = [contract["principal"], *contract["groups"]]
    return "grants", f"Rows without a list of readers, or with one that names {' or '.join(names)}."


def _zone(contract: Contract, bounds: Bounds) -> Rule:
    zones = ", ".join(sorted({f"{bound['zone']} in {bound['project']}" for bound in bounds}))
    excluded = contract["excluded_zones"]
    rules = [_grants(bounds), *_by_mode(contract, excluded)]
    return ", ".join(rules), f"Rows up to zone {zones}{f', but none of {_listed(excluded)}' if excluded else ''}."


def _allowed(column: str, field: str, what: str) -> Callable[[Contract, Bounds], Rule]:
    """Allowances of grants and request, of paths the mode's and of sources the role's: all bind."""

    def rule(contract: Contract, bounds: Bounds) -> Rule:
        limits = [bound for bound in bounds if bound[column] is not None]
        granted = [f"{in_words(bound[column])} in {bound['project']}" for bound in limits]
        asked = contract[field]
        layer, chosen = _layer(contract, column)
        if asked is not None:
            granted.append(f"{in_words(asked)} by the request")
        if chosen is not None:
            granted.append(f"{in_words(chosen)} by the {layer.split()[0]}")
        rules = [*(bound["rule_id"] for bound in limits), *([f"request.{field}"] if asked is not None else []),
                 *([layer] if chosen is not None else [])]  # fmt: skip
        return ", ".join(rules), f"Only {what} that match {'; '.join(granted)}." if granted else f"Every {what[:-1]}."

    return rule


def _source_deny(contract: Contract, bounds: Bounds) -> Rule:
    denied = contract["denied_sources"]
    return ("request.denied_sources", f"No source that matches {in_words(denied)}.") if denied else ("", "Denies none.")


def _path_deny(contract: Contract, bounds: Bounds) -> Rule:
    by_grant = [bound for bound in bounds if bound["denied_paths"]]
    of_grants = (glob for bound in by_grant for glob in bound["denied_paths"])
    globs = sorted({*contract["denied_paths"], *contract["excluded_paths"], *of_grants})
    rules = [*(bound["rule_id"] for bound in by_grant), *(["request.denied_paths"] if contract["denied_paths"] else []),
             *_by_mode(contract, contract["excluded_paths"])]  # fmt: skip
    if not globs:
        return "", "Denies none."
    also = ", and no row without a path" if denies_pathless(globs) else ""
    return ", ".join(rules), f"No path that matches {in_words(globs)}{also}."


def _named(field: str, what: str) -> Callable[[Contract, Bounds], Rule]:
    def rule(contract: Contract, bounds: Bounds) -> Rule:
        value = contract[field]
        if value is None:
            return "", f"Every {what}."
        return f"request.{field}", f"Rows of {what} {value}, and those without one."

    return rule


def _workspace(contract: Contract, bounds: Bounds) -> Rule:
    root = contract["workspace_root"]
    if root is None:
        return "", "Committed text only."
    return "request.workspace_root", f"Uncommitted text of {root} in place of committed text of the same path."


def _level(contract: Contract, bounds: Bounds) -> Rule:
    levels = contract["excluded_levels"]
    return (f"mode {contract['mode']}", f"No row of level {_listed(levels)}.") if levels else ("", "Every level.")


def _lifecycle(contract: Contract, bounds: Bounds) -> Rule:
    limits = [bound["rule_id"] for bound in bounds if bound["states"] is not None]
    rules = [f"purpose {contract['purpose']}", *limits]
    return ", ".join(rules), f"Rows that are {_listed(contract['include_states'])}."


def _role_source(contract: Contract, bounds: Bounds) -> Rule:
    forbidden = contract["forbidden_sources"]
    return (
        (f"role {contract['role']}", f"No source that matches {in_words(forbidden)}.")
        if forbidden
        else ("", "Forbids none.")
    )


def _role(contract: Contract, bounds: Bounds) -> Rule:
    role = contract["role"]
    return ("", "Every row.") if role is None else (f"role {role}", f"Rows that do not exclude {role}.")


def _accepted(contract: Contract, bounds: Bounds) -> Rule:
    accepted = contract["accepted_authority"]
    return ("", "Every class.") if accepted is None else ("request.accepted_authority", f"Only {_listed(accepted)}.")


def _least(contract: Contract, bounds: Bounds) -> Rule:
    least = contract["min_authority"]
    return ("request.min_authority", f"Authority {least} and above.") if least else ("", "Every authority.")


def _always(says: str) -> Callable[[Contract, Bounds], Rule]:
    return lambda contract, bounds: ("", says)


def _at(says: str) -> Callable[[Contract, Bounds], Rule]:
    return lambda contract, bounds: ("as_of", says.format(contract["as_of"].isoformat().replace("+00:00", "Z")))


def _standing(says: str) -> Callable[[Contract, Bounds], Rule]:
    """What still stands, unless the mode shows history."""

    def rule(contract: Contract, bounds: Bounds) -> Rule:
        if contract["include_deleted"]:
            return f"mode {contract['mode']}", "What had ended too, as history."
        return _at(says)(contract, bounds)

    return rule


def _window(field: str, says: str) -> Callable[[Contract, Bounds], Rule]:
    def rule(contract: Contract, bounds: Bounds) -> Rule:
        value = contract[field]
        return ("", "Open.") if value is None else ("request.time", says.format(value.isoformat()))

    return rule


_EXPLAINED: dict[str, Callable[[Contract, Bounds], Rule]] = {gate.name: _always(f"Only if {gate.doc}.") for gate in GATES} | {
    "project": _project,
    "owner": _owner,
    "principals": _principals,
    "zone": _zone,
    "source_allow": _allowed("sources", "allowed_sources", "sources"),
    "source_deny": _source_deny,
    "path_allow": _allowed("paths", "allowed_paths", "paths"),
    "path_deny": _path_deny,
    "namespace": _named("namespace", "namespace"),
    "branch": _named("branch", "branch"),
    "workspace": _workspace,
    "test_suite": _named("test_suite", "test suite"),
    "level": _level,
    "visibility": _always("Rows that were declared model-visible."),
    "lifecycle": _lifecycle,
    "safety": _always("Rows that are not blocked."),
    "role_source": _role_source,
    "role": _role,
    "accepted_authority": _accepted,
    "min_authority": _least,
    "recorded": _at("Rows recorded by {}."),
    "superseded": _standing("Rows that no other text had replaced by {}."),
    "deleted": _standing("Rows that were not removed by {}."),
    "valid_from": _at("Rows whose validity had begun by {}."),
    "valid_until": _at("Rows whose validity had not ended by {}."),
    "window_start": _window("window_start", "Rows that happened from {} on."),
    "window_end": _window("window_end", "Rows that happened before {}."),
}  # fmt: skip
