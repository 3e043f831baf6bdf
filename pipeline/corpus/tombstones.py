"""Receipts of erasures without the erased text, and the keys by which a publication keeps erased rows out.

    erased/<n>-<random>.arrow    evidence id and key of every erased row; the receipt is in the manifest of line n

A key is a digest of owner, source and text, so a text stays out wherever it comes back in that source, and the key
discloses nothing to a reader who does not have the text. A receipt and the generation without its rows are published by
one line; then the packs with these rows are removed. An erasure that was interrupted is completed by repeating it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from ...nodes.columns.keys import among
from ...nodes.errors import StoreError
from ..storage.durable import make_folders, read_whole, write_atomic
from ..storage.places import Place
from .incoming import Incoming
from .parts import moved

FOLDER = "erased"
_KEYED = ("owner_project", "owner_user", "source_id", "text_sha256")
_DAMAGED = "restore the file from a backup: nothing may be published without it."


@dataclass(frozen=True)
class Receipt:
    """One erasure: time, principal, reason, selection, the number of rows, and the file with their ids and keys."""

    at: str
    by: str
    reason: str
    selection: Mapping[str, Any]
    rows: int
    file: str
    sha256: str

    def evidence_ids(self, path: Place) -> frozenset[str]:
        """The ids of the erased rows.

        Raises:
            StoreError: the file is damaged, or cannot be read now.
        """
        return _column(path / FOLDER / self.file, self.sha256, "evidence_id")

    def keys(self, path: Place) -> frozenset[str]:
        """The keys of the erased rows.

        Raises:
            StoreError: the file is damaged, or cannot be read now.
        """
        return _column(path / FOLDER / self.file, self.sha256, "key")


@lru_cache(maxsize=64)
def _column(file: Place, sha256: str, name: str) -> frozenset[str]:
    """Cached, as the file never changes: appending ten rows must not cost a pass over all erased rows."""
    data = read_whole(file)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise StoreError(f"Expected SHA-256 {sha256}, got another - at {file}", hint=_DAMAGED)
    return frozenset(pa.ipc.open_file(data).read_all()[name].to_pylist())


def tombstone_keys(evidence: pa.Table) -> pa.Array:
    """The key of each row, 32 hex digits."""
    columns = (evidence[name].to_pylist() for name in _KEYED)
    keys = (hashlib.sha256(json.dumps(row).encode()).hexdigest()[:32] for row in zip(*columns, strict=True))
    return pa.array(keys, pa.string())


def write_erased(path: Place, file: str, evidence: pa.Table) -> str:
    """Write ids and keys of these rows; returns the SHA-256 of the file."""
    make_folders(path / FOLDER, path)
    table = pa.table({"evidence_id": evidence["evidence_id"].cast(pa.string()), "key": tombstone_keys(evidence)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.group_by(table.column_names).aggregate([]))
    data = memoryview(sink.getvalue())
    write_atomic(path / FOLDER / file, data)
    return hashlib.sha256(data).hexdigest()


def kept_out(path: Place, receipts: Sequence[Receipt], new: Incoming) -> tuple[Incoming, int]:
    """An import without previously erased rows, and the number of these."""
    if not receipts or not new.evidence.num_rows:
        return new, 0
    keys = tombstone_keys(new.evidence)
    own = set(keys.to_pylist())
    if not (back := set[str]().union(*(own.intersection(receipt.keys(path)) for receipt in receipts))):
        return new, 0
    keep = ~among(keys, back)
    placements = moved(new.placements, np.where(keep, np.cumsum(keep) - 1, -1)).combine_chunks()
    return Incoming(new.evidence.filter(pa.array(keep)).combine_chunks(), placements), int(np.count_nonzero(~keep))
