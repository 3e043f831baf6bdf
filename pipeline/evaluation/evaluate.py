"""`eval`: index labeled collections, answer every judged query in one run, and report metrics per system.

Systems: every single lane, their reciprocal rank fusion, the full line and the line without a score term, the block
that a model receives, and rankings of other systems in the collection's folder. Ours are read from the run's own
tables, so the figures describe what a user of the run would have seen. Every collection is a project (for conversations, one per
user) of one corpus, so each is queried in the presence of all other rows.

Note: a ranking does not determine the block. Lanes and rankings are measured under a budget that is deep enough for
them, so each query runs once more under every budget for which the block is measured.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import yaml

from ...nodes.errors import InputError, StoreError
from ...nodes.lanes import LANES, Lane
from ..asking.retriever import Retriever
from ..config.policies.tables import Policies
from ..corpus import Corpus
from ..corpus.manifest import has_corpus
from ..encoders.choice import EncoderChoice
from ..encoders.encoder import NAME, load_encoder
from ..plugins import installed
from ..progress import counted
from ..runs import Run, Runs
from ..sources.importing import normalize
from .collections import Collection
from .metrics import DEFAULT_METRICS, measure, per_query, write_trec_run
from .rankings import BLOCK, FULL, Measured, expect_terms, gold_table, under
from .report import Evaluation

EVALUATION_PRINCIPAL = "evaluation"
INDEXED = "indexed.json"
"""The file in the work folder that lists the collections of each corpus."""
NO_ENCODER = "none"
DEEP = {"lane_k": 100, "pool_k": 400, "max_items": 20}
"""The budget of an evaluation run: deep enough for R@20 over documents of several rows."""


def index_collections(
    collections: Sequence[Collection], work: Path, *, semantic: bool, encoder_name: EncoderChoice | str = NAME
) -> Corpus:
    """The collections as one corpus below `work`; unchanged ones are not read again.

    `indexed.json` in `work` names, for every encoder, its corpus and the digest of each collection in it. If a digest
    differs, all collections are indexed into a fresh corpus; the old one is kept for the runs that depend on it.
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
            normalize(rows, project=collection.name, principal=EVALUATION_PRINCIPAL, now=now)[0]
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
    """The content of `indexed.json`; empty if it is missing or cannot be read."""
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def _corpus_of(work: Path, named: str | None) -> Corpus | None:
    return Corpus.open(work / named) if named and has_corpus(work / named) else None


def _stale(
    collections: Sequence[Collection], digests: Mapping[str, str], known: Mapping[str, str], corpus: Corpus
) -> bool:
    """Whether the corpus contains an outdated version of a collection, or one without a record."""
    projects = set(corpus.projects())
    return any(
        known[one.name] != digests[one.name] if one.name in known else not projects.isdisjoint(one.projects())
        for one in collections
    )


def _fresh_folder(work: Path) -> Path:
    """The first of `corpus`, `corpus-2`, `corpus-3`, ... that does not exist."""
    names = itertools.chain(["corpus"], (f"corpus-{n}" for n in itertools.count(2)))
    return next(work / name for name in names if not (work / name).exists())


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
    """How collections are indexed and queried.

    `work` is the folder of corpora and runs. `effort` is the `recall_effort` of every request, else that of its
    purpose. `run_id` is a run of `work` whose tables are used instead of running the queries again.
    """

    work: Path
    semantic: bool
    encoder: EncoderChoice | str = NAME
    limit: int | None = None
    purpose: str | None = None
    effort: str | None = None
    run_id: str | None = None
    policies: Policies | None = None
    plugins: Sequence[str] = ()
    progress: Callable[[str], None] = lambda _: None


