"""Structured records (S1.38): CSV and YAML files whose rows are facts by key, and dated CSV logs.

Gives: `read_sot` (`index --add sot=FILE`), one row per record: `origin_class` structured-sot, `entity` the key, text one
`column: value` per line; and `read_logs` (`index --add logs=FILE`), one session event per line of a CSV log.

A schema beside a file, `NAME.schema.yaml`, gives its key, columns and types:

    key: engagement_id
    columns: {engagement_id: id, fee: money, deadline: date}
    required: [fee]

Without one the key is the column `id`, else the first one, and values are text. A value that does not match its type is an
import error, never a null; a record that may not be canonical must not become evidence.

Note: the recorded time of a record is its file's modification time, unless it has one of its own (`last_modified`,
`updated_at`); fact verification uses it to detect stale records. A path is relative to the indexed tree that contains
the file, else to the parent of the named folder, so that `/sot/` of a mode finds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from pydantic import model_validator

from ...nodes.errors import InputError, PolicyError
from ...nodes.vocabulary import Vocabulary
from ..parsing.data_files import bytes_of, csv_rows, text_of
from ..parsing.documents import Document, Text, document, expected, word
from ..parsing.quoting import shown_key
from ..parsing.yaml_files import parse
from ..progress import counted
from ..redaction.masking import masked_digest
from .jsonl import Record
from .record_rows import Row, files_of, reads_files
from .report import PLACE, SourceReport

_SOT = (".csv", ".yaml", ".yml")
_RECORDED = ("last_modified", "updated_at", "last_verified")
_TIMES = ("timestamp", "time", "happened_at", "created_at", "date")
"""Columns with the time of a line of a log; the first one with a value is used."""
_SCHEMA_SUFFIX = ".schema.yaml"


@reads_files("structured-sot", _SOT)
def read_sot(file: Path, _: str, base: Row, *, now: datetime, **given: Any) -> Iterator[Row]:
    """One row per record of every CSV and YAML file, authority 3; `source_id` is `structured-sot:<folder>`."""
    schema, seen = _schema_beside(file), dict[str, str]()
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    for record, columns in _rows(file, base, **given):
        key = "id" if "id" in record.fields else next(iter(record.fields), "id")
        if schema is not None:
            schema.check(record)
            key = schema.key
        identifier = record.required(key)
        if identifier in seen:
            raise InputError(f"Expected every key once, got that of {seen[identifier]} - at {record.at}.{key}")
        seen[identifier] = record.at
        recorded = record.instant(*_RECORDED) or min(modified, now)
        yield columns | {
            "evidence_kind": "structured-fact", "document_type": "record", "authority": 3, "entity": identifier,
            "section": identifier, "level": record.text("level"), "event_time": recorded,
            "recorded_time": min(recorded, now),
        }  # fmt: skip


@reads_files("session-event", _SOT[:1])
def read_logs(file: Path, _: str, base: Row, *, now: datetime, **given: Any) -> Iterator[Row]:
    """One row per line of every CSV log, with its time; `source_id` is `session-event:<folder>`, standing untrusted.

    A row belongs to the user in its column `principal` or `user`, else to the importing principal, like session events.
    """
    for number, (record, columns) in enumerate(_rows(file, base, **given), start=1):
        happened = record.instant(*_TIMES)
        if happened is None:
            raise InputError(f"Expected a time in one of {', '.join(_TIMES)}, got none - at {record.at}")
        yield columns | {
            "evidence_kind": "session-event", "document_type": "log", "section": f"row {number}",
            "owner_user": record.text("principal", "user", "owner_user"), "event_time": happened,
            "recorded_time": min(happened, now),
        }  # fmt: skip


def _rows(file: Path, base: Row, *, path: Path, roots: Sequence[Path] = (), **_: Any) -> Iterator[tuple[Record, Row]]:
    """The records of a file, none if it is a schema, each with the columns that do not depend on its kind."""
    if file.name.endswith(_SCHEMA_SUFFIX):
        return
    place = _place(file, path, roots)
    records = _csv_records(file) if file.suffix.lower() == ".csv" else _yaml_records(file, bytes_of(file))
    texts = [
        "".join(f"{name}: {' '.join(value.split())}\n" for name, value in record.fields.items() if value)
        for record in records
    ]
    common = {**base, "path": place, "title": Path(place).stem, "version": masked_digest("".join(texts))}
    for record, text in zip(records, texts, strict=True):
        lines = {"line_start": record.line or None, "line_end": record.line_end}
        yield record, common | lines | {PLACE: record.at, "zone": record.text("zone"), "text": text}


def files_named(path: str | PathLike[str], suffixes: tuple[str, ...]) -> set[Path]:
    """The files at a path and their schemas, as resolved paths: no other source reads them.

    Raises:
        InputError: there is nothing at the path.
    """
    files = [file.resolve() for file, _ in files_of(path, suffixes, SourceReport())]
    return {each for file in files for each in (file, _schema_of(file))}


def _schema_of(file: Path) -> Path:
    return file.with_name(f"{file.stem}{_SCHEMA_SUFFIX}")


def _csv_records(file: Path) -> list[Record]:
    """The records of a file with their lines."""
    columns, rows = csv_rows(text_of(file), str(file))
    records = list[Record]()
    for start, end, values in rows:
        if len(values) != len(columns):
            raise InputError(f"Expected {counted(len(columns), 'value')}, got {len(values)} - at {file}:{start}")
        fields = {name: value.strip() for name, value in zip(columns, values, strict=True)}
        records.append(Record(f"{file}:{start}", fields, start, line_end=end, dates=True))
    return records


def _yaml_records(file: Path, data: bytes) -> list[Record]:
    """A list of records, or a mapping of key to record, whose keys become the column `id`."""
    value = parse(data, str(file)) or []
    if isinstance(value, dict):
        value = [{"id": key, **item} if isinstance(item, dict) else item for key, item in value.items()]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise PolicyError(f"Expected a list of records or a mapping of key to record, got another form - at {file}")
    found = []
    for number, item in enumerate(value, start=1):
        at = f"{file}:record {number}"
        fields = {name: _plain(field, f"{at}.{shown_key(name)}") for name, field in item.items()}
        found.append(Record(at, fields, dates=True))
    return found


def _plain(value: object, at: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(str(item) for item in value)
    if not isinstance(value, (str, int, float)):
        raise InputError.of_kind("one value or a list of values", value, at)
    return str(value)


def _place(file: Path, named: Path, roots: Sequence[Path]) -> str:
    """The path of a file in the indexed tree that contains it, else from the named folder's name on."""
    whole = file.resolve()
    for root in roots:
        if root.is_dir() and whole.is_relative_to(root.resolve()):
            return whole.relative_to(root.resolve()).as_posix()
    folder = named.resolve() if named.is_dir() else named.resolve().parent
    return f"{folder.name}/{whole.relative_to(folder).as_posix()}"


