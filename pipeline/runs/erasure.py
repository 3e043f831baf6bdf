"""Erasing texts from runs: the record stands, the words go, a receipt says so.

runs/receipts/<sha256>.json       run, hashes of the erased texts, parts as they are afterwards; LOG holds its SHA-256

The receipt comes first, then its line in LOG, then the parts are replaced. `verify` then says `erased`. A receipt that
LOG does not name is what a crash left, and means nothing; an erasure that a crash broke off is done by asking for it
again. What crashes left of other writers goes, too, where no table says what it holds. What one would otherwise get wrong: a block holds the text of every item in it, so the block of a request goes with
any of its items; the citation of an item may name the section of any of its merged rows; what a record says may stand
beside an item that is no record; and what a session observed stands in anchors and queries of requests that show none
of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import BusyError, InputError, ScopedRetrievalError, StoreError, VerificationError
from ...nodes.keys import flat, pair_codes, positions
from ...nodes.list_columns import flattened, holds
from ...nodes.rival_facts import DISAGREE
from ...nodes.tables import TABLES
from ..durable import TEMPORARY, entries, make_folders, read_whole, remove_tree, stands
from ..places import Place
from .compacting import compact
from .files import files_below, locked, parquet_bytes, read_json, read_parquet, remove_unnamed, sha256_of, write_bytes
from .live_files import live_files
from .log import Line
from .parts import PERSISTED, TEXTS, values_of
from .run import BATCH, STAGE, Run
from .store import RunStore, run_kind

RECEIPTS = "receipts"

_SHOWN = ("trimmed", "citations")
"""Tables whose rows say that something of a row of evidence reached a block."""
_HOLDING = (*_SHOWN, "structured_facts", "session_events")
"""Tables whose rows say that a part holds something of a row of evidence."""


@dataclass(frozen=True)
class Erased:
    """What was erased from a run: hashes of texts, and the SHA-256 of each part that was written anew."""

    texts: frozenset[str] = frozenset()
    parts: dict[str, str] = field(default_factory=dict)


@dataclass
class RunsErased:
    """What an erasure did to a folder of runs; ids of runs, and how many texts went."""

    runs: list[str] = field(default_factory=list)
    texts: int = 0
    given_up: list[str] = field(default_factory=list)
    """Unfinished runs whose parts held the text: they could not be resumed on a generation that is gone. And remains of what
    never was a run, or is none any more: nobody could say whether they held it."""
    unreadable: list[str] = field(default_factory=list)
    """Damaged runs, those without their manifest included: nobody can say what they hold."""
    being_written: list[str] = field(default_factory=list)
    """Runs that another process was writing: what they will hold, nobody can say yet."""


def erase_evidence(store: RunStore, evidence_ids: Collection[str], *, reason: str, dry_run: bool = False) -> RunsErased:
    """Remove every text that shows something of these rows from every run of a folder.

    Interactive runs that show any of it are compacted first. With `dry_run` nothing is written. Where a run is
    `being_written`, the same must be asked again once it is not.
    """
    done = RunsErased()
    ids = pa.array(sorted(evidence_ids), pa.string())
    # First: one that is finished meanwhile is among the others, or told below.
    begun = store.folders()
    whole = store.run_ids()
    for run_id in whole:
        with _counted(done, run_id):
            run = store.open(run_id)
            if hashes := texts_showing(run, ids):
                if not dry_run and run.live:
                    hashes = texts_showing(compact(store, run_id), ids)  # its session may have gone on
                done.runs.append(run_id)
                done.texts += len(hashes)
                if not dry_run:
                    erase_texts(store, run_id, hashes, reason=reason)
            if not dry_run:
                _sweep(store, run)
    if not dry_run:
        _finish_compactions(store, whole, done)
    logged = cache(lambda: {line.run_id for line in store.log.lines()})  # read if it must be: it may be damaged
    for run_id in sorted({*begun} - {*whole}):
        with _counted(done, run_id), nullcontext() if dry_run else locked(store.lock_of(run_id), "a run", timeout=0.1):
            kind = run_kind(store.path / run_id)
            if kind == BATCH:
                _give_up(store, run_id, ids, done, dry_run=dry_run)
            elif kind is None:
                _remove_remains(store, run_id, logged, done, dry_run=dry_run)
    return done


def _finish_compactions(store: RunStore, run_ids: Collection[str], done: RunsErased) -> None:
    """Finish compactions that were broken off: a session's files still stand beside its parts, or LOG lacks the line."""
    unlogged = set(store.uncompacted())
    for run_id in sorted({*run_ids} - {*done.unreadable, *done.being_written}):
        folder = store.path / run_id
        with _counted(done, run_id):
            if stands(folder / "manifest.json") and (run_id in unlogged or live_files(folder)):
                compact(store, run_id)


@contextmanager
def _counted(done: RunsErased, run_id: str) -> Iterator[None]:
    """Go on with other runs where this one is damaged or somebody writes it."""
    try:
        yield
    except BusyError:
        done.being_written.append(run_id)
    except (ScopedRetrievalError, pa.ArrowException):
        done.unreadable.append(run_id)


