"""Explains a contract: gate by gate, in plain language, what it admits and which rule decides; and counts its rows.

Each gate supplies its own wording. Only rows that the contract could see are counted.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import gathered
from .scope import ContractScope

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
        "layers": scope.tables["contract_layers"].drop_columns(["request_id"]).to_pylist(),
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
