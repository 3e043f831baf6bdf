"""Runs: what was asked, decided and shown, kept so that it can be read, replayed and verified without the corpus.

runs/LOG                          the commits: lines chained by hash; see `log`
runs/shared/<sha256>              graphs, and the tables of sessions: once for all runs
runs/live/<sha256>.arrow.lz4      interactive snapshots, a file per pass of the line, until they are compacted
runs/contexts/<token>.parquet     the texts of a recorded model input, see `model_inputs`
runs/<run_id>/tables/<name>/      the tables, Parquet; free text as SHA-256
runs/<run_id>/texts/              the texts by SHA-256
runs/<run_id>/stage/              the requests of a batch, until it is finished

What a line of LOG names is on disk before the line; what no line names does not exist, and a sweep removes it. A file is
immutable: an erasure writes the texts of a shard again without some, and its line names the new part.

- the folder: `store`, `log`, `ids`; a run: `run`, `parts`, `files`
- writing a batch: `writing`; an interactive run: `live`
- reading: `replay`, `verify`, `listing`
- erasure: `erasing`, `erased_texts` (which texts go), `model_inputs` (recorded ones)
"""

from __future__ import annotations

from .erased_texts import RequestSelection
from .erasing import RunsErased, erase_evidence
from .live import LiveRun, PackedSnapshots, RunTakenError, packed
from .parts import FORMAT, LineTimings
from .replay import Replay, replay
from .run import Run
from .store import Runs, StagedRun, compact
from .verify import RunProblem, VerifyReport, verify

__all__ = [
    "FORMAT",
    "LineTimings",
    "LiveRun",
    "PackedSnapshots",
    "Replay",
    "RequestSelection",
    "Run",
    "RunProblem",
    "RunTakenError",
    "Runs",
    "RunsErased",
    "StagedRun",
    "VerifyReport",
    "compact",
    "erase_evidence",
    "packed",
    "replay",
    "verify",
]
