"""What a projection is given, read strictly: every error names what was expected and where."""

from __future__ import annotations

import json
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from context_session import Session, item, memory, policy, projected, reasons, snapshot
from scoped_retrieval.nodes.errors import InputError, PolicyError
from scoped_retrieval.nodes.turns.words import REASONS
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.context import ContextPolicy
from scoped_retrieval.pipeline.context.events import LogReader, read_events
from scoped_retrieval.pipeline.context.inputs import read_rules, read_tools, rule_files
from scoped_retrieval.pipeline.context.phases import load_phases
from scoped_retrieval.pipeline.context.projections import project_log
from scoped_retrieval.pipeline.context.reasons import why
from scoped_retrieval.pipeline.context.rules import about_rules, unread_files
from scoped_retrieval.pipeline.context.store import ContextStore


def event(**fields: Any) -> dict[str, Any]:
    return {
        "id": "e1",
        "turnId": "1",
        "kind": "user.message",
        "createdAt": "2026-05-20T08:00:00Z",
        "payload": {"text": "hello"},
    } | fields


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "tool.exploded"}, "Expected one of user.goal, user.message"),
        ({"kind": None}, "Expected one of user.goal, user.message"),
        ({"id": None}, "Expected the event's id, got nothing - at events[0].id"),
        (
            {"createdAt": None},
            "Expected a time with an offset, such as 2025-06-01T12:00:00Z, got nothing - at events[0].createdAt",
        ),
        ({"createdAt": "2026-05-20T08:00:00"}, "events[0].createdAt"),
        ({"createdAt": 5}, "Expected milliseconds since 1970, from the year 2000 on, got 5 - at events[0].createdAt"),
        ({"createdAt": 1_779_264_000}, "Expected milliseconds since 1970"),
        ({"sessionId": "other"}, "Expected events of session 'session', got 'other' - at events[0].sessionId"),
        ({"kind": "phase.changed", "payload": {"phase": "dreaming"}}, "Expected one of diagnosing, planning"),
        ({"kind": "phase.changed", "payload": {}}, "Expected one of diagnosing, planning"),
        ({"kind": "user.goal", "payload": {}}, "Expected text, got nothing"),
        (
            {"kind": "constraint.ended", "payload": {"constraint": "c1"}},
            "by its constraintId or the id of its event, got nothing",
        ),
        (
            {"kind": "command.finished", "payload": {"exitCode": "1"}},
            "Expected an exit code from -2147483648 to 4294967295, got '1'",
        ),
        ({"kind": "search.result", "payload": {"matches": [3]}}, "Expected an object, got a number"),
        ({"visibility": "secret"}, "Expected one of model-visible"),
        ({"zone": "cellar"}, "Expected one of public"),
    ],
)
def test_an_event_that_is_not_one_is_refused_by_name(fields: dict[str, Any], message: str):
    with pytest.raises(InputError) as caught:
        read_events([event(**fields)])
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("test_log_s", "nearest: test_logs = command.finished, "),
        ("fileRead", "nearest: file.read, "),
        ("tool.exploded", "nearest: tool.error, "),
        ("zzz", ""),
    ],
)
def test_the_error_of_an_unknown_kind_names_the_nearest_ones_and_is_short(kind: str, hint: str):
    with pytest.raises(InputError) as caught:
        read_events([event(kind=kind)])
    assert caught.value.hint.startswith(hint) and bool(caught.value.hint) == bool(hint)
    assert "constraint.ended, got" in caught.value.message and len(str(caught.value)) < 700, "every kind, few aliases"


def test_a_recorded_snapshot_in_the_place_of_an_object_gets_a_hint():
    with pytest.raises(InputError) as caught:
        projected(snapshots=["retr-snap-x"])
    assert "turn: {snapshotIds: [ID]}" in caught.value.hint


