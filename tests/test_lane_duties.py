"""What every lane of the package does itself: it leaves out what is withheld or out of time, filters, and cuts at `lane_k`."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from recall_world import LANES, day, frame, line, passes, rules, vectors
from scoped_retrieval.nodes import candidate_recall
from scoped_retrieval.nodes.recall.file_recall import CHUNKS
from scoped_retrieval.nodes.recall.vector_recall import AskedVectors
from scoped_retrieval.nodes.tables import QUERY_VECTORS

QUESTION = "session token in src/net/retry.py, `create_user` of WIDGET-3"
DIRECT = tuple(name for name in LANES if f"{name}_hits" in inspect.signature(candidate_recall.direct_hits).parameters)
"""The lanes that look at queries alone: filters of a sub-query hold for what they return."""
FOUND = {"text": "session token", "path": "src/net/retry.py", "symbols": ["create_user"], "calls": ["load"]} | {
    "entity": "WIDGET-3",
    "links": ["guide.md"],
}
BASES: list[dict[str, Any]] = [
    FOUND | {"name": "found", "line_start": 1, "line_end": 5},
    {"name": "beside", "text": "other words", "path": "src/net/retry.py", "line_start": 6, "line_end": 9},
    {"name": "called", "text": "other words", "path": "src/net/load.py", "symbols": ["load"]},
    {"name": "cited", "text": "other words", "path": "src/net/guide.md"},
]
BASES = [base | {"event_time": day(18)} for base in BASES]
"""What lanes find directly, and what those rows lead to."""
UNSEEN: list[dict[str, Any]] = [
    {"withheld_by": 11},
    {"recorded_time": day(25)},
    {"superseded_at": day(5)},
    {"valid_until": day(5)},
    {"foreign": True},
    {"project": "billing"},
]
FILTERED: list[dict[str, Any]] = [{"evidence_kind": "doc"}, {"authority": 0}, {"event_time": day(2)}]
ADD = "name in QUESTION what the lane looks for, or add a row to BASES that it finds"


def rows(*changes: dict[str, Any], copies: int = 1) -> list[dict[str, Any]]:
    """Each base as it is, `copies` times, and once under each change."""
    variants = [*({} for _ in range(copies)), *changes]
    return [base | change | {"name": f"{base['name']} {n}"} for base in BASES for n, change in enumerate(variants)]


def found(lane: str, world: dict[str, Any], lane_k: int, **rule: Any) -> list[int]:
    """The rows that a lane returns beside the lexical one, without those recorded as withheld."""
    request = {"question": QUESTION, "as_of": day(20), "lane_k": lane_k}
    plan = rules({"lanes": ["lexical", lane], "parts": ["question", "symbols", "files"], **rule})
    encoded: dict[str, Any] = {}
    if lane == "semantic":
        asked = QUERY_VECTORS.from_rows([{"request_id": "r1", "sub_query_id": "q1", "vector_row": 0}])
        near = vectors(world, np.ones((len(world["rows"]), 4)), np.ones((1, 4)))
        encoded = {"query_vectors": AskedVectors(near, asked, {})}
    hits = line(world, [request], f"{lane}_hits", plan=plan, **encoded)[f"{lane}_hits"]
    assert set(hits["lane"].to_pylist()) == {lane}, f"the lane {lane} finds nothing: {ADD}"
    return [hit["row"] for hit in hits.to_pylist() if not hit["withheld"]]


@pytest.mark.parametrize("lane", LANES)
def test_a_lane_returns_no_row_that_is_withheld_or_out_of_time_or_out_of_reach(lane: str) -> None:
    world = frame(rows(*UNSEEN))
    request = {"projects": ("shop",), "as_of": day(20)}
    returned = found(lane, world, 99)
    assert returned, f"the lane {lane} finds nothing that may be seen: {ADD}"
    unseen = [world["rows"][row] for row in returned if not passes(world, request, row)]
    assert not unseen, f"leave out `scope.withheld` and ask `clock.judge` in the lane {lane}"


@pytest.mark.parametrize("lane", DIRECT)
def test_a_lane_returns_no_row_that_the_filters_of_a_sub_query_leave_out(lane: str) -> None:
    world = frame(rows(*FILTERED))
    returned = found(lane, world, 99, kinds=["code"], min_authority=1, max_age_days=10.0)
    names = {world["rows"][row]["name"] for row in returned}
    assert names, f"the lane {lane} finds nothing that the filters let return: {ADD}"
    assert names <= {f"{base['name']} 0" for base in BASES}, f"apply `scope.filtered` in the lane {lane}"


@pytest.mark.parametrize("lane", LANES)
def test_a_lane_returns_at_most_lane_k_rows(lane: str) -> None:
    of_each = CHUNKS if lane == "file" else 1  # of each of `lane_k` files
    world = frame([one | {"path": f"{n}/{one['path']}"} for n in range(4) for one in rows(copies=2)])
    every = found(lane, world, 99)
    assert len(every) > of_each, f"the lane {lane} finds {len(every)} rows, too few to cut: {ADD}"
    assert len(found(lane, world, 1)) <= of_each, f"cut at `lane_k` in the lane {lane}"
