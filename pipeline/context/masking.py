"""Normalization of all text on its way into a projection: masks secrets and gives paths one spelling.

Gives: `masked_values` (events with the secrets of their free texts masked, all events at once), `masked_reference` (a
text that a tool opens), `one_path`, and `from_folder`, which makes a path relative to the working directory.

Note: a text is scanned whole, before anything is cut from it, so that no cut hides half a secret. All masks are equal
but ids are compared, so an id that contains a secret keeps a digest after its mask.
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
from ..parsing.strict_json import json_text
from ..redaction.masking import redact_text, redact_texts
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
"""Fields with ids, words of closed lists and references: they are compared, so two of them must not become equal."""
_ABSOLUTE = re.compile(r"/|[A-Za-z]:/")
_TELLING = re.compile(r"(?i)pass|secret|token|key|credential|auth")
"""Names of fields whose values may be secrets."""
_SHORTEST = 12
_DEEPEST = 64


def listed(values: Any, what: str, at: str) -> list[Any]:
    """Values that a caller passes as a list. A text is not a list, although it is iterable.

    Raises:
        InputError: they are not a list.
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError.of_kind(f"a list of {what}", values, at)
    return list(cast("Iterable[Any]", values))


def expect_unicode(value: Any, at: str) -> None:
    """Reject a lone surrogate, which no file and no table can store.

    Raises:
        InputError: a text in a value has a lone surrogate, or an object a key that JSON lacks.
    """
    json_text(value, at, str, allow_nan=True)


def masked_values(values: Sequence[Any], at: Callable[[int], str]) -> list[Any]:
    """The values with their secrets masked, also in field names; `at` returns the place of each.

    A value whose name suggests a secret (`"password": …`) is scanned together with the name, as it is shown. An id that
    contains a secret keeps a digest after the mask, so that different ids stay different.

    Raises:
        InputError: a text has a lone surrogate, or a value is nested too deeply.
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
    """A field as text for the detector of assigned secrets."""
    return f'{name}: "{value}"'


def masked_reference(reference: str, text: str) -> str:
    """The text of a reference with its secrets masked; in events, which are JSON, every text is masked on its own."""
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
    """A path in the spelling of stored paths: NFC, `/`, no `.` and no empty part; a path that leaves its root keeps its
    `..`, an absolute one its `/`.
    """
    if not path:
        return path
    plain = unicodedata.normalize("NFC", path).replace("\\", "/").replace("\0", "")
    found = normalized_path(path)
    if found is None:
        return plain
    return f"/{found}" if plain.startswith("/") else found


def is_absolute(path: str | None) -> bool:
    """Whether a path is absolute: `/repo`, `C:/repo`."""
    return bool(path and _ABSOLUTE.match(path))


def from_folder(path: str | None, root: str | None) -> str | None:
    """A path relative to an absolute folder if it is below it; others unchanged."""
    if path and root and is_absolute(root):
        return path.removeprefix(f"{root.rstrip('/')}/")
    return path


def column_from_folder(paths: pa.Array, root: str) -> pa.Array:
    """`from_folder` for a column."""
    pattern = f"^{re.escape(root.rstrip('/'))}/"
    return pc.replace_substring_regex(paths, pattern=pattern, replacement="")
