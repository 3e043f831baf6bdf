"""The sample portfolio of `data/demo/portfolio` as a corpus, and questions asked in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.indexing.following import IndexRequest
from scoped_retrieval.pipeline.indexing.importing import index_into
from scoped_retrieval.pipeline.indexing.report import IndexReport

PORTFOLIO = Path(__file__).parents[2] / "data" / "demo" / "portfolio"
NOW = datetime(2025, 10, 25, 12, tzinfo=UTC)
VARIABLES = {"venture": "acme", "engagement": "eng-001", "current_project": "proj-001"}
GRANTS: dict[str, Any] = {"principals": {"ana": {"projects": ["portfolio"], "zones": "internal"}}}


def indexed(corpus: Path, root: Path = PORTFOLIO, *, now: datetime = NOW) -> IndexReport:
    """The tree, its records and its logs, published once by `ana`, whose the lines of logs without a user are."""
    flags = {"corpus": corpus, "project": "portfolio", "grants": corpus.parent / "grants.yaml", "principal": "ana"}
    settings = load_settings(flags)
    (corpus.parent / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    request = IndexRequest(
        paths=(root,),
        read=(
            ("sot", root / "sot"),
            ("logs", root / "logs"),
            ("logs", root / "ventures" / "acme" / "projects" / "proj-001" / "logs"),
        ),
        source="portfolio",
        semantic=False,
    )
    return index_into(settings, request, now=now, grant=False)


def asked(
    corpus: Path,
    question: str,
    *,
    now: datetime = NOW,
    runs: Path | None = None,
    work_trees: Sequence[Path] = (),
    **fields: Any,
) -> Any:
    """One retrieval by `ana`."""
    with Retriever.open(
        corpus, principal="ana", grants=corpus.parent / "grants.yaml", encoder=None, runs=runs, clock=lambda: now,
        work_trees=work_trees,
    ) as retriever:  # fmt: skip
        return retriever.retrieve(question, project="portfolio", **fields)


def cited(found: Any) -> list[str]:
    """The paths of the items of a block, in order."""
    return found.tables["citations"]["path"].to_pylist()
