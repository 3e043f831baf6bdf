"""Cases: a tenant asked from one angle, with the rows that the angle's bounds exclude and the requests that it asks.

Reads rows of the tenant, the other principals and projects, and the gates. An angle is the fields common to all requests of a
case; every gate names the columns that exclude a row from all of them. Some requests limit a lane to so few rows that a single
canary would displace an answer; one asks for canaries by name.

Note: a canary is out of scope for a whole state of the test. A gate that depends on a request field needs an angle in
which every request has that field.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from ...nodes.tables import MODE_POLICIES
from ...nodes.vocabulary import FEEDBACK_TERMS, PURPOSES, TURN_TERMS
from ...nodes.walls.gate import ANGLES, GUIDED, OPEN, Gate, Ground
from ...nodes.walls.gates import LEAK_TEST
from ..config.policies.roles import overlay_of, roles_of
from ..config.policies.tables import Mode, Policies, mode_choices
from ..parsing.documents import document
from .tenants import Tenant

Row = dict[str, Any]
Probes = dict[str, dict[str, Any]]
"""The fields of requests, by the name of the request."""

NAMED = "canaries by name"
"""The request that names canaries itself: its echo in an answer is not a leak."""
FOREIGN = ("foreign project 1", "foreign project 2")
_MODE = {
    "mode": "review",
    "search_paths": ["**/*.*"],
    "retrieval_params": {"k_in": 30, "k_out": 10, "chunk_expansion": True, "exact_lookups": True},
    "strategies": ["citation"],
    "exclude": [{"what": LEAK_TEST, "levels": ["task"]}, {"what": LEAK_TEST, "zones": ["public"]}],
}
_ROLE = {
    "role_id": LEAK_TEST, "version": LEAK_TEST, "label": LEAK_TEST, "mission": LEAK_TEST, "anti_goals": [],
    "vocabulary": {"preferred_terms": [], "synonyms": {}, "boost_phrases": []},
    "source_policy": {"preferred_sources": [], "forbidden_sources": ["leak-test:forbidden"]},
    "retrieval_policy": {
        "max_selected_chunks": 10, "weights": dict.fromkeys(("lexical", "semantic", "metadata", "rerank"), 0.25),
    },
    "synthesis_policy": {"prioritize": [], "avoid": []},
    "eval_profile": {"golden_set_id": LEAK_TEST, "distinctiveness_checks": []},
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_]{3,20}")
_WORDS = 8
"""Words of a row in a question."""
_TIGHT = {"lane_k": 2, "max_items": 3}


def with_own_presets(policies: Policies) -> Policies:
    """The policies with a mode and a role of the test alone, which exclude values that no user's rows have.

    The mode follows all links, so that each can lead to a canary.
    """
    mode = {"mode": _MODE["mode"], "version": LEAK_TEST, **mode_choices(document(Mode, _MODE, LEAK_TEST))}
    digest = hashlib.sha256(f"{LEAK_TEST}:{policies.digest}".encode()).hexdigest()
    return replace(
        policies,
        mode_policies=MODE_POLICIES.from_rows([mode]),
        roles=roles_of([overlay_of(_ROLE)]),
        digest=digest,
    )


@dataclass(frozen=True)
class Case:
    """A tenant asked from one angle: how, with which requests, and which rows that excludes."""

    name: str
    """The seed of the canaries' words, so that the same test plants the same rows."""
    angle: str
    tenant: Tenant
    ground: Ground
    """The row that canaries copy, and its surroundings."""
    asked: Mapping[str, Any]
    """Fields of every request."""
    shut: Mapping[str, tuple[str, Row]]
    """By reason the gate that excludes a row, and the columns that make it do so; those of this angle alone first, since no
    other angle tests their gates.
    """
    probes: Probes

    @cached_property
    def words(self) -> str:
        """Words of its questions, which the rows that are planted share."""
        questions = " ".join(fields["question"] for fields in self.probes.values()).split()
        return " ".join(dict.fromkeys(questions[:60]))

    @property
    def root(self) -> str | None:
        """The work tree that its requests name."""
        return self.asked.get("workspace_root")

    def requests(self, tokens: Sequence[str], ids: Sequence[str]) -> Probes:
        """The probes, a request for canaries by word, symbol, path and id, and two in a project that is not the tenant's and in
        one that does not exist.
        """
        time = {"as_of": self.ground.as_of.isoformat()}
        named = {
            "question": " ".join([*tokens[:6], *ids[:2]]),
            "project": self.tenant.project,
            "purpose": "explain-code",
            "time": time,
            "anchors": {"anchor_symbols": [*tokens[:4]], "current_files": [f"{token}.md" for token in tokens[:3]]},
        }
        found = {
            name: {**self.asked, **fields, "time": {**self.asked.get("time", {}), **fields["time"]}}
            for name, fields in {**self.probes, NAMED: named}.items()
        }
        if self.angle == OPEN:
            foreign = {"question": "what is there?", "purpose": "answer-question", "time": time}
            for name, project in zip(FOREIGN, (self.ground.other_project, f"{LEAK_TEST}-unknown"), strict=True):
                found[name] = foreign | {"project": project}
        return found


def case_of(name: str, angle: str, tenant: Tenant, ground: Ground, probes: Probes, gates: Sequence[Gate]) -> Case:
    """A tenant asked from one of ANGLES; `gates` are those whose canaries are planted, in order."""
    own = [(gate, canary) for gate in gates for canary in gate.canaries if angle in canary.angles]
    asked: dict[str, Any] = {
        "session_id": ground.seen.get("session_id") or "leak-test-session",
        "weights": dict.fromkeys((*TURN_TERMS, *FEEDBACK_TERMS), 0.2),
    }
    if angle == GUIDED:
        asked |= {"mode": _MODE["mode"], "role": LEAK_TEST, "recall_effort": "graph"}
    shut = {}
    for gate, canary in sorted(own, key=lambda pair: pair[1].angles == ANGLES):
        if (made := gate.planted(canary, ground)) is not None:
            columns, fields = made
            shut[canary.reason] = (gate.name, columns)
            asked |= fields
    return Case(name, angle, tenant, ground, asked, shut, probes)


def folder_of(seen: Mapping[str, Any]) -> str:
    """The folder of hooks and canaries: that of the row, so that path grants for the row also cover hooks."""
    return posixpath.join(posixpath.dirname(seen["path"] or ""), "")


def derived(evidence: pa.Table, project: str, count: int, as_of: datetime, seed: str) -> Probes:
    """Questions made of words of up to `count` rows, with their symbols and paths as anchors."""
    ids = evidence["evidence_id"].to_pylist()
    order = sorted(range(len(ids)), key=lambda row: hashlib.sha256(f"{seed}{ids[row]}".encode()).digest())
    found: Probes = {}
    for row in order:
        text, path, symbols = (evidence[name][row].as_py() for name in ("text", "path", "symbols"))
        if not (words := list(dict.fromkeys(_WORD.findall(text[:4000])))[:_WORDS]):
            continue
        number = len(found)
        fields: dict[str, Any] = {
            "question": " ".join(words),
            "project": project,
            "purpose": PURPOSES.values[number % len(PURPOSES.values)],
            "time": {"as_of": as_of.isoformat()},
            "anchors": {"anchor_symbols": (symbols or [])[:2] or None, "current_files": [path] if path else None},
        }
        found[f"row {number + 1}"] = fields | ({"budget": _TIGHT} if number % 2 else {})
        if len(found) == count:
            break
    return found
