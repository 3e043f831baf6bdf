"""Judged queries asked: collections as one corpus, and all of their queries in one run.

Every collection is a project (for conversations, one per user) of one corpus, so each is queried in the presence of all
other rows. Gives a `JudgedRun`, whose tables name queries and documents as the judgements do.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
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
from .collections import Collection

EVALUATION_PRINCIPAL = "evaluation"
NO_ENCODER = "none"
FULL, BLOCK = "full", "block"
DEEP = {"lane_k": 100, "pool_k": 400, "max_items": 20}
"""The budget of rankings: deep enough for R@20 over documents of several rows."""


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

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """The lanes that queries use, first those of the package, then those of plugins."""
        off = {"graph"} if self.semantic else {"graph", "semantic"}  # no request asks for walks
        return tuple(lane for lane in LANES if lane.name not in off) + installed(self.plugins).line.lanes


@dataclass(frozen=True)
class JudgedRun:
    """A run of judged queries, over a corpus of their collections."""

    corpus: Corpus
    run: Run
    collections: Sequence[Collection]
    queries: Mapping[str, Sequence[str]]
    """Collection -> its queries, which are requests."""
    lanes: tuple[Lane, ...]
    budgets: tuple[str, ...]
    """The systems under whose budgets every query was run, `full` first."""
    seconds_index: float
    seconds_run: float

    @cached_property
    def documents(self) -> dict[str, pd.Series]:
        """Collection -> the document of each of its rows, by evidence id."""
        found = {}
        for one in self.collections:
            columns = self.corpus.frame(one.projects()).evidence.select(["evidence_id", one.key])
            found[one.name] = columns.to_pandas().set_index("evidence_id")[one.key]
        return found

    def table(self, name: str, system: str, columns: Sequence[str]) -> pd.DataFrame:
        """Columns of a table of the run, of the requests under the budget of a system, with query_id of each, and doc_id
        where evidence_id is among them.
        """
        asked = {under(query, system): query for queries in self.queries.values() for query in queries}
        rows = self.run.table(name, texts="visible_text" in columns)
        rows = rows.filter(pc.is_in(rows["request_id"], pa.array(list(asked), pa.string())))
        frame = rows.select(["request_id", *columns]).to_pandas()
        frame = frame.assign(query_id=frame["request_id"].map(asked))
        if "evidence_id" not in frame:
            return frame
        return frame.assign(doc_id=frame["evidence_id"].map(pd.concat([*self.documents.values()])))


def under(query: str, system: str) -> str:
    """The request of a query under the budget of a system."""
    return query if system == FULL else f"{query}@{system}"


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


def ask(collections: Sequence[Collection], how: Asking, blocks: Sequence[int] | None = ()) -> JudgedRun:
    """Index collections and answer their queries in one run, deep enough for rankings and once per budget of blocks.

    Args:
        blocks: budgets in tokens for which the block is measured, besides that of the purpose; None = no blocks.

    Raises:
        InputError: two collections have one name.
    """
    work, started, names = how.work, time.perf_counter(), [collection.name for collection in collections]
    if len(set(names)) < len(names):
        raise InputError.expected("collections of different names", ", ".join(names), "COLLECTION")
    if not work.exists():
        work.mkdir(parents=True)
        keep_out(work)
    how.progress(f"indexing {', '.join(names)}")
    corpus = index_collections(collections, work, semantic=how.semantic, encoder_name=how.encoder)
    indexed = time.perf_counter()
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
        lanes=[lane.name for lane in how.lanes if lane in LANES],
        encoder=how.encoder,
        plugins=how.plugins,
    )
    budgets = {FULL: DEEP}
    if blocks is not None:
        budgets |= {BLOCK: {}} | {f"{BLOCK}@{tokens}": {"max_tokens": tokens} for tokens in blocks}
    requests = {one.name: one.requests(purpose=how.purpose, limit=how.limit) for one in collections}
    queries = {name: [request["request_id"] for request in asked] for name, asked in requests.items()}
    count = counted(sum(map(len, requests.values())), "query", "queries")
    how.progress(f"asking {count} under {counted(len(budgets), 'budget')}")
    summary = retriever.run(
        [
            request | {"request_id": under(request["request_id"], system), "budget": budget}
            for system, budget in budgets.items()
            for asked in requests.values()
            for request in asked
        ]
    )
    finished, run = time.perf_counter(), Runs(work / "runs").open(summary.run_id)
    seconds = round(indexed - started, 2), round(finished - indexed, 2)
    return JudgedRun(corpus, run, collections, queries, how.lanes, tuple(budgets), *seconds)
