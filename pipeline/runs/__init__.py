"""Runs: what was asked, decided and shown, kept so that it can be read, replayed and verified without the corpus.

runs/LOG.signed                   the head of LOG, signed, where there is a key
runs/LOG                          one line per run, interactive snapshot, erasure and verified answer, chained by hash
runs/.locks/<run_id>              who writes a run holds it; of a folder a file, of an object store leases
runs/.locks/<run_id>.session      whose session an interactive run is; of a folder alone
runs/.open/<run_id>               while a session may write into the run; a crash leaves it to the next, which adopts what it left
runs/.new-<run_id>-<hex>/         only while a run is staged; whose process died, the next to stage or erase removes
runs/receipts/<sha256>.json       what an erasure removed; LOG holds its SHA-256
runs/answers/<sha256>.json        what was found in an answer; LOG holds its SHA-256
runs/contexts/<record>/           recorded model inputs, see `context.store`
runs/.index/<run_id>.arrow        what lists say of a run; derived, and removed by an erasure
runs/<run_id>/manifest.json       written last: provenance, and every part's rows, SHA-256 and logical digest
runs/<run_id>/lineage.json        the graph
runs/<run_id>/tables/<node>/      the tables, Parquet; free text as SHA-256
runs/<run_id>/texts/              the texts by SHA-256
runs/<run_id>/stage/              only while the run is being written
runs/<run_id>/live/               interactive snapshots, one file each, until `compact`

- the folder: `store`, `log` of `log_lines` with its `signed_head`, `ids`, `states`; a run: `run`, `parts`, `files`, `formats`; of an older format: `upgrading`
- a batch is written: `staging`, `writing`, `receipts`; an interactive run: `live_runs`, `live`, `live_files`, `timings`, `resume`,
  `adopting`, `compacting`
- read again: `replay`, `verify`, `listing`; `answer_log`: answers that were held against snapshots
- erased: `erasing` with its `erasure_receipts`, `erasing_unfinished` (of runs that are not finished, or all of one),
  `erasing_texts` (what shows a row), `request_selection` (what a request said), `model_inputs` (recorded inputs)
- for auditors: `out_of_scope`, the best matches outside a scope, kept apart
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
