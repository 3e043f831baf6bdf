"""What a session may disclose of a part over all its turns: what its requests say they showed, or may have shown."""

from __future__ import annotations

from typing import Any

import pytest
from context_session import Session, item, memory, policy, projected, reasons, snapshot
from scoped_retrieval.pipeline.context import Projection
from scoped_retrieval.pipeline.context.log import SessionLog

CAP = 3
SNAPSHOTS = [
    snapshot(
        *(item(f"c#{k}", f"p{n}{k}.py", f"t{n}{k}", evidence_id=f"ev{n}{k}") for k in range(2)),
        name=f"S{n}",
        ref=f"b{n}",
    )
    for n in range(3)
]


def budget(cap: int | None = CAP) -> dict[str, Any]:
    return {"maxTokens": 9000} | ({} if cap is None else {"disclosure": {"retrieval": cap}})


def shown(seen: Projection) -> set[str]:
    return {
        row["source_id"] for row in seen.decisions if row["source_kind"] == "retrieval_result" and row["mode"] != "none"
    }


def three_requests() -> Session:
    session = Session()
    for n in range(3):
        session.add("retrieval.snapshot.created", turn=n, snapshotId=f"S{n}")
        session.add("model.request", turn=n, snapshotIds=[f"S{n}"])
    return session


@pytest.mark.parametrize("behind", [0, 1], ids=["before its request", "behind its request"])
def test_three_turns_whose_requests_name_snapshots_alone_disclose_no_more_than_the_cap(behind: int):
    session = three_requests()
    turns = [{"asOfSeq": 2 + 2 * n + behind} for n in range(3)]
    free = policy().project_turns(turns=turns, events=session.events, snapshots=SNAPSHOTS, budget=budget(None))
    assert len(set().union(*map(shown, free))) == 6, "each may be shown"
    seen = policy().project_turns(turns=turns, events=session.events, snapshots=SNAPSHOTS, budget=budget())
    assert 0 < len(set().union(*map(shown, seen))) <= CAP
    assert "disclosure_capped" in seen[2].conditions
    for turn, one in zip(turns, seen, strict=True):
        alone = policy().project(turn=turn, events=session.events, snapshots=SNAPSHOTS, budget=budget())
        assert (alone.text(), reasons(alone)) == (one.text(), reasons(one))


def test_recorded_requests_say_what_they_showed_and_it_may_be_shown_again():
    session, found = Session(), list[set[str]]()
    for n in range(3):
        session.add("retrieval.snapshot.created", turn=n, snapshotId=f"S{n}")
        seen = projected(session, snapshots=SNAPSHOTS[: n + 1], budget=budget())
        found.append(shown(seen))
        session.events.append(seen.request_event(event_id=f"r{n}", created_at=session.events[-1]["createdAt"]))
    assert list(map(len, found)) == [2, 3, 3] and found[1] == found[2]


def test_a_log_folder_remembers_the_snapshots_of_requests_before_its_last_events(tmp_path: Any):
    session = three_requests()
    for n in range(120):
        session.add("command.finished", turn=3 + n, command=f"ls {n}", exitCode=0, stdout="x")
    log = SessionLog.open(tmp_path / "log", session_id="session")
    log.append(session.events)
    given: dict[str, Any] = {"snapshots": SNAPSHOTS, "turn": {"snapshotIds": ["S2"]}, "budget": budget(5)}
    whole = policy().project(events=session.events, **given)
    viewed = policy().project(events=log.view(), session_id="session", **given)
    assert whole.text() == viewed.text() and shown(whole) == shown(viewed) == set()
    assert {reasons(whole)[f"item:S2:c#{k}"] for k in range(2)} == {"disclosure_cap"}


@pytest.mark.parametrize(
    ("request_", "left"),
    [
        ({"snapshotIds": ["S1"]}, 1),
        ({"snapshotIds": ["S1"], "evidenceIds": []}, 2),
        ({"snapshotIds": ["S1"], "evidenceIds": ["ev10"]}, 2),
        ({"snapshotIds": ["gone"]}, 2),
        ({"snapshotIds": ["gone", "lost", "S1"]}, 0),
        ({}, 2),
    ],
)
def test_what_a_request_says_it_showed_goes_before_what_it_may_have_shown(request_: dict[str, Any], left: int):
    session = Session()
    session.add("model.request", turn=1, **request_)
    seen = projected(session, snapshots=SNAPSHOTS, turn={"snapshotIds": ["S0"]}, budget=budget())
    assert len(shown(seen)) == left


def test_the_cap_of_memories_counts_memories_alone():
    session = Session()
    session.add("model.request", turn=1, snapshotIds=["S1"])
    given = {"memories": [memory()], "snapshots": SNAPSHOTS, "turn": {"snapshotIds": ["S0"]}}
    for cap, reason in ((1, "verified_memory"), (0, "disclosure_cap")):
        seen = projected(session, **given, budget={"maxTokens": 9000, "disclosure": {"memory": cap}})
        assert reasons(seen)["memory:m1"] == reason and len(shown(seen)) == 2
