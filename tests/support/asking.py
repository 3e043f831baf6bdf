"""Build a world's corpus and ask its requests; everything on disk, as a user would."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import yaml
from worlds import GRANTS, NOW, Row, World

from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.retriever import Retriever
from scoped_retrieval.pipeline.runs import RunStore
from scoped_retrieval.pipeline.sources.importing import normalise

Tables = dict[str, pa.Table]


@contextmanager
def built(rows: Sequence[Row], *, split: bool = False) -> Iterator[Path]:
    """A corpus of these rows, in one publication or one per project, with the world's grants beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus"
        corpus = Corpus.create(path)
        projects = sorted({row["owner_project"] for row in rows}) if split else [None]
        for project in projects:
            part = [row for row in rows if project in (None, row["owner_project"])]
            if part:
                table, _ = normalise(pa.Table.from_pylist(part, schema=_schema(part)), project="shop", principal="ana", now=NOW)
                corpus.publish(table, now=NOW)
        (path / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
        yield path


def _schema(rows: Sequence[Row]) -> pa.Schema:
    declared = TABLES["import_rows"].schema
    return pa.schema([declared.field(name) for name in rows[0]])


def alone(corpus: Path, request: Row, *, lanes: Sequence[str] | None = None) -> Tables:
    """The tables of one request asked alone."""
    with Retriever.open(corpus, principal="ana", lanes=lanes, encoder=None, clock=lambda: NOW) as retriever:
        return retriever.retrieve({**request}).tables


def together(corpus: Path, requests: Sequence[Row], *, shard: int, runs: Path | None = None) -> Tables:
    """The tables of a stored run of several requests, texts filled in."""
    with tempfile.TemporaryDirectory() as folder:
        store = runs or Path(folder) / "runs"
        with Retriever.open(
            corpus, principal="ana", encoder=None, runs=store, shard_requests=shard, clock=lambda: NOW
        ) as retriever:
            summary = retriever.run([{**request} for request in requests])
        return RunStore(store).open(summary.run_id).tables()


def caller_view(tables: Tables, request_id: str) -> dict[str, list[dict[str, Any]]]:
    """Everything the caller of one request may see, envelope columns left out."""
    view = {}
    for name, table in sorted(tables.items()):
        declared = TABLES[name]
        columns = [c for c in declared.names(audience="caller") if declared.columns[c].digest and c in table.column_names]
        if columns and "request_id" in table.column_names:
            mine = table.filter(pc.equal(table["request_id"], request_id))
            view[name] = mine.select(columns).to_pylist()
    return view
