"""Erasing texts from runs: the record stays, the text is removed, and a line of LOG is the receipt.

There is one operation, "write the texts of a shard again without these": the line names the new part, and then the old one
is removed. `verify` then reports `erased`. What a crash left of an erasure, the sweep of the next one removes. Interactive
runs are compacted before.

Note: an erasure of rows removes the generations that an unfinished run may be answered from. So the run is removed as a
whole, and who writes it cannot finish it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import BusyError, ScopedRetrievalError
from ..storage.durable import sync_path
from .erased_texts import NOBODY, READS, RequestSelection, gone_from
from .files import read_parquet
from .log import Line, of_kind
from .parts import TEXTS
from .run import Run, parts_of
from .store import Runs, StagedRun, compact
from .writing import table_of, write_texts


def erased_from(lines: Iterable[Line]) -> dict[str, set[str]]:
    """The hashes of the texts that were removed from each shard of a run, as its lines say."""
    found = defaultdict[str, set[str]](set)
    for line in of_kind(lines, "erase"):
        found[line.body["shard"]].update(line.body["texts"])
    return found


@dataclass
class RunsErased:
    """The result of an erasure in a folder of runs: ids of runs, and the number of removed texts."""

    runs: list[str] = field(default_factory=list)
    texts: int = 0
    questions: int = 0
    """Number of requests whose texts were removed, with their query vectors."""
    shared: int = 0
    """Number of texts of these requests that stay because another request has the same text."""
    discarded: list[str] = field(default_factory=list)
    """Unfinished runs, which were removed: their generation is gone, or they have such a request."""
    unreadable: list[str] = field(default_factory=list)
    """Damaged runs: their content is unknown."""
    lost: set[str] = field(default_factory=set)
    """Ids of rows that runs cite and the corpus does not hold."""

    @property
    def any(self) -> bool:
        """Whether something was found or could not be read."""
        return any((self.runs, self.discarded, self.unreadable, self.lost))


def erase_evidence(
    store: Runs,
    evidence_ids: Collection[str],
    *,
    asked: RequestSelection = NOBODY,
    may_go_on: Callable[[StagedRun], bool] = lambda staged: False,
    reason: str,
    dry_run: bool = False,
) -> RunsErased:
    """Remove every text that shows something of these rows from every run of a folder, and of rows that the corpus lost and
    texts of requests, as they are `asked`. An unfinished run stays if it `may_go_on`.

    With `dry_run` nothing is written.
    """
    done = RunsErased()
    if not dry_run:
        store.sweep()  # from now on, each new line is of a writer that knows of the erasure
    ids = pa.array(sorted(evidence_ids), pa.string())
    for run_id in store.unfinished():
        with _counted(done, run_id):
            staged = store.resume(run_id)
            if (len(ids) and not may_go_on(staged)) or (asked.questions and len(_asked_of(staged, asked))):
                if not dry_run:
                    store.discard(run_id)
                done.discarded.append(run_id)
    for run_id in store.run_ids():  # with those that were finished in the meantime
        with _counted(done, run_id):
            _erase_from(store, run_id, ids, asked, reason, done, dry_run=dry_run)
    return done


def _asked_of(staged: StagedRun, asked: RequestSelection) -> pa.Array:
    """The ids of the selected requests of an unfinished run."""
    return asked.among(staged.requests, staged.failures, staged.begun.body["started_by"])


def _erase_from(
    store: Runs,
    run_id: str,
    ids: pa.Array,
    asked: RequestSelection,
    reason: str,
    done: RunsErased,
    *,
    dry_run: bool,
) -> None:
    run = store.open(run_id)
    gone = gone_from(run.tables(READS), run.started_by, ids, asked)
    if gone.hashes:
        if not dry_run and run.files:
            run = compact(store, run_id)
            gone = gone_from(run.tables(READS), run.started_by, ids, asked)  # its session may have continued
        done.runs.append(run_id)
        done.texts += len(gone.hashes)
        done.questions += gone.questions
        done.shared += gone.shared
        for shard, parts in () if dry_run else run.shards.items():
            if "texts" in map(table_of, parts):
                erase_texts(run, shard, gone.hashes, reason)
    done.lost |= gone.lost


def erase_texts(run: Run, shard: str, sha256s: Collection[str], reason: str) -> None:
    """Remove texts by hash from a shard, unless another erasure was first."""
    store, wanted = run.store, pa.array(sorted(sha256s), pa.string())
    while True:
        lines = store.log.of(run.run_id)
        path = next(path for path in parts_of(lines)[0][shard] if table_of(path) == "texts")
        texts = read_parquet(run.folder / path, TEXTS)
        hit = pc.is_in(texts["sha256"], value_set=wanted)
        found = {*texts["sha256"].filter(hit).to_pylist()}
        if not found:
            return
        body = {"run_id": run.run_id, "shard": shard, "texts": sorted(found), "reason": reason}
        left = texts.filter(pc.invert(hit))
        if store.commit_files(
            "erase",
            lambda files, body=body, left=left: body | {"parts": dict([write_texts(run.folder, shard, left, files)])},
            lambda lines=lines: not of_kind(store.log.after(lines), "erase"),
        ):
            (run.folder / path).unlink(missing_ok=True)
            sync_path((run.folder / path).parent)
            return


@contextmanager
def _counted(done: RunsErased, run_id: str) -> Iterator[None]:
    """Continue with other runs if this one is damaged."""
    try:
        yield
    except BusyError:
        raise
    except (ScopedRetrievalError, pa.ArrowException):
        done.unreadable.append(run_id)
