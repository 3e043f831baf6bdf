"""The access and visibility gates of the first wall over one segment: the first gate that stops each row.

Reads a segment's slice of EVIDENCE, one contract and the bounds that open its project. The rules are those of the gate
objects; columns are read as codes once per segment and shared by every scope group that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..columns.kept import OfTable, Recent
from ..columns.numbers import array_of
from ..errors import SchemaError, called
from .gates import GATES
from .gates.gate import Gate
from .segment_columns import Codes, Mask, SegmentColumns

LAST_ACCESS = max(gate.number for gate in GATES if gate.gate_class == "access")

COLUMNS = tuple(dict.fromkeys(column for gate in GATES for column in gate.columns))
"""The columns of EVIDENCE that these gates read."""
CONTRACT_COLUMNS = tuple(dict.fromkeys(column for gate in GATES for column in gate.contract_columns))
"""The columns of CONTRACTS that they read: these determine which rows a request may see, apart from time."""


SCOPES, SCOPE_ROWS = 64, 1 << 22
"""Outcomes of scopes that a frame caches, and their rows in total."""


class FrameColumns:
    """The gate columns of a frame by segment; each is opened once, for all requests that read the frame."""

    def __init__(self, evidence: pa.Table) -> None:
        self._columns = evidence.select(list(COLUMNS))
        self._opened: dict[tuple[int, int], SegmentColumns] = {}
        self.outcomes: Recent[Any] = Recent(min(SCOPES, 1 + SCOPE_ROWS // max(evidence.num_rows, 1)))
        """The outcomes of the scopes that were asked last."""

    def of(self, start: int, end: int) -> SegmentColumns:
        """The columns of the segment from one row to another."""
        if (start, end) not in self._opened:
            self._opened[start, end] = SegmentColumns(self._columns.slice(start, end - start))
        return self._opened[start, end]


columns_of_frame = OfTable(FrameColumns)


def first_stops(segment: SegmentColumns, contract: Mapping[str, Any], bounds: Sequence[Mapping[str, Any]]) -> Codes:
    """The first access or visibility gate that stops each row, int8[rows]; 0 = none.

    `bounds` are those of CONTRACT_BOUNDS whose project and users open the segment, so the gates project and owner have
    passed. Of several bounds, the one under which a row gets furthest applies. Shadowing by a work tree is not judged
    here.
    """
    shared = stops_by_contract(segment, contract)
    furthest = None
    for bound in bounds:
        stops = shared | _stops_by_bound(segment, bound, shared)
        codes = np.zeros(segment.rows, dtype=np.int8)
        for number in sorted(stops, reverse=True):
            codes[stops[number]] = number
        furthest = codes if furthest is None else _further(furthest, codes)
    return np.zeros(segment.rows, dtype=np.int8) if furthest is None else furthest


def _further(one: Codes, other: Codes) -> Codes:
    """The later of two gates, row by row; 0, which means that all were passed, is the latest."""
    step = np.uint8(1)
    return (np.maximum(one.view(np.uint8) - step, other.view(np.uint8) - step) + step).view(np.int8)


def stops_by_contract(segment: SegmentColumns, contract: Mapping[str, Any]) -> dict[int, Mask]:
    """The rows that each gate stops where the contract alone decides, by gate; a gate that stops none may be left out."""
    return _masks([(gate, "stops", gate.stops) for gate in GATES if gate.stops is not None], segment, contract)


def _stops_by_bound(segment: SegmentColumns, bound: Mapping[str, Any], shared: Mapping[int, Mask]) -> dict[int, Mask]:
    """The rows that each gate stops under one grant, in addition to the contract's own stops."""
    stopped = _masks([(gate, "bound_stops", gate.bound_stops) for gate in GATES if gate.bound_stops], segment, bound)
    return {number: mask | shared[number] if number in shared else mask for number, mask in stopped.items()}


def _masks(
    judging: Iterable[tuple[Gate, str, Callable[..., Mask | None]]], segment: SegmentColumns, asked: Mapping[str, Any]
) -> dict[int, Mask]:
    """The rows that some gates stop, by gate; those that stop none are left out."""
    found = {}
    for gate, name, function in judging:
        if (mask := called(gate.name, name, function, segment, asked)) is not None:
            found[gate.number] = mask_of(mask, segment.rows, f"{gate.name}.{name}")
    return found


def mask_of(mask: Any, rows: int, at: str) -> Mask:
    """The return value of a gate's predicate.

    Raises:
        SchemaError: it is not one boolean per row.
    """
    found = array_of(mask, at)
    if found.dtype != np.bool_ or found.shape != (rows,):
        raise SchemaError(f"Expected true or false for each of {rows} rows, got {found.dtype}{found.shape} - at {at}")
    return found
