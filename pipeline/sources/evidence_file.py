"""Generic evidence: prepared rows, as Parquet, Arrow IPC (`.arrow`, `.feather`) or JSON lines.

Gives: `read_evidence(path)`, a table per file with columns of IMPORT_ROWS and the place of each row; `importing.normalize`
checks them. `source_id` and `text` are required; each row has the columns of both evidence and placements.

Note: columns that the corpus derives (`evidence_id`, `text_sha256`, ...) are refused like
unknown ones, because a value given for them would be ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import create_model

from ...nodes.errors import InputError
from ...nodes.schema import TIMESTAMP
from ...nodes.tables import IMPORT_ROWS
from ..parsing.data_files import parquet_table
from ..parsing.documents import ABSENT, Document, converted, document
from ..parsing.values import authority_rank, instant, number, whole
from .jsonl import LINES, read_lines
from .record_rows import files_of, record_table
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
    suffixes = (*_PARQUET, *_ARROW, *_JSON)
    for file, _place in files_of(path, suffixes, report):
        suffix = file.suffix.lower()
        if suffix not in suffixes:
            raise InputError.expected(f"a file ending in {', '.join(suffixes)}", file.name, str(file))
        rows = _of_lines(file) if suffix in _JSON else _stored(file, suffix)
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
    rows = []
    for record in read_lines(path):
        stated = {name: value for name, value in record.fields.items() if value is not None}
        row = document(_row(), stated, record.at, InputError)
        rows.append({**row.model_dump(exclude_unset=True), PLACE: record.at})
    return record_table(rows)


def _whole(bits: int) -> Any:
    return Annotated[int, converted(lambda value, at: whole(value, at, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1))]


_TYPES: dict[pa.DataType, Any] = {
    pa.string(): str,
    pa.large_string(): str,
    pa.list_(pa.string()): tuple[str, ...],
    pa.large_list(pa.int8()): tuple[_whole(8), ...],
    pa.bool_(): bool,
    pa.int32(): _whole(32),
    pa.int64(): _whole(64),
    pa.float64(): Annotated[float, converted(number)],
    TIMESTAMP: Annotated[datetime, converted(partial(instant, milliseconds=True))],
}
"""What a field of JSON may be, by the type of its column."""


@cache
def _row() -> type[Document]:
    """A row of JSON: the columns of IMPORT_ROWS, `authority` also by its word."""
    types = {name: _TYPES[column.type] for name, column in IMPORT_ROWS.columns.items()}
    types["authority"] = Annotated[int, converted(authority_rank)]
    fields: dict[str, Any] = {
        name: (types[name], ABSENT if column.nullable else ...) for name, column in IMPORT_ROWS.columns.items()
    }
    return create_model("Row", __base__=Document, **fields)
