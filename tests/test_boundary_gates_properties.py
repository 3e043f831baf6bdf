"""The first wall over generated rows: every gate against a plain reference, and what may never change what a request sees."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
from first_wall import stops, wall
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.tables import (
    EVIDENCE,
)
from scoped_retrieval.nodes.walls.gates import GATES, NUMBER
from wall_worlds import (
    DAY,
    GLOBS,
    NOON,
    ROW,
    SELECTORS,
    grant_lists,
    place_stop,
    request_changes,
    row_changes,
)

recorded = st.sampled_from([NOON - 2 * DAY, NOON, NOON + DAY])
recorded_rows = st.tuples(row_changes, recorded).map(lambda drawn: drawn[0] | {"recorded": drawn[1]})


def reference(row: dict, contract: dict, bounds: list[dict]) -> int:
    """The gate that stops a row, by the grant that takes it furthest; shadowing apart."""
    full = dict.fromkeys(EVIDENCE.columns) | ROW | row
    furthest = max((place_stop(full, contract, bound) or 99 for bound in bounds), default=NUMBER["project"])
    return 0 if furthest == 99 else furthest


def distinct_paths(rows: list[dict]) -> list[dict]:
    """The rows, each with its own path, so that no work tree shadows another row."""
    return [row | {"path": None if n % 4 == 3 else f"p{n}"} for n, row in enumerate(rows)]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(recorded_rows, min_size=1, max_size=8),
    st.lists(request_changes, min_size=1, max_size=3),
    grant_lists,
    st.integers(1, 3),
)
def test_every_row_is_stopped_by_the_gate_the_reference_names(rows, requests, grants, chunks):
    rows = distinct_paths(rows)
    walled = wall(rows, requests, grants, chunks)
    for n, contract in enumerate(walled.contracts.to_pylist()):
        bounds = [bound for bound in walled.bounds.to_pylist() if bound["request_id"] == contract["request_id"]]
        found = stops(walled, n) if not contract["denied"] else {}
        for place, row in enumerate(rows):
            number = reference(row, contract, bounds)
            if number <= NUMBER["owner"] and number:
                assert place not in found
            else:
                assert found[place] == (GATES[number - 1].name if number else None)


def admitted(walled: SimpleNamespace, request: int = 0) -> set[int]:
    """A(r), as places in the test's list, through the published tables alone."""
    frame, group = walled.frame, walled.groups["scope_group"][request].as_py()
    as_of = walled.contracts["as_of"][request].as_py()
    table = walled.reachable.filter(pa.compute.equal(walled.reachable["scope_group"], group))
    recorded = frame.row_index.recorded
    return {
        frame.n[row["row"]]
        for row in table.to_pylist()
        if not row["withheld_by"] and recorded[row["row"]] <= int(as_of.timestamp()) * 1_000_000
    }


@settings(max_examples=30, deadline=None)
@given(
    st.lists(recorded_rows, min_size=1, max_size=8),
    request_changes,
    grant_lists,
    st.sampled_from(SELECTORS),
    st.sampled_from(GLOBS),
    st.sampled_from(["public", "internal"]),
    st.randoms(use_true_random=False),
)
def test_narrowing_never_adds_a_row(rows, request, grants, selector, glob, zone, random):
    rows = distinct_paths(rows)
    request = {name: value for name, value in request.items() if name != "workspace_root"}
    before = admitted(wall(rows, [request], grants))
    narrower = [
        (request | {"denied_sources": [*request.get("denied_sources", []), selector]}, grants),
        (request | {"allowed_sources": [s for s in request.get("allowed_sources", SELECTORS) if s != selector]}, grants),
        (request | {"denied_paths": [*request.get("denied_paths", []), glob]}, grants),
        (request | {"allowed_paths": [g for g in request.get("allowed_paths", GLOBS) if g != glob]}, grants),
        (request, [grant | {"denied_paths": [*grant.get("denied_paths", []), glob]} for grant in grants]),
        (request | {"max_unverified_items": 0}, grants),
        (request | {"allow_stale_memory": False}, grants),
        (request | {"min_authority": 3}, grants),
        (request | {"accepted_authority": request.get("accepted_authority", [])[:1]}, grants),
        (request | {"branch": "main"}, grants) if "branch" not in request else (request, grants),
        (request, [grant | {"zone": min(zone, grant.get("zone", "internal"), key=["public", "internal", "private", "restricted"].index)} for grant in grants]),
        (request, [grant | {"states": ["verified"] if "verified" in grant.get("states", ["verified"]) else []} for grant in grants]),
        (request, [grant | {"sources": [s for s in grant.get("sources", SELECTORS) if s != selector]} for grant in grants]),
        (request, grants[:-1]),
    ]  # fmt: skip
    for asked, held in random.sample(narrower, 3):
        assert admitted(wall(rows, [asked], held)) <= before
