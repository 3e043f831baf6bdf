"""Files of requests: JSON lines, JSON, Parquet and CSV with dotted columns.

Reads: a path. Gives: rows as dictionaries, in file order. A line of JSON that cannot be read becomes an `Unreadable`
row, so that the others go on; a file that cannot be read as a whole is an error.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..nodes.errors import InputError
from .request_fields import LISTS, TEXTS, column_of

SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".csv")
LIST_SEPARATOR = ";"
"""Between the items of a list in a CSV cell; a cell that starts with `[` is read as JSON."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that could not be parsed, with the reason."""

    reason: str


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
        raise InputError.expected("a file of requests", "no such file", str(path))
    if suffix == ".parquet":
        rows: list[Row] = list(_parquet(path))
    else:
        text = _text(path)
        rows = {".json": _json, ".csv": _csv}.get(suffix, _json_lines)(text, path.name)
    if not rows:
        raise InputError.expected("at least one request", "none", path.name)
    return rows


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"Expected UTF-8 text, got another encoding - at {path.name}:{line}") from None


def _json_lines(text: str, file: str) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            rows.append(_object(line, f"{file}:{number}"))
    return rows


def _object(line: str, at: str) -> Row:
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        column = error.colno if isinstance(error, json.JSONDecodeError) else 1
        return Unreadable(f"Expected one JSON object a line, got text that is no JSON at column {column} - at {at}")
    if not isinstance(value, dict):
        return Unreadable(f"Expected one JSON object a line, got {type(value).__name__} - at {at}")
    return value


def _json(text: str, file: str) -> list[Row]:
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise InputError(f"Expected JSON, got text that is no JSON - at {file}:{line}") from None
    if isinstance(value, dict):
        value = value["requests"] if set(value) == {"requests"} else [value]
    if not isinstance(value, list):
        raise InputError.expected("a list of requests", type(value).__name__, file)
    return [
        item
        if isinstance(item, dict)
        else Unreadable(f"Expected an object, got {type(item).__name__} - at {file}[{i}]")
        for i, item in enumerate(value)
    ]


def _parquet(path: Path) -> list[dict[str, Any]]:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"Expected a readable Parquet file, got {type(error).__name__} - at {path.name}") from None
    return table.to_pylist()


def _csv(text: str, file: str) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    header: list[str] = []
    try:
        for cells in reader:
            if not header:
                header = _header(cells, file)
            elif any(cells):
                rows.append(_csv_row(header, cells, f"{file}:{reader.line_num}"))
    except csv.Error as error:
        raise InputError(f"Expected CSV, got text that is not ({error}) - at {file}:{reader.line_num}") from None
    return rows


def _header(cells: list[str], file: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    if repeated := sorted({n for n in names if names.count(n) > 1}):
        raise InputError(f"Expected each column once, got {', '.join(map(repr, repeated))} twice - at {file}:1")
    return names


def _csv_row(header: list[str], cells: list[str], at: str) -> Row:
    if len(cells) != len(header):
        return Unreadable(f"Expected {len(header)} cells, got {len(cells)} - at {at}")
    return {name: _cell(name, cell) for name, cell in zip(header, cells, strict=True) if cell != ""}


def _cell(path: str, cell: str) -> Any:
    """A cell typed by its column: lists split, numbers and flags read, text as it is. Empty cells are missing."""
    column = column_of(path)
    if column in TEXTS or column is None:
        return cell
    if column in LISTS:
        return _json_or(cell) if cell.lstrip().startswith("[") else [c.strip() for c in cell.split(LIST_SEPARATOR)]
    if column in _TYPED:
        return _json_or(cell.strip().lower())
    return cell


_TYPED = frozenset(
    {
        "allow_stale_memory",
        "require_citation",
        "require_snapshot",
        "max_unverified_items",
        "lane_k",
        "pool_k",
        "max_items",
        "max_items_per_source",
        "max_tokens",
        "max_chars",
        "max_chunk_tokens",
    }
)


def _json_or(cell: str) -> Any:
    try:
        return json.loads(cell)
    except (json.JSONDecodeError, RecursionError):
        return cell
