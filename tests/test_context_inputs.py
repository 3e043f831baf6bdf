"""Inputs beside the session log, by their readers: rules, memories, tools, snapshots, budget, turns, a given state."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import repositories
from context_session import item, memory, snapshot
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.scope.selectors import matching_paths
from scoped_retrieval.nodes.turns.words import CAPABILITIES, PHASE_POLICIES, PHASES
from scoped_retrieval.pipeline.context.inputs import (
    budget_fields,
    default_fields,
    items_of_replay,
    read_memories,
    read_snapshots,
    read_tools,
    seed_facts,
    turn_row,
)
from scoped_retrieval.pipeline.context.rules import about_rules, bundled_duty_words, read_rules, rule_files

DEFAULTS = default_fields({}) | {"session_id": "s"}
SECRET = "gh" + "p_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1b4D7f0GhK"


def rules(*values: Any, **options: Any) -> list[dict[str, Any]]:
    return read_rules(values, **options)


def texts(text: str, path: str = "AGENTS.md") -> list[str]:
    return [rule["text"] for rule in rules({"path": path, "text": text})]


def facts(state: Any) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for slot, fact in seed_facts(state):
        assert (fact.event_id, fact.zone, fact.seq) == ("state", "internal", -1)
        found.setdefault(slot, []).append(fact._asdict())
    return found


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


# --- rules ---------------------------------------------------------------------------------------------------------------


def test_a_section_is_a_rule_below_the_headings_above_it():
    text = "intro\n# Shop\n\n## Never\nforce push\n### Data\n- drop\n- truncate\n## Tests ##\nRun make.\n# C#\nx\n## Empty\n"
    found = rules({"path": "web/AGENTS.md", "text": text})
    assert [(each["rule_id"], each["text"]) for each in found] == [
        ("web/AGENTS.md:1", "intro"),
        ("web/AGENTS.md:5", "Shop > Never: force push"),
        ("web/AGENTS.md:7", "Shop > Never > Data:\n- drop\n- truncate"),
        ("web/AGENTS.md:10", "Shop > Tests: Run make."),
        ("web/AGENTS.md:12", "C#: x"),
    ]
    assert {each["folder"] for each in found} == {"web"} and {each["origin"] for each in found} == {"repository"}


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Git", "Git"), ("###### Git ##", "Git"), ("#\tGit\t#  ", "Git"), ("# C#", "C#"), ("# Use #1 # 2", "Use #1 # 2"), ("# #", "#"), ("## ## ##", "##"),
        ("#Git", None), ("####### Git", None), (" # Git", None), ("# ", None),
    ],
)  # fmt: skip
def test_headings_are_those_of_markdown(line: str, title: str | None):
    assert texts(f"{line}\nUse pnpm.") == [f"{title}: Use pnpm." if title else f"{line}\nUse pnpm."]


def test_a_heading_inside_of_code_is_no_section_and_a_fence_ends_with_its_own_mark():
    assert len(texts("# Build\n\n```\n# not a heading\n```\nRun make.\n")) == 1
    text = "~~~\n```\n## in the block\n~~~\n## Never\nforce push"
    assert texts(text) == ["~~~\n```\n## in the block\n~~~", "Never: force push"]


@given(st.lists(st.sampled_from(["# A", "## B", "text", "", "```", "---", "- item", "globs: a"]), max_size=12))
def test_every_line_of_a_rule_file_that_is_not_front_matter_is_in_a_rule(lines: list[str]):
    text = "\n".join(["first line", *lines])
    found = "\n".join(texts(text))
    assert all(line in found for line in lines if line.strip() and not line.startswith("#"))


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("AGENTS.md", ""), ("./packages/a/AGENTS.md", "packages/a"), (".github/copilot-instructions.md", ""), (".cursor/rules/x.mdc", ""),
        ("packages/a/.claude/rules/b.md", "packages/a"),
    ],
)  # fmt: skip
def test_a_rule_file_is_for_the_folder_that_it_is_in(path: str, folder: str):
    assert rules({"path": path, "text": "x"})[0]["folder"] == folder
    assert rules({"path": path, "text": "x", "folder": "lib"})[0]["folder"] == "lib"


@pytest.mark.parametrize(
    ("matter", "path", "within", "without"),
    [
        ("globs: *.ts", ".cursor/rules/a.mdc", ["a.ts", "src/b/a.ts"], ["a.py"]),
        ('applyTo: "src/**/*.ts,lib/**"', ".github/instructions/a.md", ["src/a.ts", "lib/x/y.py"], ["src/a.py"]),
        ("paths:\n  - 'src/**'\n  - \"lib/*.ts\"", ".claude/rules/a.md", ["src/a.py", "lib/a.ts"], ["lib/x/a.ts"]),
        ("globs: [src/*.{ts,tsx}, 'lib/{a,b}/**']", ".cursor/rules/a.mdc", ["src/a.tsx", "lib/b/x"], ["docs/a.md", "src/a"]),
        ("paths: src/**", "packages/a/.claude/rules/a.md", ["packages/a/src/x.ts"], ["docs/a.md"]),
    ],
)  # fmt: skip
def test_front_matter_says_which_files_a_rule_is_for(matter: str, path: str, within: list[str], without: list[str]):
    (rule,) = rules({"path": path, "text": f"---\n{matter}\nalwaysApply: false\n---\n\nUse strict."})
    assert rule["text"] == "Use strict." and rule["globs"] is not None
    paths = pa.array([*within, *without])
    assert matching_paths(paths, rule["globs"]).tolist() == [True] * len(within) + [False] * len(without)


@pytest.mark.parametrize("matter", ["description: for all", "globs:", "globs: src/**\nalwaysApply: true"])
def test_a_rule_file_without_globs_or_that_always_applies_is_for_all_of_its_folder(matter: str):
    (rule,) = rules({"path": ".cursor/rules/a.mdc", "text": f"---\n{matter}\n---\nUse strict."})
    assert (rule["globs"], rule["rule_id"]) == (None, f".cursor/rules/a.mdc:{4 + matter.count(chr(10))}")


def test_front_matter_without_an_end_is_text():
    assert texts("---\nglobs: src/**\nUse strict.") == ["---\nglobs: src/**\nUse strict."]


def test_topics_are_those_that_are_declared():
    assert rules({"path": "testing/TESTS.md", "text": "# Deployment\nRun the tests."})[0]["topics"] is None
    declared = {"path": "a.md", "text": "---\ntopics: [tests, style]\n---\nx"}
    assert rules(declared)[0]["topics"] == ["tests", "style"]
    assert rules({**declared, "topics": ["mobile"]})[0]["topics"] == ["mobile"]


@pytest.mark.parametrize("text", ["Never push.", "You MUST ask.", "Don’t push.", "修改前必须确认", "# Only\nuse pnpm"])  # noqa: RUF001
def test_a_section_with_a_duty_word_is_a_duty(text: str):
    assert [each["duty"] for each in rules({"path": "AGENTS.md", "text": text})] == [True]


def test_a_duty_word_inside_of_another_word_is_none_and_a_project_adds_its_own():
    text = {"path": "AGENTS.md", "text": "Mustard is commonly stored. Bitte nicht pushen."}
    assert [each["duty"] for each in rules(text)] == [False]
    assert [each["duty"] for each in rules(text, duty_words=["nicht"])] == [True]
    assert len(bundled_duty_words()) == len(set(bundled_duty_words())) <= 32


def test_rule_files_of_a_work_tree_are_found_by_name(tmp_path: Path):
    tree = written(tmp_path, **{
        "AGENTS.md": "# A\n\nroot\n", "packages/parser/AGENTS.md": "parser\n", "docs/README.md": "no rule\n", "CLAUDE.md": "\ufeffclaude\n",
        ".cursor/rules/a.mdc": "---\nglobs: a\n---\nx\n",
    })  # fmt: skip
    found = read_rules(rule_files(tree))
    assert [row["rule_id"] for row in found] == [
        "AGENTS.md:2",
        "CLAUDE.md:1",
        ".cursor/rules/a.mdc:4",
        "packages/parser/AGENTS.md:1",
    ]
    assert found[1]["text"] == "claude", "a byte order mark is no text"
    assert about_rules(tree, found) is None
    for wrong in (tree / "gone", tree / "AGENTS.md"):
        with pytest.raises(InputError, match="Expected a folder"):
            rule_files(wrong)


@pytest.mark.parametrize("git", [False, True])
def test_rule_files_that_are_not_the_projects_own_are_left_out_with_a_reason(tmp_path: Path, git: bool):
    written(tmp_path / "outside", **{"AGENTS.md": "a rule\n", "copilot-instructions.md": "a rule\n"})
    tree = written(tmp_path / "tree", **{
        "AGENTS.md": "Read @docs/style.md and @gone.md, mail a@b.md.\n", "GEMINI.md": " \n", "CLAUDE.md": "a rule\n", "vendor/evil/AGENTS.md": "a rule\n",
        "env/lib/site-packages/x/AGENTS.md": "a rule\n",
        "docs/style.md": "style\n", ".gitignore": "CLAUDE.md\n",
    })  # fmt: skip
    (tree / ".github").symlink_to(tmp_path / "outside")
    (tree / "CONVENTIONS.md").symlink_to("docs/style.md")
    if git:
        repositories.git(tree, "init", "-q")
    table = read_rules(rule_files(tree))
    left_out = {row["path"]: row["left_out"] for row in table}
    assert left_out.pop("AGENTS.md") is None
    wanted = {
        "CLAUDE.md": "rule_ignored", "docs/style.md": "rule_imported",
        ".github/copilot-instructions.md": "rule_link", "CONVENTIONS.md": "rule_link",
    }  # fmt: skip
    assert left_out == wanted
    condition, message = about_rules(tree, table) or ("", "")
    assert condition == "rules_left_out" and "vendor" not in message and "CLAUDE.md (rule_ignored)" in message


def test_a_file_that_is_given_as_a_rule_is_not_left_out():
    given = ({"path": "docs/style.md", "leftOut": "rule_imported"}, {"path": "docs/style.md", "text": "Use tabs."})
    assert [(each["rule_id"], each["left_out"]) for each in rules(*given)] == [("docs/style.md:1", None)]


def test_no_rule_file_is_a_condition_of_its_own(tmp_path: Path):
    assert (about_rules(tmp_path, read_rules(rule_files(tmp_path))) or ("",))[0] == "rules_not_found"


# --- memories, tools, snapshots -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["read_file", "Bash", "mcp__github__get_issue", "delete_everything"])
def test_a_tool_without_a_capability_is_external_whatever_its_name_or_its_annotations_say(name: str):
    for value in (name, {"name": name, "annotations": {"readOnlyHint": True}}):
        row = read_tools([value])[0]
        assert (row["capability"], row["declared"], row["phases"]) == ("external", False, None)


@given(st.sampled_from(CAPABILITIES.values), st.lists(st.sampled_from(PHASES.values), min_size=1))
def test_a_tool_has_the_capability_and_the_phases_that_it_states(capability: str, phases: list[str]):
    row = read_tools([{"name": "x", "capability": capability, "phases": phases}])[0]
    assert (row["capability"], row["declared"], row["phases"]) == (capability, True, phases)


def test_tools_are_read_in_the_shapes_of_providers():
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    openai = {
        "type": "function",
        "function": {"name": "read_file", "description": "Read.", "parameters": parameters},
        "capability": "read",
    }
    anthropic = {"name": "read_file", "description": "Read.", "input_schema": parameters, "capability": "read"}
    assert read_tools([openai]) == read_tools([anthropic])
    assert json.loads(read_tools([openai])[0]["schema"])["parameters"] == parameters


def test_an_item_has_its_reason_its_lines_and_the_narrowest_sight():
    given = item(line=4, line_end=9, reason="failing assertion", zone="public")
    (row,) = read_snapshots([{**snapshot(given), "zone": "private"}])
    assert (row["locator"], row["reason"], row["zone"]) == ("src/a.ts:4-9", "failing assertion", "private")
    flags = [
        (each["generated"], each["public_api"])
        for each in read_snapshots([snapshot(item(path="dist/a.js"), item("b#1", "lib/index.ts", publicApi=True))])
    ]
    assert flags == [(True, False), (False, True)]


def test_a_snapshot_without_items_has_one_row_without_a_label():
    (row,) = read_snapshots([{"snapshot_id": "a:b", "items": []}])
    assert (row["snapshot_id"], row["block_ref"], row["label"], row["evidence_id"]) == ("a:b", "a:b", None, None)


def test_an_item_without_an_evidence_id_gets_a_name_that_no_other_has():
    items = [*read_snapshots([snapshot(item("c"), name="a:b"), snapshot(item("b:c"), name="a")])]
    assert [row["evidence_id"] for row in items] == ["a%3Ab:c", "a:b:c"]


def test_items_of_a_replay_have_its_reasons_where_it_has_one():
    cited = {"evidence_kind": "code", "path": "a.py", "locator": "a.py:1", "standing": "evidence"}
    citations = [
        {"label": "a#2", "evidence_id": "e2", "position": 2, "resolves": True, **cited},
        {"label": "a#1", "evidence_id": "e1", "position": 1, "resolves": True, **cited},
        {"label": "a#3", "evidence_id": "e3", "position": 3, "resolves": False, **cited},
    ]
    trimmed = [{"label": f"a#{n}", "visible_text": f"text {n}"} for n in (1, 2, 3)]
    ranked = pa.Table.from_pylist([{"evidence_id": "e1", "selected_reason": "exact match"}])
    replay = SimpleNamespace(
        snapshot_id="s", block_ref="r", request={}, citations=pa.Table.from_pylist(citations),
        tables={"trimmed": pa.Table.from_pylist(trimmed), "ranked": ranked},
    )  # fmt: skip
    rows = items_of_replay(replay)
    assert [(row["label"], row["reason"], row["text"]) for row in rows] == [
        ("a#1", "exact match", "text 1"),
        ("a#2", None, "text 2"),
    ]


# --- budget, phases, turns ------------------------------------------------------------------------------------------------


def test_a_budget_has_defaults_that_use_the_window():
    assert budget_fields(None) == budget_fields({})
    found = budget_fields({"maxTokens": 8000, "reservedOutputTokens": 1000})
    assert (found["target_tokens"], found["user_words_tokens"], found["tail_limit"]) == (7000, 20_000, None)
    found = budget_fields(
        {"max_tokens": 8000, "targetTokens": 99_000, "user_words_tokens": 5, "tailLimit": 3, "trimOrder": "s003"}
    )
    assert (found["target_tokens"], found["user_words_tokens"], found["tail_limit"]) == (6976, 5, 3)
    assert budget_fields({"targetTokens": 500})["target_tokens"] == 500
    document = ("rules", "userGoal", "state", "latestObservation", "recentTail", "retrieval", "memory", "tools")
    assert len(budget_fields({"reserved": dict.fromkeys(document, 100)})["limits"]) == 8


def test_no_phase_shows_tools_of_the_outside():
    shown = {each for phase in PHASE_POLICIES.values() for each in phase.capabilities}
    assert shown == set(CAPABILITIES.values) - {"external", "external_read"} and set(PHASE_POLICIES) == set(
        PHASES.values
    )


def test_a_turn_states_its_topics_and_whether_it_needs_knowledge_from_outside():
    bare = turn_row({}, DEFAULTS)
    assert (bare["topics"], bare["external_knowledge"], bare["zones"], bare["task_paths"]) == (
        None,
        False,
        ["public", "internal"],
        [],
    )
    defaults = DEFAULTS | default_fields({"topics": ["tests"], "external_knowledge": True, "task_paths": ["a.ts"]})
    row = turn_row({}, defaults)
    assert (row["run_id"], row["topics"], row["external_knowledge"]) == ("run", ["tests"], True)
    row = turn_row(
        {"topics": [], "externalKnowledge": False, "task_paths": [], "instructionSources": [], "zones": []},
        defaults,
    )
    assert [row[name] for name in ("topics", "external_knowledge", "task_paths", "instruction_sources", "zones")] == [
        [],
        False,
        [],
        [],
        [],
    ]


@pytest.mark.parametrize("root", ["/repo", "C:\\repo", "src"])
def test_paths_of_a_turn_below_an_absolute_working_directory_are_relative_to_it(root: str):
    row = turn_row({"workingDirectory": root, "taskPaths": [f"{root}/a.ts"], "packageRoot": root}, DEFAULTS)
    wanted = ("src/a.ts", "src") if root == "src" else ("a.ts", None)
    assert (row["task_paths"][0], row["package_root"]) == wanted
    assert turn_row({"packageRoot": f"{root}/lib"}, DEFAULTS | {"working_directory": root})["package_root"] == (
        "src/lib" if root == "src" else "lib"
    )


# --- a given state --------------------------------------------------------------------------------------------------------

OBSERVATION = {
    "kind": "command_result", "command": "pnpm test --filter parser", "exitCode": 1, "summary": "parser.test.ts:42 expected 3 received 2",
    "artifacts": ["artifacts/run-12-stderr.txt"], "trustLevel": "fact", "visibleExcerpt": "FAIL parser.test.ts ... expected 3 received 2",
}  # fmt: skip
"""The observation that document 003 prints (S3.50)."""


def test_a_state_names_constraints_by_topic_and_its_last_command():
    found = facts({
        "active_constraints": [{"id": "c1", "text": "Run full tests.", "topic": "tests", "origin": "global"}, "Only here."], "plan": "read it",
        "latest_observation": {"command": "ls"}, "read_files": ["b.ts"],
    })  # fmt: skip
    assert [(row["fact"], row["status"], row["origin"]) for row in found["constraint"]] == [
        ("c1", "tests", "system"),
        ("state:1", None, "user"),
    ]
    assert (found["command"][0]["value"], found["command"][0]["detail"]) == ("ls", None), "how it ended is not known"
    assert (found["plan"][0]["origin"], found["read"][0]["fact"]) == ("model", "b.ts")
    assert facts(None) == facts({}) == {}


# --- errors, and what all readers share -----------------------------------------------------------------------------------


def test_secrets_are_masked_in_every_input():
    tables = [
        read_rules([f"Use {SECRET}.", {"path": "AGENTS.md", "text": f"Use {SECRET}."}]),
        read_memories([memory(text=SECRET, verify=SECRET)]),
        read_tools([{"name": "x", "description": SECRET}]),
        read_snapshots([snapshot(item(text=SECRET, reason=SECRET))]),
        seed_facts(
            {
                "userGoal": SECRET,
                "latestObservation": {**OBSERVATION, "visibleExcerpt": SECRET},
            },
        ),
    ]
    assert all(rows and SECRET not in json.dumps(rows, default=str) for rows in tables)


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (read_rules, [{"text": "x", "origin": "moon"}], "Expected one of system, global, repository"),
        (read_rules, [{"path": "a.md", "leftOut": "rule_link", "content": "x"}], "Expected no text beside `leftOut`, got text - at rules[0].content"),
        (read_rules, [{"path": "a.md", "text": "x"}] * 2, "Expected every rule once, got 'a.md:1' again"),
        (read_memories, [memory(lifecycle="odd")], "Expected one of candidate, verified"),
        (read_memories, [memory(confidence=5.0)], "Expected a number from 0 to 1, got 5.0 - at memories[0].confidence"),
        (read_memories, [memory(f"m{n}") for n in range(257)], "Expected at most 256 memories, got 257"),
        (read_tools, ["a", "a"], "Expected every tool once, got 'a' again - at tools"),
        (read_tools, [{"name": "a", "capability": "fly"}], "Expected one of read, search"),
        *((read_tools, [{"name": "a", "parameters": {"default": value}}], f"Expected JSON values, got {what} - at tools[0]")
          for value, what in ((b"x", "bytes"), ({1}, "set"), (date(2026, 1, 1), "date"), (float("nan"), "NaN or infinity"))),
        (read_snapshots, [{"items": []}], "snapshots[0].snapshotId"),
        (read_snapshots, [snapshot(item("a"), item("a"))], "Expected every item of a snapshot once, got 'a' again - at snapshots[0].items"),
        (budget_fields, {"maxTokens": -1}, "Expected a whole number from 0 to 2147483647, got -1 - at budget.maxTokens"),
        (budget_fields, {"tokens": 3}, "Expected one of fences, maxTokens"),
        (budget_fields, {"reserved": {"soup": 3}}, "Expected one of rules, user_goal"),
        (budget_fields, {"trimOrder": "sideways"}, "Expected one of default, s003, got 'sideways' - at budget.trimOrder"),
        (default_fields, {"color": "red"}, "got 'color' - at defaults"),
        *((lambda value: turn_row(value, DEFAULTS), value, message) for value, message in (
            ({"phase": "dreaming"}, "Expected one of diagnosing"), ({"zones": ["cellar"]}, "Expected one of public"),
            ({"color": "red"}, "got 'color' - at turn"),
        )),
        *((seed_facts, value, message) for value, message in (
            ({"usergoall": "x"}, "got 'usergoall' - at state"), ({"turnCount": -1}, "Expected a whole number from 0"),
            ({"latestObservation": "failed"}, "Expected an object, got text - at state.latestObservation"),
            ({"latestObservation": {"visibleExcerpt": 3}}, "at state.latestObservation.visibleExcerpt"),
            ({"activeConstraints": [{"topic": "x"}]}, "at state.activeConstraints[0].text"),
        )),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(read: Any, value: Any, message: str):
    with pytest.raises(InputError) as caught:
        read(value)
    assert message in str(caught.value)
