"""Scores of a turn from the turns around it: neighbors of its session, a question before it, its session; nothing unseen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from recall_world import Row, day, frame, line, names, passes, rules
from scoped_retrieval.nodes.recall import turn_scores
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.recall.pair_scores import Pairs

REQUESTS: list[Row] = [
    {"request_id": "a", "question": "session token", "projects": ("shop", "docs"), "as_of": day(30)},
    {"request_id": "b", "question": "session token", "projects": ("shop",), "as_of": day(9)},
    {"request_id": "c", "question": "cache role absent", "projects": ("shop", "docs"), "as_of": day(30)},
]
PLAN = rules({}, {"kinds": ["memory"]}, {"lanes": ["lexical", "expansion"]})


def at(hours: float) -> datetime:
    """Hours into the second of May."""
    return day(2) + timedelta(hours=hours)


def turn(text: str, hours: float, **columns: Any) -> Row:
    said = {"text": text, "event_time": at(hours), "evidence_kind": "session-event", "session_id": "s1", "name": text}
    return said | {"origin_class": "session-event", "source_id": "chat:1", "section": str(hours)} | columns


def scored(
    world: dict[str, Any], requests: Sequence[Row] = REQUESTS, first: int = 0
) -> dict[tuple[str, int], tuple[float, ...]]:
    """The scores of every admissible row from the first on, by request and row."""
    out: dict[str, Any] = line(world, requests, "recall_tables", "lexical_recall", plan=PLAN)
    tables = out["recall_tables"]
    named = tables.contracts["request_id"].to_pylist()
    by_id = {request["request_id"]: request for request in requests}
    pairs = [
        (r, row)
        for r, name in enumerate(named)
        for row in range(first, len(world["rows"]))
        if passes(world, by_id[name], row)
    ]
    request, row = np.array(pairs).T
    found = turn_scores.turn_scores(
        Pairs(request, row),
        out["lexical_recall"].weighed,
        tables,
        world["placements"],
        world["postings"],
        Bm25(),
    )
    values = zip(*(part.tolist() for part in found), strict=True)
    return {(named[r], at): own for (r, at), own in zip(pairs, values, strict=True)}


ASKED = turn("who has the token?", 1)
ANSWERS: dict[str, tuple[list[Row], float]] = {
    "the next turn": ([turn("bob", 1.5)], 1),
    "after two hours": ([turn("bob", 3)], 1),
    "after more": ([turn("bob", 3.1)], 0),
    "another session": ([turn("bob", 1.5, session_id="s2")], 0),
    "another owner": ([turn("bob", 1.5, project="docs")], 0),
    "no session": ([turn("bob", 1.5, session_id=None)], 0),
    "another kind": ([turn("bob", 1.5, evidence_kind="doc")], 0),
    "a memory of the session": ([turn("bob", 1.5, evidence_kind="memory", source_id="memory:1")], 1),
    "a turn between": ([turn("well", 1.2), turn("bob", 1.5)], 0),
    "a withheld turn between": ([turn("well", 1.2, withheld_by=11), turn("bob", 1.5)], 1),
    "a turn between that is recorded later": ([turn("well", 1.2, recorded_time=day(29)), turn("bob", 1.5)], 1),
    "at one time by line": ([turn("well", 1, line_start=3), turn("bob", 1, line_start=2)], 1),
}


def test_a_question_counts_whichever_segment_it_stands_in() -> None:
    world = frame([ASKED, turn("bob", 1.5, project="later", owner_project="shop")])
    asked = [REQUESTS[0] | {"projects": ("shop", "later")}]
    assert scored(world, asked, first=1)["a", 1] == scored(world, asked)["a", 1] != (0, 0, 0, 0)


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_follows_its_question(case: str) -> None:
    rows, wanted = ANSWERS[case]
    world = frame([ASKED | {"line_start": 1}, *rows, turn("other words", 9, session_id="s9")])
    request = {"request_id": "a", "question": "token", "projects": ("shop", "docs"), "as_of": day(28)}
    row = next(n for n, one in enumerate(world["rows"]) if one["name"] == "bob")
    found = scored(world, [request])
    answer = found["a", row][1] if ("a", row) in found else 0.0
    assert bool(answer) == bool(wanted)


def test_the_session_counts_only_beside_another_admissible_one() -> None:
    rows = [turn("token", 1), turn("bob", 1.1), turn("other", 2, session_id="s2", recorded_time=day(20))]
    world = frame(rows)
    for as_of, counts in ((day(25), True), (day(15), False)):
        request = {"request_id": "a", "question": "token", "projects": ("shop",), "as_of": as_of}
        assert (scored(world, [request])["a", 1][2] > 0) == counts


def test_a_turn_beside_a_hit_is_found_through_it() -> None:
    rows = [
        ASKED,
        turn("bob", 1.5),
        turn("ann", 4),
        turn("eve", 1.2, withheld_by=11),
        turn("joe", 1.3, session_id="s2"),
    ]
    world = frame(rows)
    out = line(world, [{"request_id": "a", "question": "token", "as_of": day(28)}], "expansion_hits", plan=PLAN)
    assert names(world, out["expansion_hits"]) == ["bob"]
    assert out["expansion_hits"]["via"].to_pylist() == ["neighbour"]
