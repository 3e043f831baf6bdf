"""A tiny corpus of projects whose rows share their words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.sources.importing import normalize

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)


def evidence_rows(project: str, count: int = 12) -> pa.Table:
    """Rows of one project that share their words with those of any other."""
    numbers = range(count)
    return pa.table(
        {
            "source_id": [f"workspace:{project}"] * count,
            "path": [f"src/role_{n}.py" for n in numbers],
            "section": [f"role_{n}" for n in numbers],
            "text": [
                f"def role_{n}(user):\n    # default role of {project} {n}\n    return 'guest{n}'\n" for n in numbers
            ],
            "origin_class": ["workspace"] * count,
            "evidence_kind": ["code"] * count,
            "symbols": [[f"role_{n}"] for n in numbers],
            "version": [f"{n:040x}" for n in numbers],
            "line_start": [1] * count,
            "line_end": [3] * count,
            "byte_start": [0] * count,
            "byte_end": [60] * count,
            "recorded_time": [NOON - timedelta(days=n + 1) for n in numbers],
        }
    )


def make_corpus(folder: Path, *projects: pa.Table, principal: str = "ana") -> Corpus:
    """A corpus with `shop`, `pay`, ... from these rows, where `principal` may ask in `shop`."""
    corpus = Corpus.create(folder)
    for project, rows in zip(("shop", "pay"), projects, strict=False):
        normal, _ = normalize(rows, project=project, principal=principal, now=NOON)
        commits = normal.select(["version", "recorded_time", "branch"])
        corpus.publish(normal, commits={"git:shop": commits}, project=project, now=NOON)
    write_starter_grants(folder / "grants.yaml", principal, "shop")
    return Corpus.open(folder)
