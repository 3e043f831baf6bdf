"""Rows outside of a limit are refused by file, row and column before anything is stored."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.schema import TIMESTAMP
from scoped_retrieval.pipeline.sources.importing import MAX_ENTRIES, MAX_TEXT, normalize
from scoped_retrieval.pipeline.sources.records import read_evidence
from scoped_retrieval.pipeline.sources.report import SourceReport

NOW = datetime(2026, 11, 24, tzinfo=UTC)
FINE = {"source_id": "a:b", "text": "x"}


def imported(rows: pa.Table) -> pa.Table:
    return normalize(rows, project="shop", principal="ana", now=NOW)[0]


def rows(**column: pa.Array) -> pa.Table:
    """Two rows of which the second has the given values."""
    given = {name: pa.concat_arrays([pa.nulls(1, value.type), value]) for name, value in column.items()}
    return pa.table({"source_id": ["a:b"] * 2, "text": ["x", "y"]} | given)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("event_time", pa.array([253_402_300_800_000_000], TIMESTAMP), r"from year 1 to 9999 in UTC, got another"),
        ("byte_start", pa.array([-1], pa.int64()), r"Expected 0 or more, got less"),
        ("text", pa.array(["z" * (MAX_TEXT + 1)]), r"at most 4,000,000 characters, got more"),
    ],
    ids=["year-10000", "byte", "text"],
)
def test_a_value_outside_its_limit_is_named_by_row_and_column(column: str, value: pa.Array, message: str) -> None:
    table = (
        rows(**{column: value}) if column != "text" else rows().set_column(1, "text", pa.chunked_array([["x"], value]))
    )
    with pytest.raises(InputError, match=rf"{message} - at rows\[1\]\.{column}"):
        imported(table)


@pytest.mark.parametrize(("unit", "type_"), [("line", pa.int32()), ("byte", pa.int64())])
def test_a_reversed_range_is_refused(unit: str, type_: pa.DataType) -> None:
    table = rows(**{f"{unit}_start": pa.array([9], type_), f"{unit}_end": pa.array([8], type_)})
    with pytest.raises(InputError, match=rf"Expected {unit}_start or more, got less - at rows\[1\].{unit}_end"):
        imported(table)


def test_the_limits_themselves_are_accepted() -> None:
    table = rows(
        event_time=pa.array([253_402_300_799_999_999], TIMESTAMP), valid_from=pa.array([-62_135_596_800_000_000], TIMESTAMP),
        line_start=pa.array([9], pa.int32()), line_end=pa.array([9], pa.int32()), byte_start=pa.array([0], pa.int64()),
        byte_end=pa.array([0], pa.int64()), symbols=pa.array([["s"] * MAX_ENTRIES]),
    )  # fmt: skip
    assert imported(table)["event_time"][1].as_py().year == 9999
    assert imported(rows().set_column(1, "text", pa.array(["x", "z" * MAX_TEXT]))).num_rows == 2


def test_a_file_with_a_column_twice_is_refused_by_name(tmp_path: Path) -> None:
    names: list[Any] = ["source_id", "text", "text"]
    twice = pa.Table.from_arrays([pa.array(["a:b"])] + [pa.array(["x"])] * 2, names=names)
    pq.write_table(twice, tmp_path / "rows.parquet")
    with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, twice.schema) as writer:
        writer.write_table(twice)
    for name in ("rows.parquet", "rows.arrow"):
        with pytest.raises(InputError, match=rf"Expected every column once, got 'text' again - at .*{name}"):
            imported(*read_evidence(tmp_path / name, report=SourceReport()))


def test_the_file_and_its_row_are_named(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({**{name: [value] * 2 for name, value in FINE.items()}, "line_start": [1, -1]}),
        tmp_path / "rows.parquet",
    )
    with pytest.raises(InputError, match=r"Expected 1 or more, got less - at .*rows\.parquet:row 2\.line_start"):
        imported(*read_evidence(tmp_path / "rows.parquet", report=SourceReport()))
