"""Runs: what was asked, decided and shown, kept so that it can be read, replayed and verified without the corpus.

runs/LOG.signed                   the head of LOG, signed, if there is a key
runs/LOG                          one line per run, interactive snapshot, erasure and verified answer, chained by hash
runs/.locks/<run_id>              the writer lock of a run; a file in a folder, leases on an object store
runs/.locks/<run_id>.session      the lock of the session of an interactive run; only in a folder
runs/.open/<run_id>               exists while a session may write to the run; a crash leaves it for adoption
runs/.new-<run_id>-<hex>/         exists while a run is staged; if its process died, staging or erasing removes it
runs/receipts/<sha256>.json       the receipt of an erasure; LOG contains its SHA-256
runs/answers/<sha256>.json        the findings in an answer; LOG contains its SHA-256
runs/contexts/<record>/           recorded model inputs, see `context.store`
runs/.index/<run_id>.arrow        cached rows of lists; derived, and removed by an erasure
runs/<run_id>/manifest.json       written last: provenance, and every part's rows, SHA-256 and logical digest
runs/<run_id>/lineage.json        the graph
runs/<run_id>/tables/<node>/      the tables, Parquet; free text as SHA-256
runs/<run_id>/texts/              the texts by SHA-256
runs/<run_id>/stage/              exists while the run is being written
runs/<run_id>/live/               interactive snapshots, one file each, until `compact`

- the folder: `store`, `log` of `log_lines` with its `signed_head`, `ids`, `states`; a run: `run`, `parts`, `files`,
  `formats`; older formats: `upgrading`
- writing a batch: `staging`, `writing`, `receipts`; an interactive run: `live_runs`, `live`, `live_files`, `timings`,
  `resume`, `adopting`, `compacting`
- reading: `replay`, `verify`, `listing`; `answer_log`: answers verified against snapshots
- erasure: `erasing` with its `erasure_receipts`, `erasing_unfinished` (from unfinished runs, or all of one),
  `erasing_texts` (texts that show a row), `request_selection` (texts of requests), `model_inputs` (recorded inputs)
- for auditors: `captures`, the best matches outside a scope, stored separately
"""

from __future__ import annotations

from .adopting import heal
from .answer_log import log_answer, logged_answers
from .compacting import compact
from .erasing import RunsErased, erase_evidence, erase_texts
from .live import LiveRun, RunTakenError
from .replay import Replay, replay, replays_kept
from .request_selection import RequestSelection, Unheld
from .resume import left_open
from .run import FORMAT, Run, started_by, starter_of
from .store import RunStore, StagedRun
from .timings import LineTimings
from .verify import RunProblem, VerifyReport, verify

__all__ = [
    "FORMAT",
    "LineTimings",
    "LiveRun",
    "Replay",
    "RequestSelection",
    "Run",
    "RunProblem",
    "RunStore",
    "RunTakenError",
    "RunsErased",
    "StagedRun",
    "Unheld",
    "VerifyReport",
    "compact",
    "erase_evidence",
    "erase_texts",
    "heal",
    "left_open",
    "log_answer",
    "logged_answers",
    "replay",
    "replays_kept",
    "started_by",
    "starter_of",
    "verify",
]
