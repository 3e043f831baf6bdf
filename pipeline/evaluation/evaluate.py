"""`eval`: index labeled collections, answer every judged query in one run, and report metrics per system.

Systems: every single lane, their reciprocal rank fusion, the full line, and the block that a model receives. They are read from the run's own tables, so the figures describe what a user of the run would have seen. Every collection is a project (for conversations, one per
user) of one corpus, so each is queried in the presence of all other rows.

Collections of one kind (documents, conversations, code) are pooled query by query, so a large one counts for more; the
means of each collection are shown as well.

Note: a ranking does not determine the block. Lanes and rankings are measured under a budget that is deep enough for
them, so each query runs once more under every budget for which the block is measured.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import yaml

from ...nodes.errors import InputError
from ...nodes.lanes import LANES, Lane
from ..asking.retriever import Retriever
from ..config.policies.tables import Policies
from ..corpus import Corpus
from ..corpus.manifest import chain_of
from ..encoders.choice import EncoderChoice
from ..encoders.encoder import NAME, load_encoder
from ..plugins import installed
from ..progress import counted
from ..runs import Run, Runs
from ..sources.importing import normalize
from ..storage.file_access import keep_out
from ..storage.places import Place
from .collections import Collection
from .metrics import DEFAULT_METRICS, compared, groups, measures_named, per_query, write_trec_run
from .rankings import BLOCK, DOCUMENTS, FULL, GOLD, LINES, TOKENS, Measured, under

EVALUATION_PRINCIPAL = "evaluation"
NO_ENCODER = "none"
DEEP = {"lane_k": 100, "pool_k": 400, "max_items": 20}
"""The budget of an evaluation run: deep enough for R@20 over documents of several rows."""


def index_collections(
    collections: Sequence[Collection], work: Path, *, semantic: bool, encoder_name: EncoderChoice | str = NAME
) -> Corpus:
    """The collections as one corpus below `work`, in a folder named by their content and the encoder: it is read once.

    An interrupted indexing continues with the next collection.
    """
    encoder = load_encoder(encoder_name) if semantic else None
    content = [encoder.profile if encoder else NO_ENCODER, *(f"{one.name} {one.digest()}" for one in collections)]
    folder = work / f"corpus-{hashlib.sha256(' '.join(content).encode()).hexdigest()[:16]}"
    corpus = Corpus.open(folder) if chain_of(folder).last() else Corpus.create(folder)
    for collection in collections:
        if set(collection.projects()) <= set(corpus.projects()):
            continue
        now = datetime.now(UTC)
        tables = [
            normalize(rows, project=collection.name, principal=EVALUATION_PRINCIPAL, now=now)[0]
            for rows in collection.rows()
        ]
        corpus.publish(
            pa.concat_tables(tables), commits=collection.commits(), project=collection.name, now=now, encoder=encoder
        )
    return corpus


@dataclass(frozen=True)
class JudgedRun:
    """A run of judged queries, over a corpus of their collections."""

    corpus: Corpus
    run: Run
    queries: Mapping[str, list[str]]
    """Collection -> its requests, one per query."""
    lanes: tuple[Lane, ...]
    """The lanes that are on."""
    budgets: tuple[str, ...]
    """The systems under whose budgets every query was run, `full` first."""
    seconds_index: float
    seconds_run: float

    def documents(self, collection: Collection) -> tuple[int, pd.Series]:
        """The number of rows of a collection, and the document of each by evidence id."""
        evidence = self.corpus.frame(collection.projects()).evidence
        frame = evidence.select(["evidence_id", collection.key]).to_pandas()
        return evidence.num_rows, frame.set_index("evidence_id")[collection.key]


@dataclass(frozen=True)
class Asking:
    """How collections are indexed and queried; `work` is the folder of corpora and runs."""

    work: Path
    semantic: bool
    encoder: EncoderChoice | str = NAME
    limit: int | None = None
    purpose: str | None = None
    policies: Policies | None = None
    plugins: Sequence[str] = ()
    progress: Callable[[str], None] = lambda _: None


def work_folder(work: Path) -> Path:
    """The folder of corpora and runs; one that is made here is ignored by Git and never read, as they are."""
    if not work.exists():
        work.mkdir(parents=True)
        keep_out(work)
    return work


def ask(collections: Sequence[Collection], how: Asking, blocks: Sequence[int] | None = ()) -> JudgedRun:
    """Index collections and answer their queries in one run, deep enough for rankings and once per budget of blocks.

    Args:
        blocks: budgets in tokens for which the block is measured, besides that of the purpose; None = no blocks.
    """
    work, progress = work_folder(how.work), how.progress
    started = time.perf_counter()
    progress(f"indexing {', '.join(one.name for one in collections)}")
    corpus = index_collections(collections, work, semantic=how.semantic, encoder_name=how.encoder)
    indexed = time.perf_counter()
    lanes = lanes_on(how)
    requests = {c.name: c.requests(purpose=how.purpose, limit=how.limit) for c in collections}
    queries = {name: [request["request_id"] for request in asked] for name, asked in requests.items()}
    grants = work / "grants.yaml"
    projects = sorted(project for collection in collections for project in collection.projects())
    granted = {"principals": {EVALUATION_PRINCIPAL: {"projects": projects, "audit": True}}}
    grants.write_text(yaml.safe_dump(granted), encoding="utf-8")
    retriever = Retriever.open(
        corpus,
        principal=EVALUATION_PRINCIPAL,
        runs=work / "runs",
        grants=grants,
        policies=how.policies,
        lanes=[lane.name for lane in lanes if lane in LANES],
        encoder=how.encoder,
        plugins=how.plugins,
    )
    asked_under = {FULL: DEEP}
    if blocks is not None:
        asked_under |= {BLOCK: {}} | {f"{BLOCK}@{tokens}": {"max_tokens": tokens} for tokens in blocks}
    progress(
        f"asking {counted(sum(map(len, requests.values())), 'query', 'queries')} under {counted(len(asked_under), 'budget')}"
    )
    summary = retriever.run(
        [
            request | {"request_id": under(request["request_id"], system), "budget": budget}
            for system, budget in asked_under.items()
            for asked in requests.values()
            for request in asked
        ]
    )
    finished = time.perf_counter()
    run = Runs(work / "runs").open(summary.run_id)
    seconds = round(indexed - started, 2), round(finished - indexed, 2)
    return JudgedRun(corpus, run, queries, lanes, tuple(asked_under), *seconds)


def lanes_on(how: Asking) -> tuple[Lane, ...]:
    """The lanes that queries use, first those of the package, then those of plugins."""
    off = {"graph"} if how.semantic else {"graph", "semantic"}  # no request asks for walks
    return tuple(lane for lane in LANES if lane.name not in off) + installed(how.plugins).line.lanes


GOLD_PER_1000 = "gold/1k tokens"
"""Measure of blocks: relevant documents shown per 1,000 tokens of all blocks."""


@dataclass(frozen=True)
class Evaluation:
    """One run over one or more collections, and the figures of each."""

    run_id: str
    corpus: Place
    """The corpus that the run asked."""
    seconds_index: float
    seconds_run: float
    statuses: dict[str, int]
    measures: tuple[str, ...]
    """The requested measures of rankings."""
    values: pd.DataFrame
    """Every value behind the means: collection, kind, query_id, system, metric, value."""
    rows: dict[str, int]
    """Collection -> its rows in the corpus."""

    def means(self, metric: str) -> pd.DataFrame:
        """Systems by collection for one measure, and by kind where several collections are of one."""
        return pd.DataFrame({name: _mean(values, metric) for name, values in chain(*groups(self.values))})

    def compared(self, metric: str) -> dict[str, pd.DataFrame]:
        """Per kind, `metrics.compared` over the queries of all its collections, for the systems common to all."""
        return {
            str(kind): compared(_wide(values, metric), FULL) for kind, values in self.values.groupby("kind", sort=False)
        }

    def records(self) -> list[dict[str, Any]]:
        """One record per collection or pool, system and measure, for `data/results`.

        Measures of rankings have `low` and `high`, the ends of the mean's 95 % interval, and systems other than
        `full` have `difference` with its interval, `p` and `p_holm`; see `metrics.compared`. A pool is the
        collection `all code`.
        """
        found = []
        for name, values in chain(*groups(self.values)):
            kind = values["kind"].iloc[0]
            tail = {
                "queries": values["query_id"].nunique(),
                "rows": sum(self.rows[one] for one in values["collection"].unique()),
                "run_id": self.run_id,
            }
            for metric in (*self.measures, GOLD_PER_1000, DOCUMENTS, TOKENS, LINES):
                tested = {}
                if metric in self.measures:
                    tested = compared(_wide(values, metric), FULL).to_dict("index")
                for system, value in _mean(values, metric).items():
                    row = {key: one for key, one in tested.get(system, {}).items() if key != "mean"}
                    plain = {key: None if one != one else round(one, 6) for key, one in row.items()}
                    head = {"collection": name, "kind": kind, "system": system, "metric": metric}
                    found.append({**head, "value": round(value, 4), **tail, **plain})
        return found


def _mean(values: pd.DataFrame, metric: str) -> dict[str, float]:
    """A measure per system, of those that have it."""
    if metric == GOLD_PER_1000:
        shown, tokens = (_totals(values, name) for name in (GOLD, TOKENS))
        return {system: 1000 * shown[system] / total if total else 0.0 for system, total in tokens.items()}
    return {str(s): float(of["value"].mean()) for s, of in _of(values, metric).groupby("system", sort=False)}


def _of(values: pd.DataFrame, metric: str) -> pd.DataFrame:
    return values[values["metric"] == metric]


def _totals(values: pd.DataFrame, metric: str) -> dict[str, float]:
    return {str(system): float(of["value"].sum()) for system, of in _of(values, metric).groupby("system", sort=False)}


def _wide(values: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A row per query and a column per system that has a value for every query, in the order of the systems."""
    of_metric = _of(values, metric)
    wide = of_metric.pivot(index="query_id", columns="system", values="value")
    return wide[list(of_metric["system"].unique())].dropna(axis="columns")


