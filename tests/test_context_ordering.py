"""Ordering: nine levels, and what outranks what (S3.23 to S3.25)."""

from __future__ import annotations

from context_session import Session, item, memory, projected, snapshot
from scoped_retrieval.nodes.turns.words import LEVELS


def test_the_nine_levels_are_those_of_the_document():
    session = Session("Fix it.")
    for number in range(60):
        session.add("user.message", turn=number, text=f"message {number}")
    session.add("history.summarized", turn=60, text="Tried: a. Rejected: b.")
    session.add("user.constraint", turn=61, text="Do not change the public API.")
    session.failing("src/a.ts:1 error", turn=62)
    rules = ["Never publish.", {"path": "AGENTS.md", "text": "Run tests."}]
    seen = projected(
        session, rules=rules, memories=[memory()], snapshots=[snapshot(item())], turn={"snapshotIds": ["snap-1"]}
    )
    levels = {row["source_kind"]: row["level"] for row in seen.decisions if row["mode"] != "none"}
    assert levels == {
        "system_rules": 1, "repository_instructions": 2, "user_goal": 3, "active_constraint": 3, "state_summary": 4, "latest_observation": 5,
        "recent_tail": 6, "retrieval_result": 7, "memory_candidate": 8, "history_summary": 9, "older_history": 9, "tool_schema": 9,
    }  # fmt: skip
    shown = sorted(
        (row for row in seen.decisions if row["mode"] != "none" and row["source_kind"] != "tool_schema"),
        key=lambda row: row["place"],
    )
    assert [row["level"] for row in shown] == sorted(row["level"] for row in shown), "the input follows the levels"
    assert set(LEVELS.values()) == set(range(1, 10))


def test_a_users_constraint_stands_above_an_old_summary():
    session = Session()
    session.add("history.summarized", turn=1, text="Next, directly modify the exported function signature.")
    session.add("user.constraint", turn=2, text="Do not change the public API.")
    text = projected(session).text()
    assert 0 < text.index("Do not change the public API.") < text.index("modify the exported function signature")


def test_the_latest_observation_stands_above_an_old_summary():
    session = Session()
    session.add("history.summarized", turn=1, text="The error is in parser.ts.")
    session.failing("serializer.ts:3 error", turn=2)
    text = projected(session).text()
    assert text.index("serializer.ts:3 error") < text.index("The error is in parser.ts.")


def test_facts_stand_above_guesses_of_the_model():
    session = Session()
    session.add("plan.updated", turn=1, text="I guess the lexer is broken.")
    session.failing("serializer.ts:3 error", turn=2)
    state = projected(session).text().split("Current state:")[1]
    assert state.index("current failure: serializer.ts:3 error") < state.index("plan: I guess")


def test_a_constraint_that_the_model_proposed_does_not_instruct():
    session = Session()
    session.add("user.constraint", turn=1, text="Rewrite everything.", origin="model")
    seen = projected(session)
    assert "Rewrite everything." not in seen.model_input["system_text"]
    assert (
        "Proposed constraints, not confirmed by the user:\n- Proposed, not confirmed: Rewrite everything."
        in seen.text()
    )
