"""Both walls: gate by gate, against a plain reference, and each against the other; what shadows what, and what a verdict says."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.boundary_filtering import pool
from scoped_retrieval.nodes.scope.selectors import matching_paths
from scoped_retrieval.nodes.tables import EVIDENCE, POOL
from scoped_retrieval.nodes.walls.gates import GATES, NUMBER
from scoped_retrieval.nodes.walls.second_wall import leads_to
from wall_worlds import (
    DAY,
    NOON,
    grant_lists,
    maybe_times,
    place_stop,
    request_changes,
    row_changes,
    time_stop,
    times,
)
from walls import judged, stops, wall, world_of

ALL_GATES = [gate.name for gate in GATES]
UNREAD = ("project", "owner")
"""Gates whose rows the first wall never opens."""


def verdict(row: dict, request: dict | None = None, grant: dict | None = None) -> dict:
    return judged(world_of([row], [request or {}], [grant or {}])).to_pylist()[0]


Refusal = tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]
PLANNING = {"mode": "planning", "variables": '{"venture": "acme"}'}
REFUSED: list[Refusal] = [
    ({"owner_project": "pay"}, {}, {}, "project"),
    ({"owner_user": "bob"}, {}, {}, "owner"),
    ({"principals": ["bob", "ops"]}, {}, {"groups": ["dev"]}, "principals"),
    ({"principals": []}, {}, {}, "principals"),
    ({"principals": ["bob\0ana"]}, {}, {}, "principals"),
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
    ({"authority": -1}, {}, {}, "min_authority"),
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


@pytest.mark.parametrize(("change", "request_change", "grant", "gate"), [*REFUSED, *REFUSED_BY_TIME])
def test_the_same_row_is_admitted_until_one_column_changes(change, request_change, grant, gate):
    plain = {"path": "context/a.md"} if "mode" in request_change else {}
    open_, shut = (wall([row], [request_change], [grant]) for row in (plain, change))
    before, after = judged(open_).to_pylist()[0], judged(shut).to_pylist()[0]
    assert (stops(open_), open_.admissible["rows"].to_pylist()) == ({0: None}, [1])
    assert (before["admitted"], before["decided_by"], before["reason_code"]) == (True, None, None)
    timeless = None if GATES[NUMBER[gate] - 1].gate_class == "time" else gate
    assert (stops(shut), shut.admissible["rows"].to_pylist()) == ({} if gate in UNREAD else {0: timeless}, [0])
    assert (after["admitted"], after["decided_by"]) == (False, gate)
    assert after["reason_code"] == GATES[NUMBER[gate] - 1].reason_code
    assert after["would_reject_by"] is None


@pytest.mark.parametrize(
    ("row", "request_change", "grant"),
    [
        ({"owner_user": "ana"}, {}, {}),
        ({"owner_user": "bob"}, {}, {"users": ["bob"]}),
        ({"principals": ["ana"]}, {}, {}),
        ({"principals": [None, "ana"]}, {}, {}),
        ({"principals": ["dev"]}, {}, {"groups": ["dev"]}),
        ({"zone": "restricted"}, {}, {"zone": "restricted"}),
        ({"zone": None}, {}, {"zone": "restricted"}),
        ({"namespace": "a", "branch": "dev", "test_suite": "unit"}, {}, {}),
        ({"namespace": "a", "branch": "dev", "test_suite": "unit"}, {"namespace": "a", "branch": "dev", "test_suite": "unit"}, {}),
        ({"namespace": "a"}, {}, {"namespaces": ["a", "c"]}),
        ({"namespace": None}, {}, {"namespaces": []}),
        ({"workspace_root": "/w"}, {"workspace_root": "/w"}, {}),
        ({"path": None}, {"allowed_paths": ["docs/", "(none)"]}, {"paths": ["(none)"]}),
        ({"path": None}, {"denied_paths": ["path:src/keys/"]}, {"denied_paths": ["path:**/keys/"]}),
        ({"declared_safety": None}, {}, {}),
        ({"declared_safety": "requires-review"}, {}, {}),
        ({"lifecycle": None}, {"max_unverified_items": 1}, {}),
        ({"lifecycle": "expired"}, {"allow_stale_memory": True}, {}),
        ({"origin_class": "memory"}, {"accepted_authority": ["verified-memory"]}, {}),
        ({"origin_class": "decision-record"}, {"accepted_authority": ["project-doc"]}, {}),
        ({"origin_class": "artifact"}, {"accepted_authority": ["session-event"]}, {}),
    ],
)  # fmt: skip
def test_rows_that_a_contract_lets_in(row, request_change, grant):
    walled = wall([row], [request_change], [grant])
    assert (stops(walled), judged(walled)["admitted"].to_pylist()) == ({0: None}, [True])


def test_a_denial_beats_every_allowance():
    both = {"allowed_sources": ["git:shop"], "denied_sources": ["git:*"]}
    walled = wall([{}], [both], [{"sources": ["git:shop"]}])
    assert (stops(walled), judged(walled)["decided_by"].to_pylist()) == ({0: "source_deny"}, ["source_deny"])


def test_a_path_that_one_grant_denies_is_denied_by_all_of_the_project():
    grants = [{}, {"denied_paths": ["src/"]}, {"project": "pay", "own_project": False}]
    rows = [{}, {"path": "docs/a.md"}, {"owner_project": "pay"}]
    assert stops(wall(rows, [{}], grants)) == {0: "path_deny", 1: None, 2: None}


def test_one_grant_must_cover_a_row_whole():
    grants = [{"sources": ["git:*"]}, {"sources": ["memory:*"], "zone": "private"}]
    rows = [{}, {"zone": "private"}, {"source_id": "memory:a", "zone": "private"}, {"source_id": "docs:a"}]
    assert stops(wall(rows, [{}], grants)) == {0: None, 1: "source_allow", 2: None, 3: "source_allow"}


def test_a_denied_contract_admits_nothing():
    assert verdict({}, {"project": "absent"})["decided_by"] == "project"
    assert verdict({}, {"allowed_sources": []})["decided_by"] == "project"


# --- what a work tree shadows ----------------------------------------------------------------------------------------


def test_a_work_tree_shadows_committed_text_of_the_same_source_and_path_for_its_own_requests():
    rows = [{}, {"path": "src/b.py"}, {"source_id": "git:lib"}, {"workspace_root": "/w"}]
    walled = wall(rows, [{}, {"workspace_root": "/w"}, {"workspace_root": "/v"}], [{}])
    assert stops(walled, 0) == stops(walled, 2) == {0: None, 1: None, 2: None, 3: "workspace"}
    assert stops(walled, 1) == {0: "workspace", 1: None, 2: None, 3: None}


def test_what_is_shadowed_is_not_counted_as_withheld_and_what_an_earlier_gate_stops_stays_with_it():
    rows = [{"declared_safety": "blocked"}, {"branch": "dev"}, {"workspace_root": "/w"}]
    walled = wall(rows, [{"workspace_root": "/w", "branch": "a"}], [{}])
    assert stops(walled) == {0: "workspace", 1: "branch", 2: None}
    assert walled.admissible["withheld"].to_pylist() == [0]


@pytest.mark.parametrize(
    "change",
    [
        {"placements": [(NOON + DAY, None, None)]},
        {"declared_safety": "blocked"},
        {"zone": "restricted"},
        {"path": None},
    ],
)
def test_text_that_a_request_may_not_see_shadows_nothing_for_it(change):
    assert stops(wall([{}, {"workspace_root": "/w"} | change], [{"workspace_root": "/w"}], [{}]))[0] is None


# --- what the first wall counts --------------------------------------------------------------------------------------


def test_reachable_leaves_no_trace_of_access_and_keeps_what_visibility_withholds():
    rows = [{}, {"zone": "private"}, {"declared_safety": "blocked"}]
    reached = wall(rows, [{}], [{}]).reachable.select(["rows", "withheld_by"]).to_pydict()
    assert reached == {"rows": [[0, 2]], "withheld_by": [[0, NUMBER["safety"]]]}


def test_admissible_counts_each_request_at_its_own_instant():
    early = {"placements": [(NOON - 3 * DAY, None, None)], "length": 5}
    walled = wall([{}, early, {"declared_safety": "blocked"}, {"zone": "private"}],
                  [{}, {"as_of": NOON - 2 * DAY}, {"project": "x"}], [{}])  # fmt: skip
    table = walled.admissible.to_pydict()
    assert (table["rows"], table["total_length"], table["withheld"]) == ([2, 1, 0], [8, 5, 0], [1, 2, 0])
    ids = walled.evidence["evidence_id"].to_pylist()
    expected = ["".join(f"{each}\n" for each in sorted(ids[n] for n in chosen)) for chosen in ([0, 1], [1], [])]
    assert table["row_digest"] == [hashlib.sha256(each.encode()).hexdigest() for each in expected]


def test_the_ladder_counts_gate_by_gate_and_time_by_instant():
    late, ended = ({"placements": [one]} for one in ((NOON + DAY, None, None), (NOON - DAY, NOON, None)))
    rows = [{}, {"zone": "private"}, {"declared_safety": "blocked"}, late, ended]
    ladder = wall(rows, [{}, {"as_of": NOON - 9 * DAY}, {"project": "x"}], [{}]).ladder.to_pylist()
    assert [(row["request_id"], row["gate"]) for row in ladder] == [
        (r, name) for r in ("r0", "r1") for name in ALL_GATES
    ]
    cut = {(row["request_id"], row["gate"]): (row["considered"], row["admitted"]) for row in ladder}
    assert cut["r0", "project"] == (5, 5)
    assert (cut["r0", "zone"], cut["r0", "safety"]) == ((5, 4), (4, 3))
    assert (cut["r0", "recorded"], cut["r0", "superseded"], cut["r0", "window_end"]) == ((3, 2), (2, 1), (1, 1))
    assert (cut["r1", "recorded"], cut["r1", "window_end"]) == ((3, 0), (0, 0))


def test_requests_share_a_group_if_the_same_rows_pass_whatever_their_time_and_purpose():
    requests = [
        {}, {"as_of": NOON - DAY}, {"purpose": "review-risk", "max_items": 1}, {"branch": "unused"}, {"branch": "main"},
        {"project": "x"},
    ]  # fmt: skip
    walled = wall([{}, {"branch": "dev"}], requests, [{}])
    assert walled.admissible["scope_group"].to_pylist() == [0, 0, 0, 1, 1, -1]
    assert walled.reachable["scope_group"].to_pylist() == [0, 1]


# --- what a verdict says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "source_access", "model_visibility"),
    [
        ({}, True, "model-visible"),
        ({"zone": "private"}, False, "denied"),
        ({"declared_visibility": "runtime-only"}, True, "runtime-only"),
        ({"declared_visibility": "user-only"}, True, "user-only"),
        ({"declared_visibility": None}, True, "denied"),
        ({"lifecycle": "candidate"}, True, "runtime-only"),
        ({"valid_until": NOON}, True, "model-visible"),
    ],
)
def test_source_access_and_model_visibility_are_two_verdicts(row, source_access, model_visibility):
    found = verdict(row)
    assert (found["source_access"], found["model_visibility"]) == (source_access, model_visibility)


AGENTS = {"path": "AGENTS.md", "origin_class": "project-doc", "evidence_kind": "rule"}


@pytest.mark.parametrize(
    ("row", "request_change", "standing"),
    [
        ({}, {}, "evidence"),
        (AGENTS | {"path": "docs/AGENTS.md"}, {}, "evidence"),
        (AGENTS | {"origin_class": "session-event"}, {}, "evidence"),
        ({"declared_standing": "instruction"}, {}, "evidence"),
        ({"declared_standing": "odd"}, {}, "untrusted"),
        ({"lifecycle": "expired", "declared_standing": "hint"}, {"allow_stale_memory": True}, "history"),
        ({"lifecycle": None}, {"max_unverified_items": 1}, "hint"),
    ],
)
def test_no_text_speaks_louder_than_its_contract_lets_it(row, request_change, standing):
    assert verdict(row, request_change)["standing"] == standing


@pytest.mark.parametrize(
    ("row", "request_change", "gate"),
    [
        ({}, {}, None),
        ({"lifecycle": "candidate"}, {"max_unverified_items": 1}, "lifecycle"),
        ({"lifecycle": "deprecated"}, {"allow_stale_memory": True}, "lifecycle"),
        ({"declared_safety": "requires-review"}, {}, "safety"),
        ({"declared_safety": None}, {}, "safety"),
    ],
)
def test_soft_gates_are_named_on_admitted_rows(row, request_change, gate):
    found = verdict(row, request_change)
    assert (found["admitted"], found["would_reject_by"]) == (True, gate)


def pooled(*rows: dict) -> tuple[list[bool], list[int]]:
    """Whether the walls disagree about each row, and the rows of the pool."""
    world = world_of(list(rows), [{}], [{}])
    found = judged(world)
    kept = POOL.check(pool(world.candidates, found, world.contracts, world.evidence, world.placements))
    return found["wall_disagreement"].to_pylist(), kept["row"].to_pylist()


def test_a_request_about_which_the_walls_disagree_keeps_no_candidate():
    blocked = {"declared_safety": "blocked"}
    assert pooled({}, {"withheld": True}, blocked | {"withheld": True}) == ([False, True, False], [])
    assert pooled({}, blocked | {"withheld": True}) == ([False, False], [0])
    assert pooled(blocked) == ([True], [])


REVIEW = {"mode": "review", "variables": '{"venture": "acme", "current_project": "p"}'}
ENDED = [(NOON - 2 * DAY, NOON - DAY, None)]


@pytest.mark.parametrize("placement", [(NOON - 2 * DAY, NOON - DAY, None), (NOON - 2 * DAY, None, NOON - DAY)])
def test_ended_text_is_history_in_review_and_nothing_elsewhere(placement):
    row = {"path": "decisions/a.md", "placements": [placement]}
    shown = verdict(row, REVIEW)
    assert (shown["admitted"], shown["standing"]) == (True, "history")
    assert not verdict(row)["admitted"]


def test_text_that_still_stands_is_no_history_in_review():
    both = {"path": "decisions/a.md", "placements": [*ENDED, (NOON - DAY, None, None)]}
    assert verdict(both, REVIEW)["standing"] == "evidence"


def test_revoked_text_stays_out_of_review():
    row = {"path": "decisions/a.md", "placements": ENDED}
    assert not verdict(row | {"lifecycle": "revoked"}, REVIEW)["admitted"]
    assert verdict(row | {"lifecycle": "deprecated"}, REVIEW)["standing"] == "history"
    assert not verdict(row | {"lifecycle": "deprecated"}, REVIEW, {"states": ["verified"]})["admitted"]


def test_a_bound_whose_zone_nobody_knows_reaches_nothing() -> None:
    world = world_of([{"zone": "public"}], [{}], [{}])
    at = world.bounds.schema.get_field_index("zone")
    world.bounds = world.bounds.set_column(at, world.bounds.schema.field(at), pa.array(["attic"]))
    assert judged(world)["decided_by"].to_pylist() == ["zone"]


def test_no_level_is_none_that_a_mode_leaves_out() -> None:
    world = world_of([{"level": None}, {"level": ""}], [{}], [{}])
    at = world.contracts.schema.get_field_index("excluded_levels")
    field = world.contracts.schema.field(at)
    world.contracts = world.contracts.set_column(at, field, pa.array([[""]], field.type))
    assert stops(world) == {0: None, 1: "level"}
    assert judged(world)["decided_by"].to_pylist() == [None, "level"]


# --- properties ------------------------------------------------------------------------------------------------------

placements = st.lists(st.tuples(times, maybe_times, maybe_times), min_size=1, max_size=3, unique_by=lambda p: p[0])
rows_of_any_time = st.tuples(row_changes, placements).map(lambda drawn: drawn[0] | {"placements": drawn[1]})
row_lists = st.lists(rows_of_any_time, min_size=1, max_size=7)


def distinct_paths(rows: list[dict]) -> list[dict]:
    """The rows, each with its own path, so that no work tree shadows another row."""
    return [row | {"path": None if n % 4 == 3 else f"p{n}"} for n, row in enumerate(rows)]


@settings(max_examples=60, deadline=None)
@given(row_lists, st.lists(request_changes, min_size=1, max_size=3), grant_lists, st.integers(1, 3))
def test_both_walls_stop_every_row_by_the_gate_the_reference_names(rows, requests, grants, chunks):
    walled = wall(distinct_paths(rows), requests, grants, chunks)
    by_time, second = list[str | None](), judged(walled)["decided_by"].to_pylist()
    for n, contract in enumerate(walled.contracts.to_pylist()):
        bounds = [bound for bound in walled.bounds.to_pylist() if bound["request_id"] == contract["request_id"]]
        window = contract["as_of"], contract["window_start"], contract["window_end"]
        found, passed = stops(walled, n) if not contract["denied"] else {}, 0
        for row in walled.rows:
            full = dict.fromkeys(EVIDENCE.columns) | row
            furthest = max((place_stop(full, contract, bound) or 99 for bound in bounds), default=NUMBER["project"])
            gate = None if furthest == 99 else GATES[furthest - 1].name
            assert (row["n"] not in found) if gate in UNREAD else (found[row["n"]] == gate)
            time = time_stop(full, *window)[0] if furthest == 99 else furthest
            passed += time is None
            by_time.append(GATES[time - 1].name if time else None)
        assert walled.admissible["rows"][n].as_py() == passed
    assert second == by_time


@given(
    st.lists(st.sampled_from(["a", "b", "a?", "?b?", "*", "**", "[*]", "a.b"]), min_size=1, max_size=3),
    st.booleans(),
    st.lists(st.sampled_from(["a", "b", "ab", "abc", "*", "a.b", "c"]), min_size=1, max_size=4),
)
def test_both_walls_read_a_glob_alike(parts: list[str], below: bool, segments: list[str]) -> None:
    """A name that ends a glob is that of a file, or of a folder with everything below it."""
    glob, path = "/".join(parts) + "/" * below, "/".join(segments)
    assert leads_to(glob, path) is bool(matching_paths(pa.array([path]), [glob])[0])
