"""One answer everywhere: the same requests asked in many ways, and how many snapshot digests differ between them.

A snapshot digest covers everything a run keeps of a request, so a score that moved by its last bit would show. The clock
is fixed; the corpus of the last row was written in one piece, and once more in many.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import synthetic
from bench_records import Row
from bench_world import BUILT, World, open_world
from options import Options
from ours import NOW
from scaling_part import ray_of
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.engines.process_engine import ProcessEngine
from scoped_retrieval.pipeline.engines.shards import in_this_process
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.sources.importing import normalize

REQUESTS = 1_000
SINGLE = 100
"""Requests that are asked one by one, or one to a shard."""
THREADS = 8
PIECES = 7
PIECED_CHUNKS = 10_000

Asked = list[dict[str, Any]]
Digests = dict[str, str]


def answer_rows(options: Options) -> Iterator[Row]:
    """Engines, shards, batches and threads; then the pieces of a corpus."""
    world = open_world(options.work, options.chunks, vectors=True)
    asked = [
        {"request_id": f"r{number:04d}", "question": question, "project": f"p{number % 99:03d}",
         "purpose": "answer-question"}
        for number, question in enumerate(synthetic.questions(options.batch(REQUESTS), seed=61))
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        found = {name: way() for name, way in ways(world, Path(folder), asked).items()}
        yield row_of("answers/ways", "asked in many ways", found, options.chunks)
        found = pieced(Path(folder), options.batch(REQUESTS))
        yield row_of("answers/pieces", f"over a corpus written in 1 and in {PIECES} pieces", found, PIECED_CHUNKS)


def ways(world: World, folder: Path, asked: Asked) -> dict[str, Callable[[], Digests]]:
    """How the requests are asked. The ways before "compiled loops" use NumPy alone: once loaded, the loops stay."""

    def run(name: str, requests: Asked, engine: Any = in_this_process, shard: int = 256) -> Digests:
        with opened(world, folder / name, shard) as retriever:
            retriever.run(requests, engine=engine)
        return digests(folder / name)

    def one_thread() -> Digests:
        threads = pa.cpu_count()
        pa.set_cpu_count(1)
        try:
            return run("one-thread", asked)
        finally:
            pa.set_cpu_count(threads)

    def compiled_loops() -> Digests:
        assert compiled.load() is not None, "Expected numba, got none - at compiled"
        return run("compiled", asked)

    def in_processes() -> Digests:
        with nullcontext(ProcessEngine(2)) as engine:
            return run("processes", asked, engine, 64)

    def by_ray() -> Digests:
        with ray_of(2) as engine:
            return run("ray", asked, engine, 64)

    found: dict[str, Callable[[], Digests]] = {
        "one shard": lambda: run("one-shard", asked, shard=len(asked)),
        "shards of 64": lambda: run("shards", asked[::-1], shard=64),
        f"shards of 1, the first {SINGLE}": lambda: run("single-shards", asked[:SINGLE], shard=1),
        "one Arrow thread": one_thread,
        f"one request after another, the first {SINGLE}": lambda: live(world, folder / "single", asked[:SINGLE], 1),
        f"{THREADS} threads at once, the first {SINGLE}": lambda: live(world, folder / "many", asked[:SINGLE], THREADS),
        "compiled loops": compiled_loops,
        "two processes": in_processes,
    }
    if importlib.util.find_spec("ray") is not None:
        found["two Ray workers"] = by_ray
    return found


@contextmanager
def opened(world: World, runs: Path, shard: int) -> Iterator[Retriever]:
    """A retriever of all the lanes that have rows to find, at one instant."""
    with Retriever.open(
        world.path, principal="bench", grants=world.grants, runs=runs, lanes=("lexical", "symbol", "semantic"),
        encoder=world.encoder, shard_requests=shard, clock=at_noon,
    ) as retriever:  # fmt: skip
        yield retriever


def at_noon() -> Any:
    """The instant that every way is asked at."""
    return NOW


def live(world: World, runs: Path, asked: Asked, threads: int) -> Digests:
    """Single requests, by so many threads."""
    with opened(world, runs, 256) as retriever, ThreadPoolExecutor(threads) as pool:
        assert len(list(pool.map(retriever.retrieve, asked))) == len(asked)
    return digests(runs)


def digests(runs: Path) -> Digests:
    """Snapshot digest of each request of the one run in a folder."""
    store = Runs(runs)
    (run_id,) = store.run_ids()
    snapshots = store.open(run_id).snapshots
    return dict(zip(snapshots["request_id"].to_pylist(), snapshots["snapshot_digest"].to_pylist(), strict=True))


def pieced(folder: Path, count: int) -> dict[str, Digests]:
    """The same rows published at once and in pieces, and the same requests to both."""
    rows = synthetic.corpus_rows(PIECED_CHUNKS, 10)
    asked = synthetic.requests(rows, count)
    grants = folder / "grants.yaml"
    grants.write_text('{"principals": {"bench": {"projects": [{"project": "*"}]}}}', encoding="utf-8")
    found = {}
    for pieces in (1, PIECES):
        normal, _ = normalize(rows, project="p000", principal="bench", now=BUILT)
        corpus = Corpus.create(folder / f"pieces-{pieces}")
        for piece in cut(normal, pieces):
            corpus.append(piece, now=BUILT)
        with Retriever.open(
            corpus, principal="bench", grants=grants, runs=folder / f"runs-{pieces}", lanes=("lexical", "symbol"),
            encoder=None, clock=at_noon,
        ) as retriever:  # fmt: skip
            retriever.run(asked)
        found[f"{pieces} pieces"] = digests(folder / f"runs-{pieces}")
    return found


def cut(table: pa.Table, pieces: int) -> Iterable[pa.Table]:
    """The rows in pieces of about equal length."""
    size = -(-table.num_rows // pieces)
    return [table.slice(at, size) for at in range(0, table.num_rows, size)]


def row_of(row: str, how: str, found: dict[str, Digests], chunks: int) -> Row:
    """How many digests differ from those of the first way."""
    first, *rest = found.values()
    compared = sum(len(one) for one in rest)
    different = sum(first[request] != digest for one in rest for request, digest in one.items())
    return Row(
        part="answers", row=row, what=f"{len(first):,} requests {how}: digests that differ", unit="digests",
        ours=different, value=different, value_unit=f"of {compared:,}", aim="none", met=different == 0, better="less",
        chunks=chunks, queries={"ours": compared}, notes="; ".join(found),
    )  # fmt: skip
