"""Generic evidence: prepared rows, as Parquet, Arrow IPC (`.arrow`, `.feather`) or JSON lines.

Gives: `read_evidence(path)`, one table with columns of IMPORT_ROWS in their declared types, and the place of each row.
`source_id` and `text` are required; each row has the columns of both evidence and placements.

Note: columns that the corpus derives (`evidence_id`, `text_sha256`, ...) are refused like
unknown ones, because a value given for them would be ignored.
"""

from __future__ import annotations

from collections import Counter
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...nodes.errors import InputError, kind_of
from ...nodes.tables import IMPORT_ROWS
from ..parsing.quoting import shown_keys
from ..parsing.values import flag, instant, number, whole
from .column_types import PLACE, Where, as_declared, authority_ranks
from .jsonl import Record, read_lines
from .report import SourceReport

__all__ = ["read_evidence"]

_ARROW = (".arrow", ".feather", ".ipc")
_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")


def read_evidence(path: str | PathLike[str], *, report: SourceReport | None = None) -> pa.Table:
    """The rows of the file, or of all such files in a folder, in order; counted in `report`.

    Raises:
        InputError: a column is unknown or missing, or a value has the wrong type: names file, row (or line) and column;
            or the file is damaged or cut off.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(f for f in path.iterdir() if f.suffix.lower() in (*_ARROW, *_JSON, *_PARQUET))
        if not files:
            raise InputError.described("a folder with Parquet, Arrow or JSONL files", "none of these", str(path))
        return pa.concat_tables([read_evidence(f, report=report) for f in files], promote_options="default")
    if not path.is_file():
        raise InputError.expected("a Parquet, Arrow or JSONL file", None, str(path))
    suffix = path.suffix.lower()
    if suffix in _JSON:
        rows = _from_json(path)
    elif suffix in (*_ARROW, *_PARQUET):
        rows = _typed(_stored(path, suffix), path)
    else:
        raise InputError.expected(f"a file ending in {', '.join((*_PARQUET, *_ARROW, *_JSON))}", path.name, str(path))
    if report is not None:
        report.read += rows.num_rows
    return rows


def _stored(path: Path, suffix: str) -> pa.Table:
    try:
        if suffix in _PARQUET:
            with pq.ParquetFile(path) as file:
                return file.read()
        with pa.memory_map(str(path)) as source:
            try:
                return pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                source.seek(0)
                return pa.ipc.open_stream(source).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        what = "Parquet" if suffix in _PARQUET else "Arrow"
        raise InputError(
            f"Expected a whole {what} file, got one that is damaged or cut off - at {path}", hint="write the file again"
        ) from error


def _typed(rows: pa.Table, path: Path) -> pa.Table:
    _check_names(rows.column_names, str(path))
    columns = {}

    def where(row: int) -> str:
        return f"{path}:row {row + 1}"

    for name in rows.column_names:
        array = rows[name].combine_chunks()
        _check_values(array, name, where)
        if name == "authority":
            columns[name] = authority_ranks(array, where)
        else:
            columns[name] = as_declared(array, IMPORT_ROWS.columns[name].type, name, where)
    numbers = pa.array(np.arange(1, rows.num_rows + 1)).cast(pa.string())
    return _table(columns, pc.binary_join_element_wise(f"{path}:row", numbers, " "))


def _check_values(array: pa.Array, name: str, where: Where) -> None:
    """Check that texts are UTF-8 and numbers finite: a Parquet file may contain others."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise InputError(
            f"Expected valid values, got text that is not in UTF-8 - at {where(0).rpartition(':')[0]}: {name}"
        ) from None
    if pa.types.is_floating(array.type):
        wrong = np.flatnonzero(np.asarray(pc.fill_null(pc.invert(pc.is_finite(array)), False)))
        if len(wrong):
            row = int(wrong[0])
            raise InputError.expected("a finite number", array[row].as_py(), f"{where(row)}.{name}")


def _from_json(path: Path) -> pa.Table:
    records = read_lines(path)
    names = dict.fromkeys(["source_id", "text", *(name for record in records for name in record.fields)])
    for record in records:
        _check_names([*record.fields], record.at, missing=False)
        for name in ("source_id", "text"):
            if record.fields.get(name) is None:
                raise InputError.expected("text", None, f"{record.at}.{name}")
    columns = {}
    for name in names:
        if name == "authority":
            ranks = [_rank(record) for record in records]
            columns[name] = pa.array(ranks, pa.int32())
        else:
            type_ = IMPORT_ROWS.columns[name].type
            columns[name] = pa.array([_value(record, name, type_) for record in records], type_)
    return _table(columns, pa.array([record.at for record in records], pa.string()))


def _value(record: Record, name: str, type_: pa.DataType) -> Any:
    """The field as the type of its column; only instants and whole numbers are converted."""
    value = record.fields.get(name)
    if value is None:
        return None
    at = f"{record.at}.{name}"
    if pa.types.is_timestamp(type_):
        return instant(value, at, milliseconds=True)
    if pa.types.is_list(type_):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            got = "a list of other values" if isinstance(value, list) else kind_of(value)
            raise InputError.described("a list of text", got, at)
        return value
    if pa.types.is_integer(type_):
        most = 2 ** (type_.bit_width - 1) - 1
        return whole(value, at, -most - 1, most)
    if type_ == pa.float64():
        return number(value, at)
    if type_ == pa.bool_():
        return flag(value, at)
    if not isinstance(value, str):
        raise InputError.of_kind("text", value, at)
    return value


def _rank(record: Record) -> int | None:
    value = record.fields.get("authority")
    if value is None:
        return None
    word = pa.array([str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)])
    return authority_ranks(word, lambda _: record.at)[0].as_py()


def _check_names(names: list[str], at: str, *, missing: bool = True) -> None:
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        hint = "rename or remove the others"
        raise InputError(f"Expected every column once, got {shown_keys(repeated)} again - at {at}", hint=hint)
    if unknown := [name for name in names if name not in IMPORT_ROWS.columns]:
        raise InputError(
            f"Expected columns of import rows, got {shown_keys(unknown)} - at {at}",
            hint=(
                "lines of a chat or of a session are read by --add sessions=FILE"
                if "source_id" not in names and {"role", "content", "speaker"} & {*unknown}
                else f"known columns: {', '.join(IMPORT_ROWS.columns)}"
            ),
        )
    if missing and (lacking := [name for name in ("source_id", "text") if name not in names]):
        raise InputError(f"Expected columns source_id and text, got no {' and no '.join(lacking)} - at {at}")


def _table(columns: dict[str, pa.Array], places: pa.Array) -> pa.Table:
    ordered = {name: columns[name] for name in IMPORT_ROWS.columns if name in columns}
    fields = [pa.field(name, IMPORT_ROWS.columns[name].type) for name in ordered]
    return pa.table([*ordered.values(), places], schema=pa.schema([*fields, pa.field(PLACE, pa.string())]))
