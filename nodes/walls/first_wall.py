"""The first wall over one segment: the first access or visibility gate that stops each row.

Reads a segment's slice of EVIDENCE, one contract and the bounds that open its project. The rules are those of the gate
objects, asked once per distinct word of a column; words are read once per segment, for every scope group that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.kept import OfTable, Recent
from .gate import SegmentColumns
from .gates import GATES

Codes = NDArray[np.int8]

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
    by_contract = [(gate.number, gate.stops(segment, contract)) for gate in GATES if gate.stops]
    furthest = np.zeros(segment.rows, dtype=np.int8)
    for place, bound in enumerate(bounds):
        by_bound = [(gate.number, gate.bound_stops(segment, bound)) for gate in GATES if gate.bound_stops]
        codes = np.zeros(segment.rows, dtype=np.int8)
        for number, mask in sorted((*by_contract, *by_bound), key=lambda each: -each[0]):
            if mask is not None:
                codes[mask] = number
        furthest = _further(furthest, codes) if place else codes
    return furthest


def _further(one: Codes, other: Codes) -> Codes:
    """The later of two gates, row by row; 0, which means that all were passed, is the latest."""
    step = np.uint8(1)
    return (np.maximum(one.view(np.uint8) - step, other.view(np.uint8) - step) + step).view(np.int8)
