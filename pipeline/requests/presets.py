"""Presets: request fields in a file, which bound every request under them.

    {"project": "shop", "purpose": "explain-code", "allowed_paths": ["src/"], "budget": {"max_tokens": 600},
     "workspace_root": null}

A field in the file is a default of the request; if the request sets it, too, both bind. `null` fixes a place as
none. A list inside a list of allowances names patterns that must all match. A preset is not access control: callers can
leave it out, but not their grants.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError
from ...nodes.scope.selectors import AND
from ..parsing.quoting import shown_key, shown_row
from ..parsing.yaml_files import parse
from .fields import PATTERNS, column_of, columns_of
from .narrowing import PLACES, Fields, narrowed


@dataclass(frozen=True)
class Preset:
    """The fields of a preset."""

    fields: Fields

    @cached_property
    def digest(self) -> str:
        """The first 16 hex digits of the SHA-256 over their values."""
        text = json.dumps(plain_fields(self.fields), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def bound(self, given: Mapping[str, Any], at: str) -> dict[str, Any]:
        """The columns of a request, bounded."""
        return {**narrowed(self.fields, Fields(given), at).given, "preset": self.digest}


def fields_in(path: str | Path) -> Fields:
    """The request fields of a JSON or YAML file; `null` fixes a place as none.

    Raises:
        InputError: the file cannot be read, or is not one row of request fields.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{error.strerror}: file of request fields {path}") from error
    content = parse(data, path.name)
    if not isinstance(content, dict):
        raise InputError.of_kind("one object of request fields", content, path.name)
    return fields_named(content, path.name)


def fields_named(content: Mapping[str, Any], at: str) -> Fields:
    """The fields of an object as a request has it; `null` fixes a place as none.

    Raises:
        InputError: it is not one row of request fields.
    """
    columns = {name: column_of(name) for name, value in content.items() if value is None}
    for name, column in columns.items():
        if column not in PLACES:
            raise InputError.described(f"a value, or none for {', '.join(PLACES)}", "none", f"{at}.{shown_key(name)}")
    try:
        read = columns_of(content, at)
    except InputError:
        columns_of(shown_row(content), at)
        raise
    return Fields(read, frozenset(column for column in columns.values() if column))


def plain_fields(fields: Fields) -> dict[str, Any]:
    """The fields as JSON values, sorted by name, as `fields_in` reads them."""
    plain = {name: _plain(name, value) for name, value in fields.given.items()}
    return dict(sorted((plain | dict.fromkeys(fields.without)).items()))


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if name in PATTERNS:
        parts = [pattern.split(AND) for pattern in value]
        return [part[0] if len(part) == 1 else part for part in parts]
    return value
