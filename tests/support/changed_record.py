"""A record of a run with other values: what a check must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa


def with_values(record: pa.Table, table: str, column: str, change: Callable[[Any], Any]) -> pa.Table:
    """The record with another value in every row of a column of a table of the line."""
    rows = record.to_pylist()
    for row in rows:
        of_table = row[table] if isinstance(row[table], list) else [row[table]]
        for one in of_table:
            one[column] = change(one[column])
    return pa.Table.from_pylist(rows, record.schema)
