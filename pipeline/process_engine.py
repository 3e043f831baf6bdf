"""Shards in several processes of this machine, so that a run uses all its cores.

Gives: `ProcessEngine`, an `Engine`. Workers are spawned, open corpus, runs and models by path and name, and keep one
thread each. Between them and this process only numbers and errors pass.

What one would otherwise get wrong: a worker outlives a sender that is killed, and writes into a run that somebody resumes.
Each watches its parent and ends with it. An interrupt from the keyboard reaches all of them: workers do not listen, and
the sender waits for the shards that they have, because a resumed shard has another time of capture in its parts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from datetime import datetime
from multiprocessing import get_context, parent_process
from threading import Thread
from types import TracebackType

from ..nodes.errors import EngineError
from .shards import ShardJob, in_this_process
from .travelling import Travelling, in_memory, raised_as, run_shard

__all__ = ["ProcessEngine", "cores", "local_engine", "worth_starting"]

SHARDS_EACH = 4
"""Shards per worker from which starting one, about as long as answering a shard takes, pays."""


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessEngine:
    """Runs shards in `workers` processes. As a context it keeps them from one run to the next."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._kept: ProcessPoolExecutor | None = None

    def __call__(self, job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Generator[int]:
        """Run the shards; gives each as it is done, in no fixed order.

        Raises:
            EngineError: a worker died, or has another version.
            InputError: the corpus lies in memory, where no other process reads it.
            StoreError: the disk does not take a shard.
        """
        travelling = Travelling.of(job)
        if not shards:
            return
        with _one_thread_each():
            pool = self._kept or _pool(min(self.workers, len(shards)))
            try:
                # One more than there are workers: nobody idles, and an interrupt does not wait long.
                yield from _run(pool, self.workers + 1, travelling, shards, clock)
            finally:
                if self._kept is None:
                    pool.shutdown()

    def __enter__(self) -> ProcessEngine:
        self._kept = _pool(self.workers)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kept is not None:
            self._kept.shutdown()
            self._kept = None


def local_engine(workers: int | None) -> Callable[..., Generator[int]]:
    """The engine of this machine: `workers` processes; None: one per core, where there is work for each of them.

    One worker is this process itself, which is also what answers a corpus in memory.
    """

    def engine(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Generator[int]:
        count = workers or (worth_starting(len(shards), cores()) if in_memory(job) is None else 1)
        return (ProcessEngine(count) if count > 1 else in_this_process)(job, shards, clock)

    return engine


def worth_starting(shards: int, cores: int) -> int:
    """How many workers have enough to do, at most one per core."""
    return max(1, min(cores, shards // SHARDS_EACH))


def _run(
    pool: ProcessPoolExecutor, most: int, travelling: Travelling, shards: Sequence[int], clock: Callable[[], datetime]
) -> Generator[int]:
    waiting, flying = list(reversed(shards)), dict[Future[int], int]()
    try:
        while waiting or flying:
            while waiting and len(flying) < most:
                shard = waiting.pop()
                flying[pool.submit(run_shard, travelling, shard, clock())] = shard
            for done in wait(flying, return_when=FIRST_COMPLETED).done:
                shard = flying.pop(done)
                try:
                    done.result()
                except BrokenProcessPool:
                    raise
                except Exception as error:
                    raise raised_as(error, shard, travelling.run_id) from None
                yield shard
    except BrokenProcessPool as error:
        raise EngineError(
            f"Expected every worker to live, got the death of one - at {travelling.run_id}",
            hint=f"`run --resume {travelling.run_id}` does the rest; fewer workers need less memory. "
            'A script that runs this needs `if __name__ == "__main__":` around it',
        ) from error
    finally:
        wait([one for one in flying if not one.cancel()])


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, get_context("spawn"), _begin)


def _begin() -> None:
    """What a worker does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Numerical libraries of the workers that start meanwhile use one thread each; they read this when they are loaded."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before
