"""Resumes a run at the generation that it pinned, or ends it if that generation is gone.

Reads: an unfinished run, the line of the user who resumes it. Gives: `resumed`, the run and the line that answers the rest;
`without_generation`, the engine that ends a run; `unanswered`, the number of requests left without an answer.

Note: nothing is retrieved when a run is ended or all of its requests are answered. Policies, grants, settings and code
may then differ from those the run began with, and its recorded provenance stays unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow.compute as pc

from ...nodes.errors import AccessError, StoreError
from ..corpus import Corpus
from ..corpus.pinned import pinned_at
from ..engines.shards import ShardJob, with_counters
from ..line.driver import Line, failed_line, run_line
from ..line.provenance import difference, with_part
from ..runs import Run, Runs, StagedRun
from ..runs.answer_log import sha256_of_text

__all__ = ["GONE", "resumed", "unanswered", "without_generation"]

GONE = (
    "Expected the generation that the run began with, got none: `gc` or `erase` removed it "
    "before the request was answered - at corpus"
)
"""The error in the snapshot of a request that was left unanswered."""


def resumed(store: Runs, run_id: str, principal: str, corpus: Corpus, line: Line) -> tuple[StagedRun, Line, bool]:
    """An interrupted run, the line at the generation that it pinned, and whether that generation is gone.

    Raises:
        AccessError: the run does not exist or was started by another principal.
        StoreError: it is finished, or was begun over another corpus, or with other policies, grants, settings or code.
    """
    if run_id not in store.folders() or store.starter_of(run_id) != principal:
        hint = "`log --of runs` lists yours, `verify` names those that are damaged"
        raise AccessError(f"Expected a run that you started, got none - at {run_id}", hint=hint)
    staged = store.resume(run_id)
    if not staged.pending():
        return staged, line, False
    if staged.plan["settings"]["generation"] != corpus.generation:
        pinned = _pinned(corpus, staged)
        if pinned is None:
            return staged, line, True
        line = replace(line, corpus=pinned, provenance=with_part(line.provenance, "generation", pinned.generation))
    if part := difference(staged.provenance, line.provenance):
        raise StoreError(
            f"Expected the {part} that the run began with, got another - at {run_id}",
            hint="resume with the same policies, grants, settings and version, or start a new run",
        )
    return staged, with_counters(line, staged.requests), False


def _pinned(corpus: Corpus, staged: StagedRun) -> Corpus | None:
    """The corpus at the generation that a run pinned; None if that is gone."""
    generation = staged.plan["settings"]["generation"]
    try:
        return Corpus.open(corpus.path, generation, corpus.trust)
    except StoreError as error:
        at = pinned_at(staged.plan, corpus.path, corpus.trust)
        if at is None:
            return None
        if at == corpus.path:
            raise
        raise StoreError(
            f"Expected the corpus that the run began with, got another - at {corpus.path}",
            hint=f"resume it over {at}",
        ) from error


def without_generation(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Generator[int]:
    """The engine that ends a run: each request of these shards becomes a failed snapshot with the reason."""
    line = replace(job.line, provenance=job.staged.provenance)
    for shard in shards:
        requests, failures, captures = job.asked(shard, clock())
        if requests.num_rows:
            tables = failed_line(requests, StoreError(GONE), captures, line)
        else:  # refused on arrival, each with its own reason
            tables = run_line(requests, failures, captures, line)
        job.staged.write(shard, tables)
        yield shard


def unanswered(run: Run) -> int:
    """The number of requests that were unanswered when the run was ended."""
    return pc.sum(pc.equal(run.snapshots["error"], sha256_of_text(GONE))).as_py() or 0
