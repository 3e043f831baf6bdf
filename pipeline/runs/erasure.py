"""Erasing texts from a run: the record stands, the words go, a receipt says so.

runs/receipts/<sha256>.json       run, hashes of the erased texts, parts as they are afterwards; LOG holds its SHA-256

The receipt comes first, then its line in LOG, then the parts are replaced. `verify` then says `erased`. A receipt that
LOG does not name is what a crash left, and means nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...nodes.errors import InputError, StoreError, VerificationError
from .files import locked, read_json, read_parquet, sha256_of, sync_path, write_bytes
from .log import Line
from .parts import TEXTS
from .store import RunStore

RECEIPTS = "receipts"


@dataclass(frozen=True)
class Erased:
    """What was erased from a run: hashes of texts, and the SHA-256 of each part that was written anew."""

    texts: frozenset[str] = frozenset()
    parts: dict[str, str] = field(default_factory=dict)


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
        receipt = _write_receipt(store, {"run_id": run.run_id, "texts": sorted(removed), "parts": parts})
        store.log.append("erase", run.run_id, receipt=receipt, texts=len(removed), parts=len(parts), reason=reason)
        for path, data in changed.items():
            write_bytes(run.folder / path, data, sync=True)
    return len(removed)


def erased_from(store: RunStore, lines: Iterable[Line]) -> Erased:
    """What the receipts say that these lines of LOG name; lines of other kinds say nothing.

    Raises:
        VerificationError: a receipt is missing, or not the one that LOG names.
    """
    texts: set[str] = set()
    parts: dict[str, str] = {}
    for line in lines:
        if line.kind == "erase":
            found = _read_receipt(store, line)
            texts.update(found["texts"])
            parts |= found["parts"]
    return Erased(frozenset(texts), parts)


def _write_receipt(store: RunStore, receipt: dict[str, Any]) -> str:
    """Write a receipt under its SHA-256, which is returned."""
    data = (json.dumps(receipt, sort_keys=True, indent=1) + "\n").encode()
    sha256 = hashlib.sha256(data).hexdigest()
    folder = store.path / RECEIPTS
    if not folder.exists():
        folder.mkdir()
        sync_path(store.path)
    return write_bytes(folder / f"{sha256}.json", data, sync=True)


def _read_receipt(store: RunStore, line: Line) -> dict[str, Any]:
    name = f"{RECEIPTS}/{line.body['receipt']}.json"
    path = store.path / name
    if not path.exists():
        raise VerificationError(f"Expected the receipt that LOG names, got none - at {name}")
    if sha256_of(path) != line.body["receipt"]:
        raise VerificationError(f"Expected the receipt that LOG names, got a changed one - at {name}")
    return read_json(path)
