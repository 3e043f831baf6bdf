"""Files that change beside the conversation: by agents, by tools of servers, and by the user."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from context_session import Session, projected, state_of
from scoped_retrieval.pipeline.context import ContextPolicy
from scoped_retrieval.pipeline.context.tool_changes import changed_by
from scoped_retrieval.pipeline.context.transcripts import read_transcript
from scoped_retrieval.pipeline.context.transcripts.agents import changed_by_call, noted_changes
from scoped_retrieval.pipeline.context.transcripts.writing import Transcript
from transcript_records import Rows, call, called, claude, codex, output, result, said

CONTENT = "export function login() {}"
READ = (
    call("m1", "t1", "Read", file_path="/repo/src/a.ts"),
    result("t1", f"1\t{CONTENT}", {"file": {"filePath": "/repo/src/a.ts", "content": CONTENT, "startLine": 1, "numLines": 1, "totalLines": 1}}),
)  # fmt: skip
SHELL = (
    called("0", "exec_command", {"cmd": "cat src/a.ts"}),
    output("0", f"Process exited with code 0\nOutput:\n{CONTENT}"),
)
LS = call("m9", "t9", "Bash", command="ls"), result("t9", "src")
MAY = "may have changed since"
NOTE = "Note: /repo/src/a.ts was modified, either by the user or by a linter. This change was intentional."


def standing(rows: Rows, folder: Path) -> str:
    """How the content of the file that was read first stands at the end: fresh, stale, or in doubt."""
    file = folder / "session.jsonl"
    rows = [{**row, "cwd": row.get("ran in", "/repo")} for row in rows]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    text = ContextPolicy().project(events=read_transcript(file)[1], budget={"maxTokens": 20_000}).text()
    if "- src/a.ts: the file was modified after this was seen" in text:
        assert CONTENT not in text
        return "stale"
    assert CONTENT in text
    return "doubt" if MAY in text else "fresh"


@pytest.mark.parametrize(
    ("tool", "given", "failed", "stands"),
    [
        ("Task", {"prompt": "fix", "subagent_type": "general-purpose"}, False, "doubt"), ("Agent", {"prompt": "fix"}, False, "doubt"),
        ("Task", {"prompt": "fix"}, True, "doubt"), ("Task", {"prompt": "look", "subagent_type": "Explore"}, False, "fresh"), ("Agent", {"prompt": "look", "subagent_type": "Plan"}, False, "fresh"),
        ("TaskOutput", {"task_id": "b1"}, False, "fresh"), ("TodoWrite", {"todos": []}, False, "fresh"),
        ("mcp__filesystem__write_file", {"path": "/repo/src/a.ts", "content": "x"}, False, "stale"), ("mcp__filesystem__write_file", {"path": "/repo/src/a.ts"}, True, "fresh"),
        ("mcp__filesystem__move_file", {"source": "src/a.ts", "destination": "src/b.ts"}, False, "stale"), ("mcp__serena__replace_symbol_body", {"relative_path": "src/a.ts", "body": "x"}, False, "stale"),
        ("mcp__filesystem__read_file", {"path": "/repo/src/a.ts"}, False, "fresh"), ("mcp__serena__find_symbol", {"relative_path": "src/a.ts"}, False, "fresh"),
        ("mcp__github__create_or_update_file", {"owner": "o", "repo": "r", "path": "src/a.ts"}, False, "fresh"),
    ],
)  # fmt: skip
def test_tools_of_claude_code_that_change_files(
    tmp_path: Path, tool: str, given: dict[str, Any], failed: bool, stands: str
):
    assert (
        standing(claude(*READ, call("m2", "t2", tool, **given), result("t2", "Done.", is_error=failed), *LS), tmp_path)
        == stands
    )


def test_what_an_agent_in_the_background_prints_later_is_in_doubt_too(tmp_path: Path):
    begun = call("m2", "t2", "Task", prompt="fix", run_in_background=True), result("t2", "Async agent launched.")
    again = call("m3", "t3", "Read", file_path="/repo/src/a.ts"), READ[1] | {"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t3", "content": f"1\t{CONTENT}"}]}}  # fmt: skip
    ended = call("m4", "t4", "TaskOutput", task_id="a1"), result("t4", "Done.")
    assert standing(claude(*READ, *begun, *again, *LS), tmp_path) == "fresh", "it was read again"
    assert standing(claude(*READ, *begun, *again, *ended, *LS), tmp_path) == "doubt"


@pytest.mark.parametrize(
    ("name", "given", "stands"),
    [
        ("spawn_agent", {"message": "fix", "agent_type": "default"}, "doubt"), ("spawn_agent", {"message": "look", "agent_type": "explorer"}, "fresh"),
        ("wait_agent", {"targets": ["x"]}, "fresh"), ("mcp__serena__replace_symbol_body", {"relative_path": "src/a.ts"}, "stale"),
        ("mcp__serena__read_file", {"relative_path": "src/a.ts"}, "fresh"), ("view_image", {"path": "a.png"}, "fresh"),
    ],
)  # fmt: skip
def test_tools_of_codex_that_change_files(tmp_path: Path, name: str, given: dict[str, Any], stands: str):
    rows = codex(
        *SHELL,
        called("1", name, given),
        output("1", "{}"),
        called("2", "exec_command", {"cmd": "ls"}),
        output("2", "src"),
    )
    assert standing(rows, tmp_path) == stands


@pytest.mark.parametrize(
    ("tool", "given", "failed", "stands"),
    [
        ("Edit", {"file_path": "/repo/src/a.ts", "old_string": "a", "new_string": "b"}, False, "stale"), ("Edit", {"file_path": "/repo/src/a.ts"}, True, "fresh"),
        ("Write", {"file_path": "/repo/src/b.ts"}, False, "fresh"), ("Bash", {"command": "sed -i s/a/b/ src/a.ts"}, False, "stale"),
        ("mcp__fs__edit_file", {"path": "src/a.ts"}, False, "stale"), ("Read", {"file_path": "/repo/src/a.ts"}, False, "fresh"),
    ],
)  # fmt: skip
def test_a_change_of_a_subagent_between_the_records_of_the_session_counts(
    tmp_path: Path, tool: str, given: dict[str, Any], failed: bool, stands: str
):
    aside = [
        {**row, "isSidechain": True}
        for row in (call("m7", "t7", tool, **given), result("t7", "SECRET WORDS", is_error=failed))
    ]
    rows = claude(
        *READ, call("m2", "t2", "Task", prompt="look", subagent_type="Explore"), *aside, result("t2", "Done."), *LS
    )
    assert standing(rows, tmp_path) == stands
    events = read_transcript(tmp_path / "session.jsonl")[1]
    assert "SECRET WORDS" not in json.dumps(events), "what it printed stays out"


def test_a_command_without_a_program_that_fails_changes_the_file_that_it_opens(tmp_path: Path):
    call_, failed = call("m2", "t2", "Bash", command="env > src/a.ts"), result("t2", "Exit code 1", is_error=True)
    assert standing(claude(*READ, call_, failed, *LS), tmp_path) == "stale"
    aside = [{**row, "isSidechain": True} for row in (call_, failed)]
    agent = call("m3", "t3", "Task", prompt="look", subagent_type="Explore")
    assert standing(claude(*READ, agent, *aside, result("t3", "Done."), *LS), tmp_path) == "stale"
    ran = called("1", "exec_command", {"cmd": "env > src/a.ts"}), output("1", "Process exited with code 1\nOutput:\n")
    ls = called("2", "exec_command", {"cmd": "ls"}), output("2", "src")
    assert standing(codex(*SHELL, *ran, *ls), tmp_path) == "stale"


DENIED = "Permission to use Bash with command rm src/a.ts; ls has been denied."
REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit)."


@pytest.mark.parametrize(
    ("command", "words", "about", "stands"),
    [
        ("rm src/a.ts; ls", DENIED, {}, "fresh"), ("sed -i s/a/b/ src/a.ts && pytest", REFUSED, {}, "fresh"),
        ("rm src/a.ts; ls", "no", {"toolDenialKind": "user-rejected"}, "fresh"), ("rm src/a.ts; ls", "<tool_use_error>Cancelled", {}, "fresh"),
        ("npm test; rm src/a.ts; ls", "Command timed out after 2m 0.0s", {}, "doubt"), ("rm src/a.ts; ls", "Exit code 1\nls: x", {}, "stale"),
        ("npm test; rm src/a.ts; ls", "Exit code 137\n[Request interrupted by user for tool use]", {}, "doubt"),
        ("sed -i s/a/b/ src/a.ts && grep -c 2 src/a.ts", "Exit code 1", {}, "doubt"),
        ("sed -i s/a/b/ src/a.ts && grep -c 2 src/a.ts", "Exit code 1\n0", {}, "doubt"),
        ("sed -i s/a/b/ src/a.ts && pytest", "Exit code 1\n1 failed in 0.1s", {}, "stale"),
        ("npm test && rm src/a.ts", "Command running in background with ID: b1", {}, "doubt"),
    ],
)  # fmt: skip
def test_a_failed_command_of_a_subagent_is_read_as_one_of_the_session(
    tmp_path: Path, command: str, words: str, about: dict[str, Any], stands: str
):
    call_, failed = call("m2", "t2", "Bash", command=command), result("t2", words, is_error=True) | about
    assert standing(claude(*READ, call_, failed, *LS), tmp_path) == stands, "one of the session"
    aside = [{**row, "isSidechain": True} for row in (call_, failed)]
    agent = call("m3", "t3", "Task", prompt="look", subagent_type="Explore")
    assert standing(claude(*READ, agent, *aside, result("t3", "Done."), *LS), tmp_path) == stands, "of a subagent"


@pytest.mark.parametrize("meta", [True, False])
def test_a_note_of_the_harness_that_a_file_was_modified_makes_it_stale(tmp_path: Path, meta: bool):
    def noted(text: str) -> Rows:
        return claude(*READ, {"type": "user", "isMeta": meta, "message": {"role": "user", "content": text}}, *LS)

    shown = f"{NOTE} Here are the relevant changes (shown with line numbers):\n     2->b()\n"
    assert standing(noted(f"<system-reminder>\n{shown}</system-reminder>"), tmp_path) == "stale"
    assert standing(noted(f"<system-reminder>{NOTE}</system-reminder>"), tmp_path) == "stale"
    assert standing(noted("<system-reminder>Note: be brief.</system-reminder>"), tmp_path) == "fresh"
    assert standing(claude(*READ, call("m2", "t2", "Bash", command="cat x"), result("t2", f"<system-reminder>{NOTE}</system-reminder>")), tmp_path) == "fresh", "a program may print it"  # fmt: skip


def heard(text: str, **about: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}, **about}


@pytest.mark.parametrize(
    ("about", "stands"),
    [
        ({"origin": {"kind": "human"}}, "fresh"), ({"origin": {"kind": "peer"}}, "fresh"), ({"origin": {"kind": "peer"}, "isMeta": True}, "fresh"),
        ({"origin": {"kind": "task-notification"}}, "stale"),
    ],
)  # fmt: skip
def test_a_note_counts_only_if_the_harness_wrote_it(tmp_path: Path, about: dict[str, Any], stands: str):
    rows = claude(*READ, heard(f"<system-reminder>{NOTE}</system-reminder>", **about), *LS)
    assert standing(rows, tmp_path) == stands


def test_all_notes_of_a_block_are_read_each_with_its_lines(tmp_path: Path):
    other = NOTE.replace("a.ts", "b.ts")
    shown = "Here are the relevant changes (shown with line numbers):\n     2->b()"
    rows = claude(*READ, heard(f"<system-reminder>\nReminder.\n{other} {shown}\n\n{NOTE}\n</system-reminder>"), *LS)
    assert standing(rows, tmp_path) == "stale"
    events = read_transcript(tmp_path / "session.jsonl")[1]
    noted = [(each["payload"]["path"], each["payload"]["text"]) for each in events if each["kind"] == "file.modified"]
    assert noted == [("src/b.ts", "     2->b()"), ("src/a.ts", "modified by the user or a linter")]


def test_a_note_with_much_white_space_is_read_in_linear_time():
    text = f"<system-reminder>{NOTE} (shown with line numbers):\n{' ' * 40_000}x</system-reminder>"
    begun = time.process_time()
    noted_changes(Transcript("s", "/repo"), "u1", [("system-reminder", text)])
    assert time.process_time() - begun < 1, "about 30 seconds if quadratic"


BEGUN = (
    call("m2", "t2", "Task", prompt="fix", run_in_background=True),
    result("t2", "Async agent launched. agentId: a1"),
)
ENDED = "<task-notification><task-id>a1</task-id><status>completed</status><summary>Done</summary></task-notification>"


@pytest.mark.parametrize(
    ("note", "stands"),
    [
        (heard(ENDED), "doubt"), (heard(ENDED, origin={"kind": "human"}), "fresh"),
        ({"type": "attachment", "attachment": {"type": "queued_command", "commandMode": "task-notification", "prompt": ENDED}}, "doubt"),
    ],
)  # fmt: skip
def test_what_was_read_before_an_agent_in_the_background_ended_is_in_doubt(
    tmp_path: Path, note: dict[str, Any], stands: str
):
    assert standing(claude(*BEGUN, *READ, note, *LS), tmp_path) == stands
    looks = call("m2", "t2", "Task", prompt="look", subagent_type="Explore", run_in_background=True)
    assert standing(claude(looks, BEGUN[1], *READ, note, *LS), tmp_path) == "fresh", "it is read-only"


@pytest.mark.parametrize(("kind", "stands"), [("default", "doubt"), ("explorer", "fresh")])
def test_what_was_read_before_codex_notes_that_an_agent_ended_is_in_doubt(tmp_path: Path, kind: str, stands: str):
    rows = codex(
        called("7", "spawn_agent", {"message": "fix", "agent_type": kind}), output("7", "{}"), *map(dict, SHELL),
        said("user", '<subagent_notification>\n{"agent_id": "x", "status": {"completed": "done"}}\n</subagent_notification>'),
        called("8", "exec_command", {"cmd": "ls"}), output("8", "src"),
    )  # fmt: skip
    assert standing(rows, tmp_path) == stands


@pytest.mark.parametrize(
    ("command", "folder", "stands"),
    [
        ("git checkout other", "/repo", "doubt"), ("mv src/b.ts src", "/repo", "doubt"), ("git status", "/repo", "fresh"),
        ("sed -i s/a/b/ a.ts", "/repo/src", "stale"), ("sed -i s/a/b/ src/a.ts", "/repo/web", "fresh"), ("cd /repo/src && sed -i s/a/b/ a.ts", "/repo/web", "stale"),
    ],
)  # fmt: skip
def test_commands_of_a_subagent_count_in_the_folder_where_they_ran(
    tmp_path: Path, command: str, folder: str, stands: str
):
    ran = call("m7", "t7", "Bash", command=command), result("t7", "ok")
    aside = [{**row, "isSidechain": True, "ran in": folder} for row in ran]
    assert standing(claude(*BEGUN, *READ, *aside, *LS), tmp_path) == stands


@pytest.mark.parametrize(
    ("words", "stands"),
    [
        ("<tool_use_error>Agent type 'nope' not found</tool_use_error>", "fresh"), ("<tool_use_error>InputValidationError: prompt</tool_use_error>", "fresh"),
        ("<tool_use_error>Cancelled: parallel tool call errored</tool_use_error>", "doubt"), ("API Error: 500", "doubt"),
    ],
)  # fmt: skip
def test_an_agent_that_was_not_started_changes_nothing(tmp_path: Path, words: str, stands: str):
    begun = call("m2", "t2", "Task", prompt="x", subagent_type="nope")
    assert standing(claude(*READ, begun, result("t2", words, is_error=True), *LS), tmp_path) == stands


def test_arguments_that_are_not_valid_json_name_no_file():
    assert changed_by_call(Transcript("s"), "mcp__fs__write_file", '{"path": "a.ts"') is None
    assert changed_by_call(Transcript("s"), "mcp__fs__write_file", ' {"path": "a.ts"}') == ["a.ts"]


@pytest.mark.parametrize(
    ("tool", "given", "files"),
    [
        ("mcp__git__git_create_branch", {"repo_path": "/repo"}, ()), ("mcp__jupyter__insert_execute_code_cell", {"cell_source": "print(1)"}, ()),
        ("mcp__gitlab__create_issue", {"project_path": "group/proj"}, ()), ("mcp__mail__move_message", {"from": "inbox", "to": "spam"}, ()),
        ("mcp__lsp__remove_entry", {"source": "pylint"}, ()), ("mcp__db__write", {"uri": "table:a"}, ()), ("mcp__web__save_page", {"uri": "https://x.y/a"}, ()),
        ("mcp__lsp__edit", {"uri": "file:///repo/a%20b.ts"}, ("/repo/a b.ts",)), ("mcp__lsp__edit", {"fileUri": "file:///C:/a.ts"}, ("C:/a.ts",)),
        ("create_file", {"filePath": "a.ts"}, ("a.ts",)), ("edit_file", {"target_file": "a.ts"}, ("a.ts",)), ("save_pdf", {"filename": "a.pdf"}, ("a.pdf",)),
        ("move_file", {"from": "a", "to": "b"}, ("a", "b")), ("rename_in_file", {"path": "a", "from": "x", "to": "y"}, ("a",)), ("auth__rename_profile", {"from": "x", "to": "y"}, ()),
        *(("move_file", {name: "a", "to": "b"}, ("a", "b")) for name in ("path", "source", "file", "from_path")), ("move_file", {"from": "a", "destination": "b"}, ("b", "a")), ("rename_file", {"from": "a", "to": "b", "requestId": "1"}, ("a", "b")),
        ("drive__move_file", {"fileId": "1", "from": "x", "to": "y"}, ()), ("moveFile", {"from": "a", "to": "b"}, ("a", "b")), ("edit_file", {"relativeWorkspacePath": "a"}, ("a",)),
        ("move_file", {"source": "a", "destination": "b"}, ("a", "b")), ("move_file", {"from_path": "a", "to_path": "b"}, ("a", "b")),
        ("write_file", {"local_path": "a"}, ("a",)), ("edit_file", {"relative_workspace_path": "a"}, ("a",)), ("create_script", {"script_path": "a"}, ("a",)),
        ("rename_file", {"from": "a", "to": "b"}, ("a", "b")), ("copy_file", {"path": "a", "to": "b"}, ("b",)), ("update_copyright_header", {"file_path": "a"}, ("a",)),
        ("copy_file", {"source": "a", "destination": "b"}, ("b",)), ("copyFile", {"sourcePath": "a", "targetPath": "b"}, ("b",)),
    ],
)  # fmt: skip
def test_only_arguments_that_name_a_local_file_count(tool: str, given: dict[str, Any], files: tuple[str, ...]):
    assert changed_by(tool, given) == files


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ({"tool": "write_file", "arguments": {"path": "src/a.ts"}}, "stale_version"), ({"tool": "write_file", "arguments": '{"path": "src/a.ts"}'}, "stale_version"),
        ({"tool": "write_file", "arguments": {"path": "src/a.ts"}, "failed": True}, None), ({"tool": "edit_file", "arguments": {"path": "src/a.ts", "dryRun": True}}, None),
        ({"tool": "Task"}, "may_have_changed"), ({"tool": "Task", "changedFiles": []}, None), ({"tool": "x", "changedFiles": ["src/a.ts"]}, "stale_version"),
        ({"command": "node gen.js", "changedFiles": ["src/a.ts"], "exitCode": 0}, "stale_version"), ({"command": "rm src/a.ts", "changedFiles": [], "exitCode": 0}, None),
        ({"command": "rm src/a.ts", "changedFiles": [], "exitCode": 1}, None), ({"command": "rm src/a.ts", "changedFiles": ["src/b.ts"], "exitCode": 1}, None), ({"command": "git pull", "changedFiles": []}, None),
        ({"tool": "write_file", "arguments": {"path": "src/a.ts"}, "isError": True}, None), ({"tool": "get_file", "arguments": {"path": "src/a.ts"}}, None),
    ],
)  # fmt: skip
def test_an_event_says_what_a_tool_changed(payload: dict[str, Any], reason: str | None):
    session = Session()
    session.add("file.read", turn=1, path="src/a.ts", text=CONTENT)
    session.add("command.finished", turn=2, text="Done.", **payload)
    session.add("command.finished", turn=3, command="ls", exitCode=0, stdout="src")
    found = {row["source_id"]: row["reason_code"] for row in projected(session).decisions}["event:e1"]
    assert (found if found in ("stale_version", "may_have_changed") else None) == reason


def test_names_of_tools_that_change_files():
    assert changed_by("mcp__serena__rename_symbol", {"relative_path": "a.py", "new_name": "b"}) == ("a.py", "*")
    assert changed_by("mcp__jetbrains__replace_text_in_file", {"pathInProject": "a.py"}) == ("a.py",)
    for tool in (
        "mcp__fs__create_directory",
        "mcp__serena__write_memory",
        "rewriter",
        "mcp__fs__get_file_info",
        "mcp__x__create_issue",
    ):
        assert changed_by(tool, {"path": "a.py"} if tool != "mcp__x__create_issue" else {"title": "a.py"}) == (), tool


@pytest.mark.parametrize(
    "tool",
    ["mcp__ed__str_replace_editor", "view_edit_history", "viewEditHistory", "preview_edit", "validate_patch", "list_edits", "mcp__x__check_patch"],
)  # fmt: skip
def test_a_tool_that_only_looks_changes_no_file(tool: str):
    assert changed_by(tool, {"command": "view", "path": "a.ts"}) == ()


@pytest.mark.parametrize("tool", ["str_replace_editor", "str_replace_based_edit_tool"])
def test_an_editor_changes_a_file_unless_its_command_is_to_view_it(tool: str):
    def seen(command: str) -> tuple[Any, ...]:
        session = Session()
        session.add("file.read", turn=1, path="src/a.ts", text=CONTENT)
        session.add("command.finished", turn=2, text="1 x", tool=tool, arguments={"command": command, "path": "src/a.ts"})  # fmt: skip
        shown = projected(session)
        reasons = {row["source_id"]: row["reason_code"] for row in shown.decisions}
        return reasons["event:e1"] == "stale_version", shown.state["modified_files"]

    assert seen("view") == (False, [])
    assert seen("str_replace") == seen("undo_edit") == (True, ["src/a.ts"])


@pytest.mark.parametrize("tool", ["search_replace", "searchAndReplace", "read_and_edit", "get_or_create_file"])
def test_a_tool_that_looks_first_and_then_writes_changes_a_file(tool: str):
    assert changed_by(tool, {"file_path": "a.ts"}) == ("a.ts",)


@pytest.mark.parametrize(
    ("tool", "given", "outcome"),
    [
        ("Task", {"prompt": "fix", "subagent_type": "general-purpose"}, "unknown"), ("mcp__fs__write_file", {"path": "/repo/a.ts"}, "unknown"),
        ("Task", {"prompt": "look", "subagent_type": "Explore"}, "passed"), ("mcp__fs__read_file", {"path": "/repo/a.ts"}, "passed"),
    ],
)  # fmt: skip
def test_a_check_in_the_background_does_not_pass_if_agents_or_servers_change_files_meanwhile(
    tmp_path: Path, tool: str, given: dict[str, Any], outcome: str
):
    rows = claude(
        call("m1", "t1", "Bash", command="npm test", run_in_background=True),
        result("t1", "Command running in background with ID: b1", {"backgroundTaskId": "b1"}),
        call("m2", "t2", tool, **given), result("t2", "ok"), call("m3", "t3", "BashOutput", bash_id="b1"),
        result("t3", "<status>completed</status>\n<exit_code>0</exit_code>\n<stdout>\nTests: 5 passed, 5 total\n</stdout>"),
    )  # fmt: skip
    file = tmp_path / "session.jsonl"
    file.write_text("".join(f"{json.dumps({**row, 'cwd': '/repo'})}\n" for row in rows), encoding="utf-8")
    assert outcome in str(ContextPolicy().state(events=read_transcript(file)[1])["verification"])


def test_the_state_names_the_files_that_commands_modified():
    session = Session()
    session.add("file.modified", turn=1, path="a.go", diff="-1\n+2")
    session.add("command.finished", turn=2, command="sed -i s/1/2/ a.go b.go", exitCode=0, stdout="")
    session.add(
        "command.finished",
        turn=3,
        command="go test ./... > /tmp/t.txt; go vet 2> vet.log; git pull",
        exitCode=0,
        stdout="",
    )
    session.add("command.finished", turn=4, command="rm c.go", exitCode=1, stdout="rm: cannot remove 'c.go'")
    session.add("command.finished", turn=5, command="rm d.go", exitCode=0, stdout="", top={"visibility": "denied"})
    assert sorted(state_of(session)["modified_files"]) == ["a.go", "b.go"]


def test_a_patch_that_moves_a_file_modifies_both(tmp_path: Path):
    patch = "*** Begin Patch\n*** Update File: src/a.ts\n*** Move to: src/b.ts\n@@\n-1\n+2\n*** End Patch"
    rows = codex(*SHELL, called("1", "apply_patch", patch, kind="custom_tool_call"), output("1", "Success.", kind="custom_tool_call_output"))  # fmt: skip
    assert standing(rows, tmp_path) == "stale"
    events = read_transcript(tmp_path / "session.jsonl")[1]
    assert sorted(ContextPolicy().state(events=events)["modified_files"]) == ["src/a.ts", "src/b.ts"]
