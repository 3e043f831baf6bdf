"""A model input in the shapes of providers, and the ledger in the shape of document 003.

Reads rows of the line. Gives `messages` and `neutral_json`, `openai`, `anthropic`, `decisions` (S3.14), `ledger` (S3.39).

Note: every shape has the same two texts. The first may instruct and seldom changes, so a prompt cache can keep it; the
recorded digest is that of the neutral form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ...nodes.turns.frame import neutral
from ...nodes.turns.words import LEDGER_TRUST

Row = Mapping[str, Any]


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


def openai(model_input: Row) -> dict[str, Any]:
    """`messages` and `tools` of OpenAI's chat completions."""
    tools = [{"type": "function", "function": schema} for schema in tool_schemas(model_input)]
    filled = [message for message in messages(model_input) if message["content"]]
    return {"messages": filled, "tools": tools} if tools else {"messages": filled}


def anthropic(model_input: Row) -> dict[str, Any]:
    """`system`, `messages` and `tools` of Anthropic's messages; the first text is marked for the prompt cache."""
    made: dict[str, Any] = {}
    if model_input["system_text"]:
        made["system"] = [{"type": "text", "text": model_input["system_text"], "cache_control": {"type": "ephemeral"}}]
    text = model_input["user_text"]
    made["messages"] = [{"role": "user", "content": [{"type": "text", "text": text}]}] if text else []
    if schemas := tool_schemas(model_input):
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
