"""Results of a projection: model inputs with their ledgers, one or many, and the difference between two.

Note: every shape of an input has the same two texts. The first may instruct and seldom changes, so a prompt cache can
keep it; the recorded digest is that of the neutral form.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic.alias_generators import to_camel

from ...nodes.blocks.token_counting import BASE
from ...nodes.context_tables import CONTEXT_TABLES, TURN_WARNINGS
from ...nodes.turns.frame import neutral
from ...nodes.turns.words import LEDGER_TRUST
from .artifacts import Artifacts


@dataclass(frozen=True)
class Projection:
    """`ModelInputProjection` of document 003 (S3.17): one turn."""

    turn: Mapping[str, Any]
    turn_state: Mapping[str, Any]
    model_input: Mapping[str, Any]
    decisions: Sequence[Mapping[str, Any]]
    """The rows of the ledger."""
    warnings: Sequence[Mapping[str, Any]]
    artifacts: Artifacts = field(default_factory=Artifacts)
    """The targets of references to the loaded events."""

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table], artifacts: Artifacts) -> Projection:
        """The turn whose rows these tables have."""
        (turn,), (state,), (model_input,), decisions, warnings = (tables[name].to_pylist() for name in CONTEXT_TABLES)
        return cls(turn, state, model_input, decisions, warnings, artifacts)

    @property
    def state(self) -> dict[str, Any]:
        """The AgentState of document 003 (S3.58) as of the turn, with what it holds besides."""
        row = self.turn_state
        constraints, checks = json.loads(row["constraints"]), json.loads(row["checks"])
        failing = [each for each in checks if each["status"] == "failed"]
        observation = row["latest_observation"]
        return {
            "userGoal": row["user_goal"], "phase": row["phase"], "phaseStated": row["phase_stated"],
            "activeConstraints": [each["text"] for each in constraints if not each["proposed"]], "constraints": constraints,
            "latestObservation": json.loads(observation) if observation else None, "modifiedFiles": row["modified_files"],
            "artifactRefs": row["artifact_refs"], "turnCount": row["turn_count"], "checks": checks,
            "currentFailure": failing[-1]["summary"] if failing else None, "latestCommand": row["latest_command"], "plan": row["plan"], "readFiles": row["read_files"],
            "pendingApprovals": json.loads(row["approvals"]), "unstatedChanges": row["unstated_changes"],
            "budget": {"maxTokens": self.turn["max_tokens"], "reservedOutputTokens": self.turn["reserved_output_tokens"]},
        }  # fmt: skip

    @property
    def input_id(self) -> str:
        return self.turn["input_id"]

    @property
    def status(self) -> str:
        """`ok`, or `over_budget`: then nothing is shown."""
        return self.model_input["status"]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The two messages in provider-neutral form."""
        texts = {"system": self.model_input["system_text"], "user": self.model_input["user_text"]}
        return [{"role": role, "content": text} for role, text in texts.items()]

    @property
    def tool_schemas(self) -> list[dict[str, Any]]:
        """The visible tools: name, description, parameters."""
        return [json.loads(line) for line in self._schemas]

    @property
    def _schemas(self) -> list[str]:
        return list(filter(None, self.model_input["tool_schemas"].split("\n")))

    @property
    def estimated_tokens(self) -> int:
        """Tokens of messages and schemas under the named counter; if `status` is `over_budget`, those of the required
        parts, which exceed the limit.
        """
        return self.model_input["tokens"]

    @property
    def part_tokens(self) -> dict[str, int]:
        """`estimated_tokens` by part: the eight parts, and `frame` for fences and headings."""
        return {
            name: int(count) for name, _, count in (each.partition("=") for each in self.model_input["part_tokens"])
        }

    @property
    def input_sha256(self) -> str:
        return self.model_input["input_sha256"]

    @property
    def conditions(self) -> list[str]:
        return [row["condition"] for row in self.warnings]

    def text(self) -> str:
        """Both messages as one text, for display."""
        return self.model_input["system_text"] + self.model_input["user_text"]

    def open(self, reference: str) -> str:
        """The whole text of a reference in this input (`artifact:…`, `event:…`, `log:0-41`), its secrets masked.

        Raises:
            InputError: no loaded event that the turn may see has it.
        """
        return self.artifacts.open(reference, self.input_id, self.turn["zones"])

    def neutral(self) -> str:
        """The neutral form, the bytes whose SHA-256 is `input_sha256`."""
        seen = self.model_input
        return neutral(seen["system_text"], seen["user_text"], self._schemas)

    def openai(self) -> dict[str, Any]:
        """`messages` and `tools` of OpenAI's chat completions."""
        tools = [{"type": "function", "function": schema} for schema in self.tool_schemas]
        filled = [message for message in self.messages if message["content"]]
        return {"messages": filled, "tools": tools} if tools else {"messages": filled}

    def anthropic(self) -> dict[str, Any]:
        """`system`, `messages` and `tools` of Anthropic's messages; the first text is marked for the prompt cache."""
        system, user = (
            [{"type": "text", "text": each["content"]}] if each["content"] else [] for each in self.messages
        )
        tools = [
            {"name": s["name"], "description": s["description"], "input_schema": s["parameters"]}
            for s in self.tool_schemas
        ]
        made = {
            "system": [{**text, "cache_control": {"type": "ephemeral"}} for text in system],
            "messages": [{"role": "user", "content": user}] if user else [],
            "tools": tools,
        }
        return {name: each for name, each in made.items() if each or name == "messages"}

    def ledger(self) -> dict[str, Any]:
        """`ContextDecisionLedger` of document 003 (S3.39)."""
        shown = [row for row in self.decisions if row["action"] != "exclude"]
        return {
            "runId": self.turn["run_id"],
            "turnId": self.turn["turn_id"],
            "modelInputId": self.input_id,
            "estimatedTokens": self.estimated_tokens,
            "included": [
                {
                    **_fields(row, "source_id", "source_kind", "mode", "reason"),
                    "trustLevel": LEDGER_TRUST[row["trust_level"]],
                }
                for row in shown
            ],
            "excluded": [
                _fields(row, "source_id", "source_kind", "reason")
                for row in self.decisions
                if row["action"] == "exclude"
            ],
            "compactions": [
                _fields(row, "source_id", "summary_id", "original_ref") for row in shown if row["summary_id"]
            ],
        }

    def context_decisions(self) -> list[dict[str, Any]]:
        """`ContextDecision[]` of document 003 (S3.14)."""
        names = ("source_kind", "action", "reason", "token_budget", "trust_level")
        return [_fields(row, *names) for row in self.decisions]

    def decision(self, source_id: str) -> Mapping[str, Any]:
        """The ledger row of a source.

        Raises:
            KeyError: the turn has no such source.
        """
        return {row["source_id"]: row for row in self.decisions}[source_id]

    def request_event(self, *, event_id: str, created_at: str, model_input_ref: str | None = None) -> dict[str, Any]:
        """The `model.request` event to append to the session log once the input was sent: what was shown, and its hash (S0.52)."""
        shown = [row for row in self.decisions if row["mode"] in ("full", "excerpt", "summary")]
        return {
            "id": event_id,
            "turnId": self.turn["turn_id"],
            "kind": "model.request",
            "createdAt": created_at,
            "payload": {
                "retrievalSnapshotIds": list(self.model_input["snapshot_ids"]),
                "modelInputRef": model_input_ref or self.input_id,
                "visibleToolSet": list(self.model_input["tools"]),
                "contextHash": f"sha256:{self.input_sha256}",
                "evidenceIds": [row["evidence_id"] for row in shown if row["evidence_id"]],
            },
        }

    def as_dict(self) -> dict[str, Any]:
        """`ModelInputProjection` as JSON values."""
        return {
            "modelInputId": self.input_id,
            "status": self.status,
            "messages": self.messages,
            "toolSchemas": self.tool_schemas,
            "decisions": self.context_decisions(),
            "estimatedTokens": self.estimated_tokens,
            "tokenizer": self.turn["tokenizer"],
            "upperBound": self.turn["tokenizer"] == BASE,
            "partTokens": self.part_tokens,
            "inputSha256": self.input_sha256,
            "prefixSha256": self.model_input["prefix_sha256"],
            "retrievalSnapshotIds": list(self.model_input["snapshot_ids"]),
            "warnings": [dict(row) for row in self.warnings],
            "ledger": self.ledger(),
        }


