"""A model input in the shapes of providers, and the ledger in the shape of document 003.

Reads rows of the line. Gives `messages` and `neutral_json`, `openai`, `anthropic`, `decisions` (S3.14), `ledger` (S3.39).

Note: every shape has the same two texts. The first may instruct and seldom changes, so a prompt cache can keep it; the
recorded digest is that of the neutral form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...nodes.errors import InputError
from ...nodes.turns.frame import neutral
from ...nodes.turns.words import LEDGER_TRUST
from .native import CALLS_FOLLOW, Native

__all__ = ["anthropic", "decisions", "ledger", "messages", "neutral_json", "openai", "tool_schemas"]

Row = Mapping[str, Any]

_LONGEST_NAME = {"OpenAI": 64, "Anthropic": 128}
"""Most characters in the name of a tool."""
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


def messages(model_input: Row) -> list[dict[str, str]]:
    """The two messages in provider-neutral form."""
    return [
        {"role": "system", "content": model_input["system_text"]},
        {"role": "user", "content": model_input["user_text"]},
    ]


def tool_schemas(model_input: Row) -> list[dict[str, Any]]:
    """The visible tools: name, description, parameters."""
    return [json.loads(line) for line in model_input["tool_schemas"].split("\n") if line]


def neutral_json(model_input: Row) -> str:
    """The neutral form, the bytes whose SHA-256 is recorded."""
    schemas = [line for line in model_input["tool_schemas"].split("\n") if line]
    return neutral(model_input["system_text"], model_input["user_text"], schemas)


def _accepted_schemas(model_input: Row, provider: str) -> list[dict[str, Any]]:
    schemas, longest = tool_schemas(model_input), _LONGEST_NAME[provider]
    if refused := [s["name"] for s in schemas if len(s["name"]) > longest or _REFUSED.search(s["name"])]:
        raise InputError.described(
            f"names of up to {longest} of the letters a to z, digits, `_` and `-`, which {provider} accepts", ", ".join(map(repr, refused)), "tools",
            hint="rename the tool, or map its name before and behind the request; `neutral()` has it as it is.",
        )  # fmt: skip
    return schemas


def openai(model_input: Row, native: Native | None = None) -> dict[str, Any]:
    """`messages` and `tools` of OpenAI's chat completions; with `native`, results of tools as calls and `tool` messages.

    Raises:
        InputError: a visible tool has a name that the provider refuses.
    """
    tools = [{"type": "function", "function": schema} for schema in _accepted_schemas(model_input, "OpenAI")]
    system, user = messages(model_input)
    made: list[dict[str, Any]] = [system]
    for pair in native.pairs if native else ():
        call = {"name": pair["tool"], "arguments": json.dumps(pair["arguments"], ensure_ascii=False)}
        made.append({"role": "assistant", "tool_calls": [{"id": pair["id"], "type": "function", "function": call}]})
        made.append({"role": "tool", "tool_call_id": pair["id"], "content": pair["result"]})
    made.append({**user, "content": native.user_text if native else user["content"]})
    filled = [message for message in made if message.get("content") or message["role"] in ("assistant", "tool")]
    return {"messages": filled, "tools": tools} if tools else {"messages": filled}


def anthropic(model_input: Row, native: Native | None = None) -> dict[str, Any]:
    """`system`, `messages` and `tools` of Anthropic's messages; the first text is marked for the prompt cache. With
    `native`, results of tools are `tool_use` and `tool_result` blocks.

    Raises:
        InputError: a visible tool has a name that the provider refuses.
    """
    made: dict[str, Any] = {}
    if model_input["system_text"]:
        made["system"] = [{"type": "text", "text": model_input["system_text"], "cache_control": {"type": "ephemeral"}}]
    text = native.user_text if native else model_input["user_text"]
    turns: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = [{"type": "text", "text": CALLS_FOLLOW}] if native and native.pairs else []
    for pair in native.pairs if native else ():
        use = {"type": "tool_use", "id": pair["id"], "name": pair["tool"], "input": pair["arguments"]}
        turns += [{"role": "user", "content": content}, {"role": "assistant", "content": [use]}]
        content = [
            {"type": "tool_result", "tool_use_id": pair["id"], "content": pair["result"], "is_error": pair["failed"]}
        ]
    content += [{"type": "text", "text": text}] if text else []
    made["messages"] = [*turns, {"role": "user", "content": content}] if content else turns
    if schemas := _accepted_schemas(model_input, "Anthropic"):
        made["tools"] = [
            {"name": s["name"], "description": s["description"], "input_schema": s["parameters"]} for s in schemas
        ]
    return made


def decisions(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """`ContextDecision[]` of document 003 (S3.14)."""
    return [
        {
            "sourceKind": row["source_kind"],
            "action": row["action"],
            "reason": row["reason"],
            "tokenBudget": row["token_budget"],
            "trustLevel": row["trust_level"],
        }
        for row in rows
    ]


def ledger(turn: Row, model_input: Row, rows: Iterable[Row]) -> dict[str, Any]:
    """`ContextDecisionLedger` of document 003 (S3.39)."""
    included: list[dict[str, Any]] = []
    excluded: list[dict[str, Any]] = []
    compactions: list[dict[str, Any]] = []
    for row in rows:
        named = {"sourceId": row["source_id"], "sourceKind": row["source_kind"]}
        if row["action"] == "exclude":
            excluded.append({**named, "reason": row["reason"]})
            continue
        included.append(
            {**named, "mode": row["mode"], "reason": row["reason"], "trustLevel": LEDGER_TRUST[row["standing"]]}
        )
        if row["summary_id"]:
            compactions.append(
                {"sourceId": row["source_id"], "summaryId": row["summary_id"], "originalRef": row["original_ref"]}
            )
    return {
        "runId": turn["run_id"],
        "turnId": turn["turn_id"],
        "modelInputId": turn["input_id"],
        "estimatedTokens": model_input["tokens"],
        "included": included,
        "excluded": excluded,
        "compactions": compactions,
    }
