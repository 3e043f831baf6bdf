"""Results of a projection: model inputs with their ledgers, one or many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import positions
from ...nodes.context_tables import TURN_WARNINGS
from ...nodes.turns.words import TURN_CONDITIONS
from . import shapes
from .artifacts import Artifacts
from .before_horizon import BeforeHorizon, Decisions

__all__ = ["Projection", "Projections"]


@dataclass(frozen=True)
class Projection:
    """`ModelInputProjection` of document 003 (S3.17): one turn."""

    turn: Mapping[str, Any]
    model_input: Mapping[str, Any]
    decisions: Sequence[Mapping[str, Any]]
    """The rows of the ledger."""
    warnings: Sequence[Mapping[str, Any]]
    state: Mapping[str, Any]
    artifacts: Artifacts = field(default_factory=Artifacts)
    """The targets of references to the loaded events."""
    load_texts: Callable[[], Mapping[str, str]] = field(default=dict, compare=False)
    isolated: Callable[[], pa.Table | None] = field(default=lambda: None, compare=False)
    """The lines of its sources, from the table `isolated`."""

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Texts of loaded rules, constraints, memories, matches and items, by source; a record has only those of its input."""
        return self.load_texts()

    @cached_property
    def lines(self) -> Mapping[str, str]:
        """The rendered lines of each source, with margins; a record has only those of its input."""
        table = self.isolated()
        rows = [] if table is None else table.select(["source_id", "body"]).to_pylist()
        return {row["source_id"]: row["body"] for row in rows if row["body"]}

    @property
    def input_id(self) -> str:
        return self.turn["input_id"]

    @property
    def status(self) -> str:
        """`ok`, or `over_budget`: then nothing is shown."""
        return self.model_input["status"]

    @property
    def messages(self) -> list[dict[str, str]]:
        return shapes.messages(self.model_input)

    @property
    def tool_schemas(self) -> list[dict[str, Any]]:
        return shapes.tool_schemas(self.model_input)

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
        """The whole text of a reference in this input (`artifact:…`, `event:…`, `log:0-41`), its secrets masked, if the
        events were passed as a list. References into a log folder are opened by `SessionLog.open_ref`.

        Raises:
            InputError: no loaded event has it.
        """
        return self.artifacts.open(reference, self.input_id)

    def neutral(self) -> str:
        """The neutral form, whose SHA-256 is `input_sha256`."""
        return shapes.neutral_json(self.model_input)

    def openai(self) -> dict[str, Any]:
        return shapes.openai(self.model_input)

    def anthropic(self) -> dict[str, Any]:
        return shapes.anthropic(self.model_input)

    def ledger(self) -> dict[str, Any]:
        """`ContextDecisionLedger` (S3.39)."""
        return shapes.ledger(self.turn, self.model_input, self.decisions)

    def decision(self, source_id: str) -> Mapping[str, Any]:
        """The ledger row of a source.

        Raises:
            KeyError: the turn has no such source.
        """
        return next((row for row in self.decisions if row["source_id"] == source_id), None) or _unknown(source_id)

    def request_event(self, *, event_id: str, created_at: str, model_input_ref: str | None = None) -> dict[str, Any]:
        """The `model.request` event to append to the session log once the input was sent: what was shown, and its hash (S0.52)."""
        shown = [row for row in self.decisions if row["mode"] in ("full", "excerpt", "summary")]
        evidence = [row["evidence_id"] for row in shown if row["evidence_id"]]
        memories = [row["reference"] for row in shown if row["source_kind"] == "memory_candidate"]
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
                "evidenceIds": [*evidence, *memories],
            },
        }

    def as_dict(self) -> dict[str, Any]:
        """`ModelInputProjection` as JSON values."""
        return {
            "modelInputId": self.input_id,
            "status": self.status,
            "messages": self.messages,
            "toolSchemas": self.tool_schemas,
            "decisions": shapes.decisions(self.decisions),
            "estimatedTokens": self.estimated_tokens,
            "tokenizer": self.model_input["tokenizer"],
            "upperBound": self.model_input["upper_bound"],
            "partTokens": self.part_tokens,
            "inputSha256": self.input_sha256,
            "prefixSha256": self.model_input["prefix_sha256"],
            "retrievalSnapshotIds": list(self.model_input["snapshot_ids"]),
            "warnings": [dict(row) for row in self.warnings],
            "ledger": self.ledger(),
        }


def _unknown(source_id: str) -> Mapping[str, Any]:
    raise KeyError(source_id)


def _of_input(tables: Mapping[str, pa.Table], input_id: str) -> pa.Table:
    isolated = tables["isolated"]
    return isolated.filter(pc.equal(isolated["input_id"], input_id))


@dataclass(frozen=True)
class Projections:
    """Many turns: the tables of the line, and one `Projection` for each turn."""

    turns: pa.Table
    tables: Mapping[str, pa.Table]
    artifacts: Artifacts = field(default_factory=Artifacts)
    before_horizon: BeforeHorizon | None = None
    """The sources of the turns: the ledger has a row for each."""
    load_texts: Callable[[], Mapping[str, str]] = dict
    """Texts of the inputs, by source."""

    def __len__(self) -> int:
        return self.turns.num_rows

    def __iter__(self) -> Iterator[Projection]:
        return (self[place] for place in range(len(self)))

    @cached_property
    def _bounds(self) -> dict[str, dict[str, tuple[int, int]]]:
        """The range of rows of each turn in each table with several per turn."""
        found: dict[str, dict[str, tuple[int, int]]] = {}
        for name in ("context_decisions", "turn_warnings"):
            bounds: dict[str, tuple[int, int]] = {}
            for place, id_ in enumerate(self.tables[name]["input_id"].to_pylist()):
                bounds[id_] = (bounds.get(id_, (place, 0))[0], place + 1)
            found[name] = bounds
        return found

    def __getitem__(self, place: int) -> Projection:
        place = range(len(self))[place]
        turn = self.turns.slice(place, 1).to_pylist()[0]
        rows: dict[str, list[dict[str, Any]]] = {}
        for name, bounds in self._bounds.items():
            start, end = bounds.get(turn["input_id"], (0, 0))
            rows[name] = self.tables[name].slice(start, end - start).to_pylist()
        one = {name: self.tables[name].slice(place, 1).to_pylist()[0] for name in ("model_inputs", "turn_states")}
        near, older = rows["context_decisions"], self.before_horizon
        return Projection(
            turn,
            one["model_inputs"],
            near if older is None else Decisions(near, partial(older.rows, turn)),
            rows["turn_warnings"],
            one["turn_states"],
            self.artifacts,
            self.load_texts,
            partial(_of_input, self.tables, turn["input_id"]),
        )

    def under(self, condition: str, message: str) -> Projections:
        """These inputs, each with one more condition."""
        inputs, warnings = self.turns["input_id"], self.tables["turn_warnings"]
        more = {
            "input_id": inputs,
            "condition": pa.repeat(condition, len(self)),
            "message": pa.repeat(message, len(self)),
        }
        table = pa.concat_tables([warnings, TURN_WARNINGS.build(more)]).combine_chunks()
        which = np.asarray(pc.index_in(table["condition"], value_set=pa.array(TURN_CONDITIONS.values, pa.string())))
        order = np.lexsort((which, positions(table["input_id"], inputs)))
        return replace(self, tables={**self.tables, "turn_warnings": table.take(pa.array(order)).combine_chunks()})

    def named(self, input_id: str) -> Projection:
        """The projection of a model input.

        Raises:
            KeyError: there is none with that id.
        """
        return self[self.turns["input_id"].to_pylist().index(input_id)]