def test_a_condition_names_the_snapshots_that_are_missing_three_of_them_at_most():
    turns = [{"inputId": str(n), "snapshotIds": [f"s{n}{k}" for k in range(n)]} for n in range(6)]
    seen = policy().project_turns(turns=turns, events=Session().events)
    told = [[row["message"].split("not found: ")[1] for row in one.warnings] for one in seen]
    assert told == [
        [],
        ["s10"],
        ["s20, s21"],
        ["s30, s31, s32"],
        ["s40, s41, s42 and 1 more"],
        ["s50, s51, s52 and 2 more"],
    ]


def test_an_event_that_comes_twice_is_one_and_with_other_words_an_error():
    reader = LogReader("session")
    tables = reader.read([event(), event()])
    assert (tables.events.num_rows, reader.repeated) == (1, 1)
    with pytest.raises(InputError, match="Expected an id of its own for every event, got 'e1' again with other words"):
        read_events([event(), event(payload={"text": "other"})])


def test_the_order_of_the_log_is_the_order_of_events_whatever_their_clocks_say():
    reader = LogReader("session")
    tables = reader.read([event(createdAt="2026-05-20T09:00:00Z"), event(id="e2", createdAt="2026-05-20T08:00:00Z")])
    assert tables.events["event_id"].to_pylist() == ["e1", "e2"] and reader.backwards == 1


def test_every_kind_of_information_of_the_document_is_read():
    kinds = ("user_goal", "system_rules", "project_rules", "read_files", "search_results", "test_logs", "tool_errors", "permission_denials",
             "user_confirmations", "modified_files", "current_plan", "compressed_history_summary", "long_term_memory", "external_retrieval_results")  # fmt: skip
    payload = {"text": "words", "memoryId": "m1", "path": "a.ts", "version": "1"}
    values = [event(id=f"e{n}", kind=kind, payload=payload) for n, kind in enumerate(kinds)]
    found = read_events(values)
    assert len(set(found.events["kind"].to_pylist())) == 14 == found.events.num_rows
    assert found.memories.num_rows == 1
    seen = policy().project(events=values, budget={"maxTokens": 9000})
    assert {f"event:e{n}" for n in range(14)} <= {row["source_id"] for row in seen.decisions}, "each is in the ledger"


def test_snake_case_and_text_payloads_are_read_as_well():
    value = {
        "event_id": "e1",
        "turn_id": "1",
        "type": "user.message",
        "created_at": "2026-05-20T08:00:00Z",
        "payload": "hello",
    }
    row = read_events([value]).events.to_pylist()[0]
    assert (row["event_id"], row["turn_id"], row["kind"], row["text"]) == ("e1", "1", "user.message", "hello")


def test_a_long_text_keeps_its_ends_and_becomes_an_artifact():
    kept: list[str] = []
    reader = LogReader("session", keep=lambda text: (kept.append(text), "artifact:1")[1])
    text = "begin\n" + "middle\n" * 3000 + "end"
    row = reader.read([event(kind="external.result", payload={"text": text})]).events.to_pylist()[0]
    assert row["text"].startswith("begin\n") and row["text"].endswith("\nend") and len(row["text"]) < 6100
    assert row["ref"] == "artifact:1" and kept == [text]
    assert (row["cut"], row["characters"]) == (True, len(text))


