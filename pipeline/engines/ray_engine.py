"""Shards as Ray Core tasks: `ShardJob.run` in many processes, of this machine or of a cluster (extra `ray`).

Gives: `RayEngine`, an `Engine`. A worker opens corpus, runs, encoder and cross-encoder once, by path, URL and name, and
keeps them; the job is sent once through Ray's object store and is unpacked once by each worker. Folders must have the
same path on every node, and a URL must be reachable from each: workers read credentials from their own environment.

Note: a task that runs twice, because its worker died or a store failed, writes the same parts under the same names, and
the last receipt counts. So a retry duplicates nothing, and digests do not depend on where it ran. An interrupt waits
for the shards in flight, because a resumed shard has a different time of capture in its parts.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from ...nodes.errors import EngineError
from ..extras import package
from .remote_job import in_flight, packed, run_packed
from .shards import ShardJob

RETRIES = 3
"""The number of retries of a shard after its worker died, its disk failed or its corpus did not answer."""
IN_FLIGHT = 2
"""Queued shards per core of the cluster: enough to keep workers busy, few enough that an interrupt is not slow."""
ANSWERS_WITHIN = 5.0
"""The connection timeout, in seconds, for a cluster named by host and port."""
_HOST_AND_PORT = re.compile(r"(?:ray://)?\[?([^/\[\]]+)\]?:(\d+)")


@dataclass(frozen=True)
class RayEngine:
    """Runs shards as tasks of the cluster at `address`; None: a cluster of this process, on this machine's cores.

    If the program is already connected to a cluster, that one is used.
    """

    address: str | None = None

    @contextmanager
    def ready(self) -> Iterator[RayEngine]:
        """This engine, connected for as long as the context is open: a cluster that does not answer is reported before
        a run starts, which would have to be resumed.

        Raises:
            EngineError: Ray is not installed, or does not answer.
        """
        with _connected(self.address):
            yield self

    def __call__(self, job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Generator[int]:
        """Run the shards, a bounded number at a time; yields each as it completes, in no fixed order.

        Raises:
            EngineError: Ray is not installed, does not answer, or its workers die.
            InputError: the corpus is in memory, where no other process can read it.
            StoreError: the corpus cannot be read, or a shard cannot be written, after retries.
        """
        if not shards:
            return
        with _connected(self.address) as ray:
            sent = ray.put(packed(job, ray.cloudpickle.dumps))
            task = ray.remote(run_packed).options(
                num_cpus=1, max_retries=RETRIES, retry_exceptions=[OSError], scheduling_strategy="SPREAD"
            )
            width = max(1, int(ray.cluster_resources().get("CPU", 1))) * IN_FLIGHT
            yield from in_flight(
                shards, width, lambda shard: task.remote(sent, shard, clock()).future(), job.staged.run_id
            )


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, connected for as long as the context is open; an existing connection stays open."""
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
    try:
        _reached(address)
        own: dict[str, Any] = {} if address else {"include_dashboard": False}
        ray.init(address=address or "local", log_to_driver=False, logging_level="error", **own)
    except Exception as error:  # if a node does not start in time, Ray raises a bare Exception
        reason = str(error).strip().partition("\n")[0]
        hint = f"`ray status --address {address}` says whether it answers; without an address, one is started here"
        raise EngineError(
            f"Expected a Ray cluster, got {type(error).__name__}{reason and f' ({reason})'} - at {address or 'this machine'}",
            hint=hint if address else "`ray start --head --block` shows why Ray does not start here",
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _reached(address: str | None) -> None:
    """Check that a cluster named by host and port accepts a connection: Ray itself would retry for a quarter of an hour.

    Raises:
        OSError: nothing listens there, or there is no such port.
    """
    if found := _HOST_AND_PORT.fullmatch(address or ""):
        if int(found[2]) >= 1 << 16:
            raise ConnectionError("there is no such port")
        socket.create_connection((found[1], int(found[2])), ANSWERS_WITHIN).close()


@lru_cache(maxsize=1)
def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    return package("ray", "ray", EngineError)
