"""How the hits of all lanes become candidates: their order, their scores, their placements."""

from __future__ import annotations

import pytest
from recall_world import NOW, day, frame, line, names

_MIXED = [
    {"name": "code 1", "text": "session session session", "path": "a.py"},
    {"name": "code 2", "text": "session session word", "path": "b.py"},
    {"name": "rule", "text": "session word word word", "path": "r.md", "evidence_kind": "rule", "authority": 3},
]


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("interleave-by-relevance", ["code 1", "code 2", "rule"]),
        ("authority-first", ["rule", "code 1", "code 2"]),
        ("evidence-balanced", ["code 1", "rule", "code 2"]),
    ],
)
def test_the_merge_policy_decides_the_order(policy: str, order: list[str]) -> None:
    world = frame(_MIXED)
    out = line(world, [{"question": "session", "merge_policy": policy}])["candidates"]
    assert names(world, out) == order


def test_the_placement_is_the_one_that_stood_at_as_of() -> None:
    rows = [
        {
            "name": "a",
            "text": "session",
            "placements": [
                {"recorded_time": day(1), "superseded_at": day(5)},
                {"recorded_time": day(10), "superseded_at": day(15)},
            ],
        }
    ]
    world = frame(rows)
    for as_of, placement, withheld in ((day(2), 0, False), (day(7), 0, True), (day(12), 1, False), (NOW, 1, True)):
        out = line(world, [{"question": "session", "as_of": as_of}])["candidates"].to_pylist()[0]
        assert (out["placement"], out["withheld"]) == (placement, withheld)
