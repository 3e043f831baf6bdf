"""Visibility and trust of a row: `visibility`, `lifecycle`, `safety`, `role`, `accepted_authority`, `min_authority`.

Null counts as least privileged: lifecycle candidate, visibility denied, authority 0; a null safety is requires-review,
which passes. A word outside the vocabulary counts as null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc

from ...columns.keys import truth
from ...vocabulary import LIFECYCLES
from ..segment_columns import SegmentColumns
from .gate import (
    BOUNDED,
    GUIDED,
    Bounds,
    Canary,
    Case,
    Contract,
    Gate,
    Ground,
    Mask,
    Opening,
    Row,
    Rule,
    always,
    asks,
    listed,
    outside,
    row_of,
)

LEAK_TEST = "leak-test"
"""The role of the leak test."""

ACCEPTED_ORIGINS = {
    "current-workspace": ("workspace",),
    "project-doc": ("project-doc", "team-standard", "decision-record"),
    "verified-memory": ("memory",),
    "session-event": ("session-event", "artifact"),
}
"""The origin classes behind each accepted class of S0.19. Standards and decision records are documents of the project,
artifacts belong to a session; preferences, structured records, external and remote text belong to none. A memory counts
only while it is verified."""


def _declared(column: str, wanted: str) -> Callable[[Case], Opening]:
    """A gate that no contract can open, since the row was declared so."""
    return lambda case: Opening("the row", f"a row that is declared {wanted}, not {case.row[column]}", False)


VISIBILITY = Gate(
    "visibility",
    "visibility",
    "not_model_visible",
    "it may enter model input",
    columns=("declared_visibility",),
    stops=lambda segment, contract: segment.hidden,
    explain=always("Rows that were declared model-visible."),
    remedy=_declared("declared_visibility", "model-visible"),
    canaries=(Canary("visibility", row_of(declared_visibility="runtime-only")),),
    hides=True,
)


def _not_included(segment: SegmentColumns, contract: Contract) -> Mask:
    return outside(segment.lifecycle, LIFECYCLES.values, contract["include_states"])


def _not_granted(segment: SegmentColumns, bound: Mapping[str, Any]) -> Mask | None:
    return None if bound["states"] is None else outside(segment.lifecycle, LIFECYCLES.values, bound["states"])


def _lifecycle(contract: Contract, bounds: Bounds) -> Rule:
    limits = [bound["rule_id"] for bound in bounds if bound["states"] is not None]
    rules = [f"purpose {contract['purpose']}", *limits]
    return ", ".join(rules), f"Rows that are {listed(contract['include_states'])}."


def _a_state(case: Case) -> Opening:
    state = case.row["lifecycle"] or "candidate"
    if state == "revoked":
        return Opening("the row", "a row that was not revoked; no contract shows this one", False)
    case.contract["include_states"] = [*case.contract["include_states"], state]
    for bound in case.here():
        bound["states"] = None
    by_request = {"candidate": "max_unverified_items above 0", "verified": "a purpose that shows verified rows"}
    needed = f"{by_request.get(state, 'allow_stale_memory')}, and grants whose states have {state}"
    return Opening(case.rules(), needed)


LIFECYCLE = Gate(
    "lifecycle",
    "visibility",
    "lifecycle_excluded",
    "its state is one the contract includes",
    columns=("lifecycle",),
    contract_columns=("include_states",),
    stops=_not_included,
    bound_stops=_not_granted,
    explain=_lifecycle,
    remedy=_a_state,
    canaries=(Canary("revoked", row_of(lifecycle="revoked")),),
)

SAFETY = Gate(
    "safety",
    "visibility",
    "safety_blocked",
    "it is not blocked",
    columns=("declared_safety",),
    stops=lambda segment, contract: segment.blocked,
    explain=always("Rows that are not blocked."),
    remedy=_declared("declared_safety", "safe"),
    canaries=(Canary("safety", row_of(declared_safety="blocked")),),
    hides=True,
)


def _for_others(segment: SegmentColumns, contract: Contract) -> Mask | None:
    if contract["role"] is None:
        return None
    row, role = segment.excluding
    return np.bincount(row[truth(pc.equal(role, contract["role"]))], minlength=segment.rows) > 0


def _role(contract: Contract, bounds: Bounds) -> Rule:
    role = contract["role"]
    return ("", "Every row.") if role is None else (f"role {role}", f"Rows that do not exclude {role}.")


def _another_role(case: Case) -> Opening:
    excluded, case.contract["role"] = case.contract["role"], None
    return Opening(f"role {excluded}", f"a role that is none of {', '.join(case.row['excluded_roles'])}")


ROLE = Gate(
    "role",
    "visibility",
    "role_mismatch",
    "it does not exclude the role",
    columns=("excluded_roles",),
    contract_columns=("role",),
    stops=_for_others,
    explain=_role,
    remedy=_another_role,
    canaries=(Canary("role", row_of(excluded_roles=[LEAK_TEST]), angles=(GUIDED,)),),
)


def _unaccepted(segment: SegmentColumns, contract: Contract) -> Mask | None:
    accepted = contract["accepted_authority"]
    if accepted is None:
        return None
    origins = {origin for name in accepted for origin in ACCEPTED_ORIGINS.get(name, ())}
    stopped = np.array([origin not in origins for origin in segment.origin_classes], dtype=bool)
    memory = np.array([origin == "memory" for origin in segment.origin_classes], dtype=bool)
    unverified = segment.lifecycle != LIFECYCLES.values.index("verified")
    return stopped[segment.pairs.codes] | (memory[segment.pairs.codes] & unverified)


def _accepted(contract: Contract, bounds: Bounds) -> Rule:
    accepted = contract["accepted_authority"]
    return ("", "Every class.") if accepted is None else ("request.accepted_authority", f"Only {listed(accepted)}.")


def _acceptance(case: Case) -> Opening:
    accepted, case.contract["accepted_authority"] = case.contract["accepted_authority"], None
    rule = f"request.accepted_authority: {', '.join(accepted)}"
    return Opening(rule, f"acceptance of {case.row['origin_class']} evidence")


def _of_no_class(ground: Ground) -> Row | None:
    accepted = any(ground.seen["origin_class"] in origins for origins in ACCEPTED_ORIGINS.values())
    return {"origin_class": "external"} if accepted else None


ACCEPTED_AUTHORITY = Gate(
    "accepted_authority",
    "visibility",
    "authority_not_accepted",
    "its class of source is accepted",
    columns=("origin_class", "lifecycle", "source_id"),
    contract_columns=("accepted_authority",),
    stops=_unaccepted,
    explain=_accepted,
    remedy=_acceptance,
    canaries=(Canary("accepted_authority", _of_no_class, asks(accepted_authority=[*ACCEPTED_ORIGINS]), (BOUNDED,)),),
)


def _less(segment: SegmentColumns, contract: Contract) -> Mask | None:
    return segment.authority < contract["min_authority"] if contract["min_authority"] > 0 else None


def _least(contract: Contract, bounds: Bounds) -> Rule:
    least = contract["min_authority"]
    return ("request.min_authority", f"Authority {least} and above.") if least else ("", "Every authority.")


def _lower(case: Case) -> Opening:
    least, case.contract["min_authority"] = case.contract["min_authority"], case.row["authority"] or 0
    return Opening(f"request.min_authority: {least}", f"min_authority {case.contract['min_authority']} or less")


MIN_AUTHORITY = Gate(
    "min_authority",
    "visibility",
    "authority_below_min",
    "its authority is at least the contract's",
    columns=("authority",),
    contract_columns=("min_authority",),
    stops=_less,
    explain=_least,
    remedy=_lower,
    canaries=(Canary("min_authority", row_of(authority=0), asks(min_authority=1), (BOUNDED,)),),
)
