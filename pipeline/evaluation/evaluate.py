"""`eval`: index a labelled collection, ask every judged query in one run, and report metrics per system.

Systems: every single lane, their reciprocal rank fusion, the full line, and for code the file-level BM25 baselines.
All rankings are read from the run's own tables, so the figures describe what a user of the run would have seen.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import yaml

from ...nodes.tables import HITS, RANKED
from ..corpus import Corpus
from ..encoder import load_encoder
from ..retriever import Retriever
from ..runs import RunStore
from ..sources.importing import normalise
from .baselines import file_baseline
from .collections import Collection
from .metrics import DEFAULT_METRICS, measure, write_trec_run
from .rankings import FULL, FUSED, full_ranking, fused_ranking, lane_rankings

EVALUATION_PRINCIPAL = "evaluation"
RECALL_LANES = ("lexical", "semantic", "symbol")
DEEP = {"lane_k": 100, "pool_k": 400, "max_items": 20}
"""Budgets of an evaluation run: deep enough for R@20 over documents of several rows."""


@dataclass
class Evaluation:
    """The figures of one collection."""

    collection: str
    queries: int
    rows: int
    run_id: str
    seconds_index: float
    seconds_run: float
    statuses: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    """system -> measure -> mean."""

    def records(self) -> list[dict[str, Any]]:
        """One record per system and measure, for `data/results`."""
        return [
            {"collection": self.collection, "system": system, "metric": metric, "value": round(value, 4),
             "queries": self.queries, "run_id": self.run_id}
            for system, values in self.metrics.items()
            for metric, value in values.items()
        ]  # fmt: skip


def index_collection(collection: Collection, corpus_path: Path, *, semantic: bool) -> tuple[Corpus, int]:
    """The collection as a corpus at `corpus_path`, built unless it stands there already; and its row count."""
    corpus = Corpus.open(corpus_path) if (corpus_path / "CURRENT").exists() else Corpus.create(corpus_path)
    if corpus.projects():
        return corpus, corpus.frame(collection.projects()).evidence.num_rows
    now = datetime.now(UTC)
    encoder = load_encoder() if semantic else None
    total = 0
    tables = []
    for rows in collection.rows():
        normal, _ = normalise(rows, project=collection.name, principal=EVALUATION_PRINCIPAL, now=now)
        tables.append(normal)
        total += normal.num_rows
    corpus.publish(pa.concat_tables(tables), now=now, encoder=encoder)
    return corpus, total


def evaluate(
    collection: Collection,
    *,
    work: Path,
    semantic: bool,
    metrics: Sequence[str] = DEFAULT_METRICS,
    baselines: bool = False,
    limit: int | None = None,
    purpose: str | None = None,
) -> Evaluation:
    """Index, run and measure one collection; TREC run files go to `work/<name>/trec`."""
    folder = work / collection.name
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    corpus, rows = index_collection(collection, folder / "corpus", semantic=semantic)
    indexed = time.perf_counter()
    grants = folder / "grants.yaml"
    granted = {"principals": {EVALUATION_PRINCIPAL: {"projects": collection.projects()}}}
    grants.write_text(yaml.safe_dump(granted), encoding="utf-8")
    lanes = RECALL_LANES if semantic else tuple(lane for lane in RECALL_LANES if lane != "semantic")
    retriever = Retriever.open(
        corpus,
        principal=EVALUATION_PRINCIPAL,
        runs=folder / "runs",
        grants=grants,
        lanes=(*lanes, "recent", "exact", "expansion"),
    )
    requests: list[dict[str, Any]] = [
        request | {"budget": DEEP} for request in collection.requests(purpose=purpose, limit=limit)
    ]
    summary = retriever.run(requests)
    finished = time.perf_counter()
    result = Evaluation(
        collection.name, len(requests), rows, summary.run_id, round(indexed - started, 2), round(finished - indexed, 2)
    )
    documents = corpus.frame(collection.projects()).evidence.select(["evidence_id", collection.key]).to_pandas()
    documents = documents.set_index("evidence_id")[collection.key]
    qrels = collection.qrels[collection.qrels["query_id"].isin({r["request_id"] for r in requests})]
    run = RunStore(folder / "runs").open(summary.run_id)
    hits = run.table(HITS.name)
    rankings = {lane: r for lane, r in lane_rankings(hits, documents).items() if lane in lanes}
    rankings[FUSED] = fused_ranking(hits, documents, lanes)
    rankings[FULL] = full_ranking(run.table(RANKED.name), documents)
    if baselines and collection.shape == "code":
        rankings["bm25-all-files"] = file_baseline(collection, source_only=False)
        rankings["bm25-source-files"] = file_baseline(collection, source_only=True)
    trec = folder / "trec"
    trec.mkdir(exist_ok=True)
    for system, ranking in rankings.items():
        ranking = ranking[ranking["query_id"].isin(set(qrels["query_id"]))]
        write_trec_run(trec / f"{system}.run", ranking, system)
        result.metrics[system] = measure(qrels, ranking, metrics)
    result.statuses = dict(summary.statuses)
    return result


def comparison(evaluations: Sequence[Evaluation], metric: str) -> pd.DataFrame:
    """Systems by collection for one measure, for printing."""
    return pd.DataFrame({e.collection: {s: v.get(metric) for s, v in e.metrics.items()} for e in evaluations})