def evaluate(
    collections: Sequence[Collection],
    how: Asking,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    blocks: Sequence[int] = (),
) -> Evaluation:
    """Index, run and measure collections; corpus, run, and a TREC run file per collection and system go to `how.work`.

    Args:
        blocks: budgets in tokens for which the block is measured, besides that of the purpose.

    Raises:
        InputError: two collections have one name, a measure is unknown, or a package is missing.
    """
    names = [collection.name for collection in collections]
    if len(set(names)) < len(names):
        raise InputError.expected("collections of different names", ", ".join(names), "COLLECTION")
    measures_named(metrics)
    asked = ask(collections, how, blocks)
    tables, rows, values = Measured.of(asked.run), {}, []
    for collection in collections:
        how.progress(f"measuring {collection.name}")
        trec = how.work / "trec" / collection.name
        found, rows[collection.name] = _measured(collection, asked, tables, metrics, trec)
        values.append(found.assign(collection=collection.name, kind=collection.shape))
    columns = ["collection", "kind", "query_id", "system", "metric", "value"]
    result = Evaluation(
        asked.run.run_id, asked.corpus.path, asked.seconds_index, asked.seconds_run, asked.run.statuses,
        tuple(metrics), pd.concat(values, ignore_index=True)[columns], rows,
    )  # fmt: skip
    result.values.to_parquet(how.work / "per-query.parquet", index=False)
    return result


