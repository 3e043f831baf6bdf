"""What the model may not see of an event enters no part of its input: not the state, not the constraints, not a memory."""

from __future__ import annotations

from typing import Any

import pytest
from context_session import Session, memory, projected, state_of

HIDDEN = (
    {"visibility": "runtime-only"},
    {"visibility": "user-only"},
    {"visibility": "denied"},
    {"zone": "private"},
    {"zone": "restricted"},
)
EVENTS: dict[str, dict[str, Any]] = {
    "file.read": {"path": "SECRET.py", "text": "SECRET"},
    "file.modified": {"path": "SECRET.py", "diff": "SECRET"},
    "search.result": {"query": "SECRET", "matches": [{"path": "SECRET.py", "line": 1, "text": "SECRET", "generated": True}]},
    "command.finished": {"command": "pytest SECRET", "exitCode": 1, "stdout": "E SECRET.py:3 SECRET", "ref": "SECRET"},
    "tool.error": {"tool": "x", "text": "SECRET"},
    "permission.denied": {"subject": "SECRET", "text": "SECRET"},
    "plan.updated": {"text": "SECRET", "interpretation": "SECRET"},
    "history.summarized": {"text": "SECRET"},
    "external.result": {"url": "SECRET", "text": "SECRET"},
    "model.message": {"text": "SECRET"},
    "verification.finished": {"command": "pytest SECRET", "text": "SECRET", "failed": True},
    "user.message": {"text": "Never SECRET."},
    "user.constraint": {"text": "SECRET"},
    "user.goal": {"text": "Never SECRET."},
    "user.confirmation": {"text": "Never SECRET."},
    "memory.recalled": memory("SECRET", "SECRET"),
}  # fmt: skip


def with_one(kind: str, sight: dict[str, str], payload: dict[str, Any]) -> Any:
    session = Session("Fix b.")
    session.add(kind, turn=1, top=sight, **payload)
    session.add("command.finished", turn=2, command="ls", exitCode=0, stdout="b.py")
    return projected(session)


@pytest.mark.parametrize("kind", EVENTS)
def test_the_words_of_a_hidden_event_stand_nowhere(kind: str):
    assert "SECRET" in with_one(kind, {}, EVENTS[kind]).text(), "the same event is shown where nothing hides it"
    for sight in HIDDEN:
        assert "SECRET" not in with_one(kind, sight, EVENTS[kind]).text(), sight


@pytest.mark.parametrize("sight", HIDDEN)
def test_an_event_is_as_hidden_as_its_payload_says(sight: dict[str, str]):
    seen = with_one("command.finished", {}, {"command": "cat x", "stdout": "SECRET", **sight})
    assert "SECRET" not in seen.text()
    narrow = with_one(
        "command.finished", {"zone": "public"}, {"command": "cat x", "stdout": "SECRET", "zone": "private"}
    )
    assert "SECRET" not in narrow.text(), "the narrower of both counts"


def test_what_a_hidden_event_ends_has_ended():
    session = Session()
    session.add("file.read", turn=1, path="src/a.ts", text="const a = 1", version="1")
    session.add("user.constraint", turn=1, text="Do not touch src/b.ts.", constraintId="c1")
    session.add("file.modified", turn=2, top={"visibility": "runtime-only"}, path="src/a.ts", version="2", diff="x")
    session.add("constraint.ended", turn=2, top={"visibility": "user-only"}, subject="c1")
    session.add("command.finished", turn=3, command="ls", exitCode=0, stdout="src")
    seen = projected(session)
    assert "const a = 1" not in seen.text(), "the file is another one now"
    assert "Active constraints" not in seen.text()
    assert "src/a.ts" not in seen.state["modified_files"]


def test_a_hidden_check_leaves_no_verification_standing():
    session = Session()
    session.add("command.finished", turn=1, command="pytest", exitCode=0, stdout="3 passed")
    assert state_of(session)["verification"] == "pytest: passed"
    session.add(
        "command.finished", turn=2, top={"zone": "restricted"}, command="pytest payroll", exitCode=1, stdout="E"
    )
    assert state_of(session)["verification"] is None


def test_the_state_tells_a_turn_only_what_its_zones_show():
    session = Session("Fix the parser. Never push.")
    session.add("user.constraint", turn=1, top={"zone": "public"}, text="Keep the API.")
    session.failing("src/a.ts:4 boom", turn=1)
    seen = projected(session, turn={"zones": ["public"]})
    for hidden in ("parser", "push", "boom", "pnpm test"):
        assert hidden not in seen.text()
    assert "Keep the API." in seen.text()
    assert {row["reason_code"] for row in seen.decisions if row["source_kind"] == "recent_tail"} >= {"zone_denied"}
    assert "boom" in projected(session, turn={"zones": ["public", "internal"]}).text()
