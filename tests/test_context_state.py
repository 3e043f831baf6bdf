"""The state of a turn, document 003's AgentState: what the events before it stated and nothing ended."""

from __future__ import annotations

from typing import Any

import pytest
from context_session import Session, memory, policy, projected
from scoped_retrieval.nodes.errors import InputError


def state_of(session: Session) -> dict[str, Any]:
    return policy().project(events=session.events).state


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


HIDDEN = [{"zone": "private"}, {"zone": "restricted"}, {"visibility": "runtime-only"}, {"visibility": "user-only"}]


@pytest.mark.parametrize("sight", HIDDEN)
def test_what_a_turn_may_not_see_takes_no_room_and_is_not_opened(sight: dict[str, str]):
    def seen_with(hidden: int) -> Any:
        session = Session()
        session.add("user.message", turn=1, text="Leave the migrations for Bob. " * 20)
        session.add("file.read", turn=1, path="src/a.ts", version="1", content="export const a = 1;\n" * 20)
        session.failing("src/a.test.ts:4 expected 1 received 2", turn=1)
        session.add("user.message", turn=1, text="Go on.")
        for n in range(hidden):
            session.add("file.read", turn=2, path="src/a.ts", version="1", content="hidden\n" * 900, top=sight)
            session.add("command.finished", turn=2, command=f"cat {n}", exitCode=0, stdout="hidden\n" * 900, top=sight)
            session.add("harness.message", turn=2, text="hidden " * 900, top=sight)
            session.add("user.message", turn=2, text="hidden " * 900, top=sight)
        return projected(session, budget={"maxTokens": 6_000}), len(session.events)

    (before, _), (after, end) = seen_with(0), seen_with(12)
    assert [before.model_input[name].count("hidden") for name in ("system_text", "user_text")] == [0, 0]
    shown = [
        {row["source_id"] for row in seen.decisions if row["mode"] == "full" and row["source_kind"] != "state_summary"}
        for seen in (before, after)
    ]
    assert shown[0] == shown[1] and "hidden" not in after.text()
    assert "12 earlier events" not in after.text(), "nor is their number told"
    assert "hidden" not in after.open(f"log:0-{end}")
    with pytest.raises(InputError):
        after.open("event:e5")


@pytest.mark.parametrize("times", [4_000, 15_000])
def test_a_long_latest_message_leaves_room_for_the_earlier_ones(times: int):
    session = Session()
    session.add("user.message", turn=1, text="Do not touch prod.")
    session.add("command.finished", turn=1, command="make", exitCode=0, stdout="x" * 60_000)
    session.add("user.message", turn=2, text="A very long report. " * times)
    session.add("command.finished", turn=2, command="make", exitCode=0, stdout="x" * 60_000)
    assert "Do not touch prod." in projected(session, budget={"maxTokens": 9_000}).model_input["system_text"]


def test_a_call_whose_result_is_shown_has_no_line_of_its_own():
    session = Session()
    asked = session.add("tool.intent", turn=1, tool="run_command", requestId="r1", command="pnpm build --everything")
    waiting = session.add("tool.intent", turn=1, tool="run_command", requestId="r2", command="pnpm lint")
    session.add(
        "command.finished", turn=1, tool="run_command", requestId="r1", command="pnpm build --everything", exitCode=0
    )
    seen = projected(session)
    assert seen.text().count("pnpm build --everything") == 2, "as the latest command and with its result"
    assert (seen.decision(f"event:{asked}")["reason_code"], seen.decision(f"event:{waiting}")["mode"]) == (
        "answered",
        "full",
    )
