"""Erasing texts from runs: the record stays, the text is removed, and a line of LOG is the receipt.

There is one operation, "rewrite these parts without these texts", over parts of texts: the line comes first, then the
parts are replaced. `verify` then reports `erased`. An erasure that a crash interrupted is completed by repeating it.
Interactive runs are compacted before. What no line names is swept: it may contain anything.

Note: an unfinished run has no manifest for a receipt to refer to. So its shards that show erased rows are dropped, and
`resume` ends the run without them: its generation is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import BusyError, InputError, ScopedRetrievalError, StoreError
from ..progress import counted
from ..storage.durable import exists, remove_tree, sync_path
from ..storage.places import Place
from .compacting import compact
from .erased_texts import RequestSelection, Unheld, chosen_among, gone_from, texts_showing
from .files import files_below, is_unnamed, locked, parquet_bytes, read_parquet, write_bytes
from .listing import forget_listings
from .log import Line, of_kind
from .parts import PER_RUN, TEXTS, stored_schema
from .run import Run
from .store import Runs
from .writing import RECEIPTS_STAGED, STAGE, part_path, receipt_name, receipt_of

__all__ = ["Erased", "RunsErased", "discard", "erase_evidence", "erase_texts"]


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
    """Number of requests whose questions, anchors, planned queries and query vectors were removed."""
    shared: int = 0
    """Number of texts of these requests that stay because another request or a row of evidence has the same text."""
    discarded: list[str] = field(default_factory=list)
    """Unfinished runs with such a request, which were removed."""
    dropped: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By unfinished run: how many shards that showed erased rows were dropped, and how many requests they answered."""
    unreadable: list[str] = field(default_factory=list)
    """Damaged runs, including those without a manifest: their content is unknown."""
    being_written: list[str] = field(default_factory=list)
    """Runs that another process was writing: their content is not known yet."""
    unheld: set[str] = field(default_factory=set)
    """Ids of rows erased from runs that the corpus did not contain."""

    @property
    def any(self) -> bool:
        """Whether something was removed or could not be read."""
        return any((self.runs, self.discarded, self.dropped, self.unreadable, self.being_written))


def erase_evidence(
    store: Runs,
    evidence_ids: Collection[str],
    *,
    asked: RequestSelection | None = None,
    unheld: Unheld | None = None,
    reason: str,
    dry_run: bool = False,
) -> RunsErased:
    """Remove every text that shows something of these rows from every run of a folder; with `asked`, texts of requests,
    too. With `unheld`, also erase rows from finished runs that no corpus contains any more.

    With `dry_run` nothing is written. If runs are `being_written`, the erasure must be repeated once they are not.
    """
    done = RunsErased()
    if not dry_run:
        forget_listings(store.path)
        store.sweep()  # from now on, each new line is of a writer that knows of the erasure
    ids = pa.array(sorted(evidence_ids), pa.string())
    unfinished = store.unfinished()  # listed first: one that is finished in the meantime is among the others
    for run_id in store.run_ids():
        with _counted(done, run_id):
            _erase_from(store, run_id, ids, asked, unheld, reason, done, dry_run=dry_run)
    for run_id in unfinished:
        with _counted(done, run_id), nullcontext() if dry_run else locked(store.lock_of(run_id), "a run", timeout=0.1):
            if store.holds(run_id):
                done.being_written.append(run_id)
                continue
            staged = store.resume(run_id)
            starter = staged.plan["settings"].get("principal")
            if (
                asked is not None
                and not asked.shown
                and len(chosen_among(asked, staged.requests, staged.failures, starter))
            ):
                done.discarded.append(run_id)
                if not dry_run:
                    remove_tree(staged.folder)
            elif dropped := _drop_shards(staged.folder, ids, dry_run=dry_run):
                done.dropped[run_id] = (len(dropped), sum(dropped.values()))
    if not dry_run:
        forget_listings(store.path)  # a concurrent listing may have cached removed rows
    return done


def _erase_from(
    store: Runs,
    run_id: str,
    ids: pa.Array,
    asked: RequestSelection | None,
    unheld: Unheld | None,
    reason: str,
    done: RunsErased,
    *,
    dry_run: bool,
) -> None:
    run = store.open(run_id)
    try:
        gone = gone_from(run, run.started_by, ids, asked, unheld)
    except StoreError:
        if (moved := run.moved()) is None:
            raise
        run = moved  # it was compacted while it was read
        gone = gone_from(run, run.started_by, ids, asked, unheld)
    if gone.hashes:
        if not dry_run and run.live:
            run = compact(store, run_id)
            gone = gone_from(run, run.started_by, ids, asked, unheld)  # its session may have continued
        done.unheld |= gone.unheld
        done.runs.append(run_id)
        done.texts += len(gone.hashes)
        done.questions += gone.questions
        done.shared += gone.shared
        if not dry_run:
            with suppress(InputError):  # another erasure of the same texts came first
                erase_texts(store, run_id, gone.hashes, reason=reason)
    if not dry_run and not run.live:
        _tidy(store, run)


