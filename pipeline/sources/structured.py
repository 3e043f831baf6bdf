"""Structured records (S1.38): CSV and YAML files whose rows are facts by key, and dated CSV logs.

Gives: `read_sot` (`index --add sot=FILE`), one row per record: `origin_class` structured-sot, `entity` the key, text one
`column: value` per line; and `read_logs` (`index --add logs=FILE`), one session event per line of a CSV log.

Note: the recorded time of a record is its file's modification time, unless it has one of its own (`last_modified`,
`updated_at`); fact verification uses it to detect stale records. A path is relative to the indexed tree that contains
the file, else to the parent of the named folder, so that `/sot/` of a mode finds it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError, PolicyError
from ...nodes.vocabulary import ZONES
from ..parsing.quoting import shown_key
from ..parsing.values import instant
from ..parsing.yaml_files import parse
from ..progress import counted
from ..redaction.masking import masked_digest
from .jsonl import files_of
from .logs import TIME_COLUMNS
from .record_rows import tables
from .record_schema import SCHEMA_SUFFIX, schema_beside
from .report import SourceReport

__all__ = ["files_named", "read_logs", "read_sot", "with_schemas"]

_SOT = (".csv", ".yaml", ".yml")
_RECORDED = ("last_modified", "updated_at", "last_verified")
_ACTOR = ("principal", "user", "owner_user")
_AUTHORITATIVE = 3


@dataclass(frozen=True)
class _Record:
    """One record; `at` is `file:row`, lines are those of the file, None in YAML."""

    at: str
    fields: dict[str, str]
    line_start: int | None = None
    line_end: int | None = None


_RowsOf = Callable[[Path, Sequence[_Record]], Iterator[Mapping[str, Any]]]
"""Returns the columns of each record of a file."""


def read_sot(
    path: str | PathLike[str],
    *,
    project: str,
    now: datetime,
    report: SourceReport,
    name: str | None = None,
    roots: Sequence[Path] = (),
) -> Iterator[pa.Table]:
    """One row per record of every CSV and YAML file, authority 3; `source_id` is `structured-sot:<name>`.

    Raises:
        InputError: naming file, row and column.
    """
    return _read(path, _SOT, f"structured-sot:{_name(path, name)}", project, roots, report, partial(_facts, now=now))


def read_logs(
    path: str | PathLike[str],
    *,
    project: str,
    now: datetime,
    report: SourceReport,
    name: str | None = None,
    roots: Sequence[Path] = (),
) -> Iterator[pa.Table]:
    """One row per line of every CSV log, with its time; `source_id` is `session-event:<name>`, standing untrusted.

    A row belongs to the user in its column `principal` or `user`, else to the importing principal, like session events.

    Raises:
        InputError: naming file, row and column.
    """
    source = f"session-event:{_name(path, name)}"
    return _read(path, (".csv",), source, project, roots, report, partial(_events, now=now))


def files_named(path: str | PathLike[str], suffixes: tuple[str, ...] = _SOT) -> list[Path]:
    """The files at a path, without schemas.

    Raises:
        InputError: there is none, or it is of another kind.
    """
    found = [file for file in files_of(path, suffixes) if not file.name.endswith(SCHEMA_SUFFIX)]
    if other := [file for file in found if file.suffix.lower() not in suffixes]:
        raise InputError.expected(f"a folder or a file ending in {', '.join(suffixes)}", other[0].name, str(path))
    return found


def with_schemas(files: Iterable[Path]) -> set[Path]:
    """The files and their schemas, as resolved paths: no other source reads them."""
    return {each.resolve() for file in files for each in (file, file.with_name(f"{file.stem}{SCHEMA_SUFFIX}"))}


def _read(
    path: str | PathLike[str],
    suffixes: tuple[str, ...],
    source: str,
    project: str,
    roots: Sequence[Path],
    report: SourceReport,
    rows_of: _RowsOf,
) -> Iterator[pa.Table]:
    """The rows of every file: common columns, and those that `rows_of` returns for each record of a file, in order."""
    rows = []
    for file in files_named(path, suffixes):
        place, data = _place(file, Path(path), roots), _bytes(file)
        records = _records(file, data)
        found = [
            {**_common(record, place, source, project), **own}
            for record, own in zip(records, rows_of(file, records), strict=True)
        ]
        version = masked_digest("".join(row["text"] for row in found))
        rows += ({**row, "version": version} for row in found)
    report.read += len(rows)
    yield from tables(rows)
    report.complete_sources.add(source)


def _facts(file: Path, records: Sequence[_Record], now: datetime) -> Iterator[Mapping[str, Any]]:
    schema = schema_beside(file)
    modified = min(datetime.fromtimestamp(file.stat().st_mtime, UTC), now)
    seen: dict[str, str] = {}
    for record in records:
        schema.check(record.fields, record.at)
        key = schema.key_of(list(record.fields), record.at)
        identifier = record.fields[key]
        if not identifier:
            raise InputError(f"Expected a key, got none - at {record.at}.{key}")
        if identifier in seen:
            raise InputError(f"Expected every key once, got that of {seen[identifier]} - at {record.at}.{key}")
        seen[identifier] = record.at
        recorded = _instant(record, _RECORDED)
        yield {
            "origin_class": "structured-sot",
            "evidence_kind": "structured-fact",
            "document_type": "record",
            "authority": _AUTHORITATIVE,
            "entity": identifier,
            "section": identifier,
            "level": record.fields.get("level") or None,
            "event_time": recorded or modified,
            "recorded_time": min(recorded or modified, now),
        }


def _events(_: Path, records: Sequence[_Record], now: datetime) -> Iterator[Mapping[str, Any]]:
    for number, record in enumerate(records, start=1):
        happened = _instant(record, TIME_COLUMNS)
        if happened is None:
            raise InputError(f"Expected a time in one of {', '.join(TIME_COLUMNS)}, got none - at {record.at}")
        yield {
            "origin_class": "session-event",
            "evidence_kind": "session-event",
            "document_type": "log",
            "section": f"row {number}",
            "owner_user": next((record.fields[c] for c in _ACTOR if record.fields.get(c)), None),
            "event_time": happened,
            "recorded_time": min(happened, now),
        }


def _common(record: _Record, place: str, source: str, project: str) -> Mapping[str, Any]:
    zone = record.fields.get("zone")
    return {
        "source_id": source,
        "owner_project": project,
        "path": place,
        "title": Path(place).stem,
        "zone": ZONES.canonical(zone.lower(), f"{record.at}.zone") if zone else None,
        "line_start": record.line_start,
        "line_end": record.line_end,
        "text": "".join(f"{name}: {' '.join(value.split())}\n" for name, value in record.fields.items() if value),
    }


def _records(file: Path, data: bytes) -> list[_Record]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.described("UTF-8 text", f"byte 0x{data[error.start]:02x}", str(file)) from error
    return _csv_records(file, text) if file.suffix.lower() == ".csv" else _yaml_records(file, data)


def _csv_records(file: Path, text: str) -> list[_Record]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = [name.strip() for name in next(reader, [])]
        if len(set(columns)) < len(columns) or "" in columns:
            raise InputError(f"Expected a unique name for every column, got a repeated or empty one - at {file}:1")
        records, line = [], reader.line_num
        for values in reader:
            start, line = line + 1, reader.line_num
            if not any(value.strip() for value in values):
                continue
            if len(values) != len(columns):
                raise InputError(f"Expected {counted(len(columns), 'value')}, got {len(values)} - at {file}:{start}")
            fields = {name: value.strip() for name, value in zip(columns, values, strict=True)}
            records.append(_Record(f"{file}:{start}", fields, start, line))
    except csv.Error as error:
        raise InputError(f"Expected CSV, got text that does not parse ({error}) - at {file}") from error
    return records


def _yaml_records(file: Path, data: bytes) -> list[_Record]:
    """A list of records, or a mapping of key to record, whose keys become the column `id`."""
    value = parse(data, str(file)) or []
    if isinstance(value, dict):
        value = [{"id": key, **item} if isinstance(item, dict) else item for key, item in value.items()]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise PolicyError(f"Expected a list of records or a mapping of key to record, got another form - at {file}")
    found = []
    for number, item in enumerate(value, start=1):
        at = f"{file}:record {number}"
        found.append(_Record(at, {name: _plain(field, f"{at}.{shown_key(name)}") for name, field in item.items()}))
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


def _instant(record: _Record, columns: Sequence[str]) -> datetime | None:
    named = next((name for name in columns if record.fields.get(name)), None)
    return instant(record.fields[named], f"{record.at}.{named}", dates=True) if named else None


def _place(file: Path, named: Path, roots: Sequence[Path]) -> str:
    """The path of a file in the indexed tree that contains it, else from the named folder's name on."""
    whole = file.resolve()
    for root in roots:
        if root.is_dir() and whole.is_relative_to(root.resolve()):
            return whole.relative_to(root.resolve()).as_posix()
    folder = named.resolve() if named.is_dir() else named.resolve().parent
    return f"{folder.name}/{whole.relative_to(folder).as_posix()}"


def _name(path: str | PathLike[str], name: str | None) -> str:
    root = Path(path).resolve()
    return name or (root.stem if root.is_file() else root.name) or "root"


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{error.strerror}: {file}") from error
