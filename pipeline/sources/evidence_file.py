"""Generic evidence: prepared rows, as Parquet, Arrow IPC (`.arrow`, `.feather`) or JSON lines.

Gives: `read_evidence(path)`, a table per file with columns of IMPORT_ROWS and the place of each row; `importing.normalize`
checks them. `source_id` and `text` are required; each row has the columns of both evidence and placements.

Note: columns that the corpus derives (`evidence_id`, `text_sha256`, ...) are refused like
unknown ones, because a value given for them would be ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from ...nodes.tables import IMPORT_ROWS
from ..parsing.data_files import parquet_table
from .jsonl import LINES, read_lines
from .record_rows import Row, files_of, of_column, record_table
from .report import PLACE, SourceReport

_ARROW = (".arrow", ".feather", ".ipc")
_JSON = (*LINES, ".json")
_PARQUET = (".parquet", ".pq")


def read_evidence(path: str | PathLike[str], *, report: SourceReport, **_: Any) -> Iterator[pa.Table]:
    """The rows of the file, or of all such files in a folder, in order; counted in `report`.

    Raises:
        InputError: a file is damaged or cut off, or a line of JSON has an unknown or missing field, or a value of the
            wrong type: names file, line and field.
    """
    for file, _place in files_of(path, (*_PARQUET, *_ARROW, *_JSON), report):
        suffix = file.suffix.lower()
        rows = _stored(file, suffix) if suffix in (*_PARQUET, *_ARROW) else _of_lines(file)
        report.read += rows.num_rows
        yield rows


def _stored(path: Path, suffix: str) -> pa.Table:
    try:
        if suffix in _PARQUET:
            rows = parquet_table(path)
        else:
            with pa.memory_map(str(path)) as source:
                rows = pa.ipc.open_file(source).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        got = "one that is damaged or cut off"
        raise InputError(f"Expected a whole Arrow file, got {got}", at=path, hint="write the file again") from error
    places = pa.array([f"{path}:row {number}" for number in range(1, rows.num_rows + 1)], pa.string())
    return rows.append_column(PLACE, places)


def _of_lines(path: Path) -> pa.Table:
    rows, texts = list[Row](), {name for name, column in IMPORT_ROWS.columns.items() if pa.types.is_string(column.type)}
    for record in read_lines(path):
        record.expect_no_others(IMPORT_ROWS.columns)
        for name in ("source_id", "text"):
            if record.value(name) is None:
                raise InputError.expected("a value", None, f"{record.at}.{name}")
        rows.append({PLACE: record.at} | {
            name: value if name in texts and isinstance(value, str) else of_column(record, name, name)
            for name, value in record.fields.items()
        })  # fmt: skip
    return record_table(rows)
