"""Native tool messages: calls and results of the tail as the providers have them, paired, within the same limit."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pytest
from context_session import Session, projected
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.context import Projection
from scoped_retrieval.pipeline.line.tokenizers import load_counters

_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""Ids of calls that both providers accept."""


def worked(results: int = 6, about: str = "") -> Session:
    """A session with so many results of a tool, the last of which failed; the tail does not show what calls are about."""
    session = Session()
    for number in range(results):
        session.add(
            "command.finished", turn=number, tool="run_command", arguments={"command": f"cat f{number}", "about": about}, command=f"cat f{number}",
            exitCode=int(number == results - 1), stdout=f"line of f{number}\n" * 5,
        )  # fmt: skip
    return session


def pairs_of(seen: Projection) -> list[tuple[str, str, Any, str]]:
    """Id, tool, arguments and result of each pair, the same in both shapes."""
    openai, anthropic = seen.openai(native_tools=True)["messages"], seen.anthropic(native_tools=True)["messages"]
    first = [(message, openai[n + 1]) for n, message in enumerate(openai) if "tool_calls" in message]
    found = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]), result["content"])
        for message, result in first
        for call in message["tool_calls"]
        if result["tool_call_id"] == call["id"]
    ]
    assert len(found) == sum(message["role"] == "tool" for message in openai)
    turns = zip(anthropic[1::2], anthropic[2::2], strict=True)
    uses = [(*said["content"], result["content"][0]) for said, result in turns]
    assert [message["role"] for message in anthropic] == ["user", *(["assistant", "user"] * len(uses))]
    assert [(use["id"], use["name"], use["input"], result["content"]) for use, result in uses] == found
    assert all(use["id"] == result["tool_use_id"] for use, result in uses)
    return found


def test_calls_and_results_are_paired_in_the_order_of_the_log() -> None:
    seen = projected(worked())
    found = pairs_of(seen)
    assert [arguments["command"] for _, _, arguments, _ in found] == [f"cat f{n}" for n in range(6)]
    assert all(f"line of f{n}" in result for n, (*_, result) in enumerate(found))
    assert len({id_ for id_, *_ in found}) == 6 and all(_ID.fullmatch(id_) for id_, *_ in found)
    assert [each["content"][0].get("is_error") for each in seen.anthropic(native_tools=True)["messages"][2::2]] == [*[False] * 5, True]  # fmt: skip


def test_a_result_has_the_arguments_of_its_call_and_an_empty_one_answers_it_too() -> None:
    session = Session()
    session.add("tool.intent", turn=1, tool="read_file", requestId="r1", arguments={"path": "src/a.ts"})
    session.add("file.read", turn=1, tool="read_file", requestId="r1", path="src/a.ts", version="1", content="")
    session.add("tool.intent", turn=2, tool="run_command", requestId="r2", arguments={"command": "true"})
    session.add("command.finished", turn=2, tool="run_command", requestId="r2", command="true", exitCode=0, stdout="")
    found = pairs_of(projected(session))
    assert [(tool, arguments) for _, tool, arguments, _ in found] == [("read_file", {"path": "src/a.ts"}), ("run_command", {"command": "true"})]  # fmt: skip


def test_the_first_message_is_that_of_the_flat_form_and_the_second_has_no_result_again() -> None:
    seen = projected(worked())
    flat, native = seen.openai()["messages"], seen.openai(native_tools=True)["messages"]
    assert native[0] == flat[0]
    assert seen.anthropic(native_tools=True)["system"] == seen.anthropic()["system"]
    assert "line of f2" in flat[-1]["content"] and "line of f2" not in native[-1]["content"]


@pytest.mark.parametrize("most", [300, 700, 1_500, 4_000])
def test_the_native_form_is_within_the_limit(most: int) -> None:
    seen = projected(worked(20, "why " * 60), budget={"maxTokens": most, "reservedOutputTokens": 0})
    counter = load_counters({seen.turn["tokenizer"]}).get(seen.turn["tokenizer"])
    made = seen.anthropic(native_tools=True)
    blocks = [block for message in made["messages"] for block in message["content"]]
    texts = [
        *(block.get("text") or block.get("content") or f"{block['name']}{json.dumps(block['input'])}" for block in blocks),
        *(each["text"] for each in made["system"]), seen.model_input["tool_schemas"],
    ]  # fmt: skip
    assert seen.status == "ok"
    assert counter.count(pa.array(texts, pa.large_string())).sum() <= seen.model_input["input_limit"]


def test_results_that_a_gate_refused_are_no_pairs() -> None:
    session = worked(3)
    for sight in ({"zone": "restricted"}, {"visibility": "user-only"}, {"visibility": "runtime-only"}):
        session.add("command.finished", turn=9, tool="run_command", command="env", stdout="the hidden result", top=sight)  # fmt: skip
    seen = projected(session)
    assert len(pairs_of(seen)) == 3
    assert "the hidden result" not in json.dumps([seen.openai(native_tools=True), seen.anthropic(native_tools=True)])


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [({"a": 1}, {"a": 1}), ("*** Begin Patch", {"input": "*** Begin Patch"}), ([1, 2], {"input": "[1, 2]"}), (None, {"command": "ls"})],
)  # fmt: skip
def test_arguments_of_a_call_are_an_object(arguments: Any, shown: dict[str, Any]) -> None:
    session = Session()
    session.add("command.finished", turn=1, tool="run_command", arguments=arguments, command="ls", stdout="a.ts")
    assert [each for _, _, each, _ in pairs_of(projected(session))] == [shown]


def test_a_name_that_a_provider_refuses_stays_a_line() -> None:
    session = Session()
    session.add("tool.finished", turn=1, tool="mcp server/tool", output="the result")
    seen = projected(session)
    assert pairs_of(seen) == []
    assert "the result" in seen.openai(native_tools=True)["messages"][-1]["content"]


def test_a_recorded_input_has_the_flat_form_alone() -> None:
    seen = projected(worked())
    with pytest.raises(InputError, match="recorded"):
        _ = Projection(seen.turn, seen.model_input, seen.decisions, seen.warnings, seen.turn_state).openai(native_tools=True)  # fmt: skip
