"""Angles: the ways in which a tenant asks, each with its own bounds, and the rows that those bounds exclude; and probes,
the requests of a tenant in every state of the canaries.

Reads rows of the tenant, and the other principals and projects. Gives per angle the fields common to all of its probes,
and by reason the columns that exclude a row from all of them: at least one reason for every gate. Some probes limit a
lane to so few rows that a single canary would displace an answer; one asks for canaries by name.

Note: a canary is out of scope for a whole state of the test. A gate that depends on a request field needs an angle in
which every probe has that field.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.tables import MODE_POLICIES, ROLE_POLICIES
from ...nodes.vocabulary import FEEDBACK_TERMS, PURPOSES, TURN_TERMS
from ...nodes.walls.gate import ANGLES, BOUNDED, GUIDED, Canary, Gate, Ground
from ...nodes.walls.gates import GATES, LEAK_TEST, ROOT
from ..config.policies.roles import Roles
from ..config.policies.tables import Policies
from .tenants import Tenant

Row = dict[str, Any]

SESSION = "leak-test-session"
MODE = "review"
"""The mode whose preset the test replaces with its own."""
_FEEDBACK = 0.1
"""Minimum weight of feedback in every purpose."""


@dataclass(frozen=True)
class Angle:
    """How a tenant asks: fields of every probe, and by reason the columns that exclude a row.

    `{token}` in a path is replaced by the word of the canary.
    """

    name: str
    asked: Mapping[str, Any]
    shut: Mapping[str, Row]
    gates: Mapping[str, str]
    """The gate that excludes a row, by reason."""
    root: str | None = None
    """The work tree that the probes name."""


def angle(
    name: str,
    tenant: Tenant,
    seen: Row,
    folder: str,
    others: tuple[str, str],
    sources: Sequence[str],
    as_of: datetime,
    gates: Sequence[Gate] = GATES,
) -> Angle:
    """One of ANGLES for a tenant.

    Args:
        seen: a row that the tenant was shown, IMPORT_ROWS by name.
        folder: the folder of hooks and canaries, empty or with `/` at its end.
        others: principal and project that own the canaries of the gates `owner`, `principals` and `project`.
        sources: the sources of the tenant's rows.
        as_of: the instant of the probes.
        gates: the gates whose canaries are planted, in order.
    """
    ground = Ground(seen, folder, tenant.principal, tenant.project, tenant.zone, *others, sources, as_of)
    own = _canaries(name, gates)
    planted = {canary: made for canary, gate in own.items() if (made := gate.planted(canary, ground)) is not None}
    asked = {"session_id": seen.get("session_id") or SESSION, "weights": dict.fromkeys(TURN_TERMS, 0.2)}
    for _, fields in planted.values():
        asked |= fields
    if name == GUIDED:
        asked |= {"mode": MODE, "role": LEAK_TEST, "recall_effort": "graph"}
    shut = {canary.reason: row for canary, (row, _) in planted.items()}
    gate_of = {canary.reason: own[canary].name for canary in planted}
    return Angle(name, asked, shut, gate_of, ROOT if name == BOUNDED else None)


def _canaries(name: str, gates: Sequence[Gate]) -> dict[Canary, Gate]:
    """The canaries of an angle with their gates: first those common to all angles, then its own, in gate order."""
    own = [(canary, gate) for gate in gates for canary in gate.canaries if name in canary.angles]
    return dict(sorted(own, key=lambda pair: pair[0].angles != ANGLES))


def with_own_presets(policies: Policies) -> Policies:
    """The policies with a mode and a role of the test, which exclude values that no user's rows have.

    The mode follows all links, so that each can lead to a canary. Every purpose weights feedback, whose terms and
    vectors come from rows.
    """
    policies = with_feedback(policies)
    mode = {
        "mode": MODE, "version": LEAK_TEST, "search_paths": ["**/*.*"], "exclude_kinds": ["level", "zone"],
        "exclude_values": ["task", "public"], "exclude_unless": ["", ""], "lane_k": 30, "max_items": 10,
        "chunk_expansion": True, "exact_lookups": True, "citation_chaining": True, "include_deleted": False,
        "cross_encoder": False,
        "newest_first": False,
    } | {name: [] for name in ("include_paths", "include_when", "lanes", "window_paths")}  # fmt: skip
    lists = [name for name, column in ROLE_POLICIES.columns.items() if pa.types.is_list(column.type)]
    role = {name: [] for name in lists} | {
        "role": LEAK_TEST, "version": LEAK_TEST, "label": LEAK_TEST, "mission": "", "allowed_sources": None,
        "forbidden_sources": ["leak-test:forbidden"], "require_source_diversity": False, "stale_penalty": 0.0,
        "role_mismatch_penalty": 0.0, "citation_style": "inline",
    } | {f"weight_{name}": 0.25 for name in ("lexical", "semantic", "metadata", "rerank")}  # fmt: skip
    digest = hashlib.sha256(f"{LEAK_TEST}:{policies.digest}".encode()).hexdigest()
    return replace(
        policies,
        mode_policies=_with(policies.mode_policies, MODE_POLICIES.from_rows([mode]), "mode"),
        roles=Roles(
            _with(policies.roles.policies, ROLE_POLICIES.from_rows([role]), "role"), policies.roles.rules, digest
        ),
        digest=digest,
    )


def with_feedback(policies: Policies) -> Policies:
    """The policies with at least a minimum weight of feedback in every purpose."""
    table = policies.purpose_policies
    for name in (f"weight_{term}" for term in FEEDBACK_TERMS):
        at = table.schema.get_field_index(name)
        least = pc.max_element_wise(table[name], pa.scalar(_FEEDBACK))
        table = table.set_column(at, table.schema.field(at), least)
    return replace(policies, purpose_policies=table)


def _with(table: pa.Table, row: pa.Table, key: str) -> pa.Table:
    others = table.filter(pc.not_equal(table[key], row[key][0]))
    return pa.concat_tables([others, row]).sort_by(key).combine_chunks()


_WORD = re.compile(r"[^\W\d_]{3,20}")
_WORDS = 8
"""Words of a row in a question."""
_TIGHT = {"lane_k": 2, "max_items": 3}


@dataclass(frozen=True)
class Probe:
    """A request, and whether it names canaries itself: then its echo in the answer is not a leak."""

    name: str
    fields: dict[str, Any]
    names_canaries: bool = False


def derived(evidence: pa.Table, project: str, count: int, as_of: datetime, seed: str) -> list[Probe]:
    """Questions made of words of up to `count` rows, with their symbols and paths as anchors."""
    ids = evidence["evidence_id"].to_pylist()
    order = sorted(range(len(ids)), key=lambda row: hashlib.sha256(f"{seed}{ids[row]}".encode()).digest())
    probes = []
    for row in order:
        text, path, symbols = (evidence[name][row].as_py() for name in ("text", "path", "symbols"))
        words = list(dict.fromkeys(_WORD.findall(text[:4000])))[:_WORDS]
        if not words:
            continue
        number = len(probes)
        fields: dict[str, Any] = {
            "question": " ".join(words),
            "project": project,
            "purpose": PURPOSES.values[number % len(PURPOSES.values)],
            "time": {"as_of": as_of.isoformat()},
            "anchors": {"symbols": (symbols or [])[:2] or None, "current_files": [path] if path else None},
        }
        if number % 2:
            fields["budget"] = _TIGHT
        probes.append(Probe(f"row {number + 1}", fields))
        if len(probes) == count:
            break
    return probes


def naming(tokens: Sequence[str], ids: Sequence[str], project: str, as_of: datetime) -> Probe:
    """A request that asks for canaries by word, symbol, path and id."""
    fields = {
        "question": " ".join([*tokens[:6], *ids[:2]]),
        "project": project,
        "purpose": "explain-code",
        "time": {"as_of": as_of.isoformat()},
        "anchors": {"symbols": [*tokens[:4]], "current_files": [f"{token}.md" for token in tokens[:3]]},
    }
    return Probe("canaries by name", fields, names_canaries=True)


def foreign(project: str, number: int, as_of: datetime) -> Probe:
    """A request in a project that is not the tenant's, or that does not exist: the answers must not differ."""
    time = {"as_of": as_of.isoformat()}
    fields = {"question": "what is there?", "project": project, "purpose": "answer-question", "time": time}
    return Probe(f"foreign project {number}", fields)


def from_angle(probe: Probe, angle: Angle) -> Probe:
    """The probe with the fields of the angle added; the probe takes precedence, and `time` is merged."""
    asked = {**angle.asked, **probe.fields, "time": {**angle.asked.get("time", {}), **probe.fields["time"]}}
    return replace(probe, fields=asked)
