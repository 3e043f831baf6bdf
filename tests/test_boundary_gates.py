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
    modes_with,
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


def test_an_unverified_memory_is_not_accepted_as_verified_memory():
    row = {"origin_class": "memory", "lifecycle": "candidate"}
    assert stop(row, {"accepted_authority": ["verified-memory"], "max_unverified_items": 3}) == "accepted_authority"


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


def test_groups_whose_rows_fare_alike_are_one_and_their_rows_stand_once():
    rows = [{}, {"branch": "dev"}, {"declared_safety": "blocked"}]
    asked = [{"branch": "a"}, {"branch": "dev"}, {"branch": "b"}, {"project": "x"}, {"branch": "c", "project": "pay"}]
    walled = wall(rows, asked, [{}, {"project": "pay"}])
    assert len(set(walled.groups["scope_group"].to_pylist())) == 5
    group = walled.alike["scope_group"].to_pylist()
    assert (group[0], group[3], sorted({*group})) == (group[2], -1, [-1, 0, 1, 2])
    assert walled.alike["leader"].to_pylist() in ([True, True, False, False, True], [False, True, True, False, True])
    held = zip(*(walled.reachable[name].to_pylist() for name in ("scope_group", "row")), strict=True)
    assert sorted(held) == sorted([(group[0], 0), (group[0], 2), (group[1], 0), (group[1], 1), (group[1], 2)])
    assert [stops(walled, n) for n in (0, 2)] == [{0: None, 1: "branch", 2: "safety"}] * 2
    admissible = walled.admissible.to_pydict()
    assert (admissible["scope_group"], admissible["rows"]) == (
        walled.groups["scope_group"].to_pylist(),
        [1, 2, 1, 0, 0],
    )
    considered = [row["considered"] for row in walled.ladder.to_pylist() if row["gate"] == "project"]
    assert considered == [3, 3, 3, 0]


def test_requests_that_read_the_same_rows_may_differ_in_what_has_ended():
    everything = {"search_paths": ["/**"], "exclude_kinds": [], "exclude_values": [], "exclude_unless": []}
    modes = modes_with({"mode": "review", "include_deleted": True} | everything)
    walled = wall([{}, {"superseded_at": NOON - DAY}], [{}, {"mode": "review"}], [{}], modes=modes)
    assert walled.alike["scope_group"].to_pylist() == [0, 0]
    assert walled.admissible["rows"].to_pylist() == [1, 2]


def test_branches_that_no_row_names_cost_no_row_sets_of_their_own():
    rows = [{"path": f"{n}.py"} for n in range(500)]

    def sizes(branches: int) -> list[int]:
        walled = wall(rows, [{"branch": f"task-{n}"} for n in range(branches)], [{}])
        assert len(set(walled.groups["scope_group"].to_pylist())) == branches
        return [table.nbytes for table in (walled.gated, walled.reachable, walled.times)]

    assert all(many < 4 * one for one, many in zip(sizes(1), sizes(40), strict=True))


def test_admissible_counts_each_request_at_its_own_instant():
    rows = [{}, {"recorded": NOON - 3 * DAY, "length": 5}, {"declared_safety": "blocked"}, {"zone": "private"}]
    walled = wall(rows, [{}, {"as_of": NOON - 2 * DAY}, {"project": "x"}], [{}])
    table = walled.admissible.to_pydict()
    assert (table["rows"], table["total_length"], table["withheld"]) == ([2, 1, 0], [8, 5, 0], [1, 2, 0])
    assert (table["scope_group"], table["segments"]) == ([0, 0, -1], [["s('shop', None)"], ["s('shop', None)"], []])
    ids = walled.frame.evidence["evidence_id"].to_pylist()
    expected = ["".join(f"{each}\n" for each in sorted(ids[n] for n in chosen)) for chosen in ([0, 1], [1], [])]
    assert table["row_digest"] == [hashlib.sha256(each.encode()).hexdigest() for each in expected]


def test_a_digest_of_rows_tells_ids_apart_that_begin_alike():
    first, second = ("0" * 25 + last for last in "12")
    one, other = (wall([{"evidence_id": each}], [{}], [{}]) for each in (first, second))
    assert one.admissible["rows"].to_pylist() == other.admissible["rows"].to_pylist() == [1]
    assert one.admissible["row_digest"] != other.admissible["row_digest"]


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


def test_instants_before_at_and_after_a_time_of_a_row_are_told_apart():
    rows = [{"recorded": NOON - n * DAY, "path": f"p{n}", "superseded_at": NOON - n * DAY + DAY} for n in range(4)]
    moments = [NOON - n * DAY + shift * DAY / 9 for n in range(4) for shift in (-1, 0, 1, 2)]
    requests = [{"as_of": moment} for moment in moments] + [{"include_after": moment} for moment in moments]
    together = wall(rows, requests, [{}]).admissible.to_pylist()
    for found in together:
        (alone,) = wall(rows, [requests[int(found["request_id"][1:])]], [{}]).admissible.to_pylist()
        assert [found[name] for name in ("rows", "row_digest")] == [alone[name] for name in ("rows", "row_digest")]
    assert {found["rows"] for found in together} == {0, 1}


def test_no_requests_and_no_rows_give_empty_tables():
    assert wall([], [{}], [{}]).admissible.to_pylist()[0]["rows"] == 0
    assert wall([{}], [], [{}]).admissible.num_rows == 0
