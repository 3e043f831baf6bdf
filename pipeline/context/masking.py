"""Normalization of all text on its way into a projection: masks secrets and gives paths one spelling.

Gives: `masked_values` (values with the secrets of their free texts masked, all at once), `one_path`, and `from_folder`,
which makes a path relative to the working directory.

Note: a text is scanned whole, before anything is cut from it, so that no cut hides half a secret. All masks are equal
but ids are compared, so an id that contains a secret keeps a digest after its mask.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

from ...nodes.errors import InputError
from ..parsing.strict_json import json_text
from ..redaction.masking import redact_text
from ..sources.importing import normalized_path

_COMPARED = frozenset((
    "id", "eventid", "turnid", "sessionid", "requestid", "constraintid", "memoryid", "subject", "version", "hash", "sha256", "ref",
    "artifact", "artifacts", "stdoutref", "stderrref", "evidenceid", "evidenceids", "snapshotid", "snapshotids", "retrievalsnapshotids",
    "sourcerefs", "evidence", "label", "blockref",
))  # fmt: skip
"""Fields with ids and references: they are compared, so two of them must not become equal."""
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
    masks: dict[str, str] = {}
    for number, value in enumerate(values):
        expect_unicode(value, at(number))
    return [_masked(value, masks, at(number)) for number, value in enumerate(values)]


def _masked(value: Any, masks: dict[str, str], at: str, name: str = "", depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise InputError.described(f"at most {_DEEPEST} levels of nesting", "more", at)
    if isinstance(value, dict):
        return {
            _redacted(key, masks) if isinstance(key, str) else key: _masked(each, masks, at, str(key), depth + 1)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_masked(each, masks, at, name, depth + 1) for each in value]
    if not isinstance(value, str):
        return value
    if (masked := _redacted(value, masks)) != value:
        compared = name.replace("_", "").lower() in _COMPARED
        return f"{masked}~{sha256(value.encode()).hexdigest()[:8]}" if compared else masked
    if _TELLING.search(name):  # as text for the detector of assigned secrets
        return _redacted(f'{name}: "{value}"', masks).removeprefix(f'{name}: "').removesuffix('"')
    return value


def _redacted(text: str, masks: dict[str, str]) -> str:
    """A text without its secrets; each distinct text is scanned once."""
    if len(text) < _SHORTEST:
        return text
    if text not in masks:
        masks[text] = redact_text(text)
    return masks[text]


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
