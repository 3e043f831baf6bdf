"""Tools by what they can do: stated, or guessed by the name, and shown by phase (S3.57)."""

from __future__ import annotations

from typing import Any

import pytest
from context_session import Session, projected, reasons
from scoped_retrieval.nodes.turns.words import CAPABILITIES, PHASES, REASONS
from scoped_retrieval.pipeline.context.tool_names import capability_of

NAMES = {
    "read": ("read_file", "Read", "view_image", "open_file", "get_release", "read_mcp_resource"),
    "search": ("search", "Grep", "Glob", "LS", "list_dir", "codebase_search"),
    "run": ("Bash", "run_command", "exec_command", "local_shell", "run_in_terminal", "KillShell"),
    "write": ("apply_patch", "Edit", "MultiEdit", "Write", "NotebookEdit", "delete_file", "create_file", "str_replace_editor"),
    "ask_user": ("AskUserQuestion", "ask_user", "confirm"),
    "external_read": (
        "WebFetch", "WebSearch", "webfetch", "web_search", "mcp__github__get_issue", "mcp__github__list_releases", "mcp__docs__search",
        "mcp__github__get_release", "mcp__fetch__fetch", "mcp__k8s__list_deployments",
    ),
    "external": (
        "deploy_production", "deploy", "DeployService", "publish_package", "npm_publish", "release", "create_release", "delete_database",
        "delete_production_file", "send_email", "git_push", "merge_pull_request", "http_request", "browser_click", "mcp__github__create_issue",
        "mcp__search__frob", "mcp__github__search_and_close", "fetch_and_deploy", "mcp_x", "list_and_delete",
    ),
    "other": ("frobnicate", "Task", "update_plan", "thread", "prune", "credit", "checklist", "target", ""),
}  # fmt: skip


@pytest.mark.parametrize(("name", "capability"), [(name, word) for word, names in NAMES.items() for name in names])
def test_a_name_says_what_its_tool_can_do(name: str, capability: str):
    assert capability in CAPABILITIES
    assert capability_of(name) == capability


UNSTATED = ("Read", "Grep", "Bash", "Edit", "WebFetch", "mcp__github__create_issue", "deploy_production", "frobnicate")
READING = ["Read", "Grep", "WebFetch"]
WORKING = ["Read", "Grep", "Bash", "Edit", "WebFetch", "frobnicate"]


@pytest.mark.parametrize(
    ("phase", "tools"),
    [
        ("diagnosing", READING),
        ("planning", READING),
        ("editing", WORKING),
        ("verifying", WORKING),
        ("summarizing", ["Read", "WebFetch"]),
        ("blocked", READING),
    ],
)
def test_tools_that_state_no_capability_are_shown_by_their_names_and_fail_closed(phase: str, tools: list[str]):
    seen = projected(tools=UNSTATED, turn={"phase": phase})
    assert list(seen.model_input["tools"]) == tools
    told = reasons(seen)
    hidden = {name for name in UNSTATED if name not in tools}
    assert {told[f"tool:{name}"] for name in hidden - {"frobnicate"}} == {"phase_hidden_tool"}
    assert (told["tool:frobnicate"] == "unknown_capability") == ("frobnicate" in hidden)
    assert "state its `capability`" in REASONS["unknown_capability"]


@pytest.mark.parametrize(
    ("stated", "phases"),
    [
        ({"capability": "read"}, set(PHASES.values)),
        ({"capability": "write"}, {"editing", "verifying"}),
        ({"phases": ["blocked"]}, {"blocked"}),
        ({"capability": "read", "phases": ["blocked"]}, {"blocked"}),
        ({}, set[str]()),
    ],
)
def test_what_a_tool_states_goes_before_its_name(stated: dict[str, Any], phases: set[str]):
    tools = [{"name": "deploy_production", **stated}]
    shown = {
        each for each in PHASES.values if projected(Session(), tools=tools, turn={"phase": each}).model_input["tools"]
    }
    assert shown == phases
