"""Transcripts of Claude Code and Codex CLI as session logs."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from command_line import run
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.context import ContextPolicy
from scoped_retrieval.pipeline.context.log import SessionLog
from scoped_retrieval.pipeline.context.transcripts import MOST_UNPACKED, claude_code, import_transcript, read_transcript
from scoped_retrieval.pipeline.context.transcripts import codex as rollouts
from transcript_records import CLAUDE, PATCH, Rows, call, called, claude, codex, output, result, rollout, said


def events_in(rows: Rows, folder: Path, name: str = "t.jsonl") -> tuple[str, list[dict[str, Any]], Counter[str]]:
    file = folder / name
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_transcript(file)


def acts_in(rows: Rows, folder: Path, name: str = "t.jsonl") -> tuple[str, list[dict[str, Any]], Counter[str]]:
    """The same without the phases that follow from the events, which have tests of their own (`test_transcript_phases`)."""
    session_id, events, left_out = events_in(rows, folder, name)
    return session_id, [each for each in events if each["kind"] != "phase.changed"], left_out


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("The user doesn't want to proceed with this tool use.", True),
        ("Permission to use Bash with command rm has been denied.", True),
        ("Claude requested permissions to write to /a.ts, but you haven't granted it yet.", True),
        ("This command requires approval", True),
        ("EACCES: permission denied, open '/root/a.ts'", False),
        ("cat: /root/a.ts: Permission denied", False),
        ("Traceback: the user does not exist\nrequires approval", False),
    ],
)
def test_a_file_that_the_system_refuses_is_no_denial(tmp_path: Path, text: str, denied: bool):
    rows = claude(call("m1", "t1", "Read", file_path="/root/a.ts"), result("t1", text, is_error=True))
    told = events_in(rows, tmp_path)[1]
    assert told[-1]["kind"] == ("permission.denied" if denied else "tool.error")


def test_a_session_of_claude_code_is_a_session_log(tmp_path: Path):
    session_id, events, left_out = acts_in(CLAUDE, tmp_path)
    found = [
        (event["kind"], event["payload"]) for event in events if event["kind"] not in ("model.request", "tool.intent")
    ]
    assert session_id == "s-1"
    assert [kind for kind, _ in found] == [
        "user.goal", "model.message", "file.read", "command.finished", "file.modified", "search.result", "plan.updated", "command.finished",
        "permission.denied", "external.result", "tool.error", "history.summarized", "user.message",
    ]  # fmt: skip
    told = dict(found[:6])
    assert told["user.goal"] == {"text": "Fix the login test."}
    assert (told["file.read"]["path"], told["file.read"]["text"]) == ("src/a.ts", "export const a = 1;")
    ran = told["command.finished"]
    assert (ran["command"], ran["failed"], ran.get("exitCode")) == ("pnpm test", True, None), "no code is stated"
    assert (told["file.modified"]["path"], told["file.modified"]["text"]) == ("src/a.ts", "- 1\n+ 2")
    assert told["search.result"]["matches"] == [{"path": "src/login.ts", "line": 7, "text": "function login() {"}]
    assert sum(event["kind"] == "model.request" for event in events) == 8, "one for each response of the model"
    assert left_out == {"records of type summary": 1, "messages of the harness": 2, "blocks of type thinking": 1, "records of subagents": 1,
                        "blocks of type image": 1, "records of type future-record": 1}  # fmt: skip


def test_a_rollout_of_codex_is_a_session_log(tmp_path: Path):
    session_id, events, left_out = acts_in(rollout(), tmp_path)
    found = [
        (event["kind"], event["payload"]) for event in events if event["kind"] not in ("model.request", "tool.intent")
    ]
    assert session_id == "c-1"
    assert [kind for kind, _ in found] == [
        "rules.repository", "rules.repository", "rules.system", "user.goal", "model.message", "file.read", "command.finished", "file.modified",
        "file.modified", "search.result", "plan.updated", "history.summarized", "user.message",
    ]  # fmt: skip
    assert found[5][1]["text"] == "export const a = 1;" and found[5][1]["path"] == "src/a.ts"
    assert found[6][1] == {
        "command": "pnpm test",
        "exitCode": 1,
        "stdout": "src/a.test.ts:3 expected 1 received 2",
        "root": "/home/me/shop",
    }
    assert [found[place][1]["path"] for place in (7, 8)] == ["src/a.ts", "src/b.ts"]
    assert (
        left_out["records of type event_msg"] == 1
        and left_out["records of type world_state"] == 1
        and left_out["items of type reasoning"] == 1
    )


def test_an_old_rollout_without_payloads_is_read_as_well(tmp_path: Path):
    rows: Rows = [{"id": "c-0", "timestamp": "2025-05-20T08:00:00Z", "instructions": None}]
    rows += [
        said("user", "Fix it."),
        called("1", "shell", {"command": ["ls"]}),
        output("1", json.dumps({"output": "a", "metadata": {"exit_code": 0}})),
    ]
    session_id, events, _ = acts_in(rows, tmp_path)
    assert session_id == "c-0" and [event["kind"] for event in events] == [
        "user.goal",
        "model.request",
        "tool.intent",
        "command.finished",
    ]


DENIED = "The user doesn't want to proceed with this tool use."
GO_ON = {"type": "user", "message": {"content": "go on"}}
TWICE = {
    "claude-code": claude(call("m1", "t1", "Bash", command="git commit -m a"), result("t1", "[main 1a2b3c4] a"), call("m2", "t2", "Bash", command="rm a"), result("t2", DENIED, is_error=True), GO_ON),
    "codex": codex(called("1", "exec_command", {"cmd": "git commit -m a"}), output("1", "Process exited with code 0\nOutput:\n[main 1a2b3c4] a"), called("2", "exec_command", {"cmd": "rm a"}), output("2", "exec command rejected by user"), said("user", "go on")),
}  # fmt: skip
"""A commit, a denial and a message."""


@pytest.mark.parametrize("kind", TWICE)
def test_identical_records_with_one_id_are_imported_once_and_counted(kind: str, tmp_path: Path, capsys: Any):
    *rows, last = TWICE[kind]
    _, once, counted = events_in([*rows, last], tmp_path)
    _, twice, left_out = events_in([*rows, *rows[1:], last], tmp_path)
    assert [each["payload"] for each in twice] == [each["payload"] for each in once]
    assert left_out - counted == {"repeated records": 3}
    code, out, err = run("context", "import", str(tmp_path / "t.jsonl"), "--out", str(tmp_path / "log"), capsys=capsys)
    assert (code, "skipped: repeated records: 3" in err) == (0, True), (out, err)
    later = {**rows[-1], "timestamp": "2026-05-20T09:00:00.000Z"}
    _, other, left_out = events_in([*rows, later, last], tmp_path)
    assert len(other) > len(once) and "repeated records" not in left_out, "the content differs"


@pytest.mark.parametrize("rows", [CLAUDE, rollout()])
def test_an_imported_session_projects_and_is_imported_once(rows: Rows, tmp_path: Path, capsys: Any):
    file = tmp_path / "t.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    first = import_transcript(file, tmp_path / "log")
    assert first["new"] == first["events"] and import_transcript(file, tmp_path / "log")["new"] == 0
    code, out, err = run("context", "project", str(tmp_path / "log"), "--no-record", capsys=capsys)
    assert code == 0, err
    assert "- Fix the login test." in out and "modified_files: src/" in out
    assert "export const a = 1;" not in out, "the file was modified since"
    code, out, err = run("context", "import", str(file), "--out", str(tmp_path / "other"), "--json", capsys=capsys)
    assert code == 0 and json.loads(out)["events"] == first["events"]
    told = [f"skipped: {what}: {count}" for what, count in first["left_out"].items()]
    assert told and [line for line in err.splitlines() if line.startswith("skipped: ")] == told


def test_times_that_cannot_be_read_are_counted_and_the_order_stands(tmp_path: Path):
    rows = claude(
        {"type": "user", "message": {"content": "Fix it."}},
        {"type": "user", "message": {"content": "go on"}, "timestamp": "[trimmed]"},
    )
    _, events, left_out = events_in(rows, tmp_path)
    assert [event["createdAt"] for event in events] == ["2026-05-20T08:00:00.000Z"] * 2 and left_out[
        "times that cannot be read"
    ] == 1


def test_what_is_no_transcript_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="Expected a transcript of Claude Code or Codex CLI, got neither"):
        events_in([{"a": 1}], tmp_path)
    with pytest.raises(InputError, match="Expected one of claude-code, codex"):
        read_transcript(tmp_path / "t.jsonl", "soup")
    (tmp_path / "t.jsonl").write_text("{")
    with pytest.raises(InputError, match="invalid JSON"):
        read_transcript(tmp_path / "t.jsonl")


@pytest.mark.parametrize("make", [claude, codex])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_lines_of_json_that_are_not_objects_are_counted_and_left_out(tmp_path: Path, make: Any, place: int):
    said_ = {"type": "user", "message": {"content": "Fix it."}} if make is claude else said("user", "Fix it.")
    rows = [json.dumps(row) for row in make(said_, said_ | {"uuid": "u7"})]
    file = tmp_path / "t.jsonl"
    file.write_text("\n".join(rows), encoding="utf-8")
    session_id, events, left_out = read_transcript(file)
    values = ["[1]", '"x"', "null", " 7 ", '[{"type": "user"}]', "true"]
    for lines in (values, [*values, ""]):
        text = "\n".join([*rows[:place], *lines, *rows[place:]])
        file.write_bytes(b"\xef\xbb\xbf" * (place == 0) + text.replace("\n", "\r\n").encode())
        found = read_transcript(file)
        assert found[:2] == (session_id, events)
        assert found[2] == left_out | {"lines that are not objects": 6}
        file.write_text(f"{text}\nnot JSON\n")
        with pytest.raises(InputError, match=rf"t\.jsonl:{len(text.splitlines()) + text.endswith(chr(10)) + 1}"):
            read_transcript(file)
    file.write_text("\n".join(values))
    with pytest.raises(InputError, match=r"Expected a JSON object, got a list - at .*t\.jsonl:1"):
        read_transcript(file)


def kinds(events: Rows) -> list[tuple[str, Any]]:
    return [(each["kind"], each["payload"]) for each in events if each["kind"] not in ("model.request", "tool.intent")]


def test_attachments_of_claude_code_are_rules_files_and_what_the_user_typed_meanwhile(tmp_path: Path):
    def attached(kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": "attachment", "attachment": {"type": kind, **fields}}

    rows = claude(
        attached("instructions", files=[{"path": "/home/me/shop/CLAUDE.md", "content": "Never push."}, {"path": "x", "content": ""}]),
        {"type": "user", "message": {"content": "Fix it."}},
        attached("nested_memory", path="/home/me/shop/web/CLAUDE.md", content={"type": "memory", "content": "Use pnpm."}),
        attached("file", filename="/home/me/shop/a.ts", content={"type": "text", "file": {"content": "const a = 1;"}}),
        attached("edited_text_file", filename="/home/me/shop/a.ts", snippet="const a = 2;"),
        attached("queued_command", prompt="And be quick.", commandMode="prompt"),
        attached("queued_command", prompt="a task ended", commandMode="task-notification"),
        attached("total_tokens_reminder", text="many"),
    )  # fmt: skip
    _, events, left_out = events_in(rows, tmp_path)
    assert [(kind, told.get("path"), told["text"]) for kind, told in kinds(events)] == [
        ("rules.repository", "CLAUDE.md", "Never push."),
        ("user.goal", None, "Fix it."),
        ("rules.repository", "web/CLAUDE.md", "Use pnpm."),
        ("file.read", "a.ts", "const a = 1;"),
        ("file.modified", "a.ts", "const a = 2;"),
        ("user.message", None, "And be quick."),
    ]
    assert left_out == {"attachments of type queued_command": 1, "attachments of type total_tokens_reminder": 1}


def test_what_an_editor_adds_is_not_what_the_user_wants_and_commands_are_what_was_typed(tmp_path: Path):
    def wrote(content: Any, **more: Any) -> dict[str, Any]:
        return {"type": "user", "message": {"role": "user", "content": content}, **more}

    blocks = [
        {"type": "text", "text": "<ide_selection>The user selected\nlines</ide_selection>"},
        {"type": "text", "text": "Why?"},
    ]
    rows = claude(
        wrote("<command-name>/model</command-name>"),
        wrote("<local-command-stdout>Set model</local-command-stdout>"),
        wrote("<command-message>init</command-message>\n<command-name>/init</command-name>\n<command-args>all of it</command-args>"),
        wrote([{"type": "text", "text": "Please analyze this codebase"}], isMeta=True),
        wrote(blocks),
        wrote("<ide_opened_file>a.ts</ide_opened_file>\nGo on."),
        wrote("<bash-input>pnpm test</bash-input>"),
        wrote("<bash-stdout></bash-stdout><bash-stderr>1 failed</bash-stderr>"),
    )  # fmt: skip
    _, events, _ = events_in(rows, tmp_path)
    assert kinds(events) == [
        ("user.goal", {"text": "/init all of it"}),
        ("user.message", {"text": "Why?"}),
        ("user.message", {"text": "Go on."}),
        ("command.finished", {"command": "pnpm test", "stderr": "1 failed", "root": "/home/me/shop"}),
    ]


@pytest.mark.parametrize(
    "behind", [{"type": "system", "subtype": "local_command", "content": "Renamed"}, "m1"], ids=str
)
def test_a_command_that_the_harness_handled_is_no_word_of_the_user(behind: Any, tmp_path: Path):
    """Only a command that becomes a prompt is followed by the prompt."""
    typed = "<command-name>/rename</command-name>\n<command-args>never push</command-args>"
    rows = claude(
        {"type": "user", "message": {"role": "user", "content": "Fix it."}},
        {"type": "user", "message": {"role": "user", "content": typed}},
        call(behind, "t1", "Bash", command="ls") if isinstance(behind, str) else behind,
        {"type": "user", "message": {"role": "user", "content": "Continue from where you left off."}, "isMeta": True},
    )
    assert "never push" not in json.dumps(events_in(rows, tmp_path)[1])


def test_a_failed_command_of_claude_code_has_its_code_and_is_no_denial(tmp_path: Path):
    rows = claude(
        {"type": "user", "message": {"content": "Fix it."}},
        call("m1", "t1", "Bash", command="./run"),
        result("t1", "Exit code 126\nbash: ./run: Permission denied", "Error: Exit code 126", is_error=True),
        call("m2", "t2", "Bash", command="rm -rf /"),
        result("t2", "Permission to use Bash has been denied.", "Error", is_error=True),
    )
    _, events, _ = acts_in(rows, tmp_path)
    assert kinds(events)[1][1] == {
        "command": "./run", "exitCode": 126, "timedOut": False, "stdout": "bash: ./run: Permission denied", "root": "/home/me/shop",
    }  # fmt: skip
    assert kinds(events)[2][0] == "permission.denied"


def test_what_claude_code_runs_after_a_denial_was_granted(tmp_path: Path):
    def state(*more: Any) -> Any:
        rows = claude(
            {"type": "user", "message": {"content": "Fix it."}},
            call("m1", "t1", "Bash", command="git push"),
            result("t1", "Permission to use Bash has been denied.", "Error", is_error=True),
            {"type": "user", "message": {"role": "user", "content": "ok, you can push now"}},
            *more,
        )
        session_id, events, _ = events_in(rows, tmp_path)
        return ContextPolicy().state(events=events, session_id=session_id)["approvals"]

    def run(command: str, text: str = "done", **more: Any) -> Any:
        return call("m2", "t2", "Bash", command=command), result("t2", text, {"stdout": text}, **more)

    assert state() == state(*run("git status")) == ["t1 (Bash git push)"]
    assert state(*run("git push", "[Request interrupted by user for tool use]", is_error=True)) == [
        "t1 (Bash git push)"
    ]
    assert state(*run("git push")) == state(*run("git push", "Exit code 1\nno remote", is_error=True)) == []
    for text in (
        "Hook PreToolUse:Bash denied this tool",
        "Pushing to main is not allowed",
        "The user doesn't want to proceed with this tool use.",
    ):
        assert "t1 (Bash git push)" in state(*run("git push", text, is_error=True)), text


PG, FS = "mcp__postgres__query", "mcp__fs__remove"
NOT_NOW, NEVER = {"sql": "DROP"}, {"path": "a", "recursive": True}
PLAN_FILE = "/home/me/.claude/plans/x.md"


@pytest.mark.parametrize(
    ("tool", "refused", "ran", "beside", "left"),
    [
        (PG, NOT_NOW, NOT_NOW, {}, []),
        (PG, NOT_NOW, {"sql": "SELECT"}, {}, [f't1 ({PG} {{"sql": "DROP"}})']),
        (FS, NEVER, {"path": "a"}, {}, [f't1 ({FS} {{"path": "a", "recursive": true}})']),
        (FS, NEVER, NEVER, {}, []),
        ("ExitPlanMode", {"plan": "a"}, {"plan": "b"}, {}, []),
        ("ExitPlanMode", {}, {}, {"plan": "b", "filePath": PLAN_FILE}, []),
        ("ExitPlanMode", {}, {}, {"plan": "b", "isAgent": True, "awaitingLeaderApproval": True}, ["t1 (ExitPlanMode)"]),
        ("EnterPlanMode", {}, {}, {"message": "Entered plan mode."}, []),
        ("Task", {"prompt": "look"}, {"prompt": "look"}, {}, []),
        ("Task", {"prompt": "look"}, {"prompt": "push"}, {}, ['t1 (Task {"prompt": "look"})']),
        ("Edit", {"file_path": "a.py", "new_string": "x"}, {"file_path": "a.py", "new_string": "y"}, {}, []),
        ("Edit", {"file_path": "a.py"}, {"file_path": "b.py"}, {}, ["t1 (Edit a.py)"]),
        ("WebFetch", {"url": "https://a.example", "prompt": "p"}, {"url": "https://a.example", "prompt": "q"}, {}, []),
        ("Bash", {"command": "git push"}, {"command": "git push", "description": "Push"}, {}, []),
        ("Bash", {"command": "git push"}, {"command": "git push -f"}, {}, ["t1 (Bash git push)"]),
    ],
)  # fmt: skip
def test_a_call_is_granted_where_the_same_one_runs(
    tmp_path: Path, tool: str, refused: dict[str, Any], ran: dict[str, Any], beside: dict[str, Any], left: list[str]
):
    rows = claude(
        {"type": "user", "message": {"content": "Fix it."}},
        call("m1", "t1", tool, **refused), {**result("t1", "no", "User rejected tool use", is_error=True), "toolDenialKind": "user"},
        call("m2", "t2", tool, **ran), result("t2", "done", beside),
    )  # fmt: skip
    session_id, events, _ = events_in(rows, tmp_path)
    assert ContextPolicy().state(events=events, session_id=session_id)["approvals"] == left


def test_a_grant_that_follows_from_a_call_says_that_it_does(tmp_path: Path):
    rows = claude(
        call("m1", "t1", "Bash", command="git push"), {**result("t1", "no", "User rejected tool use", is_error=True), "toolDenialKind": "user"},
        call("m2", "t2", "Bash", command="git push"), result("t2", "done", {"stdout": "done"}),
    )  # fmt: skip
    session_id, events, _ = events_in(rows, tmp_path)
    seen = ContextPolicy().project(events=events, session_id=session_id).text()
    assert "permission granted, Bash git push: inferred: the call ran later\n" in seen


@pytest.mark.parametrize(
    ("refused", "ran", "left"),
    [
        (NOT_NOW, NOT_NOW, []),
        (NOT_NOW, {"sql": "SELECT"}, [f'{PG} {{"sql": "DROP"}}']),
        (NEVER, {"path": "a"}, [f'{PG} {{"path": "a", "recursive": true}}']),
    ],
)
def test_a_call_to_a_server_of_codex_is_granted_where_the_same_one_runs(
    tmp_path: Path, refused: dict[str, Any], ran: dict[str, Any], left: list[str]
):
    rows = codex(
        called("1", PG, refused), output("1", "user rejected MCP tool call"), called("2", PG, ran), output("2", "[]")
    )
    session_id, events, _ = events_in(rows, tmp_path)
    assert ContextPolicy().state(events=events, session_id=session_id)["approvals"] == left


def test_a_subagent_of_claude_code_is_a_session_of_its_own(tmp_path: Path):
    rows = [
        {**row, "isSidechain": True, "agentId": "a7"}
        for row in claude({"type": "user", "message": {"content": "Look."}})
    ]
    session_id, events, left_out = events_in(rows, tmp_path)
    assert (session_id, [each["kind"] for each in events], left_out) == ("s-1/a7", ["user.goal"], {})


@pytest.mark.parametrize("said", [{}, {"isSidechain": None}, {"isSidechain": False}])
def test_records_that_do_not_say_that_they_are_a_subagents_are_of_the_session(said: dict[str, Any], tmp_path: Path):
    rows = claude({"type": "user", "message": {"content": "Look."}}, {"type": "summary", "summary": "Look"})
    rows = [{name: value for name, value in row.items() if name != "isSidechain"} | said for row in rows]
    session_id, events, _ = events_in(rows, tmp_path)
    assert (session_id, [each["kind"] for each in events]) == ("s-1", ["user.goal"])


def test_scripts_of_codex_are_the_commands_that_they_run(tmp_path: Path):
    def script(id_: str, text: str) -> dict[str, Any]:
        return called(id_, "exec", text, "custom_tool_call")

    def ran(id_: str, *texts: str) -> dict[str, Any]:
        blocks = [
            {"type": "input_text", "text": text}
            for text in ("Script completed\nWall time 1.0 seconds\nOutput:\n", *texts)
        ]
        return output(id_, blocks, "custom_tool_call_output")

    def ended(code: int) -> dict[str, Any]:
        return {
            "record": "event_msg",
            "type": "item_completed",
            "item": {"type": "CommandExecution", "exit_code": code},
        }

    rows = codex(
        {"record": "session_meta", "id": "c-2", "cwd": "/home/me/shop"},
        {"record": "session_meta", "id": "its-parent", "cwd": "/elsewhere"},
        said("user", "Fix it."),
        script("1", 'const r = await tools.exec_command({cmd:"cat src/a.ts",workdir:"."}); text(r.output);'),
        ended(0),
        ran("1", "export const a = 1;"),
        script("2", 'const r = await tools.exec_command({cmd:"pnpm \\"test\\""}); text(r.output);'),
        ended(7),
        ran("2", "1 failed"),
        script("3", 'text(JSON.stringify(await tools.exec_command({"cmd": "ls \\\'a\\\'"})));'),
        ran("3", json.dumps({"output": "a", "exit_code": 2})),
        script(
            "4", 'const patch = "*** Begin Patch\\n*** Add File: /home/me/shop/b.ts\\n+new\\n*** End Patch";\ntext(1);'
        ),
        ran("4", "{}"),
    )
    session_id, events, left_out = acts_in(rows, tmp_path)
    assert session_id == "c-2"
    assert kinds(events)[1:] == [
        ("file.read", {"path": "src/a.ts", "text": "export const a = 1;", "version": kinds(events)[1][1]["version"]}),
        ("command.finished", {"command": 'pnpm "test"', "exitCode": 7, "stdout": "1 failed", "root": "/home/me/shop"}),
        ("command.finished", {"command": r"ls \'a\'", "exitCode": 2, "stdout": "a", "root": "/home/me/shop"}),
        ("file.modified", {"path": "b.ts", "text": "*** Add File: /home/me/shop/b.ts\n+new", "version": kinds(events)[4][1]["version"]}),
    ]  # fmt: skip
    assert left_out == {}


def commands(rows: Rows, tmp_path: Path) -> list[tuple[Any, ...]]:
    _, events, _ = events_in(rows, tmp_path)
    told = [event["payload"] for event in events if event["kind"] == "command.finished"]
    return [(each["command"], each.get("exitCode"), each.get("cwd"), each.get("root")) for each in told]


def test_a_command_of_claude_code_ran_in_the_folder_of_its_call(tmp_path: Path):
    def ran(number: int, command: str, folder: str) -> Rows:
        return [
            {**call(f"m{number}", f"t{number}", "Bash", command=command), "cwd": folder},
            {**result(f"t{number}", "3 passed", {"stdout": "3 passed"}), "cwd": "/home/me/shop/elsewhere by now"},
        ]

    rows = claude(
        {"type": "user", "message": {"role": "user", "content": "Fix it."}},
        *ran(1, "pytest", "/home/me/shop"),
        *ran(2, "pytest", "/home/me/shop/packages/b"),
        *ran(3, "cd /home/me/shop && pytest", "/home/me/shop/packages/b"),
    )
    assert commands(rows, tmp_path) == [
        ("pytest", 0, None, "/home/me/shop"),
        ("pytest", 0, "packages/b", "/home/me/shop"),
        ("cd /home/me/shop && pytest", 0, "packages/b", "/home/me/shop"),
    ]


@pytest.mark.parametrize("elsewhere", [
    "git -C /tmp/requests checkout v2.31.0", "git clone -q https://example.com/y /tmp/y && cd /tmp/y && git checkout v1", "cd ~/src/lib && git switch develop",
    'cd "$HOME/src/lib" && git switch develop', "git -C $HOME/src/lib switch develop",
])  # fmt: skip
def test_git_in_another_repository_does_not_keep_a_failure_of_claude_code(tmp_path: Path, elsewhere: str):
    def ran(number: int, command: str, said: str, *, failed: bool = False) -> Rows:
        answer = result(f"t{number}", said, {"stdout": said}, is_error=failed)
        return [{**call(f"m{number}", f"t{number}", "Bash", command=command), "cwd": "/home/me/shop"}, answer]

    rows = claude(
        {"type": "user", "message": {"role": "user", "content": "Fix it."}},
        *ran(1, "pytest", "Exit code 1\na.py:3 boom", failed=True), *ran(2, elsewhere, ""), *ran(3, "pytest", "3 passed"),
    )  # fmt: skip
    session_id, events, _ = events_in(rows, tmp_path)
    assert ContextPolicy().state(events=events, session_id=session_id)["failing"] == []


def test_what_a_running_process_of_codex_prints_later_belongs_to_its_command(tmp_path: Path):
    running = "Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID {}\nOutput:\ncollecting\n"
    exited = "Chunk ID: 2\nWall time: 9.0 seconds\nProcess exited with code {}\nOutput:\n{}\n"
    rows = codex(
        {"record": "session_meta", "id": "c-3", "cwd": "/home/me/shop"},
        said("user", "Fix it."),
        called("1", "exec_command", {"cmd": "pytest", "workdir": "/home/me/shop/web"}),
        output("1", running.format(41)),
        called("2", "exec_command", {"cmd": "npm run dev"}),
        output("2", running.format(42)),
        called("3", "write_stdin", {"session_id": 41, "chars": ""}),
        output("3", running.format(41)),
        called("4", "write_stdin", {"session_id": 42, "chars": "\u0003"}),
        output("4", exited.format(130, "^C")),
        called("5", "write_stdin", {"session_id": 41, "chars": ""}),
        output("5", exited.format(0, "3 passed in 0.1s")),
        called("6", "write_stdin", {"session_id": 7, "chars": ""}),
        output("6", exited.format(0, "3 passed in 0.1s")),
    )
    assert commands(rows, tmp_path) == [
        ("pytest", None, "web", "/home/me/shop"),
        ("npm run dev", None, None, "/home/me/shop"),
        ("pytest", None, "web", "/home/me/shop"),
        ("npm run dev", 130, None, "/home/me/shop"),
        ("pytest", 0, "web", "/home/me/shop"),
        ("write_stdin", 0, None, "/home/me/shop"),
    ]
    _, events, _ = events_in(rows, tmp_path)
    state = ContextPolicy().state(events=events, session_id="c-3")
    assert state["verification"] == "pytest: passed"


RUNS = "Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 41\nOutput:\n{}\n"
EXITED = "Chunk ID: 2\nWall time: 9.0 seconds\nProcess exited with code 0\nOutput:\n\n"


@pytest.mark.parametrize(
    ("printed", "later", "passed"),
    [
        (RUNS.format("worker: Process exited with code 0"), None, False),
        ("starting\nExit code: 0\n", None, False),
        (EXITED, None, True),
        (f"Total output lines: 9\n\n{EXITED}", None, True),
        (RUNS.format("collecting"), {"chars": ""}, True),
        (RUNS.format("collecting"), {"chars": "q"}, False),
        (RUNS.format("collecting"), 'text(await tools.write_stdin({session_id: 41, chars: "\\u0003"}));', False),
        (RUNS.format("collecting"), 'text(await tools.write_stdin({session_id: 41, chars: ""}));', True),
    ],
)
def test_how_a_command_of_codex_ended_the_harness_says_and_no_key_decides(
    printed: str, later: Any, passed: bool, tmp_path: Path
):
    """What a program prints in the form of the harness ends nothing, nor does a watcher that was asked to quit."""
    rows = [said("user", "Fix it."), called("1", "exec_command", {"cmd": "npm test"}), output("1", printed)]
    if later is not None:
        given = {"session_id": 41, **later} if isinstance(later, dict) else later
        rows += [called("2", "write_stdin", given), output("2", EXITED)]
    told = "passed" if passed else "outcome unknown"
    assert state_of(codex(*rows), tmp_path)["verification"] == f"npm test: {told}"


@pytest.mark.parametrize(
    ("tool", "text", "failed", "verification"),
    [
        ("PowerShell", "Exit code 1\n1 failed", True, "npm test: failed"),
        ("PowerShell", "Tests: 1 failed, 2 total", False, "npm test: failed"),
        ("PowerShell", "Test Suites: 1 passed, 1 total", False, "npm test: passed"),
        ("PowerShell", "", False, "npm test: outcome unknown"),
        ("Bash", "<tool_use_error>Cancelled: parallel tool call errored</tool_use_error>", True, None),
        ("Bash", "PreToolUse:Bash hook error: [check.sh]: no tests today", True, None),
        ("Bash", "Exit code 1\n<tool_use_error>boom", True, "npm test: failed"),
    ],
)
def test_commands_of_either_shell_are_commands_and_a_call_that_was_not_started_is_no_check(
    tool: str, text: str, failed: bool, verification: str | None, tmp_path: Path
):
    rows = claude(call("m1", "t1", tool, command="npm test"), result("t1", text, is_error=failed))
    assert state_of(rows, tmp_path)["verification"] == verification


def test_a_log_that_has_more_than_its_transcript_is_told(tmp_path: Path):
    """Imported again after the user rewound: a log keeps what it has."""
    rows = claude(
        *({"type": "user", "message": {"role": "user", "content": text}} for text in ("Fix it.", "Never push."))
    )
    for count, told in ((2, []), (1, ["1 event of the log is not in the transcript"])):
        file = tmp_path / "t.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows[:count]), encoding="utf-8")
        found = import_transcript(file, tmp_path / "log")["notes"]
        assert [each.split(":")[0] for each in found] == told


def test_what_an_earlier_importer_read_otherwise_stays_and_later_events_are_appended(tmp_path: Path):
    rows = claude(
        {"type": "user", "message": {"role": "user", "content": "Find foo."}},
        call("m1", "t1", "Grep", pattern="foo", output_mode="count"),
        result("t1", "src/a.ts:40"),
        {"type": "user", "message": {"role": "user", "content": "go on"}},
    )
    session_id, events, _ = events_in(rows[:3], tmp_path)
    older = [each for each in events if each["kind"] != "phase.changed"]  # it had none
    older[-1] = {**older[-1], "payload": {"query": "foo", "matches": [{"path": "src/a.ts:40"}]}}
    log = SessionLog.open(tmp_path / "log", session_id=session_id)
    log.append(older)
    events_in(rows, tmp_path)
    found = import_transcript(tmp_path / "t.jsonl", tmp_path / "log")
    assert found["new"] == 1 and [each.split(" imported")[0] for each in found["notes"]] == [
        "2 events of the transcript were"
    ]
    assert log.view().tables.events["kind"].to_pylist()[-2:] == ["search.result", "user.message"]
    assert import_transcript(tmp_path / "t.jsonl", tmp_path / "log")["new"] == 0


FAILS = "FAILED tests/a.py::t - x\n1 failed in 1s"


def state_of(rows: Rows, tmp_path: Path) -> dict[str, Any]:
    session_id, events, _ = events_in(rows, tmp_path)
    return ContextPolicy().state(events=events, session_id=session_id)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["rg", "foo && pytest"], "rg 'foo && pytest'"),
        (["rg", "foo|pytest", "src"], "rg 'foo|pytest' src"),
        (["python", "-c", "pytest"], "python -c pytest"),
        (["pytest", "-k", "a b"], "pytest -k 'a b'"),
    ],
)
def test_words_of_a_command_of_codex_stay_words(words: list[str], command: str, tmp_path: Path):
    """What one argument holds runs nothing: a search for a command line is no check that passed."""
    rows = codex(
        {"record": "session_meta", "id": "c-4", "cwd": "/r"},
        said("user", "Fix it."),
        called("1", "shell", {"command": ["bash", "-lc", "pytest"]}),
        output("1", json.dumps({"output": FAILS, "metadata": {"exit_code": 1}})),
        called("2", "shell", {"command": words}),
        output("2", json.dumps({"output": "3 passed in 1s", "metadata": {"exit_code": 0}})),
    )
    state = state_of(rows, tmp_path)
    assert (state["failure"], state["latest_command"]) == ("1 failed: tests/a.py::t x", command)


@pytest.mark.parametrize(
    "text",
    ["apply_patch verification failed: Failed to find expected lines in /r/a.ts", "error: invalid patch", "Script failed\nWall time 1.0 seconds\nOutput:\n{}"],
)  # fmt: skip
def test_a_patch_that_codex_could_not_apply_changed_no_file(text: str, tmp_path: Path):
    rows = codex(
        {"record": "session_meta", "id": "c-5", "cwd": "/home/me/shop"},
        said("user", "Fix it."),
        called("1", "apply_patch", PATCH, "custom_tool_call"),
        output("1", [{"type": "input_text", "text": text}], "custom_tool_call_output"),
    )
    _, events, _ = events_in(rows, tmp_path)
    assert events[-1]["kind"] == "command.finished" and events[-1]["payload"]["command"].startswith("apply_patch\n")
    assert state_of(rows, tmp_path)["modified_files"] == []


def test_a_command_of_codex_runs_where_the_session_works_by_then(tmp_path: Path):
    def ran(id_: str, **more: str) -> tuple[dict[str, Any], dict[str, Any]]:
        call = called(id_, "shell", {"command": ["bash", "-lc", "pytest"], **more})
        return call, output(id_, json.dumps({"output": "3 passed", "metadata": {"exit_code": 0}}))

    rows = codex(
        {"record": "turn_context", "cwd": "/r"},
        said("user", "Fix it."),
        *ran("1"),
        {"record": "turn_context", "cwd": "/r/web"},
        *ran("2"),
        *ran("3", workdir="sub"),
        *ran("4", workdir="/r"),
        called("5", "shell", {"command": ["bash", "-lc", "cat a.ts"]}),
        output("5", json.dumps({"output": "x", "metadata": {"exit_code": 0}})),
    )
    assert [cwd for _, _, cwd, _ in commands(rows, tmp_path)] == [None, "web", "web/sub", None]
    assert events_in(rows, tmp_path)[1][-1]["payload"]["path"] == "web/a.ts"


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("command timed out after 1000 milliseconds\n3 passed in 1s", "failed"),
        ("aborted by user after 3.0s", "interrupted"),
    ],
)
def test_a_command_that_codex_ended_passed_nothing(text: str, how: str, tmp_path: Path):
    rows = codex(
        said("user", "Fix it."),
        called("1", "shell", {"command": ["bash", "-lc", "pytest"]}),
        output("1", text),
    )
    assert state_of(rows, tmp_path)["verification"] == f"pytest: {how}"


@pytest.mark.parametrize("poll", [("BashOutput", "bash_id", "stdout"), ("TaskOutput", "task_id", "output")])
@pytest.mark.parametrize(
    ("about", "printed", "verification"),
    [
        ("<status>completed</status>\n\n<exit_code>0</exit_code>", "3 passed in 1s", "pytest: passed"),
        ("<status>completed</status>\n\n<exit_code>1</exit_code>", FAILS, "pytest: failed"),
        ("<status>failed</status>\n\n<exit_code>1</exit_code>", "<exit_code>0</exit_code>\n3 passed", "pytest: failed"),
        ("<status>killed</status>", "3 passed in 1s", "pytest: failed"),
        ("<status>running</status>", "3 passed in 1s", "pytest: outcome unknown"),
    ],
)
def test_what_claude_code_asks_of_the_background_belongs_to_its_command(
    poll: tuple[str, str, str], about: str, printed: str, verification: str, tmp_path: Path
):
    tool, name, stream = poll
    begins = [
        {"type": "user", "message": {"role": "user", "content": "Fix it."}},
        call("m1", "t1", "Bash", command="pytest", run_in_background=True),
        result("t1", "Command running in background with ID: b1. Output is being written to: /tmp/b1"),
    ]
    ends = [
        call("m2", "t2", tool, **{name: "b1"}),
        result("t2", f"{about}\n\n<{stream}>\n{printed}\n</{stream}>\n\n<timestamp>2026</timestamp>"),
    ]
    state = state_of(claude(*begins, *ends), tmp_path)
    assert (state["verification"], state["latest_command"]) == (verification, "pytest")
    edit = call("m3", "t3", "Edit", file_path="/home/me/shop/a.py", old_string="1", new_string="2")
    script = call("m3", "t3", "Bash", command="sed -i s/1/2/ a.py")
    if verification == "pytest: passed":
        verification = "pytest: outcome unknown"
        for change in (edit, script):
            state = state_of(claude(*begins, change, result("t3", "ok"), *ends), tmp_path)
            assert state["verification"] == verification, "files changed meanwhile"
        look = call("m3", "t3", "Bash", command="ls")
        state = state_of(claude(*begins, look, result("t3", "a.py"), *ends), tmp_path)
        assert state["verification"] == "pytest: passed"


@pytest.mark.parametrize(
    ("status", "summary", "verification"),
    [
        ("completed", 'Background command "Test" completed (exit code 0)', "pytest: passed"),
        ("failed", 'Background command "Test" failed with exit code 1', "pytest: failed"),
        ("completed", "All tests passed", "pytest: outcome unknown"),
        ("killed", 'Background command "Test" was stopped', "pytest: failed"),
    ],
)
@pytest.mark.parametrize("queued", [False, True])
def test_a_note_that_a_background_command_ended_belongs_to_it(
    status: str, summary: str, verification: str, queued: bool, tmp_path: Path
):
    text = f"<task-notification>\n<task-id>b1</task-id>\n<status>{status}</status>\n<summary>{summary}</summary>\n</task-notification>"
    note = {"type": "user", "message": {"role": "user", "content": text}, "origin": {"kind": "task-notification"}}
    if queued:
        command = {"type": "queued_command", "prompt": text, "commandMode": "task-notification"}
        note = {"type": "attachment", "attachment": command}
    begins = [
        {"type": "user", "message": {"role": "user", "content": "Fix it."}},
        call("m1", "t1", "Bash", command="pytest", run_in_background=True),
        result("t1", "started", {"backgroundTaskId": "b1"}),
    ]
    state = state_of(claude(*begins, note), tmp_path)
    assert (state["verification"], state["latest_command"]) == (verification, "pytest")
    unknown = json.loads(json.dumps(note).replace("b1", "b2"))
    assert len(events_in(claude(*begins, unknown), tmp_path)[1]) == len(events_in(claude(*begins), tmp_path)[1])
    about = {"origin": {"kind": "peer"}}
    note = {**note, "attachment": {**note["attachment"], **about}} if queued else {**note, **about}
    state = state_of(claude(*begins, note), tmp_path)
    assert state["verification"] == "pytest: outcome unknown", "another agent's words"


def test_what_the_harness_of_codex_adds_to_a_message_is_not_what_the_user_wants(tmp_path: Path):
    def blocks(*texts: str, about: Any = None) -> dict[str, Any]:
        content = [{"type": "input_text", "text": text} for text in texts]
        more = {} if about is None else {"internal_chat_message_metadata_passthrough": {"content_item_kinds": about}}
        return {"type": "message", "role": "user", "content": content, **more}

    rows = codex(
        blocks("<recommended_plugins>x</recommended_plugins>", "# AGENTS.md instructions for .\nNever push.", "<environment_context/>"),
        blocks("Fix it.", "In src/."),
        blocks("a new kind of note", "Go on.", about=["notes.of_today", "user.text"]),
    )  # fmt: skip
    _, events, left_out = events_in(rows, tmp_path)
    assert [(kind, told["text"].split("\n")[0]) for kind, told in kinds(events)] == [
        ("rules.repository", "# AGENTS.md instructions for ."), ("user.goal", "Fix it."), ("user.message", "Go on."),
    ]  # fmt: skip
    assert left_out == {"messages of the harness": 3}


def test_a_transcript_that_is_being_written_is_read_up_to_its_last_whole_line(tmp_path: Path):
    file = tmp_path / "t.jsonl"
    text = "".join(json.dumps(row) + "\n" for row in rollout())
    file.write_text(text[:-40])
    _, events, left_out = read_transcript(file)
    assert left_out["unfinished last lines"] == 1 and len(events) == len(events_in(rollout()[:-1], tmp_path)[1])
    file.write_text(text.replace('"Be brief."', '"Be brief.', 1))
    with pytest.raises(InputError, match=r"t\.jsonl:4"):
        read_transcript(file)


def test_a_compressed_rollout_is_read(tmp_path: Path):
    text = "".join(json.dumps(row) + "\n" for row in rollout()).encode()
    with pa.output_stream(str(tmp_path / "rollout-1.jsonl.zst"), compression="zstd") as stream:
        stream.write(text)
    assert read_transcript(tmp_path / "rollout-1.jsonl.zst")[:2] == events_in(rollout(), tmp_path)[:2]


def test_a_compressed_rollout_that_would_fill_the_memory_is_refused(tmp_path: Path):
    """A Zstandard frame of blocks that repeat one byte (RFC 8878, RLE_Block)."""
    size = 1 << 17
    blocks = [(size << 3 | 1 << 1).to_bytes(3, "little") + b"\n"] * (MOST_UNPACKED // size)
    last = (1 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\n"
    file = tmp_path / "rollout-1.jsonl.zst"
    file.write_bytes(b"\x28\xb5\x2f\xfd" + bytes([0, 7 << 3]) + b"".join([*blocks, last]))
    tracemalloc.start()
    with pytest.raises(InputError, match="Expected at most 536,870,912 unpacked bytes, got more - at "):
        read_transcript(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert file.stat().st_size < 20_000
    assert peak < 20 * (1 << 20)


@pytest.mark.parametrize(
    ("rows", "hint"),
    [
        ([{"type": "thread.started", "thread_id": "t"}], "--output-format stream-json"),
        ([{"type": "system", "subtype": "init", "session_id": "s"}], "--output-format stream-json"),
        ([{"sessionId": "s", "type": "user", "parts": []}], "it may be the log of another agent"),
    ],
)
def test_the_log_of_another_kind_is_refused_with_a_hint(rows: Rows, hint: str, tmp_path: Path):
    with pytest.raises(InputError) as caught:
        events_in(rows, tmp_path)
    assert hint in caught.value.hint


def test_transcripts_that_nobody_here_wrote_project_at_every_request():
    folder = os.environ.get("TEST_TRANSCRIPTS")
    if not folder:
        pytest.skip("TEST_TRANSCRIPTS names no folder with transcripts (*.jsonl)")
    files = sorted(Path(folder).glob("*.jsonl"))
    assert files
    for file in files:
        session_id, events, _ = read_transcript(file)
        turns = [
            {"asOfSeq": place, "inputId": str(place)}
            for place, event in enumerate(events)
            if event["kind"] == "model.request"
        ]
        for seen in ContextPolicy().project_turns(
            turns=turns or [{}], events=events, session_id=session_id, budget={"maxTokens": 4000}
        ):
            assert seen.estimated_tokens <= 4000 - 1024
            ids = [row["source_id"] for row in seen.decisions]
            assert len(ids) == len(set(ids)), file


# --- branches, parts of files, what is not known yet ------------------------------------------------------------------


def chain(*records: dict[str, Any]) -> Rows:
    """Records that name the one before them, unless they name another."""
    found = claude(*records)
    return [{"parentUuid": f"u{number - 1}" if number else None, **record} for number, record in enumerate(found)]


def words_of(records: Rows) -> list[str]:
    made = claude_code.events_of(records, "t")
    return [event["payload"]["text"] for event in made.events if event["kind"].startswith("user.")]


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def says(id_: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": id_, "content": [{"type": "text", "text": text}]}, **more}


def test_a_branch_that_the_user_rewound_is_left_out():
    records = chain(
        user("Fix the test."), says("m1", "ok"), user("Delete the tests, never run pytest."), says("m2", "deleting"),
        user("Do not delete tests.", parentUuid="u1"), says("m3", "fine"),
    )  # fmt: skip
    assert words_of(records) == ["Fix the test.", "Do not delete tests."]
    made = claude_code.events_of(records, "t")
    assert made.left_out["records of a branch that was rewound"] == 2
    assert not any("deleting" in str(event) for event in made.events)


def test_a_rewound_branch_before_a_compaction_stays_out_and_what_was_compacted_stays():
    records = chain(
        user("Fix the test."), says("m1", "ok"), user("Wrong way."), says("m2", "hm"), user("Right way.", parentUuid="u1"), says("m3", "yes"),
        user("Summary.", isCompactSummary=True, parentUuid=None), user("Go on."), says("m4", "done"),
    )  # fmt: skip
    assert words_of(records) == ["Fix the test.", "Right way.", "Go on."]


def test_results_of_tools_that_ran_at_the_same_time_are_no_rewound_branch():
    records = chain(
        user("Look."), call("m1", "t1", "Read", file_path="/home/me/shop/a.py"), call("m1", "t2", "Read", file_path="/home/me/shop/b.py"),
        {**result("t1", "a"), "parentUuid": "u1"}, {**result("t2", "b"), "parentUuid": "u2"}, says("m2", "read"),
    )  # fmt: skip
    made = claude_code.events_of(records, "t")
    assert [event["payload"]["path"] for event in made.events if event["kind"] == "file.read"] == ["a.py", "b.py"]


def test_a_circle_of_records_ends():
    assert words_of(chain(user("One.", parentUuid="u1"), user("Two."))) == ["One.", "Two."]


def test_turns_of_codex_that_were_rolled_back_are_left_out():
    def message(text: str) -> dict[str, Any]:
        return {
            "type": "response_item",
            "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
        }

    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    made = rollouts.events_of([
        {"type": "session_meta", "payload": {"id": "c-1", "cwd": "/r"}}, message("Fix it."), message("Never run tests."), back, message("Run them."),
    ], "t")  # fmt: skip
    assert [event["payload"]["text"] for event in made.events if event["kind"].startswith("user.")] == [
        "Fix it.",
        "Run them.",
    ]
    assert made.left_out["events of turns that were rolled back"] == 1


def test_reads_of_parts_of_a_file_stand_side_by_side_with_their_lines():
    def part(id_: str, first: int) -> dict[str, Any]:
        file = {
            "filePath": "/home/me/shop/a.py",
            "content": f"text from {first}",
            "startLine": first,
            "numLines": 100,
            "totalLines": 400,
        }
        return result(id_, "...", {"type": "text", "file": file})

    made = claude_code.events_of(claude(
        user("Look."), call("m1", "t1", "Read", file_path="/home/me/shop/a.py"), part("t1", 1),
        call("m2", "t2", "Read", file_path="/home/me/shop/a.py"), part("t2", 101), says("m3", "hm"), call("m4", "t4", "Bash", command="ls"), result("t4", "a.py"),
    ), "t")  # fmt: skip
    text = ContextPolicy().project(events=made.events).text()
    assert "a.py:1-100 (" in text and "a.py:101-200 (" in text and "text from 1\n" in text and "text from 101\n" in text


@pytest.mark.parametrize(("call_", "told", "diff"), [
    (("Edit", {"old_string": "import os", "new_string": ""}), {"oldString": "import os", "newString": ""}, "- import os"),
    (("MultiEdit", {"edits": [{"old_string": "a=1", "new_string": "a=2"}, {"old_string": "b=1", "new_string": "b=2"}]}), {"edits": []}, "- a=1\n+ a=2\n- b=1\n+ b=2"),
    (("NotebookEdit", {"new_source": "print(2)"}), None, "+ print(2)"),
    (("Write", {"content": "x = 1"}), {"content": "x = 1"}, "+ x = 1"),
])  # fmt: skip
def test_a_change_of_a_file_says_what_went_and_what_came(call_: tuple[str, dict[str, Any]], told: Any, diff: str):
    tool, given = call_
    records = claude(
        user("Do it."),
        call("m1", "t1", tool, file_path="/home/me/shop/a.py", **given),
        result("t1", "The file was updated.", told),
    )
    made = claude_code.events_of(records, "t")
    assert [event["payload"]["text"] for event in made.events if event["kind"] == "file.modified"] == [diff]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", {"stdout": "", "stderr": "", "interrupted": False, "backgroundTaskId": "b1"}),
        ("Command was manually backgrounded by user with ID: b1", {"stdout": "", "stderr": ""}),
        ("...", {"stdout": "...", "stderr": "", "returnCodeInterpretation": "Condition is false"}),
    ],
)
def test_a_command_that_went_to_the_background_or_has_another_code_than_0_has_no_exit_code(
    text: str, told: dict[str, Any]
):
    rows = claude(call("m1", "t1", "Bash", command="pytest"), result("t1", text, told))
    assert "exitCode" not in claude_code.events_of(rows, "s").events[-1]["payload"]


ODD = (
    ("TodoWrite", {"todos": 5}, {}), ("Bash", {"command": "ls"}, {"exitCode": 2**40}), ("Bash", {"command": "ls"}, {"exitCode": True}),
    ("Read", {"file_path": "/a"}, {"file": {"startLine": 2**40, "numLines": 1, "content": "x"}}), ("Read", {"file_path": "/a", "limit": 2**70}, {}),
)  # fmt: skip


@pytest.mark.parametrize(("tool", "given", "told"), ODD)
def test_a_field_of_a_transcript_that_is_not_what_it_was_stops_no_import(
    tool: str, given: dict[str, Any], told: dict[str, Any]
):
    rows = claude(
        {"type": "user", "message": {"content": "Go."}}, call("m1", "t1", tool, **given), result("t1", "x", told)
    )
    events = claude_code.events_of(rows, "s").events
    assert ContextPolicy().project(events=events).status == "ok"


def test_json_that_nests_too_deep_is_told_in_a_log_and_a_word_in_a_rollout(tmp_path: Path, capsys: Any):
    deep = "[" * 100_000
    (tmp_path / "log.jsonl").write_text(f"{deep}\n")
    code, _, err = run("context", "project", str(tmp_path / "log.jsonl"), "--no-record", capsys=capsys)
    assert code == 2 and "too deep nesting" in err
    rows = codex(said("user", "Go."), called("c1", "shell", deep), output("c1", deep))
    assert events_in(rows, tmp_path)[1][-1]["payload"]["stdout"] == deep


def test_a_command_in_the_background_has_no_exit_code():
    records = claude(
        user("Test."),
        call("m1", "t1", "Bash", command="pytest", run_in_background=True),
        result("t1", "Command running in background with ID: 7"),
    )
    made = claude_code.events_of(records, "t")
    assert [event["payload"].get("exitCode") for event in made.events if event["kind"] == "command.finished"] == [None]


def test_a_file_that_cannot_be_read_is_no_denied_permission_and_an_interruption_no_word_of_the_user():
    records = claude(user("Test."), call("m1", "t1", "Read", file_path="/x"), result("t1", "EACCES: permission denied, open '/x'", is_error=True),
                     user("[Request interrupted by user for tool use]"))  # fmt: skip
    made = claude_code.events_of(records, "t")
    assert [event["kind"] for event in made.events] == ["user.goal", "model.request", "tool.intent", "tool.error"]


def test_rules_in_a_log_say_why_they_do_not_instruct():
    events = [{"id": "a", "kind": "user.goal", "createdAt": "2026-05-20T08:00:00Z", "text": "Go."},
              {"id": "b", "kind": "rules.repository", "createdAt": "2026-05-20T08:00:00Z", "text": "Never push."}]  # fmt: skip
    seen = ContextPolicy().project(events=events)
    assert seen.decision("event:b")["reason_code"] == "rules_of_log" and "Never push" not in seen.text()
