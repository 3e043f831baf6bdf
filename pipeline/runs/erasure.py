"""Erasing texts from runs: the record stands, the words go, a receipt in LOG says so.

The receipt comes first and names the parts as they will be; then the parts are replaced. `verify` then says `erased`. An
erasure that a crash broke off is done by asking for it again. What one would otherwise get wrong: a block holds the text
of every item in it, so the block of a request goes with any of its items.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...nodes.errors import InputError, ScopedRetrievalError, StoreError
from ...nodes.keys import flat
from ...nodes.list_columns import flattened
from ...nodes.tables import TABLES
from .files import TEMPORARY, files_below, locked, read_parquet, write_bytes
from .live import compact
from .parts import PERSISTED, TEXTS, stored_schema
from .run import Run
from .store import RunStore

HASHES_PER_LINE = 256
"""Texts or parts that one line of LOG names: a line must stay far below the window its tail is read with."""

_SHOWN = ("trimmed", "citations")
"""Tables whose rows say that something of a row of evidence reached a block."""


@dataclass
class RunsErased:
    """What an erasure did to a folder of runs; ids of runs, and how many texts went."""

    runs: list[str] = field(default_factory=list)
    texts: int = 0
    given_up: list[str] = field(default_factory=list)
    """Unfinished runs whose parts held the text: they could not be resumed on a generation that is gone."""
    unreadable: list[str] = field(default_factory=list)
    """Damaged runs: nobody can say what they hold."""


def erase_evidence(store: RunStore, evidence_ids: Collection[str], *, reason: str, dry_run: bool = False) -> RunsErased:
    """Remove every text that shows something of these rows from every run of a folder.

    Interactive runs that show any of it are compacted first. With `dry_run` nothing is written.
    """
    done = RunsErased()
    ids = pa.array(sorted(evidence_ids), pa.string())
    for run_id in store.run_ids():
        try:
            run = store.open(run_id)
            if hashes := texts_showing(run, ids):
                done.runs.append(run_id)
                done.texts += len(hashes)
                if not dry_run:
                    erase_texts(store, compact(store, run_id).run_id, hashes, reason=reason)
            if not dry_run:
                _sweep(store, run)
        except (ScopedRetrievalError, pa.ArrowException):
            done.unreadable.append(run_id)
    for run_id in store.unfinished():
        folder = store.folder(run_id)
        if (folder / "manifest.json").exists() or not any(_shows(folder, ids)):
            continue
        done.given_up.append(run_id)
        if not dry_run:
            shutil.rmtree(folder)
    return done


def texts_showing(run: Run, evidence_ids: pa.Array) -> set[str]:
    """The hashes of the stored texts of a run that show something of these rows, blocks included."""
    found: list[pa.Array] = []
    requests: list[pa.Array] = []
    for declared in PERSISTED:
        free = declared.names(free_text=True)
        if "evidence_id" not in declared.columns or not (free or declared.name in _SHOWN):
            continue
        stored = run.stored(declared.name)
        rows = stored.filter(_hit(stored, evidence_ids))
        found += [flat(rows[name]) for name in free]
        if declared.name in _SHOWN:
            requests.append(flat(rows["request_id"]))
    blocks = run.stored("blocks")
    asked = pc.is_in(blocks["request_id"], value_set=pa.concat_arrays(requests))
    found.append(flat(blocks["text"].filter(pc.and_(asked, blocks["block_ref"].is_valid()))))
    wanted = pc.unique(pa.concat_arrays(found).drop_null())
    return set(wanted.filter(pc.is_in(wanted, value_set=flat(run.texts["sha256"]))).to_pylist())


def erase_texts(store: RunStore, run_id: str, sha256s: Collection[str], *, reason: str) -> int:
    """Remove texts by hash from a run's parts; returns how many were removed.

    Raises:
        InputError: the run holds none of them.
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
                sink = pa.BufferOutputStream()
                pq.write_table(table.filter(pc.invert(hit)), sink, compression="zstd")
                changed[part["path"]] = memoryview(sink.getvalue())
        if not removed:
            raise InputError(f"Expected texts of this run, got {len(wanted)} hashes it does not hold - at {run.run_id}")
        parts = {path: hashlib.sha256(data).hexdigest() for path, data in changed.items()}
        for texts in _batches(sorted(removed)):
            store.log.append("erase", run.run_id, texts=texts, parts={}, reason=reason)
        for paths in _batches(sorted(parts)):
            store.log.append("erase", run.run_id, texts=[], parts={path: parts[path] for path in paths}, reason=reason)
        for path, data in changed.items():
            write_bytes(run.folder / path, data, sync=True)
    return len(removed)


def _batches(values: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(values), HASHES_PER_LINE):
        yield values[start : start + HASHES_PER_LINE]


def _hit(table: pa.Table, evidence_ids: pa.Array) -> pa.Array:
    """Which rows speak of one of these rows of evidence, alone or merged with others."""
    hit = flat(pc.is_in(table["evidence_id"], value_set=evidence_ids))
    if "merged_rows" not in table.column_names:
        return hit
    item, member = flattened(table["merged_rows"])
    rows = pc.unique(pa.array(item).filter(pc.is_in(member, value_set=evidence_ids)))
    return pc.or_(hit, pc.is_in(pa.array(range(table.num_rows), pa.int64()), value_set=rows.cast(pa.int64())))


def _shows(folder: Path, evidence_ids: pa.Array) -> Iterator[bool]:
    """For each finished part of an unfinished run, whether it shows something of these rows."""
    for name in _SHOWN:
        for path in sorted((folder / "tables" / name).glob("*.parquet")):
            yield pc.any(_hit(read_parquet(path, stored_schema(TABLES[name])), evidence_ids)).as_py() or False


def _sweep(store: RunStore, run: Run) -> None:
    """Remove what a crash left of a part under a temporary name: it may hold the text."""
    with locked(store.lock_of(run.run_id), "a run"):
        for name in files_below(run.folder):
            if Path(name).name.startswith(TEMPORARY):
                (run.folder / name).unlink()
