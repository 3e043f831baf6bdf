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
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from ...nodes.errors import InputError
from ...nodes.vocabulary import LEVELS, ZONES, Vocabulary
from ..parsing.documents import ABSENT, TEXT, Document, document, expected, word
from ..parsing.quoting import shown_key
from ..parsing.values import TIME, instant
from ..parsing.yaml_files import parse
from .jsonl import Record

__all__ = ["SCHEMA_SUFFIX", "TYPES", "RecordSchema", "schema_beside"]

SCHEMA_SUFFIX = ".schema.yaml"

_MONEY = re.compile(r"(?:[A-Z]{3} ?|[$\u20ac\u00a3])?-?\d{1,3}(?:,?\d{3})*(?:\.\d+)?(?: ?[A-Z]{3})?|-?\d+(?:\.\d+)?")


def _reads(function: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether a function reads a value without an error."""

    def fits(value: str) -> bool:
        try:
            function(value)
        except ValueError:
            return False
        return True

    return fits


TYPES: dict[str, tuple[str, Callable[[str], object]]] = {
    "text": ("text", lambda value: True),
    "id": ("an id without spaces", lambda value: not re.search(r"\s", value)),
    "ulid": ("a ULID of 26 characters", re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}").fullmatch),
    "date": ("a date such as 2025-11-15", _reads(date.fromisoformat)),
    "datetime": (TIME, _reads(lambda value: instant(value, ""))),
    "integer": ("a whole number", re.compile(r"-?\d+").fullmatch),
    "number": ("a number", re.compile(r"[-+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?").fullmatch),
    "money": ("an amount such as 52500, $52,500 or 52500 USD", _MONEY.fullmatch),
    "boolean": ("true or false", re.compile(r"true|false", re.IGNORECASE).fullmatch),
    "zone": (f"one of {', '.join(ZONES.values)}", ZONES.__contains__),
    "level": (f"one of {', '.join(LEVELS.values)}", LEVELS.__contains__),
}
"""Types by name: the expected value in words, and a check of a value."""
_TYPE = Vocabulary("type", tuple(TYPES), {"string": "text", "int": "integer", "float": "number", "bool": "boolean"})


class Column(Document):
    """The type of a column, and whether every record has a value there."""

    type: Annotated[str, word(_TYPE)]
    required: bool = False


class RecordSchema(Document):
    """The key of the records of a file and its columns; none = any."""

    key: Annotated[str, TEXT] = ABSENT
    columns: dict[
        str, Annotated[Column, BeforeValidator(lambda one: {"type": one} if isinstance(one, str) else one)]
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_key(self) -> RecordSchema:
        if self.key not in self.columns:
            raise expected(
                f"a key that is one of the columns {', '.join(self.columns)}", repr(shown_key(self.key or ""))
            )
        return self

    def key_of(self, columns: Sequence[str], at: str) -> str:
        """The column that identifies a record; without a schema `id`, else the first one.

        Raises:
            InputError: the file has no such column, or none at all.
        """
        key = self.key or ("id" if "id" in columns or not columns else columns[0])
        if key not in columns:
            raise InputError.expected(f"the key column {key}", ", ".join(columns) or "no column", at)
        return key

    def check(self, record: Record) -> None:
        """Raise InputError, naming file, row and column, unless every value matches its type."""
        record.expect_no_others(self.columns or record.fields)
        for name, column in self.columns.items():
            expected, fits = TYPES[column.type]
            value = record.required(name) if column.required or name == self.key else record.text(name)
            if value and not fits(value):
                raise InputError(f"Expected {expected}, got other text - at {record.at}.{name}")


NO_SCHEMA = RecordSchema.model_construct()


def schema_beside(file: Path) -> RecordSchema:
    """The schema in `<stem>.schema.yaml`; an empty one if there is no such file.

    Raises:
        PolicyError: the schema is invalid; names file and key.
    """
    beside = file.with_name(f"{file.stem}{SCHEMA_SUFFIX}")
    return (
        document(RecordSchema, parse(beside.read_bytes(), str(beside)), str(beside)) if beside.is_file() else NO_SCHEMA
    )
