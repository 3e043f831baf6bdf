"""The gates of a run in order, including those of plugins, and the meaning of a gate's code.

The gates of the package keep their numbers; those of plugins are numbered after them and run at the end of their class:
access, then visibility, then time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, gathered_columns
from ..columns.numbers import array_of
from ..errors import SchemaError, called
from .first_wall import COLUMNS, CONTRACT_COLUMNS, Codes
from .gate import Gate, GateClass, Mask, SegmentColumns
from .gates import GATES
from .second_wall import place_stops, time_stops

_CLASSES = get_args(GateClass)
_JUDGED = (*COLUMNS, "evidence_kind", "event_time", "valid_from", "valid_until", "declared_standing")
"""The columns of stored rows by which they are judged, and by which it is decided how they may speak."""


class GateOrder:
    """The gates of the package and of plugins."""

    def __init__(self, plugins: Sequence[Gate] = ()) -> None:
        self.plugins = tuple(replace(gate, number=len(GATES) + place) for place, gate in enumerate(plugins, start=1))
        self.gates = tuple(sorted((*GATES, *self.plugins), key=lambda gate: _CLASSES.index(gate.gate_class)))
        self.most = len(self.gates)
        """The greatest number of a gate."""
        self.timeless = [gate.number for gate in self.gates if gate.gate_class != "time"]
        self.place = np.zeros(self.most + 1, dtype=np.int64)
        """The place of each gate in the ladder, from 1, by its number; 0 = none."""
        self.place[[gate.number for gate in self.gates]] = np.arange(1, self.most + 1)
        self.opens = np.ones(self.most + 1, dtype=bool)
        """By number, whether a row that the gate stops has passed every access gate."""
        self.opens[[gate.number for gate in self.gates if gate.gate_class == "access"]] = False
        named = sorted(self.gates, key=lambda gate: gate.number)
        self.names: tuple[str, ...] = tuple(gate.name for gate in named)
        self.reasons: tuple[str, ...] = tuple(gate.reason_code for gate in named)

    def passes_access(self, codes: NDArray[Any]) -> Mask:
        """Rows that pass every access gate, by the first gate that stops each."""
        return self.opens[codes]

    def stopped(self, codes: Codes, evidence: pa.Table, start: int, contract: Mapping[str, Any]) -> Codes:
        """The codes of the rows of a segment after the gates of plugins: a row is stopped by the first gate in order.

        Args:
            codes: the first gate of the package that stops each row, 0 = none.
            evidence: the frame.
            start: the first frame row of the segment.
            contract: the contract; a gate receives only the columns by which requests are judged together.
        """
        shown = {name: contract[name] for name in CONTRACT_COLUMNS}
        for gate in self.plugins:
            assert gate.stops is not None
            segment = SegmentColumns(evidence.select(list(gate.columns)).slice(start, len(codes)))
            if (mask := called(gate.name, "stops", gate.stops, segment, shown)) is not None:
                self._stop(codes, _mask_of(mask, len(codes), f"{gate.name}.stops"), gate)
        return codes

    def judged(
        self,
        evidence: pa.Table,
        placements: pa.Table,
        frame_rows: NDArray[np.int64],
        order: NDArray[np.int64],
        contracts: pa.Table,
        contract_bounds: pa.Table,
    ) -> tuple[pa.Table, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Mask]:
        """What the second wall says of frame rows, each under the contract at its position in `order`; of the gates of
        plugins by their second judgment.

        Returns:
            the distinct stored rows; and of each frame row its place among them, the first access or visibility gate that
            removes it, the first time gate that does, 0 = none, and whether the placement that it is judged by has ended.
        """
        rows, row = distinct_numbers(frame_rows)
        stored = pa.table(gathered_columns(evidence, _JUDGED, rows))
        place = place_stops(stored, row, order, contracts, contract_bounds)
        for gate in self.plugins:
            assert gate.removes is not None
            own = pa.table(gathered_columns(evidence, gate.columns, frame_rows))
            asked = pa.table(gathered_columns(contracts, CONTRACT_COLUMNS, order))
            mask = called(gate.name, "removes", gate.removes, own, asked)
            self._stop(place, _mask_of(mask, len(place), f"{gate.name}.removes"), gate)
        return stored, row, place, *time_stops(rows, row, stored, order, contracts, placements)

    def _stop(self, codes: NDArray[Any], mask: Mask, gate: Gate) -> None:
        """Stop rows at this gate, unless an earlier gate stops them."""
        later = (codes == 0) | (self.place[codes] > self.place[gate.number])
        codes[mask & later] = gate.number


def _mask_of(mask: Any, rows: int, at: str) -> Mask:
    """The return value of a gate's predicate.

    Raises:
        SchemaError: it is not one boolean per row.
    """
    found = array_of(mask, at)
    if found.dtype != np.bool_ or found.shape != (rows,):
        raise SchemaError(f"Expected true or false for each of {rows} rows, got {found.dtype}{found.shape} - at {at}")
    return found