@dataclass(frozen=True)
class Projections:
    """Many turns: `CONTEXT_TABLES`, and one `Projection` for each turn."""

    tables: Mapping[str, pa.Table]
    artifacts: Artifacts

    def __len__(self) -> int:
        return self.tables["context_turns"].num_rows

    def __iter__(self) -> Iterator[Projection]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> Projection:
        input_id = self.tables["context_turns"]["input_id"][range(len(self))[place]].as_py()
        return Projection.of({name: rows_of(table, input_id) for name, table in self.tables.items()}, self.artifacts)

    def under(self, condition: str, message: str) -> Projections:
        """These inputs, each with one more condition."""
        ids = self.tables["context_turns"]["input_id"].to_pylist()
        more = TURN_WARNINGS.from_rows([{"input_id": id_, "condition": condition, "message": message} for id_ in ids])
        warnings = pa.concat_tables([self.tables["turn_warnings"], more]).combine_chunks()
        return replace(self, tables={**self.tables, "turn_warnings": warnings})


def rows_of(table: pa.Table, input_id: str) -> pa.Table:
    """The rows of one input."""
    return table.filter(pc.equal(table["input_id"], input_id)).combine_chunks()


def _fields(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Columns of a row in the spelling of document 003."""
    return {to_camel(name): row[name] for name in names}


def difference(first: Projection, second: Projection) -> dict[str, Any]:
    """The difference between two inputs: sources, tokens, and lines."""
    rows = [{row["source_id"]: row for row in each.decisions} for each in (first, second)]
    shown = [{id_: row for id_, row in each.items() if row["mode"] != "none"} for each in rows]
    changed = []
    for id_ in sorted(rows[0].keys() & rows[1].keys()):
        both = {name: [each[id_][name] for each in rows] for name in ("action", "mode", "reason_code")}
        if differ := {name: values for name, values in both.items() if values[0] != values[1]}:
            changed.append({"source_id": id_, **differ})
    lines = difflib.unified_diff(_lines(first), _lines(second), first.input_id, second.input_id, lineterm="", n=1)
    return {
        "inputs": [first.input_id, second.input_id],
        "same_input": first.input_sha256 == second.input_sha256,
        "same_prefix": first.model_input["prefix_sha256"] == second.model_input["prefix_sha256"],
        "phase": [first.state["phase"], second.state["phase"]],
        "tokens": [first.estimated_tokens, second.estimated_tokens],
        "part_tokens": {
            name: [count, second.part_tokens[name]]
            for name, count in first.part_tokens.items()
            if count != second.part_tokens[name]
        },
        "only_in_first": sorted(shown[0].keys() - shown[1].keys()),
        "only_in_second": sorted(shown[1].keys() - shown[0].keys()),
        "changed": changed,
        "warnings": [sorted(first.conditions), sorted(second.conditions)],
        "diff": list(lines),
    }


def _lines(seen: Projection) -> list[str]:
    """The lines of an input without its nonces, which differ whenever anything does."""
    return re.sub(
        r"(?m)^(</?[a-z_]+|==== (?:begin|end) [a-z ]+?) [a-z]{7}(?= source=|>| ====)", r"\1", seen.text()
    ).splitlines()
