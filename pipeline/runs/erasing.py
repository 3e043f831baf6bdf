"""Erasing texts from runs: the record stays, the text is removed, and a line of LOG is the receipt.

There is one operation, "rewrite these parts without these texts", over parts of texts: the line comes first, then the
parts are replaced. `verify` then reports `erased`. An erasure that a crash interrupted is completed by repeating it.
Interactive runs are compacted before. What no line names is swept: it may contain anything.

Note: no line names what an unfinished run has written so far, and an erasure of rows removes the generations that it
may be answered from. So it is removed as a whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import BusyError, InputError, ScopedRetrievalError, StoreError
from ..progress import counted
from ..storage.durable import sync_path
from .compacting import compact
from .erased_texts import NOBODY, READS, RequestSelection, gone_from
from .files import files_below, parquet_bytes, read_parquet, write_bytes
from .log import Line, of_kind
from .parts import TEXTS
from .run import Run
from .store import Runs, StagedRun
from .writing import part_path

__all__ = ["Erased", "RunsErased", "erase_evidence", "erase_texts"]


@dataclass(frozen=True)
class Erased:
    """The erasures from a run: hashes of removed texts, and the SHA-256 of each rewritten part."""

    texts: frozenset[str] = frozenset()
    parts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[Line]) -> Erased:
        """What the receipts among the lines of a run say."""
        texts, parts = set[str](), dict[str, str]()
        for line in of_kind(lines, "erase"):
            texts.update(line.body["texts"])
            parts |= line.body["parts"]
        return cls(frozenset(texts), parts)


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
    being_written: list[str] = field(default_factory=list)
    """Runs that another process was writing: their content is not known yet."""
    lost: set[str] = field(default_factory=set)
    """Ids of rows that runs cite and the corpus does not hold."""

    @property
    def any(self) -> bool:
        """Whether something was found or could not be read."""
        return any((self.runs, self.discarded, self.unreadable, self.being_written, self.lost))


def erase_evidence(
    store: Runs,
    evidence_ids: Collection[str],
    *,
    asked: RequestSelection = NOBODY,
    may_go_on: Callable[[Mapping[str, Any]], bool] = lambda plan: False,
    reason: str,
    dry_run: bool = False,
) -> RunsErased:
    """Remove every text that shows something of these rows from every run of a folder, and of rows that the corpus lost and
    texts of requests, as they are `asked`. An unfinished run stays if it `may_go_on`, by its plan.

    With `dry_run` nothing is written. If runs are `being_written`, the erasure must be repeated once they are not.
    """
    done = RunsErased()
    if not dry_run:
        store.sweep()  # from now on, each new line is of a writer that knows of the erasure
    ids = pa.array(sorted(evidence_ids), pa.string())
    unfinished = store.unfinished()  # listed first: one that is finished in the meantime is among the others
    for run_id in store.run_ids():
        with _counted(done, run_id):
            _erase_from(store, run_id, ids, asked, reason, done, dry_run=dry_run)
    for run_id in unfinished:
        with _counted(done, run_id):
            if store.holds(run_id):
                done.being_written.append(run_id)
            elif (len(ids) and not may_go_on(store.plan_of(run_id))) or (
                asked.questions and len(_asked_of(store.resume(run_id), asked))
            ):
                if not dry_run:
                    store.discard(run_id)
                done.discarded.append(run_id)
    return done


def _asked_of(staged: StagedRun, asked: RequestSelection) -> pa.Array:
    """The ids of the selected requests of an unfinished run."""
    return asked.among(staged.requests, staged.failures, staged.plan["settings"].get("principal"))


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
        if not dry_run and run.live:
            run = compact(store, run_id)
            gone = gone_from(run.tables(READS), run.started_by, ids, asked)  # its session may have continued
        done.runs.append(run_id)
        done.texts += len(gone.hashes)
        done.questions += gone.questions
        done.shared += gone.shared
        if not dry_run:
            with suppress(InputError):  # another erasure of the same texts came first
                erase_texts(store, run_id, gone.hashes, reason=reason)
    done.lost |= gone.lost
    if not dry_run and not run.live:
        _tidy(store, run)


def erase_texts(store: Runs, run_id: str, sha256s: Collection[str], *, reason: str) -> int:
    """Remove texts by hash from a run's parts, and those of earlier erasures that were interrupted; returns how many of
    these hashes were removed.

    Another process may erase from the same run: no part keeps, or gets back, a text that any of their lines names.

    Raises:
        InputError: the run contains none of them.
        StoreError: the run is interactive; compact it first.
    """
    run = store.open(run_id)
    if run.live:
        raise StoreError(f"Expected a compacted run, got an interactive one - at {run.run_id}", hint="run `gc`")
    wanted, removed = {*sha256s}, set[str]()
    while True:
        lines = store.log.of(run.run_id)
        erased = Erased.of(lines)
        found, changed = _parts_without(run, erased.texts | wanted)
        removed |= found & wanted
        if not changed:
            break
        parts = {path: hashlib.sha256(data).hexdigest() for path, data in changed.items()}
        with store.log.writing():  # `verify` looks again when nobody writes
            if not erased.parts.items() >= parts.items():
                body = {"run_id": run.run_id, "texts": sorted(found), "parts": parts, "reason": reason}
                if store.log.commit("erase", body, lambda known=lines: store.log.of(run.run_id) == known) is None:
                    continue
            for path, data in changed.items():
                write_bytes(run.folder / path, data, sync=True)
    if not removed:
        texts = counted(len(wanted), "hash", "hashes")
        raise InputError(f"Expected texts of this run, got {texts} it does not hold - at {run.run_id}")
    return len(removed)


def _parts_without(run: Run, texts: Collection[str]) -> tuple[set[str], dict[str, memoryview]]:
    """Which of these texts a run contains, and the parts with any of them, without them."""
    found, changed, gone = set[str](), dict[str, memoryview](), pa.array(sorted(texts), pa.string())
    for path in [part_path("texts", shard) for shard, parts in run.parts.items() if "texts" in parts]:
        table = read_parquet(run.folder / path, TEXTS)
        hit = pc.is_in(table["sha256"], value_set=gone)
        if pc.any(hit).as_py():
            found |= {*table["sha256"].filter(hit).to_pylist()}
            changed[path] = parquet_bytes(table.filter(pc.invert(hit)))
    return found, changed


def _tidy(store: Runs, run: Run) -> None:
    """Remove what crashed writers left in the folder of a finished run: it may contain erased text."""
    named = {part_path(name, shard) for shard, parts in run.parts.items() for name in parts}
    unnamed = [path for path in files_below(run.folder) if path not in named]
    for path in unnamed:
        (run.folder / path).unlink(missing_ok=True)
    for folder in sorted({(run.folder / path).parent for path in unnamed}, key=str):
        sync_path(folder)


@contextmanager
def _counted(done: RunsErased, run_id: str) -> Iterator[None]:
    """Continue with other runs if this one is damaged or being written."""
    try:
        yield
    except BusyError:
        done.being_written.append(run_id)
    except (ScopedRetrievalError, pa.ArrowException):
        done.unreadable.append(run_id)
