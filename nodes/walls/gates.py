"""The gates in order: name, class, reason. Both walls, the ladder and the audit read this one list.

Access gates leave no trace but a count for auditors. Visibility and time gates record what they withhold. A row is
admissible, a member of A(r), if it passes them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GateClass = Literal["access", "visibility", "time"]


@dataclass(frozen=True, slots=True)
class Gate:
    """One rule of the boundary. `number` is its place in `GATES`, from 1; 0 stands for "passed them all"."""

    number: int
    name: str
    gate_class: GateClass
    reason_code: str
    doc: str


def _gates(*rows: tuple[str, GateClass, str, str]) -> tuple[Gate, ...]:
    return tuple(Gate(number, *row) for number, row in enumerate(rows, start=1))


GATES = _gates(
    ("project", "access", "out_of_scope_project", "its project is one the contract reaches"),
    ("owner", "access", "not_owner", "it belongs to the whole project, the principal or a user granted to them"),
    ("principals", "access", "not_principal", "its list of principals, if it has one, names the principal or a group"),
    (
        "zone",
        "access",
        "denied_zone",
        "its zone is at most the one granted in its project, and none the mode leaves out",
    ),
    ("source_allow", "access", "out_of_scope_source", "grants and request both allow its source"),
    ("source_deny", "access", "denied_source", "no denied source matches it"),
    ("path_allow", "access", "out_of_scope_path", "grants, mode and request all allow its path"),
    ("path_deny", "access", "denied_path", "no denied path matches its own"),
    ("namespace", "access", "wrong_namespace", "it has no namespace or the request's"),
    ("branch", "access", "wrong_branch", "it has no branch or the request's"),
    ("workspace", "access", "wrong_workspace", "committed text, unless the request's work tree shadows its path"),
    ("test_suite", "access", "wrong_test_suite", "it has no test suite or the request's"),
    ("level", "access", "level_excluded", "its level is none that the mode leaves out"),
    ("visibility", "visibility", "not_model_visible", "it may enter model input"),
    ("lifecycle", "visibility", "lifecycle_excluded", "its state is one the contract includes"),
    ("safety", "visibility", "safety_blocked", "it is not blocked"),
    ("role_source", "visibility", "forbidden_source", "the role forbids no source that matches it"),
    ("role", "visibility", "role_mismatch", "it does not exclude the role"),
    ("accepted_authority", "visibility", "authority_not_accepted", "its class of source is accepted"),
    ("min_authority", "visibility", "authority_below_min", "its authority is at least the contract's"),
    ("recorded", "time", "after_as_of", "it was recorded at or before as_of"),
    ("superseded", "time", "superseded", "no other text had taken its place at as_of"),
    ("deleted", "time", "deleted", "it was not removed at as_of"),
    ("valid_from", "time", "not_yet_valid", "its validity has begun at as_of"),
    ("valid_until", "time", "expired", "its validity has not ended at as_of"),
    ("window_start", "time", "before_window", "it did not happen before the window"),
    ("window_end", "time", "after_window", "it happened before the window's end"),
)
"""Every gate, in the order the ladder shows them."""

NUMBER = {gate.name: gate.number for gate in GATES}

HIDING = frozenset({"visibility", "safety"})
"""Gates whose rows end as `hidden` rather than `rejected`."""
