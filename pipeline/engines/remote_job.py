"""The form of a job that is sent to another process, and how that process runs it.

Gives: `RemoteJob`, a `ShardJob` without the objects that each process opens for itself; `run_packed`, which a worker
runs for any engine; `raised_as`, the error that the sender raises for an error of a worker.

Note: a worker of another version, or without the encoder, would silently give different answers. So it opens the job
only if its code and its encoder are those that the run started with.
"""

from __future__ import annotations

import pickle
import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ...nodes.errors import EngineError, InputError, ScopedRetrievalError, StoreError
from ...nodes.plugins import NO_PLUGINS
from ..corpus import Corpus
from ..encoders.cross_encoder import PairScores
from ..line.code_digest import code_digest
from ..line.driver import Line
from ..line.query_vectors import QueryVectors
from ..plugins import installed, is_installed
from ..runs import Runs, StagedRun
from .shards import ShardJob

__all__ = ["RemoteJob", "in_memory", "raised_as", "run_packed"]

_HERE = "run it in this process"


@dataclass(frozen=True)
class RemoteJob:
    """A job without objects that a process opens for itself: corpus and runs by path, counters by names in requests."""

    token: str
    """Identifies the call of the engine: a worker with the job of another call opens this one."""
    runs: str
    run_id: str
    corpus: str
    generation: str
    code: str
    encoder: Any
    profile: str | None
    """The profile of the encoder of questions; None without one."""
    cross_encoder: Any
    line: Line
    plugins: tuple[str, ...]
    """Installed plugins; those passed as objects are sent with the line."""
    plugins_digest: str
    compiled: bool

    @classmethod
    def of(cls, job: ShardJob) -> RemoteJob:
        """The job in this form.

        Raises:
            InputError: corpus or runs are in memory.
        """
        corpus, place = job.line.corpus, in_memory(job)
        if place is not None:
            raise InputError.expected("a place that other processes reach", place, "engine", hint=_HERE)
        bare: Any = None
        plugins = job.line.plugins
        named = plugins.names if plugins and is_installed(plugins) else ()
        encoder, off = job.line.vectors.encoder, "semantic" in job.line.lanes_off
        return cls(
            token=uuid.uuid4().hex,
            runs=str(job.staged.store.path.resolve()),
            run_id=job.staged.run_id,
            corpus=str(corpus.path.resolve()),
            generation=corpus.generation,
            code=code_digest(),
            encoder=encoder,
            profile=None if encoder is None or off else encoder.profile,
            cross_encoder=job.line.pairs.model,
            line=replace(
                job.line,
                corpus=bare,
                vectors=QueryVectors(None),
                pairs=PairScores(None),
                counters=type(job.line.counters)(),
                plugins=NO_PLUGINS if named else plugins,
            ),
            plugins=named,
            plugins_digest=plugins.digest,
            compiled=job.compiled,
        )

    def opened(self) -> ShardJob:
        """The job in this process.

        Raises:
            EngineError: this process has another version of the package, or not the encoder.
            StoreError: corpus or runs are not found here.
        """
        if code_digest() != self.code:
            raise EngineError(
                "Expected the version of scoped-retrieval that began the run, got another - at a worker",
                hint="install one version on every node",
            )
        if self.profile is not None and (own := getattr(self.encoder, "profile", None)) != self.profile:
            raise EngineError(
                f"Expected the encoder {self.profile}, got {own or 'none'} - at a worker",
                hint="install the extra semantic, and the same model, on every node",
            )
        plugins = installed(self.plugins).line if self.plugins else self.line.plugins
        if plugins.digest != self.plugins_digest:
            raise EngineError(
                f"Expected the versions of {', '.join(self.plugins)} that began the run, got others - at a worker",
                hint="install one version of every plugin on every node",
            )
        line = replace(
            self.line,
            plugins=plugins,
            corpus=_corpus(self.corpus, self.generation),
            vectors=QueryVectors(self.encoder),
            pairs=PairScores(self.cross_encoder),
        )
        return ShardJob(StagedRun(Runs(self.runs, create=False), self.run_id), line, self.compiled)


def in_memory(job: ShardJob) -> str | None:
    """Which of corpus and runs is in memory, where no other process can read it; None if neither is."""
    corpus = job.line.corpus
    places = (str(corpus.path), str(job.staged.store.path))
    return next((place for place in places if place.startswith("memory://")), None)


@lru_cache(maxsize=1)
def _corpus(place: str, generation: str) -> Corpus:
    """The corpus that this worker has open: values cached for it serve the next run, too."""
    return Corpus.open(place, generation)


def run_packed(packed: bytes, token: str, shard: int, created_at: datetime) -> int:
    """Runs a job in a worker: with one thread, because there is a worker per core.

    The job is unpacked once, here: if a model does not load, the worker reports it and stays alive.
    """
    if token not in _opened:
        _opened.clear()
        pa.set_cpu_count(1)
        sent: RemoteJob = pickle.loads(packed)
        _opened[token] = sent.opened()
    _opened[token].run(shard, created_at)
    return shard


_opened: dict[str, ShardJob] = {}
"""The job of this worker: one at a time."""


def raised_as(error: BaseException, shard: int, run_id: str) -> ScopedRetrievalError:
    """An error of a worker from outside this package, as an error of this package."""
    hint = f"`run --resume {run_id}` completes the run"
    if isinstance(error, OSError):
        why = error.strerror or type(error).__name__
        return StoreError(f"Expected to store shard {shard}, got {why} - at {run_id}", hint=hint)
    return EngineError(f"Expected shard {shard} to be run, got {type(error).__name__} - at {run_id}", hint=hint)
