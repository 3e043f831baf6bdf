"""Files of requests: JSON lines, JSON, Parquet and CSV with dotted columns.

Reads: a path. Gives: rows as dictionaries, in file order, each of which knows its place: `file:n` by its line in JSONL and
CSV, `file:row n` by its row in Parquet and JSON, from 1. A line of JSON that cannot be read becomes an `Unreadable` row, so
that the others go on; a file that cannot be read as a whole is an error.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ..nodes.errors import InputError, kind_of
from .request_fields import LISTS, NUMBERS, TEXTS, column_of
from .strict_json import RepeatedKeyError, strict_json

SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".csv")
LIST_SEPARATOR = ";"
"""Between the items of a list in a CSV cell; a cell that starts with `[` is read as JSON."""


Unit = Literal["line", "row"]
"""What rows of a file are counted by."""


class FileRow(dict[str, Any]):
    """A row and where it stands: `file` and `number`, its line or row from 1."""

    def __init__(self, fields: Mapping[str, Any], file: str, number: int, unit: Unit) -> None:
        super().__init__(fields)
        self.file, self.number, self.unit = file, number, unit

    @property
    def at(self) -> str:
        """Its place, for messages."""
        return f"{self.file}:{self.number}" if self.unit == "line" else f"{self.file}:row {self.number}"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that could not be parsed, with the reason and its line or row from 1."""

    reason: str
    number: int
    unit: Unit


Row = Mapping[str, Any] | Unreadable


def read_requests(path: str | Path) -> list[Row]:
    """The rows of a file, by its suffix.

    Raises:
        InputError: the file is missing, empty, truncated, not UTF-8, or of another kind.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError.one_of(SUFFIXES, suffix or "no suffix", path.name)
    if not path.is_file():
        raise InputError.expected("a file of requests", "a folder" if path.is_dir() else "no such file", str(path))
    if suffix == ".parquet":
        rows: list[Row] = [FileRow(row, path.name, n, "row") for n, row in enumerate(_parquet(path), start=1)]
    else:
        text = _text(path)
        rows = {".json": _json, ".csv": _csv}.get(suffix, _json_lines)(text, path.name)
    if not rows:
        raise InputError.expected("at least one request", "none", path.name)
    return rows


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"Expected a readable file, got {error.strerror} - at {path}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"Expected UTF-8 text, got another encoding - at {path.name}:{line}") from None


def _json_lines(text: str, file: str) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            rows.append(_object(line, file, number))
    return rows


def _object(line: str, file: str, number: int) -> Row:
    at = f"{file}:{number}"
    try:
        value = strict_json(line)
    except RepeatedKeyError as error:
        return Unreadable(f"Expected every field once, got {error.args[0]!r} again - at {at}", number, "line")
    except (ValueError, RecursionError) as error:
        column = error.colno if isinstance(error, json.JSONDecodeError) else 1
        reason = f"Expected one JSON object a line, got text that is no JSON at column {column} - at {at}"
        return Unreadable(reason, number, "line")
    if not isinstance(value, dict):
        return Unreadable(f"Expected one JSON object a line, got {kind_of(value)} - at {at}", number, "line")
    return FileRow(value, file, number, "line")


def _json(text: str, file: str) -> list[Row]:
    try:
        value = strict_json(text)
    except RepeatedKeyError as error:
        raise InputError.expected("every field once", f"{error.args[0]!r} again", file) from None
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise InputError(f"Expected JSON, got text that is no JSON - at {file}:{line}") from None
    if isinstance(value, dict):
        value = value["requests"] if set(value) == {"requests"} else [value]
    if not isinstance(value, list):
        raise InputError.of_kind("a list of requests", value, file)
    return [
        FileRow(item, file, number, "row")
        if isinstance(item, dict)
        else Unreadable(f"Expected an object, got {kind_of(item)} - at {file}:row {number}", number, "row")
        for number, item in enumerate(value, start=1)
    ]


def _parquet(path: Path) -> list[dict[str, Any]]:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(use_threads=False)
    except (pa.ArrowException, OSError):
        raise InputError(
            f"Expected a whole Parquet file, got one that is damaged or cut off - at {path.name}",
            hint="write the file again",
        ) from None
    try:
        return table.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException):
        raise InputError(
            "Expected texts in UTF-8 and times from year 1 to 9999 in microseconds, got a value that is neither "
            f"- at {path.name}"
        ) from None


def _csv(text: str, file: str) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    limit = csv.field_size_limit(
        max(len(text), 1)
    )  # a question may be long; the module's limit is for all of the process
    rows: list[Row] = []
    header: list[str] = []
    number = 1
    try:
        for cells in reader:
            if not header:
                header = _header(cells, file)
            elif any(cells):
                rows.append(_csv_row(header, cells, file, number))
            number = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"Expected CSV, got text that is not ({error}) - at {file}:{reader.line_num}") from None
    finally:
        csv.field_size_limit(limit)
    return rows


def _header(cells: list[str], file: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if repeated := sorted({n for n in names if names.count(n) > 1}):
        raise InputError(f"Expected each column once, got {', '.join(map(repr, repeated))} twice - at {file}:1")
    return names


def _csv_row(header: list[str], cells: list[str], file: str, number: int) -> Row:
    if len(cells) != len(header):
        return Unreadable(f"Expected {len(header)} cells, got {len(cells)} - at {file}:{number}", number, "line")
    given = {name: cell(name, text) for name, text in zip(header, cells, strict=True) if text != ""}
    return FileRow(given, file, number, "line")


def cell(path: str, text: str) -> Any:
    """The text of a cell, typed by its column: lists split, numbers and flags read, text as it is."""
    column = column_of(path)
    if column in TEXTS or column is None:
        return text
    if column in LISTS:
        return _json_or(text) if text.lstrip().startswith("[") else [c.strip() for c in text.split(LIST_SEPARATOR)]
    if column in NUMBERS:
        return _json_or(text.strip().lower())
    return text


def _json_or(cell: str) -> Any:
    try:
        return strict_json(cell)
    except (ValueError, RecursionError):
        return cell