_MONEY = re.compile(r"(?:[A-Z]{3} ?|[$\u20ac\u00a3])?-?\d{1,3}(?:,?\d{3})*(?:\.\d+)?(?: ?[A-Z]{3})?|-?\d+(?:\.\d+)?")


def _is_date(value: str) -> bool:
    try:
        return bool(date.fromisoformat(value))
    except ValueError:
        return False


_TYPES: dict[str, tuple[str, Callable[[str], object]]] = {
    "text": ("text", lambda value: True),
    "id": ("an id without spaces", lambda value: not re.search(r"\s", value)),
    "ulid": ("a ULID of 26 characters", re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}").fullmatch),
    "date": ("a date such as 2025-11-15", _is_date),
    "integer": ("a whole number", re.compile(r"-?\d+").fullmatch),
    "number": ("a number", re.compile(r"[-+]?[\d,]*\.?\d+(?:[eE][-+]?\d+)?").fullmatch),
    "money": ("an amount such as 52500, $52,500 or 52500 USD", _MONEY.fullmatch),
}
"""Types by name: the expected value in words, and a check of a value."""


class _Schema(Document):
    """The key of the records of a file, the types of its columns, and those that every record has a value in."""

    key: Text
    columns: dict[str, Annotated[str, word(Vocabulary("type", tuple(_TYPES)))]]
    required: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_columns(self) -> _Schema:
        for name in (self.key, *self.required):
            if name not in self.columns:
                raise expected(f"one of the columns {', '.join(self.columns)}", shown_key(name))
        return self

    def check(self, record: Record) -> None:
        """Raise InputError, naming file, row and column, unless every value matches its type."""
        record.expect_no_others(self.columns)
        for name in (self.key, *self.required):
            record.required(name)
        for name, type_ in self.columns.items():
            wanted, fits = _TYPES[type_]
            if (value := record.text(name)) and not fits(value):
                raise InputError(f"Expected {wanted}, got other text - at {record.at}.{name}")


def _schema_beside(file: Path) -> _Schema | None:
    """The schema in `<stem>.schema.yaml`, if there is one.

    Raises:
        PolicyError: the schema is invalid; names file and key.
    """
    beside = _schema_of(file)
    return document(_Schema, parse(beside.read_bytes(), str(beside)), str(beside)) if beside.is_file() else None
