"""The reducer: a session log folded into the state as of any event, whole or from a checkpoint."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from context_session import Session, memory, policy, projected, state_of
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.context_state import latest_assertions
from scoped_retrieval.nodes.context_tables import STATE_FACTS
from scoped_retrieval.pipeline.context.events import read_events
from scoped_retrieval.pipeline.context.line import build_context_driver


def facts(events: list[dict[str, Any]], checkpoint: pa.Table | None = None, start: int = 0) -> pa.Table:
    tables = read_events(events)
    given_ = {
        "log_events": tables.events.slice(start).combine_chunks(),
        "checkpoint_facts": checkpoint or STATE_FACTS.empty(),
    }
    return build_context_driver().execute(["state_facts"], inputs=given_)["state_facts"]


def test_the_state_is_what_the_events_left_standing():
    session = Session("Fix the failing tests.")
    session.add("user.constraint", turn=1, text="Do not change the public API.", constraintId="c1")
    session.add("phase.changed", turn=1, phase="editing")
    session.add("plan.updated", turn=1, text="Change the parser first.", interpretation="Only the parser is broken.")
    session.add("file.modified", turn=2, path="src/a.ts", version="2", text="fix")
    session.add("file.modified", turn=2, path="src/b.ts", version="2", text="fix")
    session.add("file.modified", turn=3, path="src/a.ts", version="3", text="fix again")
    session.failing("src/a.test.ts:4 expected 1 received 2", turn=4)
    state = state_of(session)
    assert state["user_goal"] == "Fix the failing tests."
    assert state["phase"] == "editing"
    assert state["plan"] == "Change the parser first."
    assert state["interpretation"] == "Only the parser is broken."
    assert state["modified_files"] == ["src/a.ts", "src/b.ts"], "the last one first, each once"
    assert state["latest_command"] == "pnpm test"
    assert state["failure"] == "src/a.test.ts:4 expected 1 received 2"
    assert state["failure_paths"] == ["src/a.test.ts"]
    assert state["verification"] == "pnpm test: failed"
    assert (state["turn_count"], state["events"]) == (5, 8)


def test_a_check_that_passes_ends_the_failure_and_any_other_command_does_not():
    session = Session()
    session.failing("a.test.ts:1 expected 1 received 2")
    session.add("command.finished", turn=2, command="ls", exitCode=0, stdout="a.ts")
    assert state_of(session)["failure"] is not None
    session.add("command.finished", turn=3, command="pnpm test", exitCode=0, stdout="12 passed")
    seen = projected(session)
    assert seen.state["failure"] is None
    assert seen.state["verification"] == "pnpm test: passed"
    session.add("file.modified", turn=4, path="a.ts", version="2", text="more")
    assert state_of(session)["verification"] is None, "what was checked is not what stands there now"


def test_a_turn_sees_the_events_before_its_place_and_no_later_one():
    session = Session("First goal.")
    session.add("user.goal", turn=1, text="Second goal.")
    goals = [projected(session, turn={"asOfSeq": place}).state["user_goal"] for place in range(3)]
    assert goals == [None, "First goal.", "Second goal."]


def test_a_constraint_that_ended_binds_no_more():
    session = Session()
    session.add("user.constraint", turn=1, text="Do not touch src/b.ts.", constraintId="c1")
    assert "Do not touch src/b.ts." in projected(session).text()
    session.add("constraint.ended", turn=2, subject="c1")
    assert "Active constraints" not in projected(session).text()


def test_a_state_of_the_harness_counts_and_events_come_on_top():
    given_state = {
        "userGoal": "Old goal.",
        "phase": "verifying",
        "activeConstraints": ["Keep the API."],
        "modifiedFiles": ["src/a.ts"],
    }
    seen = policy().project(events=[], state=given_state, budget={"maxTokens": 9000})
    assert (seen.state["user_goal"], seen.state["phase"], seen.state["modified_files"]) == (
        "Old goal.",
        "verifying",
        ["src/a.ts"],
    )
    assert "- User request: Keep the API." in seen.text()
    newer = policy().project(events=Session("New goal.").events, state=given_state, budget={"maxTokens": 9000})
    assert newer.state["user_goal"] == "New goal."


EVENTS = st.lists(
    st.sampled_from(
        [
            ("user.goal", {"text": "one"}), ("user.goal", {"text": "two"}), ("user.constraint", {"text": "Never x.", "constraintId": "c"}),
            ("constraint.ended", {"subject": "c"}), ("phase.changed", {"phase": "editing"}), ("plan.updated", {"text": "p", "interpretation": "i"}),
            ("file.modified", {"path": "a.ts", "version": "1", "text": "d"}), ("file.modified", {"path": "b.ts", "version": "1", "text": "d"}),
            ("file.read", {"path": "a.ts", "version": "1", "text": "t"}), ("command.finished", {"command": "pnpm test", "exitCode": 1, "stdout": "a.ts:1 error"}),
            ("command.finished", {"command": "pnpm test", "exitCode": 0, "stdout": "ok"}), ("memory.revoked", {"id": "m1"}),
            ("permission.denied", {"text": "no", "requestId": "r"}), ("permission.granted", {"requestId": "r"}),
            ("model.request", {"evidenceIds": ["x", "memory:m1"]}), ("history.summarized", {"text": "tried a"}), ("user.message", {"text": "hm"}),
        ]
    ),
    min_size=1, max_size=30,
)  # fmt: skip


@given(EVENTS, st.data())
def test_folding_from_a_checkpoint_is_folding_the_whole_log(
    kinds: list[tuple[str, dict[str, Any]]], data: st.DataObject
):
    session = Session(None)
    for number, (kind, payload) in enumerate(kinds):
        session.add(kind, turn=number // 3, **payload)
    cut = data.draw(st.integers(0, len(kinds)))
    whole, rows = facts(session.events), read_events(session.events).events
    middle = data.draw(st.integers(0, cut))
    first = latest_assertions(rows.slice(0, middle), STATE_FACTS.empty())
    checkpoint = latest_assertions(rows.slice(middle, cut - middle), first)
    once = latest_assertions(rows.slice(0, cut), STATE_FACTS.empty())
    assert checkpoint.to_pylist() == once.to_pylist(), "a checkpoint may continue another one"
    later = holding(facts(session.events, checkpoint, cut), cut)
    assert later == holding(whole, cut)


def holding(table: pa.Table, cut: int) -> list[dict[str, Any]]:
    """The facts that hold at or behind an event."""
    return [row for row in table.to_pylist() if row["until_seq"] is None or row["until_seq"] >= cut]


@given(EVENTS)
def test_the_fold_is_pure_and_replayable(kinds: list[tuple[str, dict[str, Any]]]):
    session = Session(None)
    for number, (kind, payload) in enumerate(kinds):
        session.add(kind, turn=number, **payload)
    assert facts(session.events).equals(facts(session.events))


def test_a_revoked_memory_is_gone_from_the_event_on():
    session = Session()
    session.add("memory.revoked", turn=1, id="m1")
    given_ = {"memories": [memory()], "turn": {"asOf": "2026-05-20T09:00:00Z"}}
    before = policy().project(events=session.events, budget={"maxTokens": 9000}, **(given_ | {"turn": {"asOfSeq": 1}}))
    after = policy().project(events=session.events, budget={"maxTokens": 9000}, **given_)
    assert before.decision("memory:m1")["action"] == "include"
    assert after.decision("memory:m1")["reason_code"] == "revoked"


@pytest.mark.parametrize("phase", ["diagnosing", "planning", "editing", "verifying", "summarizing", "blocked"])
def test_every_phase_is_valid_everywhere(phase: str):
    session = Session()
    session.add("phase.changed", turn=1, phase=phase)
    assert state_of(session)["phase"] == phase
    assert projected(Session(), turn={"phase": phase}).state["phase"] == phase
