"""Rows that both walls refuse, each for one column that changed, with the gate that refuses them.

A case is the change of a row that is admitted without it, changes of the request and of the grant it is asked under, and
the gate that refuses.
"""

from __future__ import annotations

from typing import Any

from wall_worlds import DAY, NOON

Refusal = tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]
PLANNING = {"mode": "planning", "variables": '{"venture": "acme"}'}
REFUSED: list[Refusal] = [
    ({"owner_project": "pay"}, {}, {}, "project"),
    ({"owner_user": "bob"}, {}, {}, "owner"),
    ({"principals": ["bob", "ops"]}, {}, {"groups": ["dev"]}, "principals"),
    ({"principals": []}, {}, {}, "principals"),
    ({"zone": "private"}, {}, {}, "zone"),
    ({"zone": None}, {}, {"zone": "private"}, "zone"),
    ({"zone": "unheard-of"}, {}, {"zone": "private"}, "zone"),
    ({"source_id": "memory:ana"}, {}, {"sources": ["git:*"]}, "source_allow"),
    ({"source_id": "memory:ana"}, {"allowed_sources": ["git:*"]}, {}, "source_allow"),
    ({"origin_class": "external"}, {"denied_sources": ["external"]}, {}, "source_deny"),
    ({"source_id": "git:a/b"}, {"denied_sources": ["git:a/"]}, {}, "source_deny"),
    ({"path": "docs/a.md"}, {}, {"paths": ["src/"]}, "path_allow"),
    ({"path": "docs/a.md"}, {"allowed_paths": ["src/**/*.py"]}, {}, "path_allow"),
    ({"path": None}, {"allowed_paths": ["**"]}, {}, "path_allow"),
    ({"path": "src/keys/a.py"}, {"denied_paths": ["**/keys/"]}, {}, "path_deny"),
    (
        {"path": "src/keys/a.py"},
        {"allowed_paths": ["src/keys/", "src/a.py"]},
        {"denied_paths": ["src/keys/"]},
        "path_deny",
    ),
    ({"path": None}, {"denied_paths": ["path:src/keys/", "docs/"]}, {}, "path_deny"),
    ({"path": None}, {}, {"denied_paths": ["src/keys/"]}, "path_deny"),
    ({"path": "src/keys/a.py"}, {"denied_paths": ["path:src/keys/"]}, {}, "path_deny"),
    ({"path": "(none)"}, {"allowed_paths": ["(none)", "src/"]}, {}, "path_allow"),
    ({"namespace": "a"}, {"namespace": "b"}, {}, "namespace"),
    ({"namespace": "a"}, {}, {"namespaces": ["b"]}, "namespace"),
    ({"namespace": "a"}, {"namespace": "a"}, {"namespaces": []}, "namespace"),
    ({"branch": "dev"}, {"branch": "main"}, {}, "branch"),
    ({"workspace_root": "/w"}, {}, {}, "workspace"),
    ({"workspace_root": "/w"}, {"workspace_root": "/v"}, {}, "workspace"),
    ({"test_suite": "unit"}, {"test_suite": "e2e"}, {}, "test_suite"),
    ({"path": "docs/a.md"}, PLANNING, {}, "path_allow"),
    ({"path": "context/logs/a.md"}, PLANNING, {}, "path_deny"),
    ({"path": None}, PLANNING, {}, "path_allow"),
    ({"path": "context/a.md", "level": "Sprint"}, PLANNING, {}, "level"),
    ({"path": "context/a.md", "zone": "restricted"}, PLANNING, {"zone": "restricted"}, "zone"),
    ({"declared_visibility": "user-only"}, {}, {}, "visibility"),
    ({"declared_visibility": "runtime-only"}, {}, {}, "visibility"),
    ({"declared_visibility": None}, {}, {}, "visibility"),
    ({"lifecycle": None}, {}, {}, "lifecycle"),
    ({"lifecycle": "candidate"}, {}, {}, "lifecycle"),
    ({"lifecycle": "deprecated"}, {}, {}, "lifecycle"),
    ({"lifecycle": "revoked"}, {"allow_stale_memory": True}, {}, "lifecycle"),
    ({"lifecycle": "candidate"}, {"max_unverified_items": 3}, {"states": ["verified"]}, "lifecycle"),
    ({"declared_safety": "blocked"}, {}, {}, "safety"),
    ({"source_id": "docs:a/b"}, {"role": "architect"}, {}, "source_allow"),
    ({"source_id": "docs:a/b"}, {"role": "critic"}, {}, "role_source"),
    ({"excluded_roles": ["critic"]}, {"role": "critic"}, {}, "role"),
    ({"origin_class": "external"}, {"accepted_authority": ["current-workspace"]}, {}, "accepted_authority"),
    ({"authority": 0}, {"min_authority": 1}, {}, "min_authority"),
    ({"authority": None}, {"min_authority": 1}, {}, "min_authority"),
]
REFUSED_BY_TIME: list[Refusal] = [
    ({"placements": [(NOON + DAY, None, None)]}, {}, {}, "recorded"),
    ({"placements": [(NOON - DAY, NOON, None)]}, {}, {}, "superseded"),
    ({"placements": [(NOON - DAY, None, NOON)]}, {}, {}, "deleted"),
    ({"valid_from": NOON + DAY}, {}, {}, "valid_from"),
    ({"valid_until": NOON}, {}, {}, "valid_until"),
    ({"event_time": NOON - 9 * DAY}, {"window_days": 3.0}, {}, "window_start"),
    ({"event_time": NOON}, {"exclude_after": NOON}, {}, "window_end"),
]
"""Refused for a placement, or for a time of the row itself."""
