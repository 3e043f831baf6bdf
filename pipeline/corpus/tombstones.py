"""Receipts of erasures without the erased text, and the keys by which a publication keeps erased rows out.

    packs/<id>/erased.arrow    evidence id and key of every row of one erasure, whose receipt names the pack

A key is a digest of owner, source and text, so a text stays out wherever it comes back in that source, and the key
discloses nothing to a reader who does not have the text. A receipt and the generation without its rows are published by
one line; then the packs with these rows are removed. What an erasure that was interrupted left, the next one removes.
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
from .incoming import Incoming
from .packs import Pack
from .parts import moved

ERASED = "erased.arrow"
_KEYED = ("owner_project", "owner_user", "source_id", "text_sha256")


@dataclass(frozen=True)
class Receipt:
    """One erasure: time, principal, reason, selection, the number of rows, and the pack with their ids and keys."""

    at: str
    by: str
    reason: str
    selection: Mapping[str, Any]
    rows: int
    pack: str = ""


@lru_cache(maxsize=64)
def erased_in(pack: Pack, column: str) -> frozenset[str]:
    """The `evidence_id` or the `key` of each row of an erasure. Cached: appending ten rows must not cost a pass over all
    erased rows.

    Raises:
        StoreError: the pack is damaged, or cannot be read now: nothing may be published without it.
    """
    return frozenset(pack.table(ERASED)[column].to_pylist())


def tombstone_keys(evidence: pa.Table) -> pa.Array:
    """The key of each row, 32 hex digits."""
    columns = (evidence[name].to_pylist() for name in _KEYED)
    keys = (hashlib.sha256(json.dumps(row).encode()).hexdigest()[:32] for row in zip(*columns, strict=True))
    return pa.array(keys, pa.string())


def tombstones(evidence: pa.Table) -> pa.Table:
    """Ids and keys of these rows, each once."""
    table = pa.table({"evidence_id": evidence["evidence_id"].cast(pa.string()), "key": tombstone_keys(evidence)})
    return table.group_by(table.column_names).aggregate([])


def kept_out(erased: Sequence[Pack], new: Incoming) -> tuple[Incoming, int]:
    """An import without the rows of these erasures, and the number of its rows that are."""
    if not erased or not new.evidence.num_rows:
        return new, 0
    keys = tombstone_keys(new.evidence)
    own = set(keys.to_pylist())
    if not (back := set[str]().union(*(own.intersection(erased_in(pack, "key")) for pack in erased))):
        return new, 0
    keep = ~among(keys, back)
    placements = moved(new.placements, np.where(keep, np.cumsum(keep) - 1, -1)).combine_chunks()
    return Incoming(new.evidence.filter(pa.array(keep)).combine_chunks(), placements), int(np.count_nonzero(~keep))
