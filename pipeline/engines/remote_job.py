"""A job that is sent to another process, and how that process runs it.

Gives: `packed`, a `ShardJob` as bytes; `run_packed`, which a worker runs for any engine; `in_flight`, the loop of the
sender. Corpus, runs and models are sent as what opens them again.

Note: a worker of another version, or without the encoder, would silently give different answers. So it opens the job
only if its code and its encoder are those that the run started with.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ...nodes.blocks.token_counting import Counters
from ...nodes.errors import EngineError, InputError, ScopedRetrievalError, StoreError
from ...nodes.plugins import NO_PLUGINS, Plugins
from ..encoders.cross_encoder import PairScores
from ..line.provenance import code_of_line, parts_of
from ..line.query_vectors import QueryVectors
from ..plugins import installed, is_installed
from .shards import ShardJob

_HERE = "run it in this process"


def packed(job: ShardJob, dumps: Callable[[Any], bytes] = pickle.dumps) -> bytes:
    """The job without what its caches hold, and the names of its plugins if the worker can load them by name.

    Raises:
        InputError: corpus or runs are in memory.
    """
    if (place := in_memory(job)) is not None:
        raise InputError.expected("a place that other processes reach", place, "engine", hint=_HERE)
    line, plugins = job.line, job.line.plugins
    named = plugins.names if plugins and is_installed(plugins) else ()
    line = replace(
        line,
        vectors=QueryVectors(line.vectors.encoder),
        pairs=PairScores(line.pairs.model),
        counters=Counters(),
        plugins=NO_PLUGINS if named else plugins,
    )
    return dumps((replace(job, line=line), named))


def in_memory(job: ShardJob) -> str | None:
    """Which of corpus and runs is in memory, where no other process can read it; None if neither is."""
    places = (str(job.line.corpus.path), str(job.staged.store.path))
    return next((place for place in places if place.startswith("memory://")), None)


def run_packed(job: bytes, shard: int, created_at: datetime) -> int:
    """Runs a shard of a job in a worker: with one thread, because there is a worker per core."""
    _opened(job).run(shard, created_at)
    return shard


@lru_cache(maxsize=1)
def _opened(data: bytes) -> ShardJob:
    """The job of this worker. It is unpacked here: if a model does not load, the worker reports it and stays alive.

    Raises:
        EngineError: this process has another version of the package or of a plugin, or not the encoder.
        StoreError: corpus or runs are not found here.
    """
    pa.set_cpu_count(1)
    given: tuple[ShardJob, tuple[str, ...]] = pickle.loads(data)
    job, named = given
    plugins: Plugins = installed(named).line if named else job.line.plugins
    began = parts_of(job.line.provenance)
    if began["code"] != code_of_line(plugins.digest):
        also = f" and of {', '.join(named)}" if named else ""
        raise EngineError(
            f"Expected the version of scoped-retrieval{also} that began the run, got another - at a worker",
            hint="install one version of each on every node",
        )
    if began["encoder"] not in ("none", own := getattr(job.line.vectors.encoder, "profile", None)):
        raise EngineError(
            f"Expected the encoder {began['encoder']}, got {own or 'none'} - at a worker",
            hint="install the extra semantic, and the same model, on every node",
        )
    return replace(job, line=replace(job.line, plugins=plugins))


def in_flight(shards: Sequence[int], width: int, submit: Callable[[int], Future[int]], run_id: str) -> Generator[int]:
    """Run shards in workers, at most `width` at a time; yields each as it completes, in no fixed order.

    Raises:
        EngineError: a worker raised an error from outside this package.
        StoreError: a shard cannot be written.
    """
    waiting, flying = list(reversed(shards)), dict[Future[int], int]()
    try:
        while waiting or flying:
            while waiting and len(flying) < width:
                shard = waiting.pop()
                flying[submit(shard)] = shard
            for done in wait(flying, return_when=FIRST_COMPLETED).done:
                shard = flying.pop(done)
                try:
                    yield done.result()
                except BrokenExecutor:
                    raise
                except Exception as error:  # of a node, or of the engine; Ray's has the worker's as its cause
                    raise _raised_as(getattr(error, "cause", error), shard, run_id) from error
    finally:
        wait(flying)  # a resumed run must not be written by a worker of this one


def _raised_as(error: BaseException, shard: int, run_id: str) -> ScopedRetrievalError:
    """An error of a worker as one of this package."""
    if isinstance(error, ScopedRetrievalError):
        return error
    if isinstance(error, OSError):
        return StoreError(
            f"Expected to store shard {shard}, got {error.strerror or type(error).__name__} - at {run_id}"
        )
    return EngineError(f"Expected shard {shard} to be run, got {type(error).__name__} - at {run_id}")
