"""Shards in several processes of this machine, so that a run uses all its cores.

Gives: `ProcessEngine`, an `Engine`. Workers are spawned, open corpus, runs and models by path and name, and use one
thread each. They exchange only numbers and errors with this process.

Note: a worker would outlive a killed sender, and write into a run that is being resumed. So each watches its parent and
exits with it. A keyboard interrupt reaches all of them: workers ignore it, and the sender waits for their current
shards, because a resumed shard has a different time of capture in its parts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from datetime import datetime
from multiprocessing import get_context, parent_process
from threading import Lock, Thread

from ...nodes.errors import EngineError, InputError
from ..cores import cores
from .remote_job import in_flight, in_memory, packed, run_packed
from .shards import ShardJob, in_this_process

SHARDS_EACH = 2
"""Shards per worker from which starting one pays; that takes about half as long as answering a shard."""


class ProcessEngine:
    """Runs shards in `workers` processes, which end with the run."""

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise InputError.expected("1 or more", workers, "workers")
        self.workers = workers

    def __call__(self, job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Generator[int]:
        """Run the shards; yields each as it completes, in no fixed order.

        Raises:
            EngineError: a worker died, or has a different version.
            InputError: the corpus is in memory, where no other process can read it.
            StoreError: the corpus cannot be read, or a shard cannot be written.
        """
        sent = packed(job)
        if not shards:
            return
        run_id = job.staged.run_id
        pool = ProcessPoolExecutor(min(self.workers, len(shards)), get_context("spawn"), _begin)

        def submit(shard: int) -> Future[int]:
            with _as_workers_begin():
                return pool.submit(run_packed, sent, shard, clock())

        try:
            with pool:
                # One more than there are workers: none is idle, and an interrupt does not take long.
                yield from in_flight(shards, self.workers + 1, submit, run_id)
        except BrokenProcessPool as error:
            raise EngineError(
                f"A worker process died - at {run_id}",
                hint='fewer workers need less memory; a script that runs this needs `if __name__ == "__main__":` around it',
            ) from error


def local_engine(workers: int | None) -> Callable[..., Generator[int]]:
    """The engine of this machine: `workers` processes; None: one per core, if there is enough work.

    A single worker is this process itself, which also serves a corpus at `memory://`.
    """

    def engine(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Generator[int]:
        worth_starting = min(cores(), len(shards) // SHARDS_EACH) if in_memory(job) is None else 1
        count = workers or worth_starting
        return (ProcessEngine(count) if count > 1 else in_this_process)(job, shards, clock)

    return engine


def _begin() -> None:
    """Initializes a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


_BEGINNING = Lock()


@contextmanager
def _as_workers_begin() -> Iterator[None]:
    """Settings inherited by workers that start in this block: one thread per numerical library, and Ctrl-C ignored."""
    with _BEGINNING:
        before = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = "1"
        heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else ()
        try:
            yield
        finally:
            if hasattr(signal, "pthread_sigmask"):
                signal.pthread_sigmask(signal.SIG_SETMASK, heard)
            if before is None:
                del os.environ["OMP_NUM_THREADS"]
            else:
                os.environ["OMP_NUM_THREADS"] = before
