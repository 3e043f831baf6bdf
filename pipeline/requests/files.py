"""Files of requests: JSON lines, Parquet and CSV with dotted columns.

Reads: a path. Gives: rows as dictionaries, in file order, each with its place: `file:n` by line in JSONL and CSV,
`file:row n` by row in Parquet, from 1. A row that is no request is empty and has the reason, so that the
others can be read; a file that is not UTF-8, CSV or Parquet as a whole is an error.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from ...nodes.errors import InputError, kind_of
from ..parsing.quoting import shown_keys
from ..parsing.strict_json import strict_json
from ..progress import counted
from .fields import LISTS, NUMBERS, TEXTS, column_of, is_plugin_weight

SUFFIXES = (".jsonl", ".ndjson", ".parquet", ".csv")
LIST_SEPARATOR = ";"
"""Separator of the items of a list in a CSV cell; a cell that starts with `[` is read as JSON."""


Unit = Literal["line", "row"]
"""The unit by which rows of a file are counted."""


class FileRow(dict[str, Any]):
    """A row and its place: `file` and `number`, its line or row from 1; empty with the `reason` if it cannot be parsed."""

    def __init__(self, fields: Mapping[str, Any], file: str, number: int, unit: Unit, reason: str = "") -> None:
        super().__init__(fields)
        self.file, self.number, self.unit, self.reason = file, number, unit, reason

    @property
    def at(self) -> str:
        """The place of the row, for messages."""
        return f"{self.file}:{self.number}" if self.unit == "line" else f"{self.file}:row {self.number}"


Row = Mapping[str, Any]


def read_requests(path: str | Path) -> list[FileRow]:
    """The rows of a file, by its suffix.

    Raises:
        InputError: the file is missing, empty, truncated, not UTF-8 in any row, or of another kind.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        raise InputError.described("a file of requests", "a folder", str(path))
    if suffix not in SUFFIXES:
        raise InputError.described(f"one of {', '.join(SUFFIXES)}", repr(suffix) if suffix else "no suffix", path.name)
    if not path.is_file():
        raise InputError.described("a file of requests", "no such file", str(path))
    rows = (
        _parquet(path) if suffix == ".parquet" else (_csv if suffix == ".csv" else _json_lines)(_text(path), path.name)
    )
    if not rows:
        raise InputError.described("at least one request", "none", path.name)
    return rows


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{error.strerror}: {path}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError("Expected UTF-8 text, got another encoding", at=f"{path.name}:{line}") from None


def _json_lines(text: str, file: str) -> list[FileRow]:
    lines = enumerate(text.split("\n"), start=1)
    return [_object(line, file, number) for number, line in lines if line.strip()]


def _object(line: str, file: str, number: int) -> FileRow:
    at = f"{file}:{number}"
    try:
        value = strict_json(line, at)
    except InputError as error:
        return FileRow({}, file, number, "line", error.message)
    if not isinstance(value, dict):
        return FileRow({}, file, number, "line", f"Expected one JSON object a line, got {kind_of(value)} - at {at}")
    return FileRow(value, file, number, "line")


def _parquet(path: Path) -> list[FileRow]:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            table = file.read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError):  # column names are decoded when the file is opened
        raise InputError(
            "Expected a whole Parquet file, got one that is damaged or cut off",
            at=path.name,
            hint="write the file again",
        ) from None
    if twice := sorted({name for name in table.column_names if table.column_names.count(name) > 1}):
        raise InputError(f"Expected each column once, got {shown_keys(twice)} twice", at=path.name)
    try:
        return [FileRow(row, path.name, n, "row") for n, row in enumerate(table.to_pylist(), start=1)]
    except (ValueError, OverflowError, pa.ArrowException):
        raise InputError(
            "Expected texts in UTF-8 and times from year 1 to 9999 in microseconds, got a value that is neither",
            at=path.name,
        ) from None


def _csv(text: str, file: str) -> list[FileRow]:
    limit = csv.field_size_limit(max(len(text), 1))  # a question may be long; the module's limit is process-wide
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows, header, number = list[FileRow](), list[str](), 1
    try:
        for cells in reader:
            if not header:
                header = _header(cells, file)
            elif any(cells):
                rows.append(_csv_row(header, cells, file, number))
            number = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"Expected CSV, got other text ({error})", at=f"{file}:{number}") from None
    finally:
        csv.field_size_limit(limit)
    return rows


def _header(cells: list[str], file: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if repeated := sorted({n for n in names if names.count(n) > 1}):
        raise InputError(f"Expected each column once, got {shown_keys(repeated)} twice", at=f"{file}:1")
    return names


def _csv_row(header: list[str], cells: list[str], file: str, number: int) -> FileRow:
    if len(cells) != len(header):
        reason = f"Expected {counted(len(header), 'cell')}, got {len(cells)} - at {file}:{number}"
        return FileRow({}, file, number, "line", reason)
    given = {name: cell(name, text) for name, text in zip(header, cells, strict=True) if text != ""}
    return FileRow(given, file, number, "line")


def cell(path: str, text: str) -> Any:
    """The value of a cell by its column: lists split, numbers and flags parsed, text unchanged."""
    column = column_of(path)
    if column in TEXTS or column is None:
        return text
    if column in LISTS:
        return _json_or(text) if text.lstrip().startswith("[") else [c.strip() for c in text.split(LIST_SEPARATOR)]
    if column in NUMBERS or is_plugin_weight(column):
        return _json_or(text.strip().lower())
    return text


def _json_or(cell: str) -> Any:
    try:
        return strict_json(cell)
    except ValueError:
        return cell
