"""Erasing texts from runs: the record stays, the text is removed, and a receipt documents it.

The receipt comes first, then its line in LOG, then the parts are replaced. `verify` then reports `erased`. A receipt
that LOG does not name was left by a crash and is ignored; an erasure that a crash interrupted is completed by repeating
it. Files left by other crashed writers are removed, too, if no table describes their content. Note: an unfinished run
has no manifest for a receipt to refer to. So its shards that show erased rows are dropped, and `resume` ends the run
without them: its generation is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import BusyError, InputError, ScopedRetrievalError, StoreError, VerificationError
from ..progress import counted
from ..storage.durable import TEMPORARY, exists, remove_tree
from ..storage.locks import confirm
from .compacting import compact
from .erasing_texts import texts_showing
from .erasing_unfinished import drop_shards
from .erasure_receipts import write_receipt
from .files import files_below, locked, parquet_bytes, read_parquet, write_bytes
from .listing import forget_listings
from .live_files import live_files
from .parts import TEXTS
from .request_selection import RequestSelection, Unheld, chosen_among, requests_of, words_of
from .run import BATCH, INTERACTIVE, Run
from .states import compacted_since
from .store import RunStore, run_kind
from .upgrading import upgrade


@dataclass
class RunsErased:
    """The result of an erasure in a folder of runs: ids of runs, and the number of removed texts."""

    runs: list[str] = field(default_factory=list)
    texts: int = 0
    questions: int = 0
    """Number of requests whose questions, anchors, planned queries and query vectors were removed."""
    shared: int = 0
    """Number of texts of these requests that stay because another request or a row of evidence has the same text."""
    discarded: list[str] = field(default_factory=list)
    """Unfinished runs with such a request, which were removed."""
    dropped: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By unfinished run: how many shards that showed erased rows were dropped, and how many requests they answered."""
    remains: list[str] = field(default_factory=list)
    """Folders that a crash left half created or half removed: they may have shown erased rows, so they were removed."""
    unreadable: list[str] = field(default_factory=list)
    """Damaged runs, including those without a manifest: their content is unknown."""
    being_written: list[str] = field(default_factory=list)
    """Runs that another process was writing: their content is not known yet."""
    unheld: set[str] = field(default_factory=set)
    """Ids of rows erased from runs that the corpus did not contain."""

    @property
    def any(self) -> bool:
        """Whether something was removed or could not be read."""
        return any((self.runs, self.discarded, self.dropped, self.remains, self.unreadable, self.being_written))


def erase_evidence(
    store: RunStore,
    evidence_ids: Collection[str],
    *,
    asked: RequestSelection | None = None,
    unheld: Unheld | None = None,
    reason: str,
    dry_run: bool = False,
) -> RunsErased:
    """Remove every text that shows something of these rows from every run of a folder; with `asked`, texts of requests,
    too. With `unheld`, also erase rows from finished runs that no corpus contains any more.

    Interactive runs that show erased rows are compacted first. With `dry_run` nothing is written. If runs are
    `being_written`, the erasure must be repeated once they are not.
    """
    done = RunsErased()
    if not dry_run:
        forget_listings(store.path)
        store.remove_abandoned()
    ids = pa.array(sorted(evidence_ids), pa.string())
    # Listed first: a run that is finished in the meantime is among the others, or detected below.
    begun = store.folders()
    whole = store.run_ids()
    for run_id in whole:
        with _counted(done, run_id):
            if not dry_run:
                _sweep(store, run_id)
            run, gone = _gone(store.open(run_id), ids, asked, unheld)
            if gone.hashes:
                done.unheld |= gone.unheld
                if not dry_run and run.older:
                    gone = _gone_from(upgrade(store, run_id), ids, asked, unheld)  # its tables may contain texts
                elif not dry_run and run.live:
                    gone = _gone_from(compact(store, run_id), ids, asked, unheld)  # its session may have continued
                done.runs.append(run_id)
                done.texts += len(gone.hashes)
                done.questions += gone.questions
                done.shared += gone.shared
                if not dry_run:
                    with suppress(InputError):  # another erasure of the same texts came first
                        erase_texts(store, run_id, gone.hashes, reason=reason)
    if not dry_run:
        _finish_compactions(store, whole, done)
    logged = cache(lambda: {line.run_id for line in store.log.lines()})  # read only if needed: it may be damaged
    for run_id in sorted({*begun} - {*whole}):
        with _counted(done, run_id), nullcontext() if dry_run else locked(store.lock_of(run_id), "a run", timeout=0.1):
            kind = run_kind(store.path / run_id)
            if kind == BATCH and asked is not None and _asks(store, run_id, asked):
                _discard(store, run_id, done, dry_run=dry_run)
            elif kind == BATCH:
                _drop(store, run_id, ids, done, dry_run=dry_run)
            elif kind == INTERACTIVE:
                done.being_written.append(run_id)  # its first snapshot was written since the others were read
            else:
                _remove_remains(store, run_id, logged, done, dry_run=dry_run)
    if not dry_run:
        forget_listings(store.path)  # a concurrent listing may have cached removed rows
    return done


@dataclass(frozen=True)
class _Gone:
    """What an erasure removes from a run.

    `hashes` are those of the removed texts, `questions` counts the requests that lose texts, `shared` counts their texts that
    remain because other requests use them too, and `unheld` has the ids of erased rows that the corpus does not contain.
    """

    hashes: set[str]
    questions: int = 0
    shared: int = 0
    unheld: frozenset[str] = frozenset()


