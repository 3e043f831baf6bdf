"""The state of a turn, document 003's AgentState: what the events before it stated and nothing ended."""

from __future__ import annotations

from typing import Any

import pytest
from context_session import Session, memory, policy, projected


def state_of(session: Session) -> dict[str, Any]:
    return policy().state(events=session.events)


def test_the_state_is_what_the_events_left_standing():
    session = Session("Fix the failing tests.")
    session.add("user.constraint", turn=1, text="Do not change the public API.", constraintId="c1")
    session.add("phase.changed", turn=1, phase="editing")
    session.add("plan.updated", turn=1, text="Change the parser first.")
    for number, path in enumerate(("src/a.ts", "src/b.ts", "src/a.ts")):
        session.add("file.modified", turn=2, path=path, version=str(number), text="fix")
    session.failing("src/a.test.ts:4 expected 1 received 2", turn=4)
    state = state_of(session)
    assert (state["userGoal"], state["phase"], state["phaseStated"]) == ("Fix the failing tests.", "editing", True)
    assert (state["plan"], state["activeConstraints"]) == (
        "Change the parser first.",
        ["Do not change the public API."],
    )
    assert state["modifiedFiles"] == ["src/a.ts", "src/b.ts"], "the last one first, each once"
    assert state["latestCommand"] == "pnpm test (failed)" and state["turnCount"] == 4
    assert state["currentFailure"] == "src/a.test.ts:4 expected 1 received 2"


def test_the_last_run_of_a_declared_check_decides_and_no_other_command_does():
    session = Session()
    session.failing("a.test.ts:1 expected 1 received 2")
    session.add("command.finished", turn=2, command="make", exitCode=1, stdout="error: no rule")
    assert state_of(session)["currentFailure"] == "a.test.ts:1 expected 1 received 2"
    session.add("command.finished", turn=3, command="pnpm test", running=True)
    assert [check["status"] for check in state_of(session)["checks"]] == ["unknown"]
    assert state_of(session)["currentFailure"] is None
    session.add("command.finished", turn=3, command="pnpm test", exitCode=0, stdout="12 passed")
    session.add("file.modified", turn=4, path="a.ts", version="2", text="more")
    (check,) = state_of(session)["checks"]
    assert (check["status"], check["changed_since"], state_of(session)["currentFailure"]) == ("passed", "yes", None)


def test_commands_that_may_have_changed_files_are_counted_until_the_work_is_stated():
    session = Session()
    for fields in ({}, {"capability": "run"}, {"capability": "run_read_only"}, {"changedFiles": ["a.ts"]}):
        session.add("command.finished", turn=1, command="make", exitCode=0, **fields)
    state = state_of(session)
    assert (state["unstatedChanges"], state["modifiedFiles"]) == (2, ["a.ts"])
    session.add("work.changed", turn=2, changedFiles=["b.ts"])
    state = state_of(session)
    assert (state["unstatedChanges"], state["modifiedFiles"]) == (0, ["b.ts", "a.ts"])


def test_a_turn_sees_the_events_before_its_place_and_no_later_one():
    session = Session("First goal.")
    session.add("user.goal", turn=1, text="Second goal.")
    goals = [projected(session, turn={"asOfSeq": place}).state["userGoal"] for place in range(3)]
    assert goals == [None, "First goal.", "Second goal."]


@pytest.mark.parametrize("by", [{"constraintId": "c1"}, {"subject": "e1"}])
def test_a_constraint_that_ended_binds_no_more_and_its_words_stay(by: dict[str, str]):
    session = Session()
    session.add(
        "user.constraint",
        turn=1,
        text="Do not touch src/b.ts.",
        **({"constraintId": "c1"} if "constraintId" in by else {}),
    )
    assert projected(session).state["activeConstraints"] == ["Do not touch src/b.ts."]
    session.add("constraint.ended", turn=2, **by)
    seen = projected(session)
    assert seen.state["activeConstraints"] == [] and "Active constraints" not in seen.text()
    assert "Do not touch src/b.ts." in seen.model_input["system_text"], "no word of the user is lost"


def test_a_constraint_that_the_model_proposes_does_not_instruct():
    session = Session()
    session.add("user.constraint", turn=1, text="Rewrite everything.", origin="model")
    seen = projected(session)
    assert "Rewrite everything." not in seen.model_input["system_text"] and seen.state["activeConstraints"] == []
    assert seen.text().index("Proposed constraints") < seen.text().index("Rewrite everything.")


def test_a_memory_is_gone_from_the_event_on_that_revokes_it_and_is_as_it_was_last_recalled():
    session = Session()
    session.add("memory.recalled", turn=1, actor="system", **memory("m1", "it was npm"))
    session.add("memory.recalled", turn=1, actor="system", **memory("m1", "it is pnpm"))
    session.add("memory.revoked", turn=1, memoryId="m1")
    before, after = (projected(session, turn={"asOfSeq": place}) for place in (3, 4))
    assert [row["source_id"] for row in before.decisions].count("memory:m1") == 1
    assert (
        before.decision("memory:m1")["action"] == "include"
        and "it is pnpm" in before.text()
        and "it was npm" not in before.text()
    )
    assert after.decision("memory:m1")["reason_code"] == "revoked"


@pytest.mark.parametrize("phase", ["diagnosing", "planning", "editing", "verifying", "summarizing", "blocked"])
def test_every_phase_is_valid_everywhere(phase: str):
    session = Session()
    session.add("phase.changed", turn=1, phase=phase)
    assert state_of(session)["phase"] == projected(Session(), turn={"phase": phase}).state["phase"] == phase
