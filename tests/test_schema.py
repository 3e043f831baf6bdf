"""Declared tables: what is built and checked has their columns and types, and an error names the column."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.errors import SchemaError
from scoped_retrieval.nodes.schema import int64, string, table

ROWS = table(
    "rows", key=["id"], order=["id"], doc="Rows.",
    id=string("An id."), count=int64("A number."), note=string("A word.", nullable=True),
)  # fmt: skip
GIVEN = {"id": ["a"], "count": [1]}


@pytest.mark.parametrize(
    ("count", "built"),
    [
        ([1], [1]),
        (pa.array([1], pa.int32()), [1]),
        (pa.chunked_array([[1]], pa.int8()), [1]),
        (pa.array([7]).dictionary_encode(), [7]),
    ],
)
def test_columns_are_converted_and_a_missing_one_that_may_be_null_is_null(count: Any, built: list[int]) -> None:
    rows = ROWS.build({**GIVEN, "count": count})
    assert rows.schema.equals(ROWS.schema)
    assert rows.to_pylist() == [{"id": "a", "count": built[0], "note": None}]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["a"], "count": [1]}, "Expected columns id, count, note, got id, count - at rows"),
        ({"id": ["a"], "count": [1.5], "note": ["n"]}, "Expected int64, got double - at rows.count"),
        ({"id": ["a"], "count": [None], "note": ["n"]}, "Expected int64, got null - at rows.count"),
        (
            {"id": ["a"], "count": pa.array([None], pa.int64()), "note": ["n"]},
            "Expected a value in every row, got nulls - at rows.count",
        ),
    ],
)
def test_a_table_that_is_not_the_declared_one_is_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        ROWS.check(pa.table(columns))
    assert str(caught.value).startswith(message)
