"""The shards of a run: how requests are divided into them, and how one runs, on this machine or another.

Gives: `shards_of`, the shard of each request; `ShardJob`, which runs a shard and writes its parts and receipt; the
engines' common form and the engine of this process; `resumable`, for errors.

Note: a shard's receipt is written last. In every engine and after any number of attempts,
a receipt means done, and a shard that a crash left without one runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import flat
from ...nodes.errors import AccessError, EngineError, ErasedError, StoreError
from ...nodes.kernels import compiled
from ...nodes.tables import CAPTURES
from ..line.driver import Line, run_line
from ..line.planned_driver import seconds_by_node, timings
from ..line.tokenizers import load_counters
from ..runs import StagedRun

_ORDER = ("project", "principal", "namespace", "branch", "workspace_root", "as_of", "request_id")


def shards_of(requests: pa.Table, size: int) -> pa.Array:
    """The shard of each request, int32: sorted by scope, so that the cost of a scope is paid once, then divided into
    the fewest shards of at most `size`, of about equal size, so that no worker waits for the one with the longest.
    """
    order = np.asarray(pc.sort_indices(requests, [(name, "ascending") for name in _ORDER]))
    shards = np.empty(requests.num_rows, np.int32)
    count = -(-requests.num_rows // size)
    shards[order] = np.arange(requests.num_rows) * count // max(1, requests.num_rows)
    return pa.array(shards)


@dataclass(frozen=True)
class ShardJob:
    """A staged run and the line that answers it.

    `compiled`: whether there are enough requests to load the compiled loops.
    """

    staged: StagedRun
    line: Line
    compiled: bool = False

    def run(self, shard: int, created_at: datetime) -> None:
        """Answer one shard and store it: the parts, the receipt.

        A request whose record does not add up becomes a failed one; nothing else of it is stored.

        Raises:
            StoreError: the corpus cannot be read, evidence was erased from it since it was opened (ErasedError), or the
                shard cannot be written; no part of it counts.
        """
        if self.compiled:
            compiled.load()
        requests, failures, captures = self.asked(shard, created_at)
        line = with_counters(self.line, requests)
        with timings() as timed:
            tables = run_line(requests, failures, captures, line)
        seconds = seconds_by_node(timed)
        line.corpus.expect_unerased()  # a later erasure finds the run being written
        self.staged.write(shard, tables, line.vectors.used(tables), seconds)

    def asked(self, shard: int, created_at: datetime) -> tuple[pa.Table, pa.Table, pa.Table]:
        """REQUESTS, FAILURES and CAPTURES of one shard."""
        requests, failures = self.staged.shard(shard)
        names = self.staged.snapshot_ids([*requests["request_id"].to_pylist(), *failures["request_id"].to_pylist()])
        captures = CAPTURES.build(
            {
                "request_id": list(names),
                "snapshot_id": list(names.values()),
                "created_at": [created_at] * len(names),
            }
        )
        return requests, failures, captures


def by_request(tables: Mapping[str, pa.Table]) -> Callable[[str], dict[str, pa.Table]]:
    """A function that returns the rows of one request in every table, at a cost independent of other requests."""
    whole: dict[str, tuple[pa.Table, dict[str, tuple[int, int]]]] = {}
    for name, table in tables.items():
        ids = flat(table["request_id"]).dictionary_encode()
        codes = np.asarray(ids.indices)
        if np.any(codes[1:] < codes[:-1]):
            order = np.argsort(codes, kind="stable")
            table, codes = table.take(pa.array(order)), codes[order]
        ends = np.searchsorted(codes, np.arange(len(ids.dictionary) + 1)).tolist()
        spans = dict(zip(ids.dictionary.to_pylist(), pairwise(ends), strict=True))
        whole[name] = table.combine_chunks(), spans

    def of_request(request_id: str) -> dict[str, pa.Table]:
        found = ((name, table, spans.get(request_id, (0, 0))) for name, (table, spans) in whole.items())
        return {name: table.slice(start, end - start) for name, table, (start, end) in found}

    return of_request


Engine: TypeAlias = Callable[[ShardJob, Sequence[int], Callable[[], datetime]], Generator[int]]
"""Runs some shards of a job and yields the number of each when its receipt is written; `clock` gives start times."""


def in_this_process(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Generator[int]:
    """The engine that runs one shard after the other, here."""
    for shard in shards:
        job.run(shard, clock())
        yield shard


def with_counters(line: Line, requests: pa.Table) -> Line:
    """The line with the token counters named by the requests."""
    names = pc.unique(requests["tokenizer"]).to_pylist()
    missing = [name for name in names if name not in line.counters.names()]
    return replace(line, counters=load_counters([*line.counters.names(), *missing])) if missing else line


@contextmanager
def resumable(staged: StagedRun) -> Generator[None]:
    """Errors that end a run inside this block get a hint on `run --resume`, after their own hint."""
    try:
        yield
    except (AccessError, ErasedError):  # it cannot be resumed
        raise
    except (EngineError, StoreError) as error:
        hint = f"{error.hint.rstrip('.')}; " if error.hint else ""
        raise type(error)(error.message, hint=f"{hint}`run --resume {staged.run_id}` completes the run") from error
    except OSError as error:
        why, where = error.strerror or type(error).__name__, error.filename or staged.run_id
        hint = f"`run --resume {staged.run_id}` completes the run"
        raise StoreError(f"Expected to finish the run, got {why} - at {where}", hint=hint) from error
