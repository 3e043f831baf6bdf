"""The second wall: every gate against a plain reference, agreement with the first wall, and what a verdict says."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import REFUSED, REFUSED_BY_TIME
from scoped_retrieval.nodes.boundary_filtering import pool, verdicts
from scoped_retrieval.nodes.tables import (
    CANDIDATES,
    EVIDENCE,
    GRANTS,
    PLACEMENTS,
    POOL,
    REQUESTS,
    VERDICTS,
)
from scoped_retrieval.nodes.walls.gates import GATES, NUMBER
from wall_worlds import (
    DAY,
    GRANT,
    NOON,
    REQUEST,
    ROW,
    contract_bounds_of,
    contracts_of,
    grant_lists,
    maybe_times,
    place_stop,
    request_changes,
    row_changes,
    times,
)

ALL_GATES = [gate.name for gate in GATES]
EVERY = [*REFUSED, *REFUSED_BY_TIME]
PLACED = ROW | {"placements": [(NOON - DAY, None, None)]}


def world_of(rows: list[dict], requests: list[dict], grants: list[dict], chunks: int = 99) -> SimpleNamespace:
    """Every row of the corpus as a candidate of every request."""
    rows = [{**PLACED, "evidence_id": hashlib.sha256(b"%d" % n).hexdigest()[:26], **row} for n, row in enumerate(rows)]
    evidence = pa.concat_tables([EVIDENCE.from_rows(rows).slice(n, chunks) for n in range(0, len(rows), chunks)])
    placed = [
        {"row": n, "evidence_id": row["evidence_id"], "recorded_time": r, "superseded_at": s, "deleted_at": d}
        for n, row in enumerate(rows)
        for r, s, d in sorted(row["placements"], key=lambda p: p[0])
    ]
    asked = REQUESTS.from_rows([REQUEST | {"request_id": f"r{n}"} | change for n, change in enumerate(requests)])
    held = GRANTS.from_rows([GRANT | {"rule_id": f"grants[{n}]"} | change for n, change in enumerate(grants)])
    resolved = contracts_of(asked, held)
    candidates = CANDIDATES.from_rows(
        [
            {"request_id": f"r{r}", "evidence_id": row["evidence_id"], "row": n, "placement": 0, "pool_rank": n + 1,
             "merge_score": 0.0, "lanes": [], "intents": [], "bm25_raw": 0.0, "semantic_raw": 0.0, "symbol_raw": 0.0,
             "withheld": row.get("withheld", False)}
            for r in range(len(requests)) for n, row in enumerate(rows)
        ]
    )  # fmt: skip
    return SimpleNamespace(
        rows=rows, evidence=evidence, placements=PLACEMENTS.from_rows(placed), contracts=resolved,
        bounds=contract_bounds_of(asked, held), candidates=candidates,
    )  # fmt: skip


def judged(world: SimpleNamespace) -> pa.Table:
    return VERDICTS.check(verdicts(world.candidates, world.contracts, world.bounds, world.evidence, world.placements))


def pool_of(world: SimpleNamespace, found: pa.Table) -> pa.Table:
    return pool(world.candidates, found, world.contracts, world.evidence, world.placements)


def verdict(row: dict, request: dict | None = None, grant: dict | None = None) -> dict:
    return judged(world_of([row], [request or {}], [grant or {}])).to_pylist()[0]


@pytest.mark.parametrize(("change", "request_change", "grant", "gate"), EVERY)
def test_the_same_row_is_admitted_until_one_column_changes(change, request_change, grant, gate):
    plain = {"path": "context/a.md"} if "mode" in request_change else {}
    before, after = verdict(plain, request_change, grant), verdict(change, request_change, grant)
    assert (before["admitted"], before["decided_by"], before["reason_code"]) == (True, None, None)
    assert before["admitted_by"].split() == ALL_GATES
    assert (after["admitted"], after["decided_by"]) == (False, gate)
    assert after["reason_code"] == GATES[NUMBER[gate] - 1].reason_code
    assert after["admitted_by"].split() == ALL_GATES[: NUMBER[gate] - 1]
    assert after["would_reject_by"] is None


def test_a_denied_contract_admits_nothing():
    assert verdict({}, {"project": "absent"})["decided_by"] == "project"
    assert verdict({}, {"allowed_sources": []})["decided_by"] == "project"


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


def test_a_request_about_which_the_walls_disagree_keeps_no_candidate():
    rows = [{}, {"withheld": True}, {"declared_safety": "blocked", "withheld": True}]
    world = world_of(rows, [{}], [{}])
    found = judged(world)
    assert found["wall_disagreement"].to_pylist() == [False, True, False]
    assert pool_of(world, found).num_rows == 0
    agreed = world_of([{}, {"declared_safety": "blocked", "withheld": True}], [{}], [{}])
    kept = POOL.check(pool_of(agreed, judged(agreed)))
    assert kept["row"].to_pylist() == [0]
    assert judged(world_of([{"declared_safety": "blocked"}], [{}], [{}]))["wall_disagreement"].to_pylist() == [True]


# --- properties -------------------------------------------------------------------------------------------------------

placements = st.lists(st.tuples(times, maybe_times, maybe_times), min_size=1, max_size=3, unique_by=lambda p: p[0])
placed_rows = st.tuples(row_changes, placements).map(lambda drawn: drawn[0] | {"placements": drawn[1]})
worlds = st.tuples(
    st.lists(placed_rows, min_size=1, max_size=7), st.lists(request_changes, min_size=1, max_size=3), grant_lists
)


def time_stop(row: dict, contract: dict) -> int | None:
    """The first time gate that stops a row, judged by the placement that serves it best."""
    as_of, start, end = (contract[name] for name in ("as_of", "window_start", "window_end"))

    def stop(placement: tuple) -> int | None:
        recorded, superseded, deleted = placement
        happened = row["event_time"] or recorded
        rules = {
            "recorded": recorded <= as_of,
            "superseded": not superseded or as_of < superseded,
            "deleted": not deleted or as_of < deleted,
            "valid_from": not row["valid_from"] or row["valid_from"] <= as_of,
            "valid_until": not row["valid_until"] or as_of < row["valid_until"],
            "window_start": not start or start <= happened,
            "window_end": not end or happened < end,
        }
        return next((NUMBER[name] for name, holds in rules.items() if not holds), None)

    ended = (NUMBER["superseded"], NUMBER["deleted"])
    known = sorted(p for p in row["placements"] if p[0] <= as_of) if row["placements"] else []
    best = [p for p in known if stop(p) is None] or [p for p in known if stop(p) not in ended] or known
    return stop(best[-1]) if best else NUMBER["recorded"]


@settings(max_examples=60, deadline=None)
@given(worlds, st.integers(1, 3))
def test_every_candidate_is_removed_by_the_gate_the_reference_names(drawn, chunks):
    world = world_of(*drawn, chunks)
    expected = []
    for contract in world.contracts.to_pylist():
        bounds = [bound for bound in world.bounds.to_pylist() if bound["request_id"] == contract["request_id"]]
        for row in world.rows:
            full = {name: row.get(name) for name in EVIDENCE.columns} | {
                "placements": sorted(row["placements"], key=lambda p: p[0])
            }
            place = [place_stop(full, contract, bound) or 99 for bound in bounds]
            furthest = max(place, default=NUMBER["project"])
            number = time_stop(full, contract) if furthest == 99 else furthest
            expected.append(GATES[number - 1].name if number else None)
    assert judged(world)["decided_by"].to_pylist() == expected


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