def _give_up(store: RunStore, run_id: str, ids: pa.Array, done: RunsErased, *, dry_run: bool) -> None:
    """Remove an unfinished run whose parts show something of these rows."""
    folder = store.path / run_id
    if stands(folder / "manifest.json"):
        done.being_written.append(run_id)  # it was finished since the others were read
        return
    if not dry_run:
        remove_unnamed(folder, _parts_of_whole_shards(folder))
    if any(_shows(folder, ids)):
        done.given_up.append(run_id)
        if not dry_run:
            remove_tree(folder)


def _parts_of_whole_shards(folder: Place) -> set[str]:
    """The parts of an unfinished run that need not be written again: of any other, no table may say what it shows."""
    present, named = {*files_below(folder)}, set[str]()
    for path in entries(folder / STAGE / "receipts"):
        if path.suffix == ".json":
            with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
                parts = {part["path"] for part in json.loads(read_whole(path))["parts"]}
                named |= parts if parts <= present else set()
    return named


def _remove_remains(
    store: RunStore, run_id: str, logged: Callable[[], Collection[str]], done: RunsErased, *, dry_run: bool
) -> None:
    """Remove what a crash left of a first snapshot, or of a run that was given up: no table says what its texts show."""
    folder = store.path / run_id
    if not any(name.startswith(("live/", "texts/")) for name in files_below(folder)):
        return
    if stands(folder / "manifest.json"):
        done.being_written.append(run_id)  # it was finished since the others were read
    elif run_id in logged():
        done.unreadable.append(run_id)
    else:
        done.given_up.append(run_id)
        if not dry_run:
            remove_tree(folder)


def texts_showing(run: Run, evidence_ids: pa.Array) -> set[str]:
    """The hashes of the stored texts of a run that show something of these rows, blocks included."""
    found: list[pa.Array] = []
    requests: list[pa.Array] = []
    trimmed = run.stored("trimmed")
    shown = trimmed.filter(_hit(trimmed, evidence_ids))
    for declared in PERSISTED:
        free = declared.names(free_text=True)
        if "evidence_id" not in declared.columns or not (free or declared.name in _SHOWN):
            continue
        stored = run.stored(declared.name)
        hit = _hit(stored, evidence_ids)
        if declared.name == "citations":
            hit = pc.or_(hit, _same_items(stored, shown))
        rows = stored.filter(hit)
        found += [values_of(rows[name]) for name in free]
        if declared.name in _SHOWN:
            requests.append(flat(rows["request_id"]))
    checks = run.stored("fact_checks")
    against = checks.filter(pc.is_in(checks["record_id"], value_set=evidence_ids))
    noted = trimmed.filter(pc.and_(_same_items(trimmed, against), trimmed["fact_note"].is_valid()))
    found += [flat(against[name]) for name in ("field", "canonical", "locator")] + [flat(noted["fact_note"])]
    requests.append(flat(noted["request_id"]))
    found += _observed(run, evidence_ids)
    said = run.stored("conditions")
    told = pc.and_(pc.equal(said["condition"], "fact_mismatch"), pc.is_in(said["request_id"], value_set=requests[-1]))
    found.append(flat(said["message"].filter(told)))
    found.append(_naming_fields(run, said, evidence_ids))
    blocks = run.stored("blocks")
    asked = pc.is_in(blocks["request_id"], value_set=pa.concat_arrays(requests))
    found.append(flat(blocks["text"].filter(pc.and_(asked, blocks["block_ref"].is_valid()))))
    wanted = pc.unique(pa.concat_arrays(found).drop_null())
    return set(wanted.filter(pc.is_in(wanted, value_set=flat(run.texts["sha256"]))).to_pylist())


def _naming_fields(run: Run, conditions: pa.Table, evidence_ids: pa.Array) -> pa.Array:
    """Messages that name fields of rivals, of the requests that these rows were candidates of: a rival need not be shown."""
    candidates = run.stored("candidates")
    asked = candidates["request_id"].filter(pc.is_in(candidates["evidence_id"], value_set=evidence_ids))
    told = pc.and_(
        pc.equal(conditions["condition"], "conflicting"), pc.is_in(conditions["request_id"], value_set=flat(asked))
    )
    naming = run.texts["sha256"].filter(pc.starts_with(run.texts["text"], DISAGREE))
    messages = flat(conditions["message"].filter(told))
    return messages.filter(pc.is_in(messages, value_set=flat(naming)))


