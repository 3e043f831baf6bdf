"""Curves: how throughput moves with the share of the corpus in scope, the size of a batch, and the number of workers.

The fourth curve, the size of the corpus around a fixed scope, comes from `growth`. Each row keeps its curve; the figure in
the table is the ratio of its ends.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import numpy as np
import synthetic
from bench_records import Row
from bench_world import SCOPES, Scope, World, open_world
from lexical_part import our_contestant
from lexical_peers import Bm25s
from options import Options
from rounds import interleaved, turns
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.cores import cores
from scoped_retrieval.pipeline.engines.process_engine import ProcessEngine
from scoped_retrieval.pipeline.engines.shards import Engine

K = 100
SHARES = (
    Scope("0.1 %", "", "s00", owners=("s00",)),
    SCOPES["one-owner"],
    Scope("10 %", "", "all", source="slice:04*"),
    SCOPES["whole"],
)
BATCHES = (1, 8, 64, 512)
REQUESTS = 1_000


def scaling_rows(options: Options) -> Iterator[Row]:
    """Scope share, batch size, workers."""
    world = open_world(options.work, options.chunks)
    yield share_row(world, options)
    yield batch_row(world, options)
    yield workers_row(world, options)


def share_row(world: World, options: Options) -> Row:
    """Lexical batches over 0.1, 1, 10 and 100 % of the rows, ours and bm25s with a mask."""
    bm25s = Bm25s(world.tokens, K)
    queries = world.queries((options.rounds + 1) * options.batch(400))
    curves: dict[str, list[float]] = {"ours": [], "bm25s": []}
    shares = []
    for scope in SHARES:
        scoped = world.scoped(scope, options.batch(400), K)
        mask = None if scope.name == "whole" else scope.rows(world.order).astype(np.float32)
        peer = bm25s.contestant(queries, scope, world) if mask is None else bm25s.masked(queries, mask)
        timings = interleaved(
            [our_contestant(scoped, queries), peer], queries=len(queries), rounds=options.rounds,
            seconds=options.seconds_per_round / 2,
        )  # fmt: skip
        shares.append(100 * scoped.admissible[0] / world.order.evidence.num_rows)
        for name, timing in timings.items():
            curves[name].append(timing.rate)
    return Row(
        part="scaling", row="scaling/share", what="lexical batch by share of the corpus in scope, 0.1 % to all",
        unit="queries/s", ours=curves["ours"][-1], systems={"bm25s": curves["bm25s"][-1]},
        value=curves["ours"][0] / curves["ours"][-1], value_unit="x from all to 0.1 %", aim="", met=None,
        chunks=options.chunks, rounds=options.rounds, settings={"bm25s": bm25s.settings},
        extra={"curve": {"x": shares, "x_label": "% of the rows in scope", "y": curves}},
    )  # fmt: skip


def batch_row(world: World, options: Options) -> Row:
    """Lexical recall in one owner by queries per call."""
    queries = world.queries((options.rounds + 1) * max(BATCHES))
    rates = []
    for size in BATCHES:
        scoped = world.scoped(SCOPES["one-owner"], size, K)
        timings = interleaved(
            [our_contestant(scoped, queries)], queries=size * (options.rounds + 1), rounds=options.rounds
        )
        rates.append(timings["ours"].rate)
    return Row(
        part="scaling", row="scaling/batch", what=f"lexical recall, 1 % in scope, by batch, 1 to {BATCHES[-1]} queries",
        unit="queries/s", ours=rates[-1], value=rates[-1] / rates[0], value_unit=f"x from 1 to {BATCHES[-1]}", aim="",
        met=None, chunks=options.chunks, rounds=options.rounds,
        extra={"curve": {"x": list(BATCHES), "x_label": "queries per call", "y": {"ours": rates}}},
    )  # fmt: skip


def workers_row(world: World, options: Options) -> Row:
    """The whole line by workers of this machine: processes, and Ray where it is installed.

    Each number of workers of each engine has a run in every round; their start, and a run before, are off the clock.
    """
    count = options.batch(REQUESTS)
    runs = options.work / "worker-runs"
    shutil.rmtree(runs, ignore_errors=True)
    workers = [number for number in (1, 2, 4, 8, 16) if number <= cores()]
    engines: dict[str, Callable[[int], AbstractContextManager[Engine]]] = {
        "processes": lambda workers: nullcontext(ProcessEngine(workers))
    }
    if importlib.util.find_spec("ray") is not None:
        engines["ray"] = ray_of
    names = {f"{engine} {number}": (engine, number) for engine in engines for number in workers}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn, order in enumerate(turns(list(names), options.rounds)):
        for name in order:
            engine, number = names[name]
            with engines[engine](number) as running:
                timed_run(world, runs, 2 * turn, count, running)
                seconds[name].append(timed_run(world, runs, 2 * turn + 1, count, running))
    rates = {
        engine: [count / statistics.median(seconds[f"{engine} {number}"]) for number in workers] for engine in engines
    }
    ours = rates["processes"]
    return Row(
        part="scaling", row="scaling/workers", what="whole line, lexical and symbol lanes, by workers on one machine",
        unit="requests/s", ours=ours[-1], value=ours[-1] / ours[0], value_unit=f"x from 1 to {workers[-1]}", aim="",
        met=None, chunks=options.chunks, rounds=options.rounds, queries={"ours": count},
        extra={"curve": {"x": workers, "x_label": "workers", "y": rates}},
    )  # fmt: skip


@contextmanager
def ray_of(workers: int) -> Iterator[Engine]:
    """A cluster of this machine with as many cores."""
    import ray
    from scoped_retrieval.pipeline.engines.ray_engine import RayEngine

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        yield RayEngine()
    finally:
        ray.shutdown()


def timed_run(world: World, runs: Path, seed: int, count: int, engine: Engine) -> float:
    """Seconds of one run."""
    retriever = Retriever.open(
        world.path, principal="bench", grants=world.grants, runs=runs, lanes=("lexical", "symbol"), encoder=None,
        shard_requests=64,
    )  # fmt: skip
    asked = [
        {"question": question, "project": f"p{number % 99:03d}", "purpose": "answer-question"}
        for number, question in enumerate(synthetic.questions(count, seed=100 + seed))
    ]
    started = time.perf_counter()
    retriever.run(asked, engine=engine)
    return time.perf_counter() - started
