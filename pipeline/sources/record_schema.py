"""The schema of structured records, `<file>.schema.yaml` beside `<file>.csv` or `.yaml`: key, columns, types.

    key: engagement_id
    columns:
      engagement_id: {type: id, required: true}
      fee: money
      deadline: {type: date}

Gives: `schema_beside`, and `RecordSchema.check` for one record. Without a schema the key is the column `id`, else the
first one, and values are text.

Note: a value that does not match its type is an import error, never a null; a record that may not be canonical must not
become evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from ...nodes.errors import InputError, PolicyError
from ...nodes.vocabulary import LEVELS, ZONES, Vocabulary
from ..parsing.documents import TEXT, Document, document, word
from ..parsing.quoting import shown_key
from ..parsing.yaml_files import parse

__all__ = ["SCHEMA_SUFFIX", "TYPES", "RecordSchema", "schema_beside"]

SCHEMA_SUFFIX = ".schema.yaml"

_MONEY = re.compile(r"(?:[A-Z]{3} ?|[$\u20ac\u00a3])?-?\d{1,3}(?:,?\d{3})*(?:\.\d+)?(?: ?[A-Z]{3})?|-?\d+(?:\.\d+)?")


def _decimal(value: str) -> bool:
    try:
        return Decimal(value.replace(",", "")).is_finite()
    except InvalidOperation:
        return False


def _date(value: str) -> bool:
    try:
        return bool(date.fromisoformat(value))
    except ValueError:
        return False


def _datetime(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


TYPES: dict[str, tuple[str, Callable[[str], object]]] = {
    "text": ("text", lambda value: True),
    "id": ("an id without spaces", lambda value: not re.search(r"\s", value)),
    "ulid": ("a ULID of 26 characters", re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}").fullmatch),
    "date": ("a date such as 2025-11-15", _date),
    "datetime": ("a time with an offset, such as 2025-11-15T12:00:00Z", _datetime),
    "integer": ("a whole number", re.compile(r"-?\d+").fullmatch),
    "number": ("a number", _decimal),
    "money": ("an amount such as 52500, $52,500 or 52500 USD", _MONEY.fullmatch),
    "boolean": ("true or false", re.compile(r"true|false", re.IGNORECASE).fullmatch),
    "zone": (f"one of {', '.join(ZONES.values)}", ZONES.__contains__),
    "level": (f"one of {', '.join(LEVELS.values)}", LEVELS.__contains__),
}
"""Types by name: the expected value in words, and a check of a value."""
_TYPE = Vocabulary("type", tuple(TYPES), {"string": "text", "int": "integer", "float": "number", "bool": "boolean"})


class _Column(Document):
    type: Annotated[str, word(_TYPE)]
    required: bool = False


class _File(Document):
    key: Annotated[str, TEXT]
    columns: dict[str, Annotated[_Column, BeforeValidator(lambda one: {"type": one} if isinstance(one, str) else one)]]


@dataclass(frozen=True)
class RecordSchema:
    """The key of the records of a file, the type of each column and the required columns; no columns = any."""

    key: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()

    def key_of(self, columns: Sequence[str], at: str) -> str:
        """The column that identifies a record.

        Raises:
            InputError: the file has no such column, or none at all.
        """
        if self.key is None and columns:
            return "id" if "id" in columns else columns[0]
        if self.key is None or self.key not in columns:
            raise InputError.expected(f"the key column {self.key or 'id'}", ", ".join(columns) or "no column", at)
        return self.key

    def check(self, record: Mapping[str, str], at: str) -> None:
        """Raise InputError, naming file, row and column, unless every value matches its type."""
        if unknown := [name for name in record if self.types and name not in self.types]:
            hint = "the schema beside the file names its columns."
            raise InputError.one_of(self.types, shown_key(unknown[0]), at, hint=hint)
        for name in sorted(self.required):
            if not record.get(name):
                raise InputError(f"Expected a value, got none - at {at}.{name}")
        for name, type_ in self.types.items():
            expected, fits = TYPES[type_]
            if (value := record.get(name)) and not fits(value):
                raise InputError(f"Expected {expected}, got other text - at {at}.{name}")


def schema_beside(file: Path) -> RecordSchema:
    """The schema in `<stem>.schema.yaml`; an empty one if there is no such file.

    Raises:
        PolicyError: the schema is invalid; names file and key.
    """
    beside = file.with_name(f"{file.stem}{SCHEMA_SUFFIX}")
    if not beside.is_file():
        return RecordSchema()
    found = document(_File, parse(beside.read_bytes(), str(beside)), str(beside))
    if found.key not in found.columns:
        raise PolicyError.one_of(found.columns, shown_key(found.key), f"{beside}: key")
    required = {name for name, column in found.columns.items() if column.required}
    types = {name: column.type for name, column in found.columns.items()}
    return RecordSchema(found.key, types, frozenset(required | {found.key}))