def test_what_the_user_says_is_never_cut():
    text = "Do it.\n" * 3000
    row = read_events([event(payload={"text": text})]).events.to_pylist()[0]
    assert (row["text"], row["cut"], row["characters"]) == (text, False, len(text))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": {"maxTokens": -1}}, "Expected a whole number from 0 to 2147483647, got -1 - at budget.maxTokens"),
        ({"budget": {"maxTokens": True}}, "Expected a whole number from 0"),
        ({"budget": {"tokens": 3}}, "Expected one of disclosure, fences, maxTokens"),
        ({"budget": {"tailLimit": 3}}, "Expected a number of events from 6 to 10, got 3 - at budget.tailLimit"),
        ({"budget": {"tail_limit": 12}}, "Expected a number of events from 6 to 10, got 12 - at budget.tail_limit"),
        ({"snapshots": ["retr-snap-x"]}, "Expected an object, got text - at snapshots[0]"),
        ({"budget": {"reserved": {"soup": 3}}}, "Expected one of rules, user_goal"),
        ({"budget": {"trimOrder": "sideways"}}, "Expected one of default, s003, got 'sideways' - at budget.trimOrder"),
        ({"budget": {"trimOrder": ["soup"]}}, "Expected one of references, memory"),
        ({"budget": {"trimOrder": ["memory", "memory"]}}, "Expected every part once, got 'memory' again - at budget.trimOrder"),
        ({"budget": {"trimOrder": []}}, "Expected every part once: references, memory, retrieval, recent_tail, latest_observation, tools, got a list without references, memory,"),
        ({"budget": {"trim_order": ["memory", "references", "retrieval", "recent_tail", "tools"]}}, "got a list without latest_observation - at budget.trim_order"),
        ({"budget": {"fences": "walls"}}, "Expected one of tags, lines"),
        ({"turn": {"asOfSeq": 7}}, "Expected a place in the log from 0 to 1, got 7 - at turns[0].asOfSeq"),
        ({"turn": {"phase": "dreaming"}}, "Expected one of diagnosing"),
        ({"turn": {"zones": ["cellar"]}}, "Expected one of public"),
        ({"memories": [memory(lifecycle="odd")]}, "Expected one of candidate, verified"),
        ({"memories": [{"text": "x"}]}, "Expected the id of a memory, got nothing - at memories[0].memoryId"),
        ({"snapshots": [{"items": []}]}, "snapshots[0].snapshot_id"),
        ({"tools": ["a", "a"]}, "Expected every tool once, got 'a' again - at tools"),
        ({"tools": [{"name": "a", "capability": "fly"}]}, "Expected one of read, search"),
        *(({"tools": [{"name": "a", "parameters": {"default": value}}]}, f"Expected JSON values, got {what} - at tools[0]")
          for value, what in ((b"x", "bytes"), ({1}, "set"), (date(2026, 1, 1), "date"), (float("nan"), "NaN or infinity"))),
        ({"tools": [{"name": "a", "parameters": {(1, 2): 3}}]}, "Expected JSON values, got keys must be str"),
        ({"rules": [3]}, "Expected an object, got a number - at rules[0]"),
        ({"rules": [{"text": "x", "origin": "moon"}]}, "Expected one of system, global, repository"),
        ({"defaults": {"color": "red"}}, "Expected one of run_id, project"),
        *(({"budget": {"tokenizer": name}}, f"Expected approx-bpe/1, tiktoken:cl100k_base, tiktoken:o200k_base or a path that ends in .json, got {name!r} - at budget.tokenizer")
          for name in ("unknown", "cl100k_base", "tiktoken:soup", "tiktoken:a.json")),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(given: dict[str, Any], message: str):
    with pytest.raises(InputError) as caught:
        projected(**given)
    assert message in str(caught.value)


def test_events_and_ids_with_what_json_lacks_are_refused_by_name():
    given = event(kind="permission.granted", payload={"tool": "x", "scope": {1}})
    with pytest.raises(InputError, match=r"Expected JSON values, got set - at events\[0\]\.payload\.scope"):
        read_events([given])
    with pytest.raises(InputError, match="Expected Unicode text, got a lone surrogate - at session_id"):
        policy().project(events=[], session_id="\ud800")
    with pytest.raises(InputError, match=r"Expected the path of a file, got '.ud800' - at phases"):
        ContextPolicy(phases="\ud800")


def test_a_policy_never_recalls_so_it_takes_no_store_of_memories():
    with pytest.raises(InputError, match="Expected at most 256 memories, got 257") as caught:
        projected(memories=[memory(f"m{n}") for n in range(257)])
    assert "does not search" in caught.value.hint


def test_two_turns_of_one_id_are_refused():
    with pytest.raises(InputError, match="Expected an id of its own for every turn"):
        policy().project_turns(turns=[{"inputId": "x"}, {"inputId": "x"}], events=Session().events)