def ask(collections: Sequence[Collection], how: Asking, blocks: Sequence[int] | None = ()) -> JudgedRun:
    """Index collections and answer their queries in one run, deep enough for rankings and once per budget of blocks.

    Args:
        blocks: budgets in tokens for which the block is measured, besides that of the purpose; None = no blocks.
    """
    work, effort, progress = how.work, how.effort, how.progress
    work.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    progress(f"indexing {', '.join(one.name for one in collections)}")
    corpus = index_collections(collections, work, semantic=how.semantic, encoder_name=how.encoder)
    indexed = time.perf_counter()
    lanes = lanes_on(how)
    requests = {c.name: c.requests(purpose=how.purpose, limit=how.limit) for c in collections}
    queries = {name: [request["request_id"] for request in asked] for name, asked in requests.items()}
    if how.run_id is not None:
        run = Runs(work / "runs", create=False).open(how.run_id)
        budgets = _budgets_of(run, queries)
        return JudgedRun(corpus, run, queries, lanes, budgets, round(indexed - started, 2), 0.0)
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
    efforts = {} if effort is None else {"recall_effort": effort}
    asked_under = {FULL: DEEP}
    if blocks is not None:
        asked_under |= {BLOCK: {}} | {f"{BLOCK}@{tokens}": {"max_tokens": tokens} for tokens in blocks}
    progress(
        f"asking {counted(sum(map(len, requests.values())), 'query', 'queries')} under {counted(len(asked_under), 'budget')}"
    )
    summary = retriever.run(
        [
            request | efforts | {"request_id": under(request["request_id"], system), "budget": budget}
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
    off = {"semantic": not how.semantic, "graph": how.effort != "graph"}
    return tuple(lane for lane in LANES if not off.get(lane.name)) + installed(how.plugins).line.lanes


def _terms_of_plugins(work: Path, run_id: str | None, plugins: Sequence[str]) -> tuple[str, ...]:
    """The score terms of plugins that a run recorded, installed or not; for a new run, those of the enabled plugins."""
    if run_id is None:
        return installed(plugins).line.term_names
    return Runs(work / "runs", create=False).open(run_id).plugin_terms


def _budgets_of(run: Run, queries: Mapping[str, list[str]]) -> tuple[str, ...]:
    """The systems under whose budgets a run contains these queries.

    Raises:
        StoreError: it does not contain all of them.
    """
    known = run.snapshots["request_id"].to_pylist()
    missing = {id_ for asked in queries.values() for id_ in asked} - set(known)
    if missing:
        raise StoreError(
            f"Expected a request for every query of the collections, got none for {min(missing)} - at {run.run_id}",
            hint="--run takes a run that `eval` or `tune` made of these collections with the same --limit",
        )
    first = next(id_ for asked in queries.values() for id_ in asked)
    return tuple(FULL if id_ == first else id_.removeprefix(f"{first}@") for id_ in known if _is_of(id_, first))


def _is_of(request_id: str, query: str) -> bool:
    return request_id == query or request_id.startswith(f"{query}@{BLOCK}")


def evaluate(  # noqa: PLR0913 - options by keyword
    collections: Sequence[Collection],
    *,
    work: Path,
    semantic: bool,
    encoder: EncoderChoice | str = NAME,
    metrics: Sequence[str] = DEFAULT_METRICS,
    limit: int | None = None,
    purpose: str | None = None,
    effort: str | None = None,
    blocks: Sequence[int] = (),
    without: Sequence[str] = (),
    against: str = FULL,
    run_id: str | None = None,
    policies: Policies | None = None,
    plugins: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Evaluation:
    """Index, run and measure collections; corpus, run, and a TREC run file per collection and system go to `work`.

    Args:
        encoder: encodes the collections and the questions, if `semantic` is set.
        limit: at most this many queries of each collection.
        effort: `recall_effort` of every request; default: that of its purpose.
        blocks: budgets in tokens for which the block is measured, besides that of the purpose.
        without: score terms; the line without each of them is a separate system. `each` means every term with a weight.
        against: the system that the others are compared with.
        run_id: a run of `work` to measure, instead of running the queries again.
        policies: the policies for the run; default: the bundled ones.
        plugins: the enabled plugins.
        progress: called with a message at each step.

    Raises:
        InputError: two collections have one name, a measure, a score term or a system is unknown, or a package is missing.
        StoreError: `run_id` is not a run of these collections.
    """
    if without:
        expect_terms(without, _terms_of_plugins(work, run_id, plugins))
    names = [collection.name for collection in collections]
    if len(set(names)) < len(names):
        raise InputError.expected("collections of different names", ", ".join(names), "COLLECTION")
    measure(collections[0].qrels.head(1), collections[0].qrels.assign(score=1.0).head(1), metrics)
    how = Asking(work, semantic, encoder, limit, purpose, effort, run_id, policies, plugins, progress)
    asked = ask(collections, how, blocks)
    tables, rows, values, gold = Measured.of(asked.run, without), {}, [], []
    for collection in collections:
        progress(f"measuring {collection.name}")
        head = {"collection": collection.name, "kind": collection.shape}
        found = _measured(collection, asked, tables, metrics, work / "trec" / collection.name)
        values += [part.assign(**head) for part in found.values]
        gold.append(found.gold.assign(**head))
        rows[collection.name] = found.rows
    result = Evaluation(
        asked.run.run_id, asked.seconds_index, asked.seconds_run, dict(asked.run.manifest["statuses"]), tuple(metrics),
        tuple(lane.name for lane in asked.lanes), against, _headed(values), _headed(gold), rows,
    )  # fmt: skip
    if against not in (known := set(result.values["system"])):
        raise InputError.one_of(sorted(known), against, "--against")
    result.write(work, csv=False)
    return result


@dataclass(frozen=True)
class _Measured:
    """The figures of one collection: values per system, judged documents, and its rows in the corpus."""

    values: list[pd.DataFrame]
    gold: pd.DataFrame
    rows: int


def _measured(
    collection: Collection, asked: JudgedRun, tables: Measured, metrics: Sequence[str], trec: Path
) -> _Measured:
    """Measure every system on a collection, and write its rankings to the folder `trec`."""
    queries = asked.queries[collection.name]
    evidence, documents = asked.documents(collection)
    rankings = tables.rankings(documents, [lane.name for lane in asked.lanes if lane.measured], queries)
    blocks = {name: tables.block(documents, queries, name) for name in asked.budgets if name != FULL}
    others = {f"{name}.run": ranking for name, ranking in collection.rankings().items()}
    qrels = collection.qrels[collection.qrels["query_id"].isin(queries)]
    trec.mkdir(parents=True, exist_ok=True)
    lines, values = collection.gold_lines(), []
    for system, ranking in {**rankings, **blocks, **others}.items():
        ranking = ranking[ranking["query_id"].isin(queries)]
        write_trec_run(trec / f"{system.removesuffix('.run')}.run", ranking, system)
        figures = per_query(qrels, ranking, metrics)
        if system in blocks:
            figures = figures.join(tables.block_figures(qrels, ranking, queries, system))
            if len(lines):
                figures = figures.join(tables.lines_shown(lines, documents, queries, system))
        long = figures.reset_index().melt(id_vars="query_id", var_name="metric").dropna(subset="value")
        values.append(long.assign(system=system))
    block = blocks.get(BLOCK, rankings[FULL].head(0))
    gold = gold_table(qrels, tables.hits_of(queries), documents, rankings[FULL], block)
    return _Measured(values, gold, evidence)


def _headed(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The parts as one frame, collection and kind first."""
    whole = pd.concat(parts, ignore_index=True)
    first = ["collection", "kind", "query_id"]
    return whole[[*first, *(name for name in whole.columns if name not in first)]]
