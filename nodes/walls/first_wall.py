"""The first wall over one segment: the first access or visibility gate that stops each row.

Reads a segment's slice of EVIDENCE, one contract and the bounds that open its project. The rules are those of the gate
objects, asked once per distinct word of a column; words are read once per segment, for every scope group that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.kept import OfTable, Recent
from ..columns.keys import flat
from ..scope.selectors import SourcePairs, matching_paths, selected_pairs, source_pairs
from .gate import Mask
from .gates import GATES

Codes = NDArray[np.int8]

COLUMNS = tuple(dict.fromkeys(column for gate in GATES for column in gate.columns))
"""The columns of EVIDENCE that these gates read."""
CONTRACT_COLUMNS = tuple(dict.fromkeys(column for gate in GATES for column in gate.contract_columns))
"""The columns of CONTRACTS that they read: these determine which rows a request may see, apart from time."""
SCOPES, SCOPE_ROWS = 64, 1 << 22
"""Outcomes of scopes that a frame caches, and their rows in total."""


class SegmentColumns:
    """The gate columns of one segment, read on first use."""

    def __init__(self, evidence: pa.Table) -> None:
        self.rows = evidence.num_rows
        self._evidence = evidence
        self._words: dict[str, tuple[list[Any], NDArray[np.int32]]] = {}

    def column(self, name: str) -> pa.Array:
        """A column as one array."""
        return flat(self._evidence[name])

    def words(self, name: str) -> tuple[list[Any], NDArray[np.int32]]:
        """The distinct values of a column, None at the end, and the position of each row's among them."""
        if name not in self._words:
            column = self.column(name)
            if pa.types.is_list(column.type):
                known: dict[tuple[Any, ...], int] = {}
                places = [known.setdefault(tuple(names), len(known)) for names in column.drop_null().to_pylist()]
                values, codes = [*known], np.full(len(column), len(known), dtype=np.int32)
                codes[np.asarray(column.is_valid())] = places
            else:
                encoded = column.dictionary_encode()
                values = encoded.dictionary.to_pylist()
                codes = encoded.indices.fill_null(len(values)).to_numpy()
            self._words[name] = [*values, None], codes
        return self._words[name]

    def where(self, name: str, stopped: Callable[[Any], object]) -> Mask | None:
        """The rows whose value of a column is stopped, None if none is; asked once per distinct value, null included."""
        values, codes = self.words(name)
        found = [bool(stopped(value)) for value in values]
        return np.array(found)[codes] if any(found) else None

    @cached_property
    def _pairs(self) -> SourcePairs:
        return source_pairs(self.column("origin_class"), self.column("source_id"))

    def picked(self, selectors: Sequence[str]) -> Mask:
        """The rows of sources that some selectors pick."""
        return selected_pairs(selectors, self._pairs)[self._pairs.codes]

    @cached_property
    def _paths(self) -> tuple[pa.Array, NDArray[np.int32]]:
        encoded = self.column("path").dictionary_encode()
        return encoded.dictionary, encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()

    def on(self, globs: Sequence[str], *, pathless: bool) -> Mask:
        """The rows whose path matches one of the globs; `pathless` is the result for rows without a path."""
        distinct, codes = self._paths
        return np.append(matching_paths(distinct, globs), pathless)[codes]

    @cached_property
    def files(self) -> pa.Array:
        """Owner, source and path of each row as one string, null where it has no path.

        It includes the owner: a file of one owner never shadows another's of the same name.
        """
        owner = self.column("owner_user").fill_null("")
        return pc.binary_join_element_wise(
            self.column("owner_project"), owner, self.column("source_id"), self.column("path"), "\0"
        )


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
