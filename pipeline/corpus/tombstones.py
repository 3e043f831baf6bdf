"""Receipts of erasures without the erased text, and the keys by which a publication keeps erased rows out.

    ERASED.json     {"receipts": [{"at", "by", "reason", "selection", "rows", "evidence_ids", "keys", "finished"}]}

A key is a digest of owner, source and text, so a text stays out wherever it comes back in that source, and the key
discloses nothing to a reader who does not have the text. A receipt is written before anything is removed and marked as
finished at the end, so that an erasure interrupted by a crash is detected.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import among
from ...nodes.errors import StoreError
from ..storage.durable import read_whole, write_atomic
from ..storage.places import Place
from .incoming import Incoming
from .parts import moved

FILE = "ERASED.json"
_KEYED = ("owner_project", "owner_user", "source_id", "text_sha256")


@dataclass(frozen=True)
class Receipt:
    """One erasure: time, principal, reason, selection and erased rows."""

    at: str
    by: str
    reason: str
    selection: dict[str, Any]
    evidence_ids: tuple[str, ...]
    keys: tuple[str, ...]
    finished: bool = False

    @property
    def rows(self) -> int:
        """Rows of evidence."""
        return len(self.evidence_ids)


def tombstone_keys(evidence: pa.Table) -> pa.Array:
    """The key of each row, 32 hex digits."""
    columns = (evidence[name].to_pylist() for name in _KEYED)
    keys = (hashlib.sha256(json.dumps(row).encode()).hexdigest()[:32] for row in zip(*columns, strict=True))
    return pa.array(keys, pa.string())


def receipts(path: Place) -> tuple[Receipt, ...]:
    """The receipts of the corpus at `path`, oldest first.

    Raises:
        StoreError: the file is damaged, or cannot be read now; nothing may be published past it.
    """
    return _erased(path).receipts


class _Erased(NamedTuple):
    """The content of the file; `keys` is the union over all receipts."""

    receipts: tuple[Receipt, ...] = ()
    keys: frozenset[str] = frozenset()


def _erased(path: Place) -> _Erased:
    try:
        return _erased_in(read_whole(path / FILE))
    except FileNotFoundError:
        return _Erased()
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"Expected receipts of erasures, got a damaged file - at {path / FILE}") from error


@lru_cache(maxsize=4)
def _erased_in(data: bytes) -> _Erased:
    """Parse the file. Cached, as it rarely changes: appending ten rows must not cost a pass over all erased rows."""
    found = tuple(
        Receipt(**row | {"evidence_ids": tuple(row["evidence_ids"]), "keys": tuple(row["keys"])})
        for row in json.loads(data)["receipts"]
    )
    return _Erased(found, frozenset[str]().union(*(receipt.keys for receipt in found)))


def write_receipt(path: Place, receipt: Receipt) -> None:
    """Add a receipt; the caller holds the lock of the corpus."""
    _write(path, (*receipts(path), receipt))


def finish_receipts(path: Place, evidence_ids: Collection[str]) -> None:
    """Mark the receipts whose rows are all among these as finished; the caller holds the lock of the corpus."""
    known, done = receipts(path), {*evidence_ids}
    after = [replace(each, finished=each.finished or done.issuperset(each.evidence_ids)) for each in known]
    if after != [*known]:
        _write(path, after)


def kept_out(path: Place, new: Incoming) -> tuple[Incoming, int]:
    """An import without previously erased rows, and the number of these."""
    erased = _erased(path).keys
    if not erased or not new.evidence.num_rows:
        return new, 0
    keys = tombstone_keys(new.evidence)
    back = erased.intersection(set(keys.to_pylist()))  # iterates over the smaller set
    if not back:
        return new, 0
    keep = ~among(keys, back)
    placements = moved(new.placements, np.where(keep, np.cumsum(keep) - 1, -1))
    placements = placements.filter(pc.greater_equal(placements["row"], 0)).combine_chunks()
    return Incoming(new.evidence.filter(pa.array(keep)).combine_chunks(), placements), int(np.count_nonzero(~keep))


def _write(path: Place, all_: Sequence[Receipt]) -> None:
    write_atomic(path / FILE, json.dumps({"receipts": [asdict(receipt) for receipt in all_]}).encode())