def test_tools_are_read_in_the_shapes_of_providers():
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    openai = {"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": parameters}}
    anthropic = {"name": "read_file", "description": "Read.", "input_schema": parameters}
    assert read_tools([openai]).equals(read_tools([anthropic]))
    assert read_tools(["apply_patch", "grep", "mcp_x"])["capability"].to_pylist() == ["write", "search", "external"]


def test_rule_files_of_a_work_tree_are_found_by_name(tmp_path: Path):
    for name, text in (
        ("AGENTS.md", "# A\n\nroot\n"),
        ("packages/parser/AGENTS.md", "parser\n"),
        ("docs/README.md", "no rule\n"),
        ("CLAUDE.md", "claude\n"),
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    found = rule_files(tmp_path)
    assert [each["path"] for each in found] == ["AGENTS.md", "CLAUDE.md", "packages/parser/AGENTS.md"]
    table = read_rules(found)
    assert table["folder"].to_pylist() == ["", "", "packages/parser"]
    assert table["rule_id"].to_pylist() == ["AGENTS.md:2", "CLAUDE.md:1", "packages/parser/AGENTS.md:1"]
    (tmp_path / "AGENTS.md").write_text("# A\n\nroot\n", encoding="utf-8-sig")
    assert rule_files(tmp_path) == found, "a mark of the byte order is no text"
    with pytest.raises(InputError, match="Expected a folder"):
        rule_files(tmp_path / "gone")


def test_rule_files_are_those_of_the_project_alone(tmp_path: Path):
    """What Git ignores, dependencies that are kept, and what lies behind a link are others' words."""
    outside = tmp_path / "outside"
    tree = tmp_path / "tree"
    for name in (
        "tree/AGENTS.md", "tree/src/AGENTS.md", "tree/node_modules/evil/AGENTS.md", "tree/ignored/AGENTS.md", "tree/vendor/evil/AGENTS.md",
        "outside/AGENTS.md", "outside/copilot-instructions.md",
    ):  # fmt: skip
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a rule\n")
    (tree / ".gitignore").write_text("ignored/\n")
    (tree / ".github").symlink_to(outside)
    (tree / "linked").symlink_to(outside)
    assert [each["path"] for each in rule_files(tree)] == ["AGENTS.md", "src/AGENTS.md"]
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    assert [each["path"] for each in rule_files(tree)] == ["AGENTS.md", "src/AGENTS.md"]


def _tree(folder: Path, case: str) -> None:
    """A work tree whose rule file is not read, or none."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    file = folder / "AGENTS.md"
    if case == "ignored":
        (folder / ".gitignore").write_text("AGENTS.md\n")
    if case in ("ignored", "blank"):
        file.write_text("Never push.\n" if case == "ignored" else "\n")
    if case == "linked":
        (folder / "rules.txt").write_text("Never push.\n")
        file.symlink_to("rules.txt")
    if case == "conditional":
        (folder / ".cursor" / "rules").mkdir(parents=True)
        (folder / ".cursor" / "rules" / "a.mdc").write_text("---\nglobs: src/**\n---\nNever push.\n")
    if case in ("of a tool", "titled"):
        (folder / ".claude" / "rules").mkdir(parents=True)
        head = "---\nname: push\n---\n" if case == "titled" else ""
        (folder / ".claude" / "rules" / "a.md").write_text(f"{head}Never push.\npaths: none\n\n---\nmore\n")
    if case == "vendored":
        (folder / "vendor" / "a").mkdir(parents=True)
        (folder / "vendor" / "a" / "AGENTS.md").write_text("Never push.\n")


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("empty", None),
        ("ignored", "AGENTS.md is ignored by Git"),
        ("linked", "AGENTS.md is a symbolic link, or behind one"),
        ("blank", "AGENTS.md is empty"),
        ("conditional", ".cursor/rules/a.mdc applies by its front matter"),
        ("of a tool", ".claude/rules/a.md is in the folder of one tool"),
        ("titled", ".claude/rules/a.md is in the folder of one tool"),
        ("vendored", "vendor/a/AGENTS.md is in a folder of dependencies"),
    ],
)
def test_rule_files_that_are_not_read_are_named_with_the_reason(tmp_path: Path, case: str, why: str | None):
    _tree(tmp_path, case)
    left_out: dict[str, str] = {}
    found = rule_files(tmp_path, left_out=left_out)
    assert found == []
    condition, message = about_rules(tmp_path, found, left_out) or ("", "")
    assert condition == "rules_not_found" and "looked for AGENTS.md, CLAUDE.md, CLAUDE.local.md, " in message
    assert message.endswith(f"; {why}" if why else "CONVENTIONS.md")
    (tmp_path / "CLAUDE.md").write_text("Never push.\n")
    left_out.clear()
    found = rule_files(tmp_path, left_out=left_out)
    more = None if case in ("empty", "vendored") else ("rules_left_out", f"rule files that are not read: {why}")
    assert (len(found), about_rules(tmp_path, found, left_out)) == (1, more)


def test_files_that_a_rule_file_imports_are_named(tmp_path: Path):
    for name, text in {
        "AGENTS.md": "Never push. Write to @ops.md, it is a name.",
        "CLAUDE.md": "@AGENTS.md\nSee @docs/style.md, `@docs/code.md` and @docs/gone.md. Mail me@docs.md.",
        "a/CLAUDE.md": "@../docs/other.md",
        "CLAUDE.local.md": "Be brief.",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "docs").mkdir()
    for name in ("docs/style.md", "docs/code.md", "docs/other.md", "ops.md", "docs.md"):
        (tmp_path / name).write_text("Use tabs.\n")
    left_out: dict[str, str] = {}
    found = rule_files(tmp_path, left_out=left_out)
    assert [each["path"] for each in found] == ["AGENTS.md", "CLAUDE.local.md", "CLAUDE.md", "a/CLAUDE.md"]
    assert left_out == {
        "docs/style.md": "is imported by CLAUDE.md",
        "docs/other.md": "is imported by a/CLAUDE.md",
    }


def test_every_rule_file_that_is_not_read_has_a_row_of_the_ledger_and_why_names_it(tmp_path: Path):
    tree, log = tmp_path / "tree", tmp_path / "log.jsonl"
    files = {
        "CLAUDE.md": "Never push.\n\n@docs/style.md\n@docs/given.md", "docs/style.md": "Use tabs.", "docs/given.md": "Use pnpm.", "GEMINI.md": " ",
        "web/AGENTS.md": "Use npm.", "vendor/a/AGENTS.md": "Use zig.", ".gitignore": "CLAUDE.local.md\n", "CLAUDE.local.md": "Be brief.",
        ".cursor/rules/a.mdc": "---\nglobs: src/**\n---\nNever.", **{f".claude/rules/{n}.md": "Never." for n in range(4)},
    }  # fmt: skip
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (tree / "AGENTS.md").symlink_to("CLAUDE.md")
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    log.write_text("".join(f"{json.dumps(event)}\n" for event in Session("Fix the web page.").events))
    inputs = tmp_path / "inputs.yaml"
    inputs.write_text(
        "instruction_sources: ['**/*.md', '*.md']\nrules: [{path: docs/given.md, folder: '', text: Use pnpm.}]\n"
    )
    made = project_log(load_settings(environ={}, user=tmp_path / "none"), log, inputs=inputs, rules=tree)
    store = ContextStore(tmp_path / "runs", principal="ana")
    seen = store.replay(store.record(made)).projection
    (told,) = [row["message"] for row in seen.warnings]
    assert told.endswith("; and 4 more, which the ledger names") and "docs/given.md" not in told
    for name, reason in {
        "AGENTS.md": "rule_link", "CLAUDE.local.md": "rule_ignored", "docs/style.md": "rule_imported", "GEMINI.md": "rule_empty", "a.mdc": "rule_conditional",
        "vendor/a/AGENTS.md": "rule_dependency", **{f".claude/rules/{n}.md": "rule_of_tool" for n in range(4)},
    }.items():  # fmt: skip
        found = why(seen, name)
        assert [row["reason_code"] for row in found["sources"]] == [reason], name
        assert found["layer"] is None and found["answer"] == f"left out: {REASONS[reason]}", name
    for name in ("docs/given.md", "CLAUDE.md", "given.md:1"):
        assert why(seen, name)["answer"].startswith("it is in the input (full)"), name
    assert why(seen, "web/AGENTS.md")["sources"][0]["reason_code"] == "out_of_task_scope"
    assert why(seen, "docs/other.md")["layer"] == "retrieval_not_recalled"


def test_of_dependencies_the_ledger_has_the_first_hundred_rule_files():
    left_out = {f"vendor/{n}/AGENTS.md": "is in a folder of dependencies" for n in range(300)} | {
        "GEMINI.md": "is empty"
    }
    assert [each["leftOut"] for each in unread_files(left_out)] == ["rule_dependency"] * 100 + ["rule_empty"]
    _, message = about_rules(Path("tree"), [], left_out) or ("", "")
    assert message.endswith("; and 296 more, of which the ledger names 96")
    with pytest.raises(InputError, match=r"Expected one of rule_dependency, .*, got 'lost' - at rules\[0\].leftOut"):
        read_rules([{"path": "a.md", "leftOut": "lost"}])


@pytest.mark.parametrize("name", ["text", "content"])
def test_a_rule_file_that_was_not_read_has_no_text(name: str):
    with pytest.raises(InputError, match=rf"Expected no text beside `leftOut`, got text - at rules\[0\]\.{name}"):
        read_rules([{"path": "a.md", "leftOut": "rule_empty", name: "Never push."}])
    assert read_rules([{"path": "a.md", "leftOut": "rule_empty", name: " \n"}])["left_out"].to_pylist() == [
        "rule_empty"
    ]


def test_long_rule_files_and_many_of_them_are_read_in_one_pass(tmp_path: Path):
    """In time that grows with the square of their length, each of these took minutes."""
    (tmp_path / ".claude" / "rules").mkdir(parents=True)
    for name, text in {
        "blank": "---" + "\n" * 200_000, "open": "---\n" + "paths: a\n" * 50_000, "scoped": "---\n" + "a: b\n" * 50_000 + "paths: a\n---\n",
    }.items():  # fmt: skip
        (tmp_path / ".claude" / "rules" / f"{name}.md").write_text(text)
    left_out: dict[str, str] = {}
    rule_files(tmp_path, left_out=left_out)
    of_tool = "is in the folder of one tool"
    assert left_out == {
        ".claude/rules/blank.md": of_tool,
        ".claude/rules/open.md": of_tool,
        ".claude/rules/scoped.md": "applies by its front matter",
    }
    gaps = " " * 100_000
    (rule,) = read_rules([{"path": "AGENTS.md", "text": f"## One{gaps}two ## \nNever push."}]).to_pylist()
    assert (rule["rule_id"], rule["text"]) == ("AGENTS.md:2", f"One{gaps}two: Never push.")
    left_out = {f"vendor/{n}/AGENTS.md": "is in a folder of dependencies" for n in range(60_000)}
    assert len(unread_files(left_out)) == 100


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Git", "Git"), ("###### Git ##", "Git"), ("#\tGit\t#  ", "Git"), ("# C#", "C#"), ("# Use #1 # 2", "Use #1 # 2"), ("# #", "#"), ("## ## ##", "##"),
        ("#Git", None), ("####### Git", None), (" # Git", None), ("# ", None),
    ],
)  # fmt: skip
def test_headings_are_those_of_markdown(line: str, title: str | None):
    (rule,) = read_rules([{"path": "AGENTS.md", "text": f"{line}\nUse pnpm."}]).to_pylist()
    assert rule["text"] == (f"{title}: Use pnpm." if title else f"{line}\nUse pnpm.")


def test_a_rule_file_in_the_place_of_its_folder_is_an_error_with_a_hint(tmp_path: Path):
    (tmp_path / "AGENTS.md").write_text("Never push.\n")
    with pytest.raises(
        InputError, match=r"Expected a folder, got a file - at .*AGENTS\.md\n\nHint: .*--rules "
    ) as caught:
        rule_files(tmp_path / "AGENTS.md")
    assert caught.value.hint.endswith(f"`--rules {tmp_path}`")
    with pytest.raises(InputError, match="Expected a folder, got nothing"):
        rule_files(tmp_path / "gone")


def test_an_empty_list_is_no_default():
    rules = ["Only modify the current workspace.", {"path": "AGENTS.md", "text": "Run the tests."}]
    seen = projected(Session(), rules=rules, turn={"instructionSources": []})
    assert "Run the tests." not in seen.text() and "Only modify" in seen.text()
    assert "Run the tests." not in projected(Session(), rules=rules, defaults={"instruction_sources": []}).text()
    assert "failing tests" not in projected(Session("Fix the failing tests."), turn={"zones": []}).text()
    assert projected(Session(), defaults={"task_paths": ["a.ts"]}, turn={"taskPaths": []}).turn["task_paths"] == []


@pytest.mark.parametrize("confidence", [float("nan"), 5.0, float("inf"), -0.1])
def test_a_confidence_lies_between_0_and_1(confidence: float):
    with pytest.raises(InputError, match=r"Expected a confidence from 0 to 1, got .* - at memories\[0\].confidence"):
        projected(Session(), memories=[memory(confidence=confidence)])


def test_a_heading_inside_of_code_is_no_section():
    table = read_rules([{"path": "AGENTS.md", "text": "# Build\n\n```\n# not a heading\n```\nRun make.\n"}])
    assert table.num_rows == 1 and "# not a heading" in table["text"][0].as_py()


def test_phases_are_read_strictly(tmp_path: Path):
    file = tmp_path / "phases.yaml"
    bundled = (Path(__file__).parents[1] / "data" / "context" / "phases.yaml").read_text()
    file.write_text(bundled.replace("memory_days: 90", "memory_days: many", 1))
    with pytest.raises(PolicyError, match=r"diagnosing\.memory_days"):
        load_phases(file)
    file.write_text(bundled.split("blocked:")[0])
    with pytest.raises(PolicyError, match=r"Expected a value, got nothing - at .*blocked"):
        load_phases(file)
    file.write_text(bundled.replace("schema_version: 1", "schema_version: 2"))
    with pytest.raises(PolicyError, match="schema version 1"):
        load_phases(file)
    with pytest.raises(InputError, match="No such file or directory: "):
        load_phases(tmp_path / "gone.yaml")
    assert ContextPolicy(phases=Path(__file__).parents[1] / "data" / "context" / "phases.yaml").phases.equals(
        load_phases()[0]
    )


def test_a_fence_of_a_rule_file_ends_with_its_own_mark_and_a_title_keeps_its_sharp():
    text = "# C#\n\n~~~\n```\n## in the block\n~~~\n## Never ##\nforce push"
    rules = read_rules([{"path": "AGENTS.md", "text": text}])
    assert rules["text"].to_pylist() == ["C#:\n~~~\n```\n## in the block\n~~~", "Never: force push"]


@pytest.mark.parametrize("root", ["/repo", "C:\\repo"])
def test_paths_below_an_absolute_working_directory_are_named_from_there(root: str):
    session = Session()
    session.add("file.read", turn=1, path=f"{root}/src/d.ts", version="1", text="old content")
    session.add("file.read", turn=1, path=f"{root}2/src/e.ts", version="1", text="beside it")
    session.add("file.modified", turn=2, path="src/d.ts", version="2", text="+new")
    items = [item("code#1", f"{root}/src/d.ts", "old item")]
    seen = projected(session, turn={"workingDirectory": root, "snapshotIds": ["snap-1"]}, snapshots=[snapshot(*items)])
    assert reasons(seen)["event:e1"] == "stale_version"
    paths = {row["source_id"]: row["path"] for row in seen.decisions}
    assert paths["item:snap-1:code#1"] == "src/d.ts"
    assert (paths["event:e1"], paths["event:e2"]) == ("src/d.ts", f"{root}2/src/e.ts".replace("\\", "/"))
    assert "old content" not in seen.text() and "beside it" in seen.text()


def test_an_absolute_path_keeps_its_slash():
    session = Session()
    session.add("file.read", turn=1, path="/repo/./src/d.ts", version="1", text="old content")
    session.add("file.modified", turn=2, path="src/d.ts", version="2", text="+new")
    seen = projected(session)
    assert seen.decision("event:e1")["path"] == "/repo/src/d.ts"
    assert "/repo/src/d.ts" in seen.text()
    with pytest.raises(InputError, match="Expected one absolute working directory for all turns"):
        policy().project_turns(
            turns=[{"turnId": name, "workingDirectory": name} for name in ("/a", "/b")], events=session.events
        )


def test_an_exit_code_of_windows_is_a_negative_one():
    session = Session()
    session.failing("crashed", turn=1)
    session.events[-1]["payload"]["exitCode"] = 3221225786
    assert read_events(session.events).events["exit_code"].to_pylist()[-1] == -1073741510
    for code in (2**32, -(2**31) - 1):
        session.events[-1]["payload"]["exitCode"] = code
        with pytest.raises(
            InputError,
            match=r"Expected an exit code from -2147483648 to 4294967295, got .* - at events\[1\].payload.exitCode",
        ):
            read_events(session.events)


def test_a_line_number_beyond_all_files_is_refused_by_event_and_place():
    session = Session()
    session.add("search.result", turn=1, query="q", matches=[{"path": "a.py", "line": 2**40, "text": "x"}])
    with pytest.raises(InputError, match=r"a line number of event 'e1' .* - at events\[1\].payload.matches\[0\].line"):
        read_events(session.events)


def test_memories_items_and_snapshots_of_one_name_are_refused_by_it():
    same = [item("a#1", text="x"), item("a#1", text="y")]
    for given, message in (
        ({"memories": [memory("m"), memory("m", "Another.")]}, "Expected every memory once, got 'm' again - at memories"),
        ({"snapshots": [snapshot(*same)]}, r"Expected every item of a snapshot once, got 'a#1' again - at snapshots\[0\].items"),
        ({"snapshots": [snapshot(same[0]), snapshot(same[1])]}, "Expected every snapshot once, got 'snap-1' again - at snapshots"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            projected(**given)


def test_one_label_of_two_snapshots_is_of_one_row_of_evidence():
    one = item("a#1", text="x", evidence_id="row-1")
    seen = projected(snapshots=[snapshot(one), snapshot(one, name="snap-2")])
    assert seen.text().count("[abc0:a#1]") == 1 and reasons(seen)["item:snap-2:a#1"] == "duplicate"
    seen = projected(snapshots=[snapshot(item("a#1"), name=name) for name in ("s1", "s2")])
    assert "[s1:a#1]" in seen.text() and "[s2:a#1]" in seen.text() and "abc0" not in seen.text()


def test_unknown_fields_of_a_state_are_refused():
    with pytest.raises(
        InputError, match=r"Expected one of activeConstraints, .*userGoal.*, got 'usergoall' - at state"
    ):
        projected(state={"usergoall": "x"})
    assert projected(state={"turnCount": 3, "latest_observation": None, "userGoal": "Fix it."}).status == "ok"


def test_every_reference_of_an_input_opens():
    secret = "gh" + "p_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1b4D7f0GhK"
    session = Session()
    session.failing(f"token {secret}\nsrc/a.ts:1 error", turn=1)
    seen = projected(session)
    assert json.loads(seen.open("event:e0"))["payload"]["text"] == "Fix the failing tests."
    assert secret not in seen.open("event:e1") and "src/a.ts:1 error" in seen.open("event:e1")
    lines = seen.open("log:0-1").split("\n")
    assert [json.loads(line)["id"] for line in lines] == ["e0", "e1"] and secret not in lines[1]
    for absent in ("event:e2", "log:5-9", "log:x", "artifact:00"):
        with pytest.raises(InputError, match="Expected a reference of these events: artifact:ID, event:ID"):
            seen.open(absent)
