"""Renames errors about a request for its caller: the flag that was typed instead of the request field.

Reads: a table of fields to flags, the settings. Gives: `named_by_flags`, under which an error about
`requests[0].budget.max_tokens` becomes one about `--max-tokens`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["ASK_FLAGS", "RUN_FLAGS", "XRAY_FLAGS", "named_by_flags"]

ASK_FLAGS = {
    "question": "QUESTION",
    "project": "--project",
    "purpose": "--purpose",
    "workspace_root": "--workspace",
    "session_id": "--session",
    "mode": "--mode",
    "failing_test": "--failing-test",
    "error_text": "--error-text",
    "current_files": "--file",
    "as_of": "--as-of",
    "max_tokens": "--max-tokens",
} | {
    field: f"--set {field}"
    for field in ("role", "branch", "namespace", "test_suite", "variables", "allowed_sources", "denied_sources", "allowed_paths",
                  "denied_paths", "principal", "budget.max_chars", "budget.max_items", "output_shape", "detail")
}  # fmt: skip
XRAY_FLAGS = {
    "question": "QUERY",
    "project": "--project",
    "namespace": "--namespace",
    "budget.max_chars": "--budget",
}

RUN_FLAGS = {"project": "--project"}

_PLACE = re.compile(r" - at (?:requests\[0\]|defaults)\.(?P<field>[a-z_.]+)(?:\[\d+\])?$")


@contextmanager
def named_by_flags(flags: Mapping[str, str], settings: Any) -> Iterator[None]:
    """Raise errors about fields of the request as errors about flags; for a setting, about the origin of its value."""
    from ...nodes.errors import InputError

    try:
        yield
    except InputError as error:
        message = error.message
        place = _PLACE.search(message)
        field = place["field"] if place else ""
        field = field if field in flags else field.partition(".")[0]
        if place is None or field not in flags:
            raise
        origin = settings.origin(field) if field in settings.values else "default"
        at = flags[field] if origin == "default" or origin.startswith("flag ") else f"{field}, from the {origin}"
        raise InputError(f"{message[: place.start()]} - at {at}", hint=error.hint) from error
