"""Readers of records in tests: files of lines, and the rows a reader gives."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from scoped_retrieval.nodes.tables import IMPORT_ROWS
from scoped_retrieval.pipeline.sources.importing import normalize
from scoped_retrieval.pipeline.sources.report import PLACE, SourceReport

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def lines(folder: Path, *values: dict | str, name: str = "file.jsonl") -> Path:
    path = folder / name
    path.write_text("\n".join(v if isinstance(v, str) else json.dumps(v) for v in values), "utf-8")
    return path


def read(reader, path, **kind) -> tuple[list[dict], SourceReport]:
    report = SourceReport()
    tables = list(reader(path, project="shop", now=NOW, report=report, **kind))
    for table in tables:
        names = [n for n in table.schema.names if n != PLACE]
        assert all(table.schema.field(n).type == IMPORT_ROWS.schema.field(n).type for n in names)
    return [row for table in tables for row in table.to_pylist()], report


def stored(reader, path) -> list[dict]:
    """Rows as the corpus gets them."""
    tables = list(reader(path, project="shop", now=NOW, report=SourceReport()))
    return normalize(pa.concat_tables(tables, promote_options="default"), project="shop", principal="ana", now=NOW)[
        0
    ].to_pylist()
