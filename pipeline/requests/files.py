"""Files of requests: JSON lines, Parquet and CSV with dotted columns.

Reads: a path. Gives: rows as dictionaries, in file order, each with its place: `file:n` by line in JSONL and CSV,
`file:row n` by row in Parquet, from 1. A row that is no request is empty and has the reason, so that the
others can be read; a file that is not UTF-8, CSV or Parquet as a whole is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from ..parsing.data_files import csv_rows, parquet_table, text_of
from ..parsing.quoting import shown_keys
from ..parsing.strict_json import strict_json
from ..progress import counted
from ..sources.jsonl import parse_json
from .fields import LISTS, NUMBERS, TEXTS, column_of

SUFFIXES = (".jsonl", ".ndjson", ".parquet", ".csv")
LIST_SEPARATOR = ";"
"""Separator of the items of a list in a CSV cell; a cell that starts with `[` is read as JSON."""


class FileRow(dict[str, Any]):
    """A row; where it is, for messages; and its name in the file, `line-3` or `row-3`, from 1. It is empty with the `reason`
    if it cannot be parsed.
    """

    def __init__(self, fields: Mapping[str, Any], at: str, name: str, reason: str = "") -> None:
        super().__init__(fields)
        self.at, self.name, self.reason = at, name, reason


Row = Mapping[str, Any]


def read_requests(path: str | Path) -> list[FileRow]:
    """The rows of a file, by its suffix.

    Raises:
        InputError: the file is missing, empty, truncated, not UTF-8 in any row, or of another kind.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError.described(f"one of {', '.join(SUFFIXES)}", repr(suffix) if suffix else "no suffix", path.name)
    if not path.is_file():
        raise InputError.described("a file of requests", "no such file", str(path))
    read = {".parquet": _parquet, ".csv": _csv}.get(suffix, _json_lines)
    rows = read(path)
    if not rows:
        raise InputError.described("at least one request", "none", path.name)
    return rows


def _json_lines(path: Path) -> list[FileRow]:
    rows = list[FileRow]()
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        at, name = f"{path.name}:{number}", f"line-{number}"
        if line.strip():
            try:
                rows.append(FileRow(parse_json(line.encode(), at), at, name))
            except InputError as error:
                rows.append(FileRow({}, at, name, error.message))
    return rows


def _parquet(path: Path) -> list[FileRow]:
    table = parquet_table(path)
    if twice := sorted({name for name in table.column_names if table.column_names.count(name) > 1}):
        raise InputError(f"Expected each column once, got {shown_keys(twice)} twice", at=path.name)
    try:
        return [FileRow(row, f"{path.name}:row {n}", f"row-{n}") for n, row in enumerate(table.to_pylist(), start=1)]
    except (ValueError, OverflowError, pa.ArrowException):
        raise InputError(
            "Expected texts in UTF-8 and times from year 1 to 9999 in microseconds, got a value that is neither",
            at=path.name,
        ) from None


def _csv(path: Path) -> list[FileRow]:
    columns, rows = csv_rows(text_of(path), path.name)
    found = list[FileRow]()
    for number, _, cells in rows:
        at, line = f"{path.name}:{number}", f"line-{number}"
        if len(cells) == len(columns):
            given = {name: cell(name, text) for name, text in zip(columns, cells, strict=True) if text != ""}
            found.append(FileRow(given, at, line))
        else:
            reason = f"Expected {counted(len(columns), 'cell')}, got {len(cells)} - at {at}"
            found.append(FileRow({}, at, line, reason))
    return found


def cell(path: str, text: str) -> Any:
    """The value of a cell by its column: lists split, numbers and flags parsed, text unchanged."""
    column = column_of(path)
    if column in TEXTS or column is None:
        return text
    if column in LISTS:
        return _json_or(text) if text.lstrip().startswith("[") else [c.strip() for c in text.split(LIST_SEPARATOR)]
    if column in NUMBERS or column == "weights":
        return _json_or(text.strip().lower())
    return text


def _json_or(cell: str) -> Any:
    try:
        return strict_json(cell)
    except ValueError:
        return cell
