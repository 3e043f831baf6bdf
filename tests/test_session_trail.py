"""The latest observations of a session: its newest events, as far as the request may see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from recall_world import asked, day, frame
from scoped_retrieval.nodes.session_trail import session_events, session_texts
from scoped_retrieval.nodes.tables import SESSION_EVENTS, SESSION_TEXTS

EVENT = {"evidence_kind": "session-event", "session_id": "s-1"}


def seen(world: Mapping[str, Any], *requests: dict[str, Any], chunk: int | None = None) -> list[tuple[str, int, str]]:
    tables = asked(world, [{"as_of": day(20), "session_id": "s-1"} | one for one in requests], chunk=chunk)
    inputs = [tables[name] for name in ("contracts", "admissible", "reachable")]
    events = SESSION_EVENTS.check(session_events(*inputs, world["evidence"], world["row_index"]))
    made = SESSION_TEXTS.check(session_texts(events, world["evidence"]))
    ids = world["evidence"]["evidence_id"].take(events["row"])
    assert events["evidence_id"].to_pylist() == ids.to_pylist()
    return [tuple(row.values()) for row in made.to_pylist()]


@pytest.mark.parametrize("chunk", [None, 1])
def test_the_newest_events_come_first_and_older_ones_not(chunk: int | None) -> None:
    world = frame([EVENT | {"text": f"day {n}", "event_time": day(n)} for n in (3, 2, 5, 4)], chunk=chunk)
    found = seen(world, {"request_id": "a"}, {"request_id": "b", "session_id": "s-2"}, {"request_id": "c"}, chunk=chunk)
    newest = ["day 5", "day 4", "day 3"]
    assert found == [(request, n, text) for request in "ac" for n, text in enumerate(newest, start=1)]


@pytest.mark.parametrize(
    ("other", "shown"),
    [
        ({}, True),
        ({"evidence_kind": "tool-output"}, True),
        ({"evidence_kind": "rule"}, False),
        ({"session_id": "s-2"}, False),
        ({"session_id": None}, False),
        ({"foreign": True}, False),
        ({"project": "pay"}, False),
        ({"withheld_by": 1}, False),
        ({"placements": [{"recorded_time": day(21)}]}, False),
        ({"placements": [{"recorded_time": day(1), "deleted_at": day(19)}]}, False),
    ],
)
def test_an_event_is_read_only_where_the_request_may_see_it(other: dict[str, Any], shown: bool) -> None:
    world = frame([EVENT | {"text": "event"} | other])
    assert bool(seen(world, {})) == shown
