"""`eval`: index labelled collections, ask every judged query in one run, and report metrics per system.

Systems: every single lane, their reciprocal rank fusion, the full line, the block that a model is given, and for code
the file-level BM25 baselines. All rankings are read from the run's own tables, so the figures describe what a user of the
run would have seen. Every collection is a project (a conversation's user each) of one corpus, so each is asked beside
all the others' rows.

What one would otherwise get wrong: a ranking says nothing of the block. Lanes and rankings are measured under a budget
that is deep enough for them, so each query is asked once more under every budget of which the block is measured.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from ...nodes.errors import InputError
from ...nodes.tables import BLOCKS, CITATIONS, HITS, RANKED
from ..corpus import Corpus
from ..encoders.encoder import NAME, load_encoder
from ..retriever import Retriever
from ..runs import RunStore
from ..sources.importing import normalise
from .baselines import file_baseline, require_bm25s
from .collections import Collection
from .metrics import DEFAULT_METRICS, GOLD_PER_1000, gold_per_1000, measure, write_trec_run
from .rankings import BLOCK, FULL, FUSED, block_ranking, full_ranking, fused_ranking, lane_rankings

EVALUATION_PRINCIPAL = "evaluation"
RECALL_LANES = ("lexical", "semantic", "symbol")
INDEXED = "indexed.json"
"""What stands in which corpus, in the work folder."""
NO_ENCODER = "none"
DEEP = {"lane_k": 100, "pool_k": 400, "max_items": 20}
"""Budgets of an evaluation run: deep enough for R@20 over documents of several rows."""


@dataclass
class Scores:
    """The figures of one collection."""

    collection: str
    queries: int
    rows: int
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    """system -> measure -> mean."""


@dataclass
class Evaluation:
    """One run over one or more collections, and the figures of each."""

    run_id: str
    seconds_index: float
    seconds_run: float
    statuses: dict[str, int]
    scores: list[Scores] = field(default_factory=list)

    def records(self) -> list[dict[str, Any]]:
        """One record per collection, system and measure, for `data/results`."""
        return [
            {"collection": one.collection, "system": system, "metric": metric, "value": round(value, 4),
             "queries": one.queries, "rows": one.rows, "run_id": self.run_id}
            for one in self.scores
            for system, values in one.metrics.items()
            for metric, value in values.items()
        ]  # fmt: skip

    def comparison(self, metric: str) -> pd.DataFrame:
        """Systems by collection for one measure, for printing."""
        return pd.DataFrame({one.collection: {s: v.get(metric) for s, v in one.metrics.items()} for one in self.scores})


def index_collections(
    collections: Sequence[Collection], work: Path, *, semantic: bool, encoder_name: str = NAME
) -> Corpus:
    """The collections as one corpus below `work`; those that stand there as they are now are not read again.

    `indexed.json` in `work` names, for every encoder, its corpus and the digest of each collection in it. Where a digest
    is another, all the collections go into a fresh corpus; the old one stays, for the runs that rest on it.
    """
    encoder = load_encoder(encoder_name) if semantic else None
    profile = encoder.profile if encoder else NO_ENCODER
    digests = {collection.name: collection.digest() for collection in collections}
    indexed = _indexed(work / INDEXED)
    known: dict[str, str] = indexed.get(profile, {}).get("collections", {})
    corpus = _corpus_of(work, indexed.get(profile, {}).get("corpus"))
    if corpus is None or _stale(collections, digests, known, corpus):
        corpus, known = Corpus.create(_fresh_folder(work)), {}
    for collection in collections:
        if collection.name in known:
            continue
        now = datetime.now(UTC)
        tables = [
            normalise(rows, project=collection.name, principal=EVALUATION_PRINCIPAL, now=now)[0]
            for rows in collection.rows()
        ]
        corpus.publish(
            pa.concat_tables(tables), commits=collection.commits(), project=collection.name, now=now, encoder=encoder
        )
        known[collection.name] = digests[collection.name]
        indexed[profile] = {"corpus": corpus.path.name, "collections": known}
        (work / INDEXED).write_text(json.dumps(indexed, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return corpus


def _indexed(path: Path) -> dict[str, Any]:
    """What `indexed.json` says; nothing, if there is none or it cannot be read."""
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def _corpus_of(work: Path, named: str | None) -> Corpus | None:
    return Corpus.open(work / named) if named and (work / named / "CURRENT").exists() else None


def _stale(
    collections: Sequence[Collection], digests: Mapping[str, str], known: Mapping[str, str], corpus: Corpus
) -> bool:
    """Whether a collection stands in the corpus as it no longer is, or without a record."""
    projects = set(corpus.projects())
    return any(
        known[one.name] != digests[one.name] if one.name in known else not projects.isdisjoint(one.projects())
        for one in collections
    )


def _fresh_folder(work: Path) -> Path:
    """The first of `corpus`, `corpus-2`, `corpus-3`, ... that does not exist."""
    names = itertools.chain(["corpus"], (f"corpus-{n}" for n in itertools.count(2)))
    return next(work / name for name in names if not (work / name).exists())


def evaluate(
    collections: Sequence[Collection],
    *,
    work: Path,
    semantic: bool,
    encoder: str = NAME,
    metrics: Sequence[str] = DEFAULT_METRICS,
    baselines: bool = False,
    limit: int | None = None,
    purpose: str | None = None,
    blocks: Sequence[int] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Evaluation:
    """Index, run and measure collections; corpus, run, and a TREC run file per collection and system go to `work`.

    Args:
        encoder: makes the vectors of the collections and of the questions, where `semantic` wants any.
        limit: at most this many queries of each collection.
        blocks: budgets in tokens of which the block is measured, beside that of the purpose.
        progress: told what is being done.

    Raises:
        InputError: two collections have one name, a measure is unknown, or a package is missing.
    """
    if baselines:
        require_bm25s()
    names = [collection.name for collection in collections]
    if len(set(names)) < len(names):
        raise InputError.expected("collections of different names", ", ".join(names), "COLLECTION")
    measure(collections[0].qrels.head(1), collections[0].qrels.assign(score=1.0).head(1), metrics)
    work.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    progress(f"indexing {', '.join(names)}")
    corpus = index_collections(collections, work, semantic=semantic, encoder_name=encoder)
    indexed = time.perf_counter()
    grants = work / "grants.yaml"
    projects = sorted(project for collection in collections for project in collection.projects())
    granted = {"principals": {EVALUATION_PRINCIPAL: {"projects": projects}}}
    grants.write_text(yaml.safe_dump(granted), encoding="utf-8")
    lanes = RECALL_LANES if semantic else tuple(lane for lane in RECALL_LANES if lane != "semantic")
    retriever = Retriever.open(
        corpus,
        principal=EVALUATION_PRINCIPAL,
        runs=work / "runs",
        grants=grants,
        lanes=(*lanes, "recent", "exact", "expansion"),
    )
    requests = {c.name: c.requests(purpose=purpose, limit=limit) for c in collections}
    budgets = {FULL: DEEP, BLOCK: {}} | {f"{BLOCK}@{tokens}": {"max_tokens": tokens} for tokens in blocks}
    progress(f"asking {sum(map(len, requests.values()))} queries under {len(budgets)} budgets")
    summary = retriever.run(
        [
            request | {"request_id": _under(request["request_id"], system), "budget": budget}
            for system, budget in budgets.items()
            for asked in requests.values()
            for request in asked
        ]
    )
    finished = time.perf_counter()
    result = Evaluation(
        summary.run_id, round(indexed - started, 2), round(finished - indexed, 2), dict(summary.statuses)
    )
    run = RunStore(work / "runs").open(summary.run_id)
    hits, ranked, citations, sizes = (run.table(table.name) for table in (HITS, RANKED, CITATIONS, BLOCKS))
    for collection in collections:
        progress(f"measuring {collection.name}")
        asked = [request["request_id"] for request in requests[collection.name]]
        evidence = corpus.frame(collection.projects()).evidence
        documents = evidence.select(["evidence_id", collection.key]).to_pandas()
        documents = documents.set_index("evidence_id")[collection.key]
        rankings = _rankings(hits, ranked, documents, lanes, asked)
        shown = {
            system: block_ranking(citations, documents, {_under(id_, system): id_ for id_ in asked})
            for system in budgets
            if system != FULL
        }
        rankings |= shown
        if baselines and collection.shape == "code":
            rankings["bm25-all-files"] = file_baseline(collection, source_only=False)
            rankings["bm25-source-files"] = file_baseline(collection, source_only=True)
        scores = Scores(collection.name, len(asked), evidence.num_rows)
        trec = work / "trec" / collection.name
        trec.mkdir(parents=True, exist_ok=True)
        qrels = collection.qrels[collection.qrels["query_id"].isin(asked)]
        for system, ranking in rankings.items():
            ranking = ranking[ranking["query_id"].isin(asked)]
            write_trec_run(trec / f"{system}.run", ranking, system)
            scores.metrics[system] = measure(qrels, ranking, metrics)
            if system in shown:
                used = sizes.filter(pc.is_in(sizes["request_id"], pa.array([_under(id_, system) for id_ in asked])))
                gold = gold_per_1000(qrels, ranking, pc.sum(used["tokens"]).as_py() or 0)
                scores.metrics[system][GOLD_PER_1000] = gold
        result.scores.append(scores)
    return result


def _under(request_id: str, system: str) -> str:
    """The request that asks a query under the budget of a system."""
    return request_id if system == FULL else f"{request_id}@{system}"


def _rankings(
    hits: pa.Table, ranked: pa.Table, documents: pd.Series, lanes: tuple[str, ...], asked: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Ranking per system of one collection's requests."""
    of_asked = pa.array(asked, pa.string())
    hits, ranked = (t.filter(pc.is_in(t["request_id"], of_asked)) for t in (hits, ranked))
    rankings = {lane: r for lane, r in lane_rankings(hits, documents).items() if lane in lanes}
    rankings[FUSED] = fused_ranking(hits, documents, lanes)
    rankings[FULL] = full_ranking(ranked, documents)
    return rankings