def _observed(run: Run, evidence_ids: pa.Array) -> list[pa.Array]:
    """Hashes of what requests took from these rows as events of their session: what it names, and queries that say it.

    Which of a request's events named what is not kept, so all of it goes with any of them.
    """
    events, anchors, asked = (run.stored(name) for name in ("session_events", "anchors", "sub_queries"))
    read = pc.unique(flat(events["request_id"]).filter(_hit(events, evidence_ids)))
    named = anchors.filter(
        pc.and_(pc.equal(anchors["origin"], "session_events"), pc.is_in(anchors["request_id"], value_set=read))
    )
    rules, contracts = run.stored("plan_rules"), run.stored("contracts")
    rules = rules.filter(pa.array(holds(rules["parts"], "session")))
    asked = asked.filter(pc.is_in(asked["request_id"], value_set=pc.unique(flat(named["request_id"]))))
    purpose = contracts["purpose"].take(pa.array(positions(asked["request_id"], contracts["request_id"])))
    codes, wanted = pair_codes((purpose, asked["intent"]), (rules["purpose"], rules["intent"]))
    said = asked.filter(pa.array(np.isin(np.asarray(codes), np.asarray(wanted))))
    return [flat(named["value"]), flat(said["query_text"])]


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
                changed[part["path"]] = parquet_bytes(table.filter(pc.invert(hit)))
        if not removed:
            raise InputError(f"Expected texts of this run, got {len(wanted)} hashes it does not hold - at {run.run_id}")
        parts = {path: hashlib.sha256(data).hexdigest() for path, data in changed.items()}
        receipt = _write_receipt(store, {"run_id": run.run_id, "texts": sorted(removed), "parts": parts})
        store.log.append("erase", run.run_id, receipt=receipt, texts=len(removed), parts=len(parts), reason=reason)
        for path, data in changed.items():
            write_bytes(run.folder / path, data, sync=True)
    return len(removed)


def erased_from(store: RunStore, run: Run, lines: Iterable[Line]) -> Erased:
    """What the receipts say that these lines of LOG name; lines of other kinds say nothing.

    A receipt accounts for texts and the parts that held them. It cannot stand in for any other file of a run.

    Raises:
        VerificationError: a receipt is missing, not the one that LOG names, or names what no erasure writes anew.
    """
    texts: set[str] = set()
    parts: dict[str, str] = {}
    for line in lines:
        if line.kind == "erase":
            found = _read_receipt(store, line)
            _check_receipt(found, run, line)
            texts.update(found["texts"])
            parts |= found["parts"]
    return Erased(frozenset(texts), parts)


def _check_receipt(receipt: dict[str, Any], run: Run, line: Line) -> None:
    at = f"{RECEIPTS}/{line.body['receipt']}.json"
    if receipt["run_id"] != run.run_id:
        raise VerificationError(f"Expected a receipt of {run.run_id}, got one of another run - at {at}")
    if not receipt["texts"]:
        raise VerificationError(f"Expected a receipt that names erased texts, got one without any - at {at}")
    held = set() if run.live else {part["path"] for part in run.manifest["tables"]["texts"]["parts"]}
    if other := sorted(set(receipt["parts"]) - held):
        raise VerificationError(f"Expected a receipt that names parts of texts, got {other[0]} - at {at}")


def _write_receipt(store: RunStore, receipt: dict[str, Any]) -> str:
    """Write a receipt under its SHA-256, which is returned."""
    data = (json.dumps(receipt, sort_keys=True, indent=1) + "\n").encode()
    sha256 = hashlib.sha256(data).hexdigest()
    folder = store.path / RECEIPTS
    make_folders(folder, store.path)
    return write_bytes(folder / f"{sha256}.json", data, sync=True)


def _read_receipt(store: RunStore, line: Line) -> dict[str, Any]:
    name = f"{RECEIPTS}/{line.body['receipt']}.json"
    path = store.path / name
    if not path.exists():
        raise VerificationError(f"Expected the receipt that LOG names, got none - at {name}")
    if sha256_of(path) != line.body["receipt"]:
        raise VerificationError(f"Expected the receipt that LOG names, got a changed one - at {name}")
    return read_json(path)


def _hit(table: pa.Table, evidence_ids: pa.Array) -> pa.Array:
    """Which rows speak of one of these rows of evidence, alone or merged with others."""
    hit = flat(pc.is_in(table["evidence_id"], value_set=evidence_ids))
    if "merged_rows" not in table.column_names:
        return hit
    item, member = flattened(table["merged_rows"])
    rows = pc.unique(pa.array(item).filter(pc.is_in(member, value_set=evidence_ids)))
    return pc.or_(hit, pc.is_in(pa.array(range(table.num_rows), pa.int64()), value_set=rows.cast(pa.int64())))


def _same_items(table: pa.Table, items: pa.Table) -> pa.Array:
    """Which rows are of one of these items, by request and leading row."""
    codes, wanted = pair_codes(*((t["request_id"], t["evidence_id"]) for t in (table, items)))
    return pa.array(np.isin(np.asarray(codes), np.asarray(wanted)))


def _shows(folder: Place, evidence_ids: pa.Array) -> Iterator[bool]:
    """For each finished part of an unfinished run, whether it shows something of these rows."""
    for name in _HOLDING:
        for path in entries(folder / "tables" / name):
            if path.suffix != ".parquet":
                continue
            yield pc.any(_hit(read_parquet(path, TABLES[name].stored_schema), evidence_ids)).as_py() or False


def _sweep(store: RunStore, run: Run) -> None:
    """Remove what a crash left of a part under a temporary name: it may hold the text."""
    with locked(store.lock_of(run.run_id), "a run"):
        for name in files_below(run.folder):
            if Path(name).name.startswith(TEMPORARY):
                (run.folder / name).unlink()
