"""Columns of what is stored, as they were recorded for the present formats: a change needs another format, or old records are unreadable."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.context_tables import CONTEXT_TABLES
from scoped_retrieval.pipeline.context import store
from scoped_retrieval.pipeline.runs.parts import FORMAT, PERSISTED, stored_schema

GOLDEN = Path(__file__).parent / "golden"
HINTS = {
    "runs": "raise FORMAT in pipeline/runs/parts.py, then `make golden`",
    "inputs": "raise FORMAT in pipeline/context/store.py; then `make golden`",
}


def columns_of(schemas: dict[str, pa.Schema]) -> str:
    """A line per column: table, name, type, and a question mark where it may be null."""
    fields = [(name, field) for name, schema in sorted(schemas.items()) for field in schema]
    return "".join(f"{name}.{field.name} {field.type}{'?' if field.nullable else ''}\n" for name, field in fields)


def present(what: str) -> tuple[str, str]:
    """The format that is written, and the columns of its tables."""
    if what == "runs":
        return FORMAT, columns_of({table.name: stored_schema(table.name) for table in PERSISTED})
    recorded = {name: CONTEXT_TABLES[name].stored_schema for name in store._RECORDED}
    return f"scoped-retrieval/input/{store.FORMAT}", columns_of(recorded)


@pytest.mark.golden
@pytest.mark.parametrize("what", ["runs", "inputs"])
def test_stored_columns_change_with_the_format_alone(what: str) -> None:
    version, columns = present(what)
    golden = GOLDEN / f"stored-columns-{what}.txt"
    before, _, recorded = golden.read_text(encoding="utf-8").partition("\n")
    if os.environ.get("UPDATE_GOLDEN") and before != version:
        golden.write_text(f"{version}\n{columns}", encoding="utf-8", newline="\n")
        return
    assert recorded == columns, f"stored columns are others than those of {before}: {HINTS[what]}"
    assert before == version, "`make golden` records the columns of the new format"
