"""Tools by what they can do: stated, or guessed by the name, and shown by phase (S3.57)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from context_session import Session, projected, reasons
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.turns.words import CAPABILITIES, PHASES, REASONS
from scoped_retrieval.pipeline.context.inputs import read_tools
from scoped_retrieval.pipeline.context.tool_names import capability_of

NAMES = {
    "read": (
        "read_file", "Read", "view_image", "open_file", "get_release", "read_mcp_resource", "NotebookRead", "getUserByEmail", "get_deployment",
        "get_email_address", "read_push_notifications", "look_up_symbol", "get_deploy_status", "get_restore_points", "get_bookmark", "read_markdown",
    ),
    "search": (
        "search", "Grep", "Glob", "LS", "list_dir", "codebase_search", "file_search", "list-uploads", "search_posts", "find_references",
        "ListMcpResourcesTool",
    ),
    "run": ("Bash", "run_command", "exec_command", "local_shell", "run_in_terminal", "KillShell"),
    "write": (
        "apply_patch", "Edit", "MultiEdit", "Write", "NotebookEdit", "delete_file", "create_file", "str_replace_editor", "search_replace",
        "search_and_replace", "get_or_create_user",
    ),
    "ask_user": (
        "AskUserQuestion", "ask_user", "confirm", "request_user_input", "TodoWrite", "TodoRead", "update_plan", "ExitPlanMode",
    ),
    "external_read": (
        "WebFetch", "WebSearch", "webfetch", "web_search", "mcp__github__get_issue", "mcp__github__list_releases", "mcp__docs__search",
        "mcp__github__get_release", "mcp__fetch__fetch", "mcp__k8s__list_deployments", "mcp__github__get_pull_request",
        "mcp__github__get_pull_request_files", "mcp__github__get_pull_request_comments", "mcp__github__pull_request_read",
        "mcp__gitlab__get_merge_request", "mcp__vercel__get_deployment", "mcp__gmail__get_email", "mcp__linear__get_comment",
        "mcp__fs__get_file_type", "mcp__notion__API-get-page", "mcp__mcp-atlassian__jira_get_issue", "mcp__redis__get", "slack_get_users", "http_get",
        "MCP__gitlab__getMergeRequest", "mcp__netlify__get_deploy", "mcp__netlify__list_deploys", "mcp__git__get_log", "mcp__github__fetch_issue",
        "mcp__gitlab__fetch_file", "github_fetch_issue", "mcp__GitHub__fetch_issue", "mcp__GitLab__fetch_file", "mcp__claude_ai_GitHub__fetch_issue", "GitHub_fetch_issue",
        "mcp__GITHUB__fetch_issue", "mcp__Github__fetch_issue", "mcp__fetch__list_branches", "mcp__fetch__get_tags", "mcp__GitBook__fetch_page", "mcp__Bitbucket__fetchIssue",
    ),
    "external": (
        "deploy_production", "deploy", "DeployService", "publish_package", "npm_publish", "release", "create_release", "delete_database",
        "delete_production_file", "delete_profile", "send_email", "git_push", "merge_pull_request", "open_pull_request", "create_pr", "redeploy",
        "http_request", "browser_click", "web_spread", "fetch_and_deploy", "list_and_delete", "view_then_approve", "mcp_x", "mcp_search_frob",
        "mcp__search__frob", "mcp__github__create_issue", "mcp__github__search_and_close", "mcp__gmail__trash_thread", "mcp__slack__pin_thread",
        "mcp__mail__forward_thread", "mcp__github__resolve_review_thread", "mcp__google_ads__increase_budget", "mcp__mongodb__findAndModify",
        "mcp__mongodb__findANDmodify", "mcp__mongodb__findandmodify", "mcp__trello__clear_list", "mcp__crm__blacklist_user",
        "mcp__foo__list_and_ban", "mcp__foo__listOrBan", "mcp__foo__list-then-ban", "mcp__foo__read_write", "mcp__redis__getset",
        "mcp__redis__getSet", "fetch_deploy_service", "fetchDeployService", "mcp__ci__get_restart_job", "mcp__git__fetch", "mcp__git__git_fetch", "git_fetch",
        "mcp__git-server__fetch", "mcp__GitServer__fetch", "mcp__Git__fetch", "mcp__github__git_fetch", "mcp__fetch__fetch_tags", "mcp__vcs__fetch_origin", "mcp__repo__fetch_all_remotes", "mcp__mail__read_mark_done", "mcp__foo__save_view", "mcp__foo__fetch_to_file", "mcp__foo__l\u00f6schen_list", "mcp__foo__", "mcp__get",
    ),
    "other": (
        "frobnicate", "Task", "thread", "prune", "credit", "checklist", "target", "budget", "playlist", "list_then_kill", "dropdown_list",
        "read_mark_done", "search_index_rebuild", "search_reindex", "list_toggle", "get_reload_config_now", "resolve_review_thread", "confirm_order", "db_query", "open", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("part", ["git_", "fetch_", "git_fetchs_", "Git"])
def test_a_long_name_is_read_at_once(part: str):
    """With a step for each pair of its 50,000 words this would never end."""
    assert capability_of(part * 50_000) == ("external_read" if part == "fetch_" else "other")


@pytest.mark.parametrize(("name", "capability"), [(name, word) for word, names in NAMES.items() for name in names])
def test_a_name_says_what_its_tool_can_do(name: str, capability: str):
    assert capability in CAPABILITIES
    assert capability_of(name) == capability


ACTING = (
    "add", "approve", "archive", "ban", "block", "book", "buy", "cancel", "clear", "close", "copy", "create", "delete", "deploy", "drop", "edit",
    "email", "execute", "export", "forward", "grant", "import", "increase", "invite", "kill", "label", "lock", "mark", "merge", "move", "mute",
    "open", "pause", "pay", "pin", "post", "promote", "publish", "purge", "push", "reload", "remove", "rename", "reply", "reset", "resolve",
    "restart", "run", "save", "send", "set", "share", "shuffle", "snooze", "spread", "star", "start", "stop", "submit", "sync", "tag", "transfer",
    "trash", "update", "upload", "write",
)  # fmt: skip
SAYS_READING = ("thread", "budget", "playlist", "list", "view", "read", "search", "query", "get_issue", "pull_request_read", "web_search", "file_list")  # fmt: skip
STYLES: dict[str, Callable[[list[str]], str]] = {
    "snake": "_".join,
    "kebab": "-".join,
    "camel": lambda words: words[0] + "".join(map(str.title, words[1:])),
    "Pascal": lambda words: "".join(map(str.title, words)),
    "together": "".join,
}


@given(
    act=st.sampled_from(ACTING),
    rest=st.sampled_from(SAYS_READING),
    style=st.sampled_from(sorted(STYLES)),
    of=st.sampled_from(("", "mcp__x__", "mcp__get__", "web_")),
)
def test_no_name_reads_whose_first_word_acts(act: str, rest: str, style: str, of: str):
    name = of + STYLES[style]([act, *rest.split("_")])
    assert capability_of(name) not in {"read", "search", "external_read", "ask_user"}, name


@given(
    reading=st.sampled_from(("get", "read", "list", "find", "search", "fetch", "view")),
    join=st.sampled_from(("and", "or", "then", "items and", "items then")),
    act=st.sampled_from(ACTING),
    style=st.sampled_from(("snake", "kebab", "camel", "Pascal")),
    of=st.sampled_from(("", "mcp__x__", "github_")),
)
def test_no_name_reads_that_joins_a_second_act(reading: str, join: str, act: str, style: str, of: str):
    name = of + STYLES[style]([reading, *join.split(), act])
    assert capability_of(name) not in {"read", "search", "external_read", "ask_user"}, name


@pytest.mark.parametrize(
    ("name", "annotations", "capability"),
    [
        ("read_file", None, "read"),
        ("read_file", {"title": "Read", "readOnlyHint": True, "destructiveHint": False}, "read"),
        ("read_file", {"readOnlyHint": False}, "external"),
        ("mcp__x__get_next", {"destructiveHint": True}, "external"),
        ("mcp__x__get_next", {"readOnlyHint": True, "destructiveHint": True}, "external"),
        ("mcp__x__pin_thread", {"readOnlyHint": True}, "external"),
        ("frobnicate", {"readOnlyHint": True}, "other"),
        ("edit_file", {"readOnlyHint": False, "destructiveHint": True}, "write"),
    ],
)
def test_annotations_of_mcp_hide_a_tool_and_show_none(name: str, annotations: dict[str, Any] | None, capability: str):
    tool = {"name": name, "inputSchema": {"type": "object"}, "annotations": annotations}
    assert read_tools([tool])["capability"].to_pylist() == [capability]
    assert read_tools([{**tool, "capability": "search"}])["capability"].to_pylist() == ["search"]


def test_a_hint_that_is_neither_true_nor_false_is_an_error():
    with pytest.raises(InputError, match=r"true or false.*tools\[0\]\.annotations\.readOnlyHint"):
        read_tools([{"name": "read_file", "annotations": {"readOnlyHint": "no"}}])


@pytest.mark.parametrize("name", ["read file", "mcp.github/get", "l\u00f6schen", "read_file\n", "a" * 129])
def test_a_name_that_a_provider_refuses_is_an_error_in_its_shape_alone(name: str):
    seen = projected(tools=["Read", {"name": name, "capability": "read"}])
    assert name in seen.model_input["tools"] and json.dumps(name, ensure_ascii=False) in seen.neutral()
    for shape, most in ((seen.openai, 64), (seen.anthropic, 128)):
        with pytest.raises(InputError, match=f"up to {most}") as error:
            shape()
        assert repr(name) in str(error.value) and "'Read'" not in str(error.value)


def test_providers_take_names_of_their_own_lengths():
    seen = projected(tools=["read_" + "a" * 59, "Read"])
    assert len(seen.openai()["tools"]) == len(seen.anthropic()["tools"]) == 2
    seen = projected(tools=["read_" + "a" * 60, "read_" + "a" * 123])
    assert len(seen.anthropic()["tools"]) == 2
    with pytest.raises(InputError, match="up to 64"):
        seen.openai()


def test_a_hidden_tool_may_have_any_name():
    seen = projected(tools=["Read", "deploy production"], turn={"phase": "planning"})
    assert len(seen.openai()["tools"]) == len(seen.anthropic()["tools"]) == 1


UNSTATED = (
    "Read",
    "TodoWrite",
    "Grep",
    "Bash",
    "Edit",
    "WebFetch",
    "mcp__github__create_issue",
    "deploy_production",
    "frobnicate",
)
READING = ["Read", "TodoWrite", "Grep", "WebFetch"]
WORKING = ["Read", "TodoWrite", "Grep", "Bash", "Edit", "WebFetch", "frobnicate"]


@pytest.mark.parametrize(
    ("phase", "tools"),
    [
        ("diagnosing", READING),
        ("planning", READING),
        ("editing", WORKING),
        ("verifying", WORKING),
        ("summarizing", ["Read", "TodoWrite", "WebFetch"]),
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