def _measured(
    collection: Collection, asked: JudgedRun, tables: Measured, metrics: Sequence[str], trec: Path
) -> tuple[pd.DataFrame, int]:
    """Measure every system on a collection, and write its rankings to the folder `trec`: the values, and the number of its
    rows.
    """
    queries = asked.queries[collection.name]
    rows, documents = asked.documents(collection)
    rankings = tables.rankings(documents, [lane.name for lane in asked.lanes if lane.measured], queries)
    blocks = {name: tables.block(documents, queries, name) for name in asked.budgets if name != FULL}
    qrels = collection.qrels[collection.qrels["query_id"].isin(queries)]
    trec.mkdir(parents=True, exist_ok=True)
    lines, values = collection.gold_lines(), []
    for system, ranking in {**rankings, **blocks}.items():
        ranking = ranking[ranking["query_id"].isin(queries)]
        write_trec_run(trec / f"{system}.run", ranking, system)
        figures = per_query(qrels, ranking, metrics)
        if system in blocks:
            figures = figures.join(tables.block_figures(qrels, ranking, queries, system))
            if len(lines):
                figures = figures.join(tables.lines_shown(lines, documents, queries, system))
        long = figures.reset_index().melt(id_vars="query_id", var_name="metric").dropna(subset="value")
        values.append(long.assign(system=system))
    return pd.concat(values, ignore_index=True), rows
