"""Rows, requests and grants for the tests of both walls, and a plain reference of their gates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from scoped_retrieval.nodes.scope_resolution import contract_bounds, contracts, reach
from scoped_retrieval.nodes.tables import MODE_POLICIES, ROLE_POLICIES
from scoped_retrieval.nodes.walls.gates import GATES, NUMBER
from scoped_retrieval.pipeline.config.policies.tables import load_policies

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
_LOADED = load_policies()
POLICIES = _LOADED.purpose_policies
NARROW = {
    "mode": "execution", "version": "v", "search_paths": ["/p?", "/src/"], "include_paths": [], "include_when": [],
    "exclude_kinds": ["path", "level", "zone"], "exclude_values": ["/p1", "sprint", "private"], "exclude_unless": ["", "", ""],
    "lanes": [], "lane_k": 20, "max_items": 6, "window_paths": [], "chunk_expansion": False, "exact_lookups": True,
    "citation_chaining": False, "include_deleted": False, "newest_first": False, "cross_encoder": False,
}  # fmt: skip
"""A mode that speaks of the paths, levels and zones of these worlds."""


def modes_with(*changes: dict) -> pa.Table:
    """The bundled modes with others in the place of some."""
    own = {change["mode"]: NARROW | change for change in changes}
    bundled = {row["mode"]: row for row in _LOADED.mode_policies.to_pylist()}
    return MODE_POLICIES.from_rows(list((bundled | own).values()))


MODES = modes_with(NARROW)
_ROLE = {
    "version": "v", "label": "l", "mission": "m", "anti_goals": [], "preferred_terms": [], "boost_phrases": [],
    "suppress_phrases": [], "weight_lexical": 0.25, "weight_semantic": 0.25, "weight_metadata": 0.25,
    "weight_rerank": 0.25, "require_source_diversity": False, "stale_penalty": 0.0, "role_mismatch_penalty": 0.0,
    "bridge_roles": [], "prioritize": [], "avoid": [], "required_evidence": [], "citation_style": "inline",
    "distinctiveness_checks": [],
}  # fmt: skip
ROLES = ROLE_POLICIES.from_rows(
    [
        _ROLE | {"role": "architect", "allowed_sources": ["git:*", "memory"], "forbidden_sources": []},
        _ROLE | {"role": "critic", "forbidden_sources": ["docs:*", "external"]},
    ]
)
ROW = {
    "source_id": "git:shop", "origin_class": "workspace", "evidence_kind": "code", "path": "src/a.py",
    "owner_project": "shop", "zone": "internal", "declared_visibility": "model-visible", "authority": 1,
    "lifecycle": "verified", "declared_safety": "safe", "declared_standing": "evidence", "generated": False, "length": 3,
    "text": "t", "text_sha256": "h",
}  # fmt: skip
REQUEST = {
    "intent_source": "runtime", "question": "why", "principal": "ana", "project": "shop", "purpose": "fix-test",
    "recall_effort": "full", "as_of": NOON, "asked_at": NOON, "allow_stale_memory": False, "require_citation": True,
    "require_snapshot": False, "tokenizer": "approx-bpe/1",
}  # fmt: skip
GRANT = {"principal": "ana", "project": "shop", "own_project": True, "zone": "internal", "audit": False}


words = st.sampled_from
SELECTORS = ["git:*", "git:shop", "memory", "docs:a/b", "docs:*", "external", "git:?/", "*:*a*b*"]
GLOBS = ["p?", "p1", "src/", "**/a.py", "*", "src/*.py\n**a*", "(none)", "path:p1"]
times = words([NOON - 2 * DAY, NOON - DAY, NOON, NOON + DAY])
maybe_times = st.none() | times
row_changes = st.fixed_dictionaries(
    {
        "origin_class": words(["workspace", "memory", "external", "decision-record", "artifact"]),
        "source_id": words(["git:shop", "git:a/b", "docs:a/b", "memory:ana"]),
        "owner_project": words(["shop", "shop", "pay"]),
        "zone": words(["public", "internal", "private", "restricted", "odd", None]),
        "declared_visibility": words(["model-visible"] * 4 + ["runtime-only", "denied", None]),
        "lifecycle": words(["verified"] * 3 + ["candidate", "deprecated", "revoked", "odd", None]),
        "declared_safety": words(["safe", "requires-review", "blocked", None]),
        "authority": words([0, 1, 3, None]),
    },
    optional={
        "owner_user": words(["ana", "bob", "cyd"]),
        "principals": st.lists(words(["ana", "bob", "dev"]), max_size=2),
        "namespace": words(["a", "b"]),
        "branch": words(["main", "dev"]),
        "workspace_root": words(["/v", "/w"]),
        "test_suite": words(["unit", "e2e"]),
        "level": words(["Sprint", "task"]),
        "valid_from": times,
        "valid_until": times,
        "event_time": times,
        "excluded_roles": st.lists(words(["architect", "critic"]), max_size=2),
    },
)
request_changes = st.fixed_dictionaries(
    {"allow_stale_memory": st.booleans(), "as_of": words([NOON, NOON - DAY])},
    optional={
        "mode": st.just("execution"),
        "project": words(["shop", "pay"]),
        "namespace": words(["a"]),
        "branch": words(["main"]),
        "workspace_root": words(["/w"]),
        "test_suite": words(["unit"]),
        "allowed_sources": st.lists(words(SELECTORS), max_size=3),
        "denied_sources": st.lists(words(SELECTORS), max_size=1),
        "allowed_paths": st.lists(words(GLOBS), max_size=3),
        "denied_paths": st.lists(words(GLOBS), max_size=1),
        "accepted_authority": st.lists(
            words(["current-workspace", "project-doc", "verified-memory", "session-event"]), max_size=4
        ),
        "min_authority": st.integers(0, 3),
        "max_unverified_items": st.integers(0, 2),
        "role": words(["architect", "critic", "unknown"]),
        "include_after": times,
        "exclude_after": times,
    },
)
grant_changes = st.fixed_dictionaries(
    {"zone": words(["public", "internal", "restricted", "restricted"])},
    optional={
        "sources": st.lists(words(SELECTORS), max_size=3),
        "paths": st.lists(words(GLOBS), max_size=3),
        "denied_paths": st.lists(words(GLOBS), max_size=1),
        "states": st.lists(words(["verified", "candidate", "deprecated"]), max_size=3),
        "users": st.just(["bob"]),
        "namespaces": st.lists(words(["a", "b"]), max_size=1),
        "groups": st.just(["dev"]),
    },
)
grant_lists = st.tuples(grant_changes, st.lists(grant_changes, max_size=1), st.booleans()).map(
    lambda drawn: [drawn[0], *drawn[1], *([{"project": "pay", "own_project": False}] if drawn[2] else [])]
)


def contracts_of(
    requests: pa.Table, grants: pa.Table, modes: pa.Table = MODES, policies: pa.Table = POLICIES
) -> pa.Table:
    """CONTRACTS under the bundled purposes, or other policies of them, and these worlds' roles."""
    held = reach(requests, grants, ROLES)
    return contracts(requests, held, policies, modes, ROLES)


