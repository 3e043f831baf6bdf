"""Resuming a run: the rest of it at the generation that it pinned, or its end where that generation is gone.

Reads: an unfinished run, the line of the user who resumes it. Gives: `resumed`, the run and the line that answers the rest;
`without_generation`, the engine that ends a run; `unanswered`, how many requests an end left without an answer.

Note: nothing is retrieved where a run is ended, or every request of it is answered. So it
may be under other policies, grants, settings and code than it began with, and what it says of itself stays what it said
when it began.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow.compute as pc

from ...nodes.errors import AccessError, StoreError
from ..corpus import Corpus
from ..corpus.memory import MemoryCorpus
from ..corpus.pinned import pinned_at
from ..engines.shards import ShardJob, with_counters
from ..line.driver import Line, failed_line, run_line
from ..line.provenance import difference, with_part
from ..runs import Run, RunStore, StagedRun, started_by
from ..runs.answer_log import sha256_of_text

__all__ = ["GONE", "resumed", "unanswered", "without_generation"]

GONE = (
    "Expected the generation that the run began with, got none: `corpus gc` or `erase` removed it "
    "before the request was answered - at corpus"
)
"""What the snapshot of a request says that a run was ended without."""


def resumed(
    store: RunStore, run_id: str, principal: str, corpus: Corpus | MemoryCorpus, line: Line
) -> tuple[StagedRun, Line, bool]:
    """An interrupted run, the line at the generation that it pinned, and whether the rest of it has to do without.

    Raises:
        AccessError: the run is another's, or there is none.
        StoreError: it is finished, was begun over another corpus, or rests on other policies, grants, settings or code.
    """
    if run_id not in store.folders() or not started_by(store.folder(run_id), principal):
        hint = "`runs` lists yours, `verify` names those that are damaged"
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


def _pinned(corpus: Corpus | MemoryCorpus, staged: StagedRun) -> Corpus | None:
    """The corpus at the generation that a run pinned; None if that is gone."""
    generation = staged.plan["settings"]["generation"]
    if corpus.path is None:
        raise StoreError(f"Expected generation {generation}, got a corpus in memory - at corpus")
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
    """The engine that ends a run: each request of these shards becomes a failed snapshot that says why."""
    line = replace(job.line, provenance=job.staged.provenance)
    for shard in shards:
        requests, failures, captures = job.asked(shard, clock())
        if requests.num_rows:
            tables = failed_line(requests, StoreError(GONE), captures, line)
        else:  # refused on arrival: why, they say themselves
            tables = run_line(requests, failures, captures, line)
        job.staged.write(shard, tables)
        yield shard


def unanswered(run: Run) -> int:
    """How many requests of a run it was ended without."""
    return pc.sum(pc.equal(run.snapshots["error"], sha256_of_text(GONE))).as_py() or 0
