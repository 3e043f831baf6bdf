"""Every key of a policy file has an effect: changing it alone changes evidence, order, block bytes or the action.

The keys are read from the loaders, so a new one without a case fails here. Role overlays: `test_roles`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from policy_world import PURPOSE, answer, asked
from scoped_retrieval.nodes.errors import PolicyError
from scoped_retrieval.nodes.vocabulary import EVIDENCE_KINDS, FEEDBACK_TERMS, FILE_TERMS, ROLE_TERMS, SCORE_TERMS
from scoped_retrieval.pipeline.config import grants as grant_files
from scoped_retrieval.pipeline.config.policies import tables as mode_policies
from scoped_retrieval.pipeline.config.policies import tables as policies

Parts = Mapping[str, Mapping[str, Any]]

PATH_QUESTION = {"question": "What of the queue in DEL-1, `drain_queue`?"}
PLANNED = {"request": {"mode": "planning", "variables": {"venture": "acme", "debugging": True}}}
RULE = "plan.0"
PURPOSE_CASES: list[tuple[str, Any, Parts]] = [
    ("merge_policy", "authority-first", {"purpose": {"budget.pool_k": 4}}),
    ("output_shape", "citation-pack", {}),
    ("include_states", ["verified"], {}),
    ("instruction_sources", [], {}),
    ("mask", ["email"], {}),
    ("graph_floor", 0.95, {"request": {"recall_effort": "graph"}}),
    ("graph_iterations", 1, {"request": {"recall_effort": "graph"}, "purpose": {f"{RULE}.lanes": ["lexical"], "plan.1.lanes": ["lexical"]}}),
    ("budget.lane_k", 1, {}),
    ("budget.pool_k", 3, {}),
    ("budget.max_items", 3, {}),
    ("budget.max_items_per_source", 1, {}),
    ("budget.max_unverified_items", 4, {}),
    ("budget.max_tokens", 200, {}),
    ("budget.max_chars", 700, {}),
    ("budget.max_chunk_tokens", 4, {}),
    *((f"weights.{name}", 0.0 if name == "recency" else 5.0, {"request": PATH_QUESTION | {"branch": "main", "test_suite": "unit", "session_id": "s1"}})
      for name in ("semantic", "lexical", *FEEDBACK_TERMS, "anchor", "authority", "recency", "actionability", "diversity", "scope")),
    *((f"weights.{name}", 5.0, {"request": {"question": "What of the backlog?"}}) for name in ("turn_context", "turn_answer", "turn_session")),
    *((f"weights.{name}", 5.0, {"purpose": {"kinds.code.actionability": 0.0, "weights.outlines": 0.0, "weights.title": 0.0, "weights.definition": 0.0}}) for name in FILE_TERMS if name != "definition"),
    ("weights.definition", 5.0, {"purpose": {"kinds.code.actionability": 0.0, "weights.anchor": 0.0, "weights.lexical": 0.0, "weights.file": 0.0, "weights.passages": 0.0,
                                             "weights.outlines": 0.0, "weights.title": 0.0}, "request": PATH_QUESTION}),
    ("kinds.doc.actionability", 0.0, {}),
    ("kinds.doc.half_life_days", 1, {}),
    ("kinds.code.document_types", {}, {}),
    (f"{RULE}.parts", ["symbols"], {}),
    (f"{RULE}.lanes", ["exact"], {}),
    (f"{RULE}.sources", ["external"], {}),
    (f"{RULE}.kinds", ["rule"], {}),
    (f"{RULE}.lane_k", 1, {}),
    (f"{RULE}.min_authority", 2, {}),
    (f"{RULE}.max_age_days", 2, {}),
    ("plan.1.requires", [], {"purpose": {"plan.1.parts": ["symbols"], "plan.1.kinds": ["memory"], "plan.1.lanes": ["recent"]},
                             "request": {"required_evidence": ["verified-memory"]}}),
]  # fmt: skip
LABELS = {
    "purpose": "names the file",
    "plan.intent": "names the sub-query in the record (S0.39)",
    "plan.question": "says in words what the sub-query is for (S0.41)",
    "weights.cross_encoder": "counts where a cross-encoder is set: `tests/test_cross_encoder.py`",
    "budget.withheld_k": "how much of what was withheld is kept for auditors; no caller may learn of it",
    "mode": "names the file",
    "include.what": "says in words what an entry is for, as the document does",
    "exclude.what": "the same",
    "tokens": "who a bearer token is; the command line takes the principal from elsewhere",
    "audit": "who may look at what was written",
    "reason": "why a grant was given",
}
"""Keys that no answer may depend on, and why."""


@cache
def _answered(parts: str) -> tuple[Any, ...]:
    return answer(asked(json.loads(parts)))


def answered(parts: Parts) -> tuple[Any, ...]:
    return _answered(json.dumps(parts, sort_keys=True, default=str))


def with_change(given: Parts, file: str, key: str, value: Any) -> Parts:
    return {**given, file: {**given.get(file, {}), key: value}}


def without_numbers(key: str) -> str:
    return ".".join(part for part in key.split(".") if not part.isdigit())


@pytest.mark.parametrize(("key", "value", "given"), PURPOSE_CASES, ids=[key for key, *_ in PURPOSE_CASES])
def test_a_key_of_a_purpose_changed_alone_changes_the_answer(key: str, value: Any, given: Parts) -> None:
    assert answered(given) != answered(with_change(given, "purpose", key, value))


@pytest.mark.parametrize("term", ROLE_TERMS)
def test_a_purpose_does_not_weigh_what_only_roles_have(term: str) -> None:
    with pytest.raises(PolicyError, match=f"got '{term}' - at .*weights"):
        asked({"purpose": {f"weights.{term}": 1.0}})


def test_every_key_of_a_purpose_is_tried() -> None:
    known = {
        *policies.Purpose.model_fields.keys() - {"schema_version", "budget", "weights", "kinds", "plan"},
        *(f"budget.{name}" for name in policies.Budget.model_fields),
        *(f"weights.{name}" for name in SCORE_TERMS if name not in ROLE_TERMS),
        *(f"kinds.{name}" for name in policies.Kind.model_fields),
        *(f"plan.{name}" for name in policies.Rule.model_fields),
    }
    kinds = {f"kinds.{kind}." for kind in EVIDENCE_KINDS.values}
    tried = {without_numbers(key) for key, *_ in PURPOSE_CASES}
    tried |= {f"kinds.{key.split('.')[-1]}" for key in tried if key.startswith(tuple(kinds))}
    missing = known - LABELS.keys() - tried
    assert not missing, f"add to PURPOSE_CASES a value that changes an answer: {sorted(missing)}"
    assert not LABELS.keys() & tried


MODE_CASES: list[tuple[str, Any, Parts]] = [
    ("search_paths", ["/docs/"], PLANNED),
    ("search_paths", ["/ventures/{venture}/"], PLANNED),
    ("retrieval_params.k_in", 1, PLANNED),
    ("retrieval_params.k_out", 2, PLANNED),
    ("retrieval_params.chunk_expansion", True, {"request": PLANNED["request"] | {"allowed_paths": ["docs/long.md"]}}),
    ("retrieval_params.exact_lookups", True, {"request": PLANNED["request"] | {"allowed_paths": ["docs/del*", "sot/"]}}),
    ("retrieval_params.time_window", "last_3_days", PLANNED),
    ("retrieval_params.include_deleted", True, PLANNED),
    ("include", [{"what": "rules", "paths": ["/AGENTS.md"]}], PLANNED | {"mode": {"search_paths": ["/docs/"]}}),
    ("exclude", [{"what": "documents", "paths": ["/docs/"]}], PLANNED),
    ("strategies", ["BM25 for terms", "Temporal search (recent first)"], PLANNED),
    ("strategies", ["BM25 for terms", "Semantic search"],
     PLANNED | {"purpose": {"plan.0.lanes": ["lexical"], "plan.0.parts": ["question"]}, "request": PLANNED["request"] | {"question": "drowsy"}}),
    ("strategies", ["BM25 for terms", "Citation chaining"], PLANNED),
    ("strategies", ["BM25 for terms", "Exact match for ids"],
     PLANNED | {"purpose": {"plan": [{**PURPOSE["plan"][0], "lanes": ["lexical"]}]}, "request": PLANNED["request"] | {"question": "DEL-1"}}),
]  # fmt: skip
ENTRIES: list[tuple[str, str, Any, Any]] = [
    ("include", "paths", ["/AGENTS.md"], ["/adr/"]),
    ("include", "when", None, "wanted"),
    ("exclude", "paths", ["/docs/"], ["/adr/"]),
    ("exclude", "levels", ["venture"], ["task"]),
    ("exclude", "zones", ["internal"], ["restricted"]),
    ("exclude", "unless", None, "debugging"),
]
ENTRY_OF = {"include": {"what": "w", "paths": ["/AGENTS.md"]}, "exclude": {"what": "w", "paths": ["/docs/"]}}


@pytest.mark.parametrize(("key", "value", "given"), MODE_CASES, ids=[f"{k}={str(v)[:40]}" for k, v, _ in MODE_CASES])
def test_a_key_of_a_mode_changed_alone_changes_the_answer(key: str, value: Any, given: Parts) -> None:
    assert answered(given) != answered(with_change(given, "mode", key, value))


@pytest.mark.parametrize(("kind", "name", "one", "other"), ENTRIES, ids=[f"{k}.{n}" for k, n, *_ in ENTRIES])
def test_a_key_of_an_entry_changed_alone_changes_the_answer(kind: str, name: str, one: Any, other: Any) -> None:
    given = {**PLANNED, "mode": {"search_paths": ["/docs/", "/ventures/", "/adr/x/"]}} if kind == "include" else PLANNED

    def of(value: Any) -> tuple[Any, ...]:
        entry = {"what": "w"} | ({} if name in ("paths", "levels", "zones") else ENTRY_OF[kind])
        return answered(with_change(given, "mode", kind, [entry | ({} if value is None else {name: value})]))

    assert of(one) != of(other)


def test_every_key_of_a_mode_is_tried() -> None:
    parts = {
        "retrieval_params": mode_policies.Params,
        "include": mode_policies.Include,
        "exclude": mode_policies.Exclude,
    }
    known = mode_policies.Mode.model_fields.keys() - {"schema_version", "retrieval_params"}
    known |= {f"{part}.{name}" for part, model in parts.items() for name in model.model_fields}
    tried = {key for key, *_ in MODE_CASES} | {f"{kind}.{name}" for kind, name, *_ in ENTRIES}
    assert known - LABELS.keys() <= tried
    words = {value.split()[0].lower() for key, values, _ in MODE_CASES if key == "strategies" for value in values}
    assert {word for word, lane in mode_policies.STRATEGIES.items() if lane} - {"keyword"} <= words


MINE = "principals.ana"
SHOP = f"{MINE}.projects.0"
SOON, LATER = "2026-05-01T00:00:00Z", "2027-01-01T00:00:00Z"
PLATFORM = {
    "principal": "ana", "project": "platform", "zones": "internal", "reason": "shared", "expires": "2099-01-01T00:00:00Z",
}  # fmt: skip
FOR_BOB = {"grants": {f"{MINE}.act_as": ["bob"]}, "request": {"principal": "bob"}}


def crossing(**more: Any) -> Parts:
    return {"grants": {"grants": [PLATFORM | more]}}


def acting(**more: Any) -> Parts:
    return {"grants": {f"{MINE}.act_as": [{"principal": "bob"} | more]}, "request": {"principal": "bob"}}


GRANT_CASES: list[tuple[str, Parts, Parts]] = [
    ("principals", {}, {"grants": {"principals": {"bob": {"projects": ["shop"]}}}}),
    ("grants", {}, crossing()),
    ("principal.projects", {}, {"grants": {f"{MINE}.projects": []}}),
    ("principal.groups", {}, {"grants": {f"{MINE}.groups": ["dev"]}}),
    ("principal.zones", {}, {"grants": {f"{MINE}.zones": "private"}}),
    ("principal.users", {}, {"grants": {f"{MINE}.users": ["bob"]}}),
    ("principal.namespaces", {}, {"grants": {f"{MINE}.namespaces": []}}),
    ("principal.states", {}, {"grants": {f"{MINE}.states": ["verified"]}}),
    ("principal.paths", {}, {"grants": {f"{MINE}.paths": ["docs/"]}}),
    ("principal.denied_paths", {}, {"grants": {f"{MINE}.denied_paths": ["docs/"]}}),
    ("principal.act_as", {"request": {"principal": "bob"}}, FOR_BOB),
    ("project.project", {}, {"grants": {f"{SHOP}.project": "billing"}}),
    ("project.sources", {}, {"grants": {f"{SHOP}.sources": ["memory"]}}),
    ("project.paths", {}, {"grants": {f"{SHOP}.paths": ["docs/"]}}),
    ("project.denied_paths", {}, {"grants": {f"{SHOP}.denied_paths": ["docs/"]}}),
    ("project.zones", {}, {"grants": {f"{SHOP}.zones": "public"}}),
    ("project.users", {}, {"grants": {f"{SHOP}.users": ["bob"]}}),
    ("project.namespaces", {}, {"grants": {f"{SHOP}.namespaces": []}}),
    ("project.states", {}, {"grants": {f"{SHOP}.states": ["verified"]}}),
    ("project.expires", {"grants": {f"{SHOP}.expires": LATER}}, {"grants": {f"{SHOP}.expires": SOON}}),
    ("act_as.principal", acting(), acting(principal="cyd")),
    ("act_as.project", acting(), acting(project="billing")),
    ("act_as.expires", acting(expires=LATER), acting(expires=SOON)),
    ("grant.principal", crossing(), crossing(principal="bob")),
    ("grant.project", crossing(), crossing(project="billing")),
    ("grant.sources", crossing(), crossing(sources=["memory"])),
    ("grant.paths", crossing(), crossing(paths=["platform/open.md"])),
    ("grant.denied_paths", crossing(), crossing(denied_paths=["platform/open.md"])),
    ("grant.zones", crossing(), crossing(zones="public")),
    ("grant.users", crossing(), crossing(users=["bob"])),
    ("grant.namespaces", crossing(), crossing(namespaces=[])),
    ("grant.states", crossing(), crossing(states=["candidate"])),
    ("grant.expires", crossing(expires=LATER), crossing(expires=SOON)),
    ("grant.for_projects", crossing(for_projects=["shop"]), crossing(for_projects=["billing"])),
]


@pytest.mark.parametrize(("key", "one", "other"), GRANT_CASES, ids=[key for key, *_ in GRANT_CASES])
def test_a_key_of_a_grant_changed_alone_changes_the_answer(key: str, one: Parts, other: Parts) -> None:
    assert answered(one) != answered(other)


def test_every_key_of_a_grants_file_is_tried() -> None:
    models = {
        "principal": grant_files._Principal, "project": grant_files._Project, "act_as": grant_files._ActAs,
        "grant": grant_files._CrossProject,
    }  # fmt: skip
    known = grant_files._File.model_fields.keys() - {"schema_version"}
    known |= {f"{part}.{name}" for part, model in models.items() for name in model.model_fields}
    asked_for = {key for key in known if key.split(".")[-1] not in LABELS} - {"principal.append"}
    assert asked_for <= {key for key, *_ in GRANT_CASES}


def test_a_grant_to_append_changes_no_answer() -> None:
    """What it opens is writing: `tests/test_serve.py` and `tests/test_mcp.py`."""
    assert answered({}) == answered({"grants": {f"{MINE}.append": ["shop"]}})


@pytest.mark.parametrize(
    ("named", "key", "value"),
    [
        ("graphTraversalConfidenceFloor", "graph_floor", 0.95),
        ("graphTraversalPageRankIterations", "graph_iterations", 1),
    ],
)
def test_the_walk_of_the_graph_lane_has_the_names_of_document_002(named: str, key: str, value: float) -> None:
    given = next(parts for name, _, parts in PURPOSE_CASES if name == key)
    assert answered(with_change(given, "purpose", named, value)) == answered(with_change(given, "purpose", key, value))


def test_what_is_kept_for_auditors_changes_the_record_and_no_answer() -> None:
    few = {"purpose": {"budget.withheld_k": 0}}
    assert answered({}) == answered(few)
    kept = [asked(parts).tables["decisions"].num_rows for parts in ({}, few)]
    assert kept[0] > kept[1]
