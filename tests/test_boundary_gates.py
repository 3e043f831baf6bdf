"""The first wall, gate by gate: what one column changes, what shadows what, what is counted."""

from __future__ import annotations

import hashlib

import pytest
from first_wall import stops, wall
from refusals import REFUSED
from scoped_retrieval.nodes.walls.gates import GATES, NUMBER
from wall_worlds import (
    DAY,
    NOON,
)


def stop(row: dict, request: dict | None = None, grant: dict | None = None) -> str | None:
    """The gate that stops one row; `owner` where its segment is not opened."""
    return stops(wall([row], [request or {}], [grant or {}])).get(0, "not opened")


@pytest.mark.parametrize(("change", "request_change", "grant", "gate"), REFUSED)
def test_the_same_row_is_admitted_until_one_column_changes(change, request_change, grant, gate):
    plain = {"path": "context/a.md"} if "mode" in request_change else {}
    assert stop(plain, request_change, grant) is None
    assert stop(change, request_change, grant) == ("not opened" if gate in ("project", "owner") else gate)


@pytest.mark.parametrize(
    ("row", "request_change", "grant"),
    [
        ({"owner_user": "ana"}, {}, {}),
        ({"owner_user": "bob"}, {}, {"users": ["bob"]}),
        ({"principals": ["ana"]}, {}, {}),
        ({"principals": ["dev"]}, {}, {"groups": ["dev"]}),
        ({"zone": "restricted"}, {}, {"zone": "restricted"}),
        ({"zone": None}, {}, {"zone": "restricted"}),
        ({"namespace": "a", "branch": "dev", "test_suite": "unit"}, {}, {}),
        (
            {"namespace": "a", "branch": "dev", "test_suite": "unit"},
            {"namespace": "a", "branch": "dev", "test_suite": "unit"},
            {},
        ),
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
)
def test_rows_that_a_contract_lets_in(row, request_change, grant):
    assert stop(row, request_change, grant) is None


def test_a_denial_beats_every_allowance():
    both = {"allowed_sources": ["git:shop"], "denied_sources": ["git:*"]}
    assert stop({}, both, {"sources": ["git:shop"]}) == "source_deny"


def test_a_path_that_one_grant_denies_is_denied_by_all_of_the_project():
    grants = [{}, {"denied_paths": ["src/"]}, {"project": "pay", "own_project": False}]
    rows = [{}, {"path": "docs/a.md"}, {"owner_project": "pay"}]
    assert stops(wall(rows, [{}], grants)) == {0: "path_deny", 1: None, 2: None}


def test_one_grant_must_cover_a_row_whole():
    grants = [{"sources": ["git:*"]}, {"sources": ["memory:*"], "zone": "private"}]
    rows = [{}, {"zone": "private"}, {"source_id": "memory:a", "zone": "private"}, {"source_id": "docs:a"}]
    assert stops(wall(rows, [{}], grants)) == {0: None, 1: "source_allow", 2: None, 3: "source_allow"}


def test_a_work_tree_shadows_committed_text_of_the_same_source_and_path_for_its_own_requests():
    rows = [{}, {"path": "src/b.py"}, {"source_id": "git:lib"}, {"workspace_root": "/w"}]
    walled = wall(rows, [{}, {"workspace_root": "/w"}, {"workspace_root": "/v"}], [{}])
    assert stops(walled, 0) == {0: None, 1: None, 2: None, 3: "workspace"}
    assert stops(walled, 1) == {0: "workspace", 1: None, 2: None, 3: None}
    assert stops(walled, 2) == {0: None, 1: None, 2: None, 3: "workspace"}


def test_what_is_shadowed_is_not_counted_as_withheld_and_what_an_earlier_gate_stops_stays_with_it():
    rows = [{"declared_safety": "blocked"}, {"branch": "dev"}, {"workspace_root": "/w"}]
    walled = wall(rows, [{"workspace_root": "/w", "branch": "a"}], [{}])
    assert stops(walled) == {0: "workspace", 1: "branch", 2: None}
    assert walled.admissible["withheld"].to_pylist() == [0]


@pytest.mark.parametrize(
    "change", [{"recorded": NOON + DAY}, {"declared_safety": "blocked"}, {"zone": "restricted"}, {"path": None}]
)
def test_text_that_a_request_may_not_see_shadows_nothing_for_it(change):
    assert stops(wall([{}, {"workspace_root": "/w"} | change], [{"workspace_root": "/w"}], [{}]))[0] is None


def test_reachable_leaves_no_trace_of_access_and_keeps_what_visibility_withholds():
    rows = [{}, {"zone": "private"}, {"declared_safety": "blocked"}]
    assert wall(rows, [{}], [{}]).reachable.to_pydict() == {
        "scope_group": [0, 0], "row": [0, 2], "withheld_by": [0, NUMBER["safety"]],
    }  # fmt: skip


def test_admissible_counts_each_request_at_its_own_instant():
    rows = [{}, {"recorded": NOON - 3 * DAY, "length": 5}, {"declared_safety": "blocked"}, {"zone": "private"}]
    walled = wall(rows, [{}, {"as_of": NOON - 2 * DAY}, {"project": "x"}], [{}])
    table = walled.admissible.to_pydict()
    assert (table["rows"], table["total_length"], table["withheld"]) == ([2, 1, 0], [8, 5, 0], [1, 2, 0])
    assert walled.groups["scope_group"].to_pylist() == [0, 0, -1]
    ids = walled.frame.evidence["evidence_id"].to_pylist()
    expected = ["".join(f"{each}\n" for each in sorted(ids[n] for n in chosen)) for chosen in ([0, 1], [1], [])]
    assert table["row_digest"] == [hashlib.sha256(each.encode()).hexdigest() for each in expected]


def test_the_ladder_counts_gate_by_gate_and_time_by_instant():
    rows = [{}, {"zone": "private"}, {"declared_safety": "blocked"}, {"recorded": NOON + DAY}, {"superseded_at": NOON}]
    walled = wall(rows, [{}, {"as_of": NOON - 9 * DAY}, {"project": "x"}], [{}])
    ladder = walled.ladder.to_pylist()
    assert [(row["request_id"], row["gate"]) for row in ladder] == [(r, g.name) for r in ("r0", "r1") for g in GATES]
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
    groups = walled.groups["scope_group"].to_pylist()
    assert groups == [0, 0, 0, 1, 1, -1]
    assert sorted(set(walled.gated["scope_group"].to_pylist())) == [0, 1]