def _gone_from(run: Run, ids: pa.Array, asked: RequestSelection | None, unheld: Unheld | None) -> _Gone:
    lost = frozenset[str]()
    if unheld is not None:
        also = unheld.of(run, run.settings.get("principal"))
        lost = frozenset(also.to_pylist())
        ids = pa.concat_arrays([ids, also])
    showing = texts_showing(run, ids)
    if asked is None:
        return _Gone(showing, unheld=lost)
    requests = requests_of(run, asked, run.settings.get("principal"), ids)
    words, shared = words_of(run, requests)
    return _Gone(showing | words, len(requests) if words else 0, shared, lost)


def _gone(run: Run, ids: pa.Array, asked: RequestSelection | None, unheld: Unheld | None) -> tuple[Run, _Gone]:
    """What is erased from a run, and the run that was read to determine it.

    If the run is compacted in the meantime, its files vanish while they are read: the parts are read instead.
    """
    try:
        gone = _gone_from(run, ids, asked, unheld)
    except StoreError:
        if not compacted_since(run):
            raise
    else:
        if not compacted_since(run):
            return run, gone
    return _gone(Run(run.folder), ids, asked, unheld)


def _asks(store: RunStore, run_id: str, asked: RequestSelection) -> bool:
    """Whether an unfinished batch contains a selected request; for evidence shown, its shards are read."""
    if asked.shown or exists(store.path / run_id / "manifest.json"):
        return False
    staged = store.resume(run_id)
    return len(chosen_among(asked, staged.requests, staged.failures, staged.plan["settings"].get("principal"))) > 0


def _discard(store: RunStore, run_id: str, done: RunsErased, *, dry_run: bool) -> None:
    """Remove an unfinished run: its staged requests are in one table, and no line of LOG covers it yet."""
    done.discarded.append(run_id)
    if not dry_run:
        confirm(store.lock_of(run_id))
        remove_tree(store.path / run_id)


def _finish_compactions(store: RunStore, run_ids: Collection[str], done: RunsErased) -> None:
    """Finish interrupted compactions: a session's files still exist beside its parts, or LOG lacks the line."""
    unlogged = set[str]()
    with suppress(VerificationError):  # a damaged LOG cannot get missing lines, and contains no text
        unlogged |= {*store.uncompacted()}
    for run_id in sorted({*run_ids} - {*done.unreadable, *done.being_written}):
        folder = store.path / run_id
        with _counted(done, run_id):
            if exists(folder / "manifest.json") and (run_id in unlogged or live_files(folder)):
                compact(store, run_id)


@contextmanager
def _counted(done: RunsErased, run_id: str) -> Iterator[None]:
    """Continue with other runs if this one is damaged or being written."""
    try:
        yield
    except BusyError:
        done.being_written.append(run_id)
    except (ScopedRetrievalError, pa.ArrowException):
        done.unreadable.append(run_id)


def _drop(store: RunStore, run_id: str, ids: pa.Array, done: RunsErased, *, dry_run: bool) -> None:
    """Drop the shards of an unfinished run that show something of these rows."""
    if exists(store.path / run_id / "manifest.json"):
        done.being_written.append(run_id)  # it was finished since the others were read
    elif dropped := drop_shards(store, run_id, ids, dry_run=dry_run):
        done.dropped[run_id] = (len(dropped), sum(dropped.values()))


def _remove_remains(
    store: RunStore, run_id: str, logged: Callable[[], Collection[str]], done: RunsErased, *, dry_run: bool
) -> None:
    """Remove the rest of a first snapshot or of a removed run after a crash: no table describes what its texts show."""
    folder = store.path / run_id
    if not any(name.startswith(("live/", "texts/")) for name in files_below(folder)):
        return
    if exists(folder / "manifest.json"):
        done.being_written.append(run_id)  # it was finished since the others were read
    elif run_id in logged():
        done.unreadable.append(run_id)
    else:
        done.remains.append(run_id)
        if not dry_run:
            remove_tree(folder)


def erase_texts(store: RunStore, run_id: str, sha256s: Collection[str], *, reason: str) -> int:
    """Remove texts by hash from a run's parts; returns how many were removed.

    Raises:
        InputError: the run contains none of them.
        StoreError: the run is interactive; compact it first.
    """
    run = store.open(run_id)
    if run.live:
        raise StoreError(f"Expected a compacted run, got an interactive one - at {run.run_id}", hint="run `compact`")
    wanted = pa.array(sorted(sha256s), pa.string())
    with locked(store.lock_of(run.run_id), "a run"):
        changed: dict[str, memoryview] = {}
        removed: set[str] = set()
        for part in run.manifest["tables"]["texts"]["parts"]:
            table = read_parquet(run.folder / part["path"], TEXTS)
            hit = pc.is_in(table["sha256"], value_set=wanted)
            if pc.any(hit).as_py():
                removed |= set(table["sha256"].filter(hit).to_pylist())
                changed[part["path"]] = parquet_bytes(table.filter(pc.invert(hit)))
        if not removed:
            raise InputError(
                f"Expected texts of this run, got {counted(len(wanted), 'hash', 'hashes')} it does not hold - at {run.run_id}"
            )
        parts = {path: hashlib.sha256(data).hexdigest() for path, data in changed.items()}
        receipt = write_receipt(store, {"run_id": run.run_id, "texts": sorted(removed), "parts": parts})
        store.log.append("erase", run.run_id, receipt=receipt, texts=len(removed), parts=len(parts), reason=reason)
        for path, data in changed.items():
            write_bytes(run.folder / path, data, sync=True)
    return len(removed)


def _sweep(store: RunStore, run_id: str) -> None:
    """Remove parts that a crash left under a temporary name: they may contain erased text.

    Takes the lock, so that any process that wrote the run without knowing of the erasure has ended.
    """
    folder = store.folder(run_id)
    with locked(store.lock_of(run_id), "a run"):
        for name in files_below(folder):
            if Path(name).name.startswith(TEMPORARY):
                (folder / name).unlink()