def contract_bounds_of(requests: pa.Table, grants: pa.Table) -> pa.Table:
    """CONTRACT_BOUNDS of these worlds' roles."""
    return contract_bounds(requests, reach(requests, grants, ROLES))


def picks(selector: str, row: dict) -> bool:
    source = row["source_id"]
    match selector:
        case "memory" | "external":
            return row["origin_class"] == selector
        case "git:?/":
            return source.startswith("git:") and len(source) > 5 and source[5] == "/"
        case "*:*a*b*":
            return ":" in source and "a" in source.split(":")[1] and "b" in source.split(":")[1].split("a", 1)[1]
    return source.startswith(selector[:-1]) if selector.endswith("*") else source == selector


def allows(glob: str, path: str | None) -> bool:
    return glob == "(none)" if path is None else leads(glob, path)


def denies(glob: str, path: str | None) -> bool:
    return not glob.startswith("path:") if path is None else leads(glob, path)


def leads(glob: str, path: str) -> bool:
    match glob.removeprefix("path:"):
        case "p?":
            return len(path) == 2 and path[0] == "p" and path[1] != "/"
        case "src/":
            return path.startswith("src/")
        case "**/a.py":
            return path.split("/")[-1] == "a.py"
        case "*":
            return "/" not in path
        case "src/*.py\n**a*":
            inside = path.startswith("src/") and path.endswith(".py") and path.count("/") == 1
            return inside and "a" in path.split("/")[-1]
        case "(none)":
            return False
    return path == glob.removeprefix("path:")


