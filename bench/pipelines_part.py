"""The whole line with lexical and semantic lanes and durable snapshots, against three hybrid pipelines; vectors given.

Peers answer with row numbers and keep nothing. Ours plans, gates, recalls, reranks, packs, cites and writes a snapshot of
each request. Results are not compared: four ways of ranking are meant to differ. That no system returns a row of
another owner is checked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import synthetic
from bench_records import Row
from bench_world import World, open_world
from options import Options
from pipeline_peers import Hybrid, Question, haystack_pipeline, lance_hybrid, llama_index_pipeline
from rounds import Contestant, against_peers, interleaved
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.cores import cores
from scoped_retrieval.pipeline.engines.process_engine import ProcessEngine

LANE_K = 100
K = 20
QUERIES = 1_000
OURS = (
    f"lanes lexical and semantic, lane_k {LANE_K}, max_items {K}, one run per round in a process per core, started off "
    "the clock; snapshots synced to disk"
)
IN_MEMORY_CHUNKS = 100_000
"""Haystack and LlamaIndex keep every vector as Python floats: more rows do not fit."""


def pipeline_rows(options: Options) -> Iterator[Row]:
    """One row: all systems over all owners, one filter per query."""
    world = open_world(options.work, options.chunks, vectors=True)
    total = (options.rounds + 1) * options.batch(QUERIES)
    questions = asked_of(world, total)
    builders: list[Callable[..., Hybrid]] = [partial(lance_hybrid, folder=options.work / f"hybrid-{options.chunks}")]
    if options.chunks <= IN_MEMORY_CHUNKS:
        builders += [haystack_pipeline, llama_index_pipeline]
    peers = []
    for build in builders:
        started = time.perf_counter()
        peers.append(build(world, lane_k=LANE_K, k=K))
        check(peers[-1], questions[:4], world)
        print(f"{peers[-1].name} built and asked in {time.perf_counter() - started:.0f} s", flush=True)
    with nullcontext(ProcessEngine(cores())) as engine:
        own = ours(world, options.work / "runs", questions, engine)
        contestants = [own, *(contestant(peer, questions) for peer in peers)]
        timings = interleaved(contestants, queries=total, rounds=options.rounds, seconds=2 * options.seconds_per_round)
    yield against_peers(
        contestants, timings, 10.0, part="pipelines", row="pipelines/hybrid",
        what="whole line, lexical and semantic lanes, vectors given, durable snapshots, 100 owners", unit="requests/s",
        aim="10x their throughput", chunks=options.chunks,
        notes="peers keep no record; ours writes a snapshot of each request", extra={"lane_k": LANE_K, "k": K},
    )  # fmt: skip


def asked_of(world: World, total: int) -> list[Question]:
    """Questions as terms with vectors, over the owners in turn."""
    assert world.encoder is not None
    vectors = world.encoder.encode(synthetic.questions(total)).astype(np.float32) / 2**15
    terms = world.queries(total)
    return [
        Question(" ".join(words), vector, f"p{number % 99:03d}")
        for number, (words, vector) in enumerate(zip(terms, vectors, strict=True))
    ]


def ours(world: World, runs: Path, questions: Sequence[Question], engine: ProcessEngine) -> Contestant:
    """A run per round; the vector of a question is looked up by its text."""
    retriever = Retriever.open(
        world.path, principal="bench", grants=world.grants, runs=runs, lanes=("lexical", "semantic"),
        encoder=Given({one.text: one.vector for one in questions}, world.encoder.profile if world.encoder else ""),
        shard_requests=256,  # a round is a shard for each core
    )  # fmt: skip
    numbers = count()
    budget = {"lane_k": LANE_K, "max_items": K}

    def batch(which: range) -> list[dict[str, Any]]:
        call = next(numbers)
        return [
            {"request_id": f"r{call}-{at:06d}", "question": questions[at].text, "project": questions[at].owner,
             "purpose": "answer-question", "budget": budget}
            for at in which
        ]  # fmt: skip

    def run(rows: list[dict[str, Any]]) -> None:
        statuses = retriever.run(rows, engine=engine).statuses
        assert statuses.get("ok", 0) + statuses.get("empty", 0) == len(rows), f"Expected answers, got {dict(statuses)}"

    return Contestant("ours", batch, run, OURS, least=512)


class Given:
    """An encoder that knows every text it is asked for."""

    def __init__(self, vectors: dict[str, np.ndarray], profile: str) -> None:
        self._vectors = vectors
        self.profile = profile

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """int16[texts, dimensions]."""
        return np.rint(np.stack([self._vectors[text] for text in texts]) * 2**15).astype(np.int16)


def contestant(peer: Hybrid, questions: Sequence[Question]) -> Contestant:
    """A pipeline."""
    return Contestant(peer.name, lambda which: questions[which.start : which.stop], peer.run, peer.settings, most=400)


def check(peer: Hybrid, questions: Sequence[Question], world: World) -> None:
    """A pipeline answers, and with rows of the owner alone."""
    owner = world.order.evidence["owner_project"]
    for question, rows in zip(questions, peer.run(questions), strict=True):
        assert len(rows), f"Expected rows, got none - at {peer.name}"
        found = {owner[row].as_py() for row in rows}
        assert found == {question.owner}, f"Expected rows of {question.owner}, got others - at {peer.name}"