def erase_texts(store: Runs, run_id: str, sha256s: Collection[str], *, reason: str) -> int:
    """Remove texts by hash from a run's parts; returns how many were removed.

    Raises:
        InputError: the run contains none of them.
        StoreError: the run is interactive; compact it first.
    """
    run = store.open(run_id)
    if run.live:
        raise StoreError(f"Expected a compacted run, got an interactive one - at {run.run_id}", hint="run `gc`")
    wanted = pa.array(sorted(sha256s), pa.string())
    with locked(store.lock_of(run.run_id), "a run"):
        before = pa.array(sorted(Erased.of(store.log.of(run.run_id)).texts), pa.string())  # maybe interrupted
        changed: dict[str, memoryview] = {}
        removed: set[str] = set()
        for part in run.manifest["tables"]["texts"]["parts"]:
            table = read_parquet(run.folder / part["path"], TEXTS)
            hit = pc.is_in(table["sha256"], value_set=wanted)
            if pc.any(hit).as_py():
                removed |= set(table["sha256"].filter(hit).to_pylist())
                gone = pc.or_(hit, pc.is_in(table["sha256"], value_set=before))
                changed[part["path"]] = parquet_bytes(table.filter(pc.invert(gone)))
        if not removed:
            texts = counted(len(wanted), "hash", "hashes")
            raise InputError(f"Expected texts of this run, got {texts} it does not hold - at {run.run_id}")
        parts = {path: hashlib.sha256(data).hexdigest() for path, data in changed.items()}
        body = {"run_id": run.run_id, "texts": sorted(removed), "parts": parts, "reason": reason}
        store.log.commit("erase", body)
        for path, data in changed.items():
            write_bytes(run.folder / path, data, sync=True)
    return len(removed)


def _tidy(store: Runs, run: Run) -> None:
    """Remove what crashed writers left in the folder of a finished run: it may contain erased text."""
    named = {part["path"] for table in run.manifest["tables"].values() for part in table["parts"]}
    with locked(store.lock_of(run.run_id), "a run"):
        _remove(run.folder, [path for path in files_below(run.folder) if is_unnamed(path, named)])
        if exists(run.folder / STAGE):
            remove_tree(run.folder / STAGE)


@contextmanager
def _counted(done: RunsErased, run_id: str) -> Iterator[None]:
    """Continue with other runs if this one is damaged or being written."""
    try:
        yield
    except BusyError:
        done.being_written.append(run_id)
    except (ScopedRetrievalError, pa.ArrowException):
        done.unreadable.append(run_id)


def _drop_shards(folder: Place, evidence_ids: pa.Array, *, dry_run: bool) -> dict[int, int]:
    """Remove the shards of an unfinished run that show these rows; returns how many requests each answered.

    Raises:
        StoreError: a file of the run cannot be read now; nothing was removed.
    """
    names = list(files_below(folder))
    per_run = {table: path for table in PER_RUN if (path := part_path(table, 0)) in names}
    kept, dropped = set(per_run.values()), dict[int, int]()
    shards = (Path(name).stem for name in names if name.startswith(f"{RECEIPTS_STAGED}/"))
    for shard in (int(stem) for stem in shards if stem.isdecimal()):
        receipt = receipt_of(folder, shard, frozenset(names))
        if receipt is None:
            continue
        if texts_showing(_Shard(folder, receipt, per_run), evidence_ids):
            dropped[shard] = sum(receipt["statuses"].values())
        else:
            kept |= {part["path"] for part in receipt["parts"]}
    if not dry_run:
        _remove(folder, [*(receipt_name(shard) for shard in dropped), *(["manifest.json"] if dropped else [])])
        _remove(folder, [name for name in names if is_unnamed(name, kept)])
    return dropped


class _Shard:
    """The tables of one finished shard, with those of its run."""

    def __init__(self, folder: Place, receipt: Mapping[str, Any], per_run: Mapping[str, str]) -> None:
        self._folder = folder
        self._paths = {**per_run, **{part["table"]: part["path"] for part in receipt["parts"]}}

    @property
    def texts(self) -> pa.Table:
        return self.stored("texts")

    def stored(self, name: str) -> pa.Table:
        path = self._paths.get(name)
        if path is None:
            return stored_schema(name).empty_table()
        return read_parquet(self._folder / path, partial(stored_schema, name))


def _remove(folder: Place, names: Collection[str]) -> None:
    """Remove files of a run durably."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    for parent in sorted({(folder / name).parent for name in names}, key=str):
        sync_path(parent)


def discard(store: Runs, run_id: str) -> None:
    """Remove the folder of an unfinished run.

    Raises:
        BusyError: another process is writing it.
        StoreError: LOG names it as a run.
    """
    folder = store.folder(run_id)
    with locked(store.lock_of(run_id), "a run", timeout=0.1):
        if store.holds(run_id):
            got = "a finished one"
            raise StoreError(
                f"Expected an unfinished run, got {got} - at {run_id}", hint="`log --of runs` lists the states."
            )
        remove_tree(folder)