def place_stop(row: dict, contract: dict, bound: dict) -> int | None:
    """The first access or visibility gate that stops a row under one grant."""
    zones = ("public", "internal", "private", "restricted")
    state = (
        row["lifecycle"]
        if row["lifecycle"] in ("candidate", "verified", "deprecated", "expired", "revoked")
        else "candidate"
    )
    origin, readers = row["origin_class"], row["principals"]
    zone = zones.index(row["zone"]) if row["zone"] in zones else 3
    denied = (*bound["denied_paths"], *contract["denied_paths"], *contract["excluded_paths"])
    accepted = {
        "current-workspace": origin == "workspace",
        "project-doc": origin in ("project-doc", "team-standard", "decision-record"),
        "verified-memory": origin == "memory" and state == "verified",
        "session-event": origin in ("session-event", "artifact"),
    }
    rules = {
        "project": row["owner_project"] == bound["project"],
        "owner": row["owner_user"] is None or row["owner_user"] in bound["users"],
        "principals": readers is None or bool({contract["principal"], *contract["groups"]} & set(readers)),
        "zone": zone <= zones.index(bound["zone"]) and zones[zone] not in contract["excluded_zones"],
        "source_allow": all(
            allowed is None or any(picks(selector, row) for selector in allowed)
            for allowed in (bound["sources"], contract["allowed_sources"], contract["role_sources"])
        ),
        "source_deny": not any(picks(selector, row) for selector in contract["denied_sources"]),
        "path_allow": all(
            allowed is None or any(allows(glob, row["path"]) for glob in allowed)
            for allowed in (bound["paths"], contract["allowed_paths"], contract["search_paths"])
        ),
        "path_deny": not any(denies(glob, row["path"]) for glob in denied),
        "level": (row["level"] or "").lower() not in contract["excluded_levels"],
        "workspace": row["workspace_root"] is None or row["workspace_root"] == contract["workspace_root"],
        "visibility": row["declared_visibility"] == "model-visible",
        "lifecycle": state in contract["include_states"] and (bound["states"] is None or state in bound["states"]),
        "safety": row["declared_safety"] != "blocked",
        "role_source": not any(picks(selector, row) for selector in contract["forbidden_sources"]),
        "role": contract["role"] not in (row["excluded_roles"] or ["-"]),
        "accepted_authority": contract["accepted_authority"] is None or any(accepted[n] for n in contract["accepted_authority"]),
        "min_authority": (row["authority"] or 0) >= contract["min_authority"],
    } | {
        name: row[name] is None
        or ((contract[name] in (None, row[name]) and row[name] in (bound.get(f"{name}s") or [row[name]]))
        and bound.get(f"{name}s") != [])
        for name in ("namespace", "branch", "test_suite")
    }  # fmt: skip
    return next((gate.number for gate in GATES if not rules.get(gate.name, True)), None)


def time_stop(row: dict, as_of: Any, start: Any, end: Any) -> tuple[int | None, tuple | None]:
    """The first time gate that stops a row, and the placement that serves it best, which is judged; times compare."""

    def stop(placement: tuple) -> int | None:
        recorded, superseded, deleted = placement
        happened = recorded if row.get("event_time") is None else row["event_time"]
        rules = {
            "recorded": recorded <= as_of,
            "superseded": superseded is None or as_of < superseded,
            "deleted": deleted is None or as_of < deleted,
            "valid_from": row.get("valid_from") is None or row["valid_from"] <= as_of,
            "valid_until": row.get("valid_until") is None or as_of < row["valid_until"],
            "window_start": start is None or start <= happened,
            "window_end": end is None or happened < end,
        }
        return next((NUMBER[name] for name, holds in rules.items() if not holds), None)

    ended = (NUMBER["superseded"], NUMBER["deleted"])
    every = sorted(row["placements"], key=lambda placement: placement[0])
    known = [placement for placement in every if placement[0] <= as_of]
    best = [p for p in known if stop(p) is None] or [p for p in known if stop(p) not in ended] or known or every[:1]
    return (stop(best[-1]), best[-1]) if best else (NUMBER["recorded"], None)
