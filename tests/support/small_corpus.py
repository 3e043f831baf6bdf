"""A corpus of a few visible rows, built as a user would, and questions to it: for tests that tell a whole story."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from scoped_retrieval.nodes.lanes import LANE_NAMES
from scoped_retrieval.nodes.tables import IMPORT_ROWS
from scoped_retrieval.pipeline.asking.retrieval import Retrieval
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.sources.importing import normalize

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
LANES = tuple(lane for lane in LANE_NAMES if lane != "semantic")
LABEL = re.compile(r"(?m)^\[([a-z-]+#\d+)\] ")
Row = dict[str, Any]


def settings_of(folder: Path, principal: str = "ana", **changes: Any) -> Settings:
    """The settings of a user whose corpus, runs and grants are in a folder."""
    flags = {"corpus": folder / "corpus", "runs": folder / "runs", "grants": folder / "grants.yaml"}
    return load_settings(flags | {"principal": principal} | changes, cwd=folder, environ={}, user=folder / "none.toml")


def days_ago(days: float) -> datetime:
    return NOON - timedelta(days=days)


def row(kind: str, path: str, text: str, *, days: float = 1, **columns: Any) -> Row:
    """A row of evidence as a user would import it: its class follows from its kind."""
    return {"source_id": f"{kind}:story", "evidence_kind": kind, "path": path, "text": text} | {
        "recorded_time": days_ago(days), "line_start": 1, "line_end": 1 + text.count("\n"),
        "byte_start": 0, "byte_end": len(text.encode()),
    } | columns  # fmt: skip


class Story:
    """A folder with a corpus, grants for `ana` in `shop`, and runs."""

    def __init__(self, folder: Path, *rows: Row, encoder: Any = None) -> None:
        self.folder = folder
        self.encoder = encoder
        Corpus.create(folder / "corpus")
        self.grant("ana", "shop")
        self.tell(*rows)

    @classmethod
    def at(cls, folder: Any) -> Story:
        """The story that was told in a folder, or in one that this is a copy of."""
        story = cls.__new__(cls)
        story.folder, story.encoder = folder, None
        return story

    def grant(self, principal: str, project: str) -> None:
        write_starter_grants(self.folder / "grants.yaml", principal, project)

    def tell(
        self,
        *rows: Row,
        project: str = "shop",
        complete: Collection[str] = (),
        principal: str = "ana",
        commits: Mapping[str, pa.Table] | None = None,
    ) -> None:
        """Publish rows; what a source named in `complete` no longer says has ended."""
        if not rows and not commits:
            return
        names = dict.fromkeys([*(name for each in rows for name in each), "source_id", "text"])
        schema = pa.schema([IMPORT_ROWS.schema.field(name) for name in names])
        table = pa.Table.from_pylist(list(rows), schema=schema)
        normal, _ = normalize(table, project=project, principal=principal, now=NOON)
        corpus = Corpus.open(self.folder / "corpus")
        corpus.publish(
            normal, complete_sources=complete, commits=commits, project=project, now=NOON, encoder=self.encoder
        )

    def open(self, **how: Any) -> Retriever:
        lanes = LANES if self.encoder is None else (*LANES, "semantic")
        options = {"principal": "ana", "lanes": lanes, "encoder": self.encoder, "clock": lambda: NOON} | how
        return Retriever.open(self.folder / "corpus", grants=self.folder / "grants.yaml", **options)

    def ask(self, question: str, *, principal: str = "ana", **fields: Any) -> Retrieval:
        """The answer, without a folder of runs."""
        with self.open(principal=principal) as retriever:
            return retriever.retrieve({"project": "shop", "question": question, **fields})


def places(found: Retrieval) -> list[str]:
    """The cited paths, best first."""
    return [citation["path"] for citation in found.citations]


def decided(found: Retrieval, path: str) -> Row:
    """The decision about the only candidate at a path."""
    (decision,) = [d for d in found.tables["decisions"].to_pylist() if d["path"] == path]
    return decision


def shown(found: Retrieval, path: str) -> Row:
    """The only item at a path: its row of TRIMMED."""
    (label,) = [citation["label"] for citation in found.citations if citation["path"] == path]
    (item,) = [item for item in found.tables["trimmed"].to_pylist() if item["label"] == label]
    return item
