"""What every text passes on its way into a projection: secrets are masked, paths get one spelling.

Gives: `masked_values` (events with the secrets of their free texts masked, all events at once),
`masked_reference` (a text that a tool opens), `one_path`, and `from_folder`, which names a path from the working directory.

What one would otherwise get wrong: a text is looked through as a whole, before anything is cut from it, so that no cut hides half
a secret. Ids, versions and references stay as they are: masks are alike, and ids are compared.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError
from ..redaction.masking import redact_text, redact_texts
from ..sources.jsonl import is_unicode
from ..sources.row_paths import normalized_path

__all__ = [
    "column_from_folder",
    "expect_unicode",
    "from_folder",
    "is_absolute",
    "masked_reference",
    "masked_values",
    "one_path",
]

_IDS = frozenset((
    "id", "eventId", "event_id", "turnId", "turn_id", "sessionId", "session_id", "kind", "type", "createdAt",
    "created_at", "timestamp", "version", "hash", "sha256", "subject", "phase", "constraintId", "memoryId",
    "memory_id", "requestId", "origin", "actor", "role", "key", "keyEvent", "visibility", "zone", "sensitivity",
    "scope", "lifecycle", "status", "source", "ref", "artifact", "stdoutRef", "stdout_ref", "stderrRef",
    "stderr_ref", "artifacts", "evidenceIds", "evidence_ids", "shown", "retrievalSnapshotIds",
    "retrieval_snapshot_ids", "snapshotIds", "snapshot_ids", "snapshotId", "snapshot_id", "sourceRefs",
    "source_refs", "evidence", "lastVerifiedAt", "last_verified_at", "expiresAt", "expires_at", "contextHash",
    "modelInputRef", "visibleToolSet", "evidence_id", "evidenceId", "label", "block_ref", "blockRef",
))  # fmt: skip
"""Fields that hold ids, words of closed lists and references."""
_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")
_SHORTEST = 12
_DEEPEST = 32


def expect_unicode(value: Any, at: str) -> None:
    """Stop at half of a character: no file and no table takes it.

    Raises:
        InputError: a text in a value has a lone surrogate.
    """
    if not is_unicode(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)):
        raise InputError(f"Expected Unicode text, got a lone surrogate - at {at}")


def masked_values(values: Sequence[Any], at: Callable[[int], str]) -> list[Any]:
    """The values with the secrets of their free texts masked; `at` says where each stands.

    Raises:
        InputError: a text has half of a character.
    """
    for number, value in enumerate(values):
        expect_unicode(value, at(number))
    texts: dict[str, None] = {}
    for value in values:
        _collect(value, texts, 0)
    masks = dict(zip(texts, redact_texts(list(texts)), strict=True))
    changed = {text: masked for text, masked in masks.items() if text != masked}
    return [_replaced(value, changed, 0) for value in values] if changed else list(values)


def _collect(value: Any, texts: dict[str, None], depth: int) -> None:
    if isinstance(value, str):
        if len(value) >= _SHORTEST:
            texts[value] = None
    elif depth < _DEEPEST and isinstance(value, dict):
        for name, each in value.items():
            if name not in _IDS:
                _collect(each, texts, depth + 1)
    elif depth < _DEEPEST and isinstance(value, list):
        for each in value:
            _collect(each, texts, depth + 1)


def _replaced(value: Any, masks: dict[str, str], depth: int) -> Any:
    if isinstance(value, str):
        return masks.get(value, value)
    if depth < _DEEPEST and isinstance(value, dict):
        return {name: each if name in _IDS else _replaced(each, masks, depth + 1) for name, each in value.items()}
    if depth < _DEEPEST and isinstance(value, list):
        return [_replaced(each, masks, depth + 1) for each in value]
    return value


def masked_reference(reference: str, text: str) -> str:
    """The text behind a reference with its secrets masked; of events, which are JSON, the texts in them."""
    if reference.startswith("event:"):
        return json.dumps(masked_values([json.loads(text)], lambda _: reference)[0], ensure_ascii=False, indent=1)
    if reference.startswith("log:"):
        lines = text.split("\n")
        events = [json.loads(line) for line in lines]
        masked = masked_values(events, lambda _: reference)
        return "\n".join(
            line if own == event else json.dumps(own, ensure_ascii=False, separators=(",", ":"))
            for line, event, own in zip(lines, events, masked, strict=True)
        )
    return redact_text(text)


def one_path(path: str | None) -> str | None:
    """A path as stored paths are spelled: NFC, `/`, no `.` and no empty part; one that leaves its root keeps its `..`, one that
    begins at the root of the machine its `/`.
    """
    if not path:
        return path
    plain = unicodedata.normalize("NFC", path).replace("\\", "/").replace("\0", "")
    found = normalized_path(path)
    if found is None:
        return plain
    return f"/{found}" if plain.startswith("/") else found


def is_absolute(path: str | None) -> bool:
    """Whether a path begins at the root of a machine: `/repo`, `C:/repo`."""
    return bool(path and _ABSOLUTE.match(path))


def from_folder(path: str | None, root: str | None) -> str | None:
    """A path below an absolute folder as it is named from there; others as they are."""
    if path and root and is_absolute(root):
        return path.removeprefix(f"{root.rstrip('/')}/")
    return path


def column_from_folder(paths: pa.Array, root: str) -> pa.Array:
    """`from_folder` of a column."""
    pattern = f"^{re.escape(root.rstrip('/'))}/"
    return pc.replace_substring_regex(paths, pattern=pattern, replacement="")
