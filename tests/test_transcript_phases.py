"""Phases of imported sessions: derived from what was done, shown as a guess, and of consequence for shares and tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scoped_retrieval.pipeline.context import ContextPolicy
from scoped_retrieval.pipeline.context.log import SessionLog
from scoped_retrieval.pipeline.context.transcripts import import_transcript, read_transcript
from transcript_records import CLAUDE, PATCH, Rows, call, called, claude, codex, output, result, rollout, said

REFUSED = "The user doesn't want to proceed with this tool use."
STEPS: dict[str, Rows] = {
    "ask": [{"type": "user", "message": {"role": "user", "content": "Fix the login test."}}],
    "ask for a plan": [{"type": "user", "permissionMode": "plan", "message": {"role": "user", "content": "Plan it first."}}],
    "ask by default": [{"type": "user", "permissionMode": "default", "message": {"role": "user", "content": "Go on."}}],
    "read": [call("m1", "t1", "Read", file_path="/home/me/shop/a.ts"), result("t1", "     1→x")],
    "edit": [call("m2", "t2", "Edit", file_path="/home/me/shop/a.ts", old_string="x", new_string="y"), result("t2", "ok")],
    "edit fails": [
        call("m3", "t3", "Edit", file_path="/home/me/shop/b.ts", old_string="x", new_string="y"),
        result("t3", "String to replace not found", is_error=True),
    ],
    "edit refused": [
        call("m4", "t4", "Edit", file_path="/home/me/shop/b.ts", old_string="x", new_string="y"),
        result("t4", REFUSED, is_error=True),
    ],
    "check": [call("m5", "t5", "Bash", command="cd web && pnpm test"), result("t5", "1 passed")],
    "red check": [call("m6", "t6", "Bash", command="pytest"), result("t6", "1 failed", is_error=True)],
    "list": [call("m7", "t7", "Bash", command="ls tests"), result("t7", "a.py")],
    "check refused": [call("m8", "t8", "Bash", command="pytest"), result("t8", REFUSED, is_error=True)],
    "todo": [call("m9", "t9", "TodoWrite", todos=[{"status": "pending", "content": "run pytest"}]), result("t9", "ok")],
    "plan": [call("m10", "t10", "EnterPlanMode"), result("t10", "Entered plan mode.")],
    "approved": [call("m11", "t11", "ExitPlanMode", plan="1. edit"), result("t11", "User has approved your plan.")],
    "rejected": [call("m12", "t12", "ExitPlanMode", plan="1. edit"), result("t12", REFUSED, is_error=True)],
    "by others": [
        {"type": "attachment", "attachment": {"type": "edited_text_file", "filename": "/home/me/shop/a.ts", "snippet": "z"}}
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "phases"),
    [
        ("ask", ""),
        ("ask, read", "diagnosing"),
        ("ask, check", "diagnosing"),
        ("ask, todo, read", "diagnosing"),
        ("ask, edit", "diagnosing editing"),
        ("ask, edit fails", "diagnosing"),
        ("ask, edit refused, check", "diagnosing"),
        ("ask, read, by others, check", "diagnosing"),
        ("ask, edit, check", "diagnosing editing verifying"),
        ("ask, edit, red check", "diagnosing editing verifying"),
        ("ask, edit, list", "diagnosing editing"),
        ("ask, edit, check refused", "diagnosing editing"),
        ("ask, edit, check, check, read", "diagnosing editing verifying"),
        ("ask, edit, red check, edit, check", "diagnosing editing verifying editing verifying"),
        ("ask, edit, check, ask, read", "diagnosing editing verifying"),
        ("ask, plan, read, todo", "diagnosing planning"),
        ("ask, plan, rejected, read", "diagnosing planning"),
        ("ask, plan, approved", "diagnosing planning editing"),
        ("ask, plan, approved, check", "diagnosing planning editing"),
        ("ask, plan, approved, edit, check", "diagnosing planning editing verifying"),
        ("ask, edit, plan, check", "diagnosing editing planning"),
        ("ask for a plan, read", "planning"),
        ("ask by default, read", "diagnosing"),
        ("ask, edit, check, ask for a plan, read, check, ask for a plan", "diagnosing editing verifying planning"),
        ("ask for a plan, read, approved, edit, check", "planning editing verifying"),
        ("ask for a plan, read, ask, read, ask by default, read", "planning editing"),
        ("ask, edit, check, ask by default", "diagnosing editing verifying"),
    ],
)
def test_a_phase_follows_from_what_was_done(tmp_path: Path, steps: str, phases: str):
    records = [record for step in steps.split(", ") for record in STEPS[step]]
    changes = [each for each in _read(claude(*records), tmp_path) if each["kind"] == "phase.changed"]
    assert " ".join(each["payload"]["phase"] for each in changes) == phases
    assert all(each["payload"]["derived"] is True and each["key"] is False for each in changes)


def test_a_rollout_has_phases_as_well(tmp_path: Path):
    rows = codex(
        said("user", "Fix the login test."),
        called("1", "exec_command", {"cmd": "pnpm test"}),
        output("1", "Process exited with code 1\nOutput:\n1 failed"),
        called("2", "apply_patch", PATCH, "custom_tool_call"),
        output("2", "Exit code: 0\nOutput:\nSuccess", "custom_tool_call_output"),
        called("3", "exec_command", {"cmd": "pnpm test"}),
        output("3", "Process exited with code 0\nOutput:\n1 passed"),
    )
    assert _phases(_read(rows, tmp_path)) == ["diagnosing", "editing", "verifying"]


@pytest.mark.parametrize("rows", [CLAUDE, rollout()], ids=["claude-code", "codex"])
def test_the_beginning_of_a_transcript_gives_the_beginning_of_its_phases(tmp_path: Path, rows: Rows):
    whole = _read(rows, tmp_path)
    for count in range(9, len(rows)):
        some = _read(rows[:count], tmp_path)
        assert some == whole[: len(some)]


def test_a_derived_phase_is_shown_as_a_guess_and_a_stated_one_as_a_fact(tmp_path: Path):
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in claude(*STEPS["ask"], *STEPS["edit"])))
    import_transcript(tmp_path / "t.jsonl", tmp_path / "log")
    log = SessionLog.open(tmp_path / "log")
    policy = ContextPolicy(tools=["read_file", "apply_patch"])

    def at_end(**turn: Any) -> Any:
        return policy.project(events=log.view(), session_id=log.session_id, turn=turn)

    seen = at_end()
    assert seen.turn["phase"] is None and (seen.state["phase"], seen.state["phase_derived"]) == ("editing", True)
    derived = "Said by the model or derived, not verified:\n- phase, derived from what was done: editing\n"
    assert derived in seen.text() and "phase: " not in seen.text()
    assert (seen.decision("state:said")["content_class"], seen.decision("state")["content_class"]) == ("guess", "fact")
    assert [each["name"] for each in seen.tool_schemas] == ["read_file", "apply_patch"], "no tool of edits is hidden"
    assert "phase: verifying" in at_end(phase="verifying").text(), "the harness says so"
    log.append(
        [{"id": "p", "kind": "phase.changed", "createdAt": "2026-05-20T09:00:00Z", "payload": {"phase": "planning"}}]
    )
    seen = at_end()
    assert "phase: planning" in seen.text() and "derived" not in seen.text() and seen.state["phase_derived"] is False


def test_a_phase_that_nothing_states_is_not_shown_as_if_something_did():
    seen = ContextPolicy().project(
        events=[
            {
                "id": "e1",
                "kind": "user.goal",
                "createdAt": "2026-05-20T09:00:00Z",
                "payload": {"text": "Fix the parser"},
            }
        ]
    )
    assert (seen.state["phase"], seen.state["phase_derived"]) == ("diagnosing", None)
    assert "phase, as nothing states one: diagnosing" in seen.text() and "phase: " not in seen.text()
    again = ContextPolicy().project(events=[], turn={"phase": "planning"})
    assert "phase: planning" in again.text() and again.state["phase_derived"] is False


def _read(rows: Rows, folder: Path) -> list[dict[str, Any]]:
    file = folder / "t.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return read_transcript(file)[1]


def _phases(events: list[dict[str, Any]]) -> list[str]:
    return [each["payload"]["phase"] for each in events if each["kind"] == "phase.changed"]
