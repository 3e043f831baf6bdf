"""Explains, gate by gate and in plain language, what a contract admits and which rule decides. Each gate supplies its
own wording.
"""

from __future__ import annotations

from typing import Any

from .scope import ContractScope

__all__ = ["explain", "refusal_of"]

REFUSALS = {
    "act_as_not_granted": "You may not act as this principal, or it does not exist.",
    "nothing_granted": "No grant that holds now lets this principal ask in this project.",
    "no_source_allowed": "The request allows no source.",
    "no_path_allowed": "The request allows no path.",
    "no_authority_accepted": "The request accepts no class of source.",
}
"""Why a contract is denied, in words."""


def explain(scope: ContractScope) -> dict[str, Any]:
    """The contract in plain language: principal, `as_of`, and per gate the deciding rule and what it admits.

    Raises:
        SchemaError: the `explain` of a plugin's gate failed.
    """
    contract, bounds = scope.contract, scope.bounds
    asked_by = f", asked by {contract['asked_by']}" if contract["asked_by"] else ""
    who = f"{contract['principal']} in {contract['project']} for {contract['purpose']}{asked_by}"
    refusal = refusal_of(contract["denied_reason"]) if contract["denied"] else None
    gates = []
    for gate in scope.gates:
        rule, says = ("", refusal) if refusal else gate.explained(contract, bounds)
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
