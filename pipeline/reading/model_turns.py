"""Replay of a model turn: the context of one model request, from its event and the snapshots it names (S0.52, S0.53).

    {"retrievalSnapshotIds": ["retr-snap-..."], "modelInputRef": "turn-7.txt", "visibleToolSet": ["read_file"],
     "contextHash": "sha256:..."}

Nothing is retrieved: every snapshot is replayed, and the model's input is read and hashed. `modelInputRef` is a file,
relative to the event's. The input itself is never copied.

Note: a matching hash of the input proves nothing about the retrievals. Whether a block reached the model is determined
by searching for its bytes in the input.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from ..config.settings import Settings
from ..parsing.data_files import bytes_of
from ..parsing.documents import ModelDocument, Text, document, expected
from ..parsing.quoting import shown
from ..sources.jsonl import parse_json
from .access import replayed

if TYPE_CHECKING:
    from ..runs.replay import Replay

_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


def _hex(value: str) -> str:
    if (found := _SHA256.fullmatch(value)) is None:
        raise expected("a SHA-256 in hex", str(shown(value)))
    return found[1]


class ModelRequestEvent(ModelDocument):
    """`ModelRequestEvent` of document 000. `context_hash` is SHA-256 in hex, None if the event has none."""

    model_config = ConfigDict(extra="allow")

    retrieval_snapshot_ids: Annotated[tuple[Text, ...], Field(min_length=1)]
    model_input_ref: str | None = None
    visible_tool_set: tuple[str, ...] = ()
    context_hash: Annotated[str, AfterValidator(_hex)] | None = None


@dataclass(frozen=True)
class TurnSnapshot:
    """One snapshot of the turn. `in_input`: whether its block is in the model's input, None if there is no block or no
    input.
    """

    replay: Replay
    in_input: bool | None


@dataclass(frozen=True)
class ModelTurn:
    """The context of a model request."""

    event: ModelRequestEvent
    snapshots: tuple[TurnSnapshot, ...]
    input_sha256: str | None
    """SHA-256 of the model's input, None if it was not given."""

    @property
    def input_matches(self) -> bool | None:
        """Whether the input matches the hash in the event; None if either is missing."""
        if self.input_sha256 is None or self.event.context_hash is None:
            return None
        return self.input_sha256 == self.event.context_hash

    @property
    def agrees(self) -> bool:
        """Whether all available checks passed."""
        return self.input_matches is not False and all(one.in_input is not False for one in self.snapshots)

    def as_dict(self) -> dict[str, Any]:
        """The turn as JSON values."""
        return {
            "input_sha256": self.input_sha256,
            "context_hash": self.event.context_hash,
            "input_matches": self.input_matches,
            "visible_tools": list(self.event.visible_tool_set),
            "unread": sorted(self.event.model_extra or ()),
            "snapshots": [
                {
                    "snapshot_id": one.replay.snapshot_id,
                    "run_id": one.replay.run_id,
                    "status": one.replay.status,
                    "block_ref": one.replay.block_ref,
                    "in_input": one.in_input,
                    "citations": one.replay.citations.to_pylist(),
                    "decisions": one.replay.decisions.to_pylist(),
                    "conditions": one.replay.conditions.to_pylist(),
                    "erased": list(one.replay.erased),
                    "block": one.replay.block,
                }
                for one in self.snapshots
            ],
        }


def replayed_turn(settings: Settings, file: Path) -> ModelTurn:
    """The turn of the event in a file that a harness wrote; each snapshot as the principal may see it.

    Raises:
        InputError: the event or the model's input cannot be read.
        AccessError, StoreError, VerificationError: as `access.replayed` raises them.
    """
    content = parse_json(bytes_of(file, "--event names the JSON file of one event"), str(file))
    event = document(ModelRequestEvent, content, str(file))
    hint = "modelInputRef of the event is the file with the model's input, relative to the event's"
    data = bytes_of(file.parent / event.model_input_ref, hint) if event.model_input_ref else None
    snapshots = []
    for name in dict.fromkeys(event.retrieval_snapshot_ids):
        one = replayed(settings, name)
        found = one.block.encode() in data if data is not None and one.block else None
        snapshots.append(TurnSnapshot(one, found))
    return ModelTurn(event, tuple(snapshots), hashlib.sha256(data).hexdigest() if data is not None else None)
