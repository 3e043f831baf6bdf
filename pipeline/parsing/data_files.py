"""Files of rows that programs write: their text, and the rows of CSV and Parquet, with errors that name file and line.

Gives: `bytes_of`, `text_of`, `csv_rows` and `parquet_table`. A byte order mark is not part of a text.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from ...nodes.errors import InputError
from .quoting import shown_keys

if TYPE_CHECKING:
    import pyarrow as pa


def bytes_of(path: Path, hint: str = "") -> bytes:
    """The bytes of a file.

    Raises:
        InputError: it cannot be read; has the reason.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{error.strerror}: {path}", hint=hint) from error


def text_of(path: Path) -> str:
    """The text of a file in UTF-8.

    Raises:
        InputError: it cannot be read, or is in another encoding; names the line.
    """
    try:
        return bytes_of(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError("Expected UTF-8 text, got another encoding", at=f"{path}:{line}") from error


def csv_rows(text: str, file: str) -> tuple[list[str], list[tuple[int, int, list[str]]]]:
    """The columns of a CSV text, and the first line, the last line and the cells of each row that has some.

    Raises:
        InputError: it is not CSV, or a column occurs twice.
    """
    limit = csv.field_size_limit(max(len(text), 1))  # a question may be long; the module's limit is process-wide
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows, line = list[tuple[int, int, list[str]]](), 0
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((line + 1, reader.line_num, cells))
            line = reader.line_num
    except csv.Error as error:
        raise InputError(f"Expected CSV, got other text ({error})", at=f"{file}:{line + 1}") from error
    finally:
        csv.field_size_limit(limit)
    columns = [cell.strip() for cell in rows[0][2]] if rows else []
    if repeated := sorted({name for name in columns if columns.count(name) > 1}):
        raise InputError(f"Expected each column once, got {shown_keys(repeated)} twice", at=f"{file}:{rows[0][0]}")
    return columns, rows[1:]


def parquet_table(path: Path) -> pa.Table:
    """The rows of a Parquet file.

    Raises:
        InputError: it is damaged or cut off.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            return file.read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:  # column names are decoded when the file is opened
        got = "one that is damaged or cut off"
        raise InputError(f"Expected a whole Parquet file, got {got}", at=path, hint="write the file again") from error
