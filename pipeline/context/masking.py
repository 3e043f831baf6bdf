"""What every text passes on its way into a projection: secrets are masked, paths get one spelling.

Gives: `masked_values` (events with the secrets of their free texts masked, all events at once),
`masked_reference` (a text that a tool opens), `one_path`, and `from_folder`, which names a path from the working directory.

Note: a text is looked through as a whole, before anything is cut from it, so that no cut hides half
a secret. Masks are alike and ids are compared: an id that holds a secret keeps a digest behind its mask.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

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
    "listed",
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
"""Fields that hold ids, words of closed lists and references: they are compared, so two of them must not become one."""
_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")
_TELLING = re.compile(r"(?i)pass|secret|token|key|credential|auth")
"""Names of fields whose value may be a secret because of the name."""
_SHORTEST = 12
_DEEPEST = 64


def listed(values: Any, what: str, at: str) -> list[Any]:
    """Values that a caller gives as a list. A text is none, though its letters could be read one by one.

    Raises:
        InputError: they are something else.
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError.of_kind(f"a list of {what}", values, at)
    return list(cast("Iterable[Any]", values))


def expect_unicode(value: Any, at: str) -> None:
    """Stop at half of a character: no file and no table takes it.

    Raises:
        InputError: a text in a value has a lone surrogate.
    """
    if not is_unicode(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)):
        raise InputError(f"Expected Unicode text, got a lone surrogate - at {at}")


def masked_values(values: Sequence[Any], at: Callable[[int], str]) -> list[Any]:
    """The values with their secrets masked, names of fields included; `at` gives the place of each.

    What a name says is a secret (`"password": …`) is looked at together with its name, as it is shown. An id that holds a secret
    keeps a digest behind the mask, so that two of them stay two.

    Raises:
        InputError: a text has half of a character, or a value is nested too deeply.
    """
    texts: dict[str, None] = {}
    for number, value in enumerate(values):
        _collect(value, texts, at(number), 0)
        expect_unicode(value, at(number))
    masks = dict(zip(texts, redact_texts(list(texts)), strict=True))
    changed = {text: masked for text, masked in masks.items() if text != masked}
    return [_replaced(value, changed) for value in values] if changed else list(values)


def _collect(value: Any, texts: dict[str, None], at: str, depth: int) -> None:
    if depth > _DEEPEST:
        raise InputError.described(f"at most {_DEEPEST} levels of nesting", "more", at)
    if isinstance(value, str):
        if len(value) >= _SHORTEST:
            texts[value] = None
    elif isinstance(value, dict):
        for name, each in value.items():
            _collect(name, texts, at, depth)
            _collect(each, texts, at, depth + 1)
            if isinstance(each, str) and _TELLING.search(str(name)):
                texts[_stated(name, each)] = None
    elif isinstance(value, list):
        for each in value:
            _collect(each, texts, at, depth + 1)


def _replaced(value: Any, masks: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return masks.get(value, value)
    if isinstance(value, dict):
        return {masks.get(name, name): _field(name, each, masks) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, masks) for each in value]
    return value


def _field(name: Any, value: Any, masks: Mapping[str, str]) -> Any:
    if not isinstance(value, str):
        return _replaced(value, masks)
    masked = masks.get(value, value)
    if masked != value:
        return f"{masked}~{sha256(value.encode()).hexdigest()[:8]}" if name in _IDS else masked
    stated = masks.get(_stated(name, value)) if _TELLING.search(str(name)) else None
    if stated is None:
        return value
    return stated.removeprefix(_stated(name, "")[:-1]).removesuffix('"')


def _stated(name: Any, value: str) -> str:
    """A field as a text that a detector of assigned secrets reads."""
    return f'{name}: "{value}"'


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
