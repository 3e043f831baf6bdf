"""Identity by content: the id and the digest of a row of evidence, and the digest of a whole generation.

An id never depends on where, when or with which other rows a row was stored. A generation's digest is a multiset hash
of its rows: it depends neither on their order nor on segments, and updating it costs only the rows that changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...nodes.columns.digests import digests, forms
from ...nodes.columns.keys import flat
from ...nodes.tables import EVIDENCE, PLACEMENTS

ID_COLUMNS = (
    "owner_project", "owner_user", "source_id", "path", "section", "text_sha256", "occurrence", "branch", "workspace_root",
)  # fmt: skip
"""The columns of a row's identity. They include branch and work tree, so that the same text in records of two branches, or
committed and in an edited file, is two rows: neither replaces the other. Rows of a history have no branch, see `commits`."""
_FROM_ID = {"evidence_id", *ID_COLUMNS, "text"}
DESCRIBING_COLUMNS = tuple(
    name for name, column in EVIDENCE.columns.items() if column.digest and name not in _FROM_ID | {"length"}
)
"""Columns of EVIDENCE that its id does not already determine; `length` follows from the text."""
PLACEMENT_COLUMNS = tuple(name for name in PLACEMENTS.columns if name not in ("row", "evidence_id"))

_BASE32HEX = np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", dtype=np.uint8)


def evidence_ids(rows: pa.Table) -> pa.Array:
    """The id of each row: the first 130 bits of the SHA-256 of its `ID_COLUMNS`, as 26 base32hex characters."""
    found = b"".join(_digests(rows, ID_COLUMNS))
    bits = np.unpackbits(np.frombuffer(found, np.uint8).reshape(-1, 32)[:, :17], axis=1)[:, :130].reshape(-1, 26, 5)
    characters = _BASE32HEX[bits @ np.array([16, 8, 4, 2, 1], dtype=np.uint8)]
    offsets = np.arange(0, 26 * len(bits) + 1, 26, dtype=np.int32)
    return pa.StringArray.from_buffers(len(bits), pa.py_buffer(offsets), pa.py_buffer(characters.tobytes()))


def row_digests(evidence: pa.Table) -> pa.Array:
    """SHA-256 of each row's `DESCRIBING_COLUMNS`: it changes if anything but the row's text and times changes."""
    return pa.array(_digests(evidence, DESCRIBING_COLUMNS), pa.binary(32))


def _digests(rows: pa.Table, names: Iterable[str]) -> list[bytes]:
    return digests({name: flat(rows[name]) for name in names}, np.arange(rows.num_rows + 1))


def elements(evidence: pa.Table, placements: pa.Table, profiles: Sequence[str]) -> list[bytes]:
    """The terms of a generation's digest, one per row: id, row digest, encoder profile or "", and every placement.

    `placements` is sorted by row (position in `evidence`), then time; `evidence` has the column `row_digest`.
    """
    bounds = np.searchsorted(placements["row"].to_numpy(), np.arange(evidence.num_rows + 1))
    placed = forms([flat(placements[name]) for name in PLACEMENT_COLUMNS], bounds)
    rows = zip(evidence["evidence_id"].to_pylist(), evidence["row_digest"].to_pylist(), profiles, placed, strict=True)
    return [b"\0".join((row.encode(), digest, profile.encode(), places)) for row, digest, profile, places in rows]


def row_keys(table: pa.Table, names: Iterable[str]) -> pa.Array:
    """One binary value per row that encodes these columns: equal if and only if all columns are, nulls included."""
    found = forms([flat(table[name]) for name in names], np.arange(table.num_rows + 1))
    return pa.array(found, pa.large_binary())


_LANES = 1024
_BATCH = 2048


@dataclass(frozen=True, eq=False)
class MultisetHash:
    """LtHash16 (Lewi et al., "Securing update propagation with homomorphic hashing", 2019): sums of 1,024 16-bit lanes.

    Adding and removing elements commute, so the hash of a generation is computed from the previous one and the change.
    """

    lanes: NDArray[np.uint16]

    @classmethod
    def of(cls, elements: Sequence[bytes] = ()) -> MultisetHash:
        """The hash of some elements."""
        lanes = np.zeros(_LANES, dtype=np.uint16)
        for start in range(0, len(elements), _BATCH):
            batch = b"".join(hashlib.shake_128(e).digest(2 * _LANES) for e in elements[start : start + _BATCH])
            lanes += np.frombuffer(batch, dtype="<u2").reshape(-1, _LANES).sum(axis=0, dtype=np.uint16)
        return cls(lanes)

    @classmethod
    def from_hex(cls, text: str) -> MultisetHash:
        """Parse the output of `hex`."""
        return cls(np.frombuffer(bytes.fromhex(text), dtype="<u2").astype(np.uint16))

    def hex(self) -> str:
        """The whole state, 4,096 hex digits."""
        return self.lanes.astype("<u2").tobytes().hex()

    def digest(self, *context: str) -> str:
        """SHA-256 of the state and some strings, 64 hex digits."""
        return hashlib.sha256("\0".join((*context, self.hex())).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MultisetHash) and np.array_equal(self.lanes, other.lanes)

    def __hash__(self) -> int:
        return hash(self.lanes.tobytes())

    def __add__(self, other: MultisetHash) -> MultisetHash:
        return MultisetHash(self.lanes + other.lanes)

    def __sub__(self, other: MultisetHash) -> MultisetHash:
        return MultisetHash(self.lanes - other.lanes)
