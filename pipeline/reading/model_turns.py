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
from typing import TYPE_CHECKING, Any

from ...nodes.errors import InputError
from ..config.settings import Settings
from ..parsing.quoting import shown
from ..sources.jsonl import Record, parse_json
from .replaying import replayed

if TYPE_CHECKING:
    from ..runs.replay import Replay

__all__ = ["ModelRequestEvent", "ModelTurn", "TurnSnapshot", "load_event", "replayed_turn"]

_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


@dataclass(frozen=True)
class ModelRequestEvent:
    """`ModelRequestEvent` of document 000. `context_hash` is SHA-256 in hex, None if the event has none."""

    snapshot_ids: tuple[str, ...]
    model_input: Path | None
    visible_tools: tuple[str, ...]
    context_hash: str | None
    unread: tuple[str, ...]
    """Fields of the event unrelated to retrieval."""


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
            "visible_tools": list(self.event.visible_tools),
            "unread": list(self.event.unread),
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


def load_event(path: Path) -> ModelRequestEvent:
    """The event in a JSON file.

    Raises:
        InputError: the file cannot be read, is not a JSON object, or a field is invalid.
    """
    at = str(path)
    record = Record(at, parse_json(_bytes(path, "--event names the JSON file of one event"), at))
    snapshots = record.strings("retrievalSnapshotIds")
    if not snapshots:
        raise InputError.expected("snapshot ids", None, record.place("retrievalSnapshotIds"))
    input_ref = record.text("modelInputRef")
    stated = record.text("contextHash")
    found = _SHA256.fullmatch(stated) if stated else None
    if stated and not found:
        raise InputError.expected("a SHA-256 in hex", shown(stated), record.place("contextHash"))
    tools = record.strings("visibleToolSet") or []
    return ModelRequestEvent(
        snapshot_ids=tuple(dict.fromkeys(snapshots)),
        model_input=path.parent / input_ref if input_ref else None,
        visible_tools=tuple(tools),
        context_hash=found[1] if found else None,
        unread=tuple(sorted(record.unread())),
    )


def replayed_turn(settings: Settings, file: Path) -> ModelTurn:
    """The turn of the event in a file that a harness wrote; each snapshot as the principal may see it.

    Raises:
        InputError: the event or the model's input cannot be read.
        AccessError, StoreError, VerificationError: as `replaying.replayed` raises them.
    """
    event = load_event(file)
    hint = "modelInputRef of the event is the file with the model's input, relative to the event's"
    data = _bytes(event.model_input, hint) if event.model_input else None
    snapshots = []
    for name in event.snapshot_ids:
        one = replayed(settings, name)
        found = one.block.encode() in data if data is not None and one.block else None
        snapshots.append(TurnSnapshot(one, found))
    return ModelTurn(event, tuple(snapshots), hashlib.sha256(data).hexdigest() if data is not None else None)


def _bytes(path: Path, hint: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{error.strerror}: {path}", hint=hint) from error
