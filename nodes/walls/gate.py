"""Definition of a gate: one rule of the boundary, with everything that belongs to it.

Gives: `Gate`, and the arguments and results of its functions, such as the columns of a segment that a predicate reads. The
gates of the package are in `gates`; a gate of a plugin is the same object, see `docs/how-to/extend.md`.

Note: the second wall is not here. `second_wall` judges the gates of the package again, with deliberately independent
code. A gate of a plugin brings its own second judgment, `removes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import flat
from ..errors import SchemaError, called, kind_of
from ..scope.selectors import SourcePairs, matching_paths, selected_pairs, source_pairs

GateClass = Literal["access", "visibility", "time"]
"""Access gates leave no trace but a count for auditors; visibility and time gates record what they withhold."""

PLUGIN_REASON = "stopped_by_plugin"
"""The reason code of every plugin's gate; `decided_by` names the gate."""

Mask = NDArray[np.bool_]
Row = dict[str, Any]
Contract = Mapping[str, Any]
Bounds = Sequence[Mapping[str, Any]]

Rule = tuple[str, str]
"""The deciding rule of a contract, and a description of the rows it admits."""
Explain = Callable[[Contract, Bounds], Rule]

OPEN, BOUNDED, GUIDED = "open", "bounded", "guided"
ANGLES = (OPEN, BOUNDED, GUIDED)
"""The kinds of request in the leak test: without bounds; with all bounds that a request can name; under a mode and a
role, with all links followed."""


class SegmentColumns:
    """The gate columns of one segment, read on first use."""

    def __init__(self, evidence: pa.Table) -> None:
        self.rows = evidence.num_rows
        self._evidence = evidence
        self._distinct: dict[str, tuple[pa.Array, NDArray[np.int32]]] = {}

    def column(self, name: str) -> pa.Array:
        """A column as one array."""
        return flat(self._evidence[name])

    def distinct(self, name: str) -> tuple[pa.Array, NDArray[np.int32]]:
        """The distinct values of a column, and the position of each row's among them, their number for null."""
        if name not in self._distinct:
            column = self.column(name)
            if pa.types.is_list(column.type):
                known: dict[tuple[Any, ...], int] = {}
                places = [known.setdefault(tuple(names), len(known)) for names in column.drop_null().to_pylist()]
                values, codes = pa.array(map(list, known), column.type), np.full(len(column), len(known), np.int32)
                codes[np.asarray(column.is_valid())] = places
            else:
                encoded = column.dictionary_encode()
                values, codes = encoded.dictionary, encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()
            self._distinct[name] = values, codes
        return self._distinct[name]

    def where(self, name: str, stopped: Callable[[Any], object]) -> Mask | None:
        """The rows whose value of a column is stopped, None if none is; asked once per distinct value, and of null."""
        values, codes = self.distinct(name)
        found = [bool(stopped(value)) for value in (*values.to_pylist(), None)]
        return np.array(found)[codes] if any(found) else None

    @cached_property
    def _pairs(self) -> SourcePairs:
        return source_pairs(self.column("origin_class"), self.column("source_id"))

    def picked(self, selectors: Sequence[str]) -> Mask:
        """The rows of sources that some selectors pick."""
        return selected_pairs(selectors, self._pairs)[self._pairs.codes]

    def on(self, globs: Sequence[str], *, pathless: bool) -> Mask:
        """The rows whose path matches one of the globs; `pathless` is the result for rows without a path."""
        distinct, codes = self.distinct("path")
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


class Opening(NamedTuple):
    """A way to open a gate for a row: the deciding rule, and the change that is needed."""

    rule: str
    """The rule that stops the row: `the row`, `request.FIELD: VALUE`, `mode NAME`, `role NAME` or the rules of
    grants."""
    needed: str
    possible: bool = True
    """Whether a contract can open it; otherwise only the row itself could change."""


@dataclass
class Case:
    """A contract, its bounds, a stored row and its placements. A remedy changes contract and bounds so that the gate opens."""

    contract: dict[str, Any]
    bounds: list[dict[str, Any]]
    row: dict[str, Any]
    placements: list[dict[str, Any]]

    def here(self) -> list[dict[str, Any]]:
        """The bounds of the row's project."""
        return [bound for bound in self.bounds if bound["project"] == self.row["owner_project"]]


@dataclass(frozen=True)
class Ground:
    """The surroundings of a canary in the leak test: a row that was shown to the tenant, the caller, and another
    principal and project.
    """

    seen: Mapping[str, Any]
    folder: str
    """The folder of canaries, empty or ending with `/`."""
    principal: str
    project: str
    zone: str
    """The highest zone of the tenant."""
    other_principal: str
    other_project: str
    sources: Sequence[str]
    as_of: datetime


@dataclass(frozen=True)
class Canary:
    """A row that the gate alone excludes from every request of a tenant.

    `row` returns the columns that cause this, None where such a row is impossible; `asked` the fields that every
    request then has.
    """

    reason: str
    row: Callable[[Ground], Row | None]
    asked: Callable[[Ground], Mapping[str, Any]] = lambda ground: {}
    angles: tuple[str, ...] = ANGLES


@dataclass(frozen=True)
class Gate:
    """One rule of the boundary.

    `stops` returns the rows of a segment that the gate stops where the contract alone decides, `bound_stops` where a
    grant does; None means "none of them". Both read the contract columns that are declared: requests with equal values
    of these are judged together.
    """

    name: str
    gate_class: GateClass
    reason_code: str
    doc: str
    """A property of rows that pass: "its state is one the contract includes"."""
    columns: tuple[str, ...] = ()
    """The columns of EVIDENCE that the first wall reads."""
    contract_columns: tuple[str, ...] = ()
    """The columns of CONTRACTS it reads. A plugin's gate may declare only those that built-in gates read."""
    stops: Callable[[SegmentColumns, Contract], Mask | None] | None = None
    bound_stops: Callable[[SegmentColumns, Mapping[str, Any]], Mask | None] | None = None
    explain: Explain | None = None
    """The deciding rule of a contract, and a description of the rows it admits."""
    remedy: Callable[[Case], Opening] | None = None
    """The changes that would admit a row that the gate stops."""
    canaries: tuple[Canary, ...] = field(default=(), repr=False)
    """Rows for the leak test that only this gate excludes."""
    removes: Callable[[pa.Table, pa.Table], Mask] | None = None
    """For a plugin's gate, the second judgment: which rows it stops, each under the contract in the same position."""
    hides: bool = False
    """Whether its rows end as `hidden` rather than `rejected`."""
    number: int = 0
    """Its place in `GATES`, from 1; 0 means "passed them all"."""

    def explained(self, contract: Contract, bounds: Bounds) -> Rule:
        """The deciding rule of a contract, and a description of the rows that the gate admits.

        Raises:
            SchemaError: the gate is a plugin's, and `explain` raised an exception or returned another type.
        """
        if self.explain is None:
            return "", f"Only if {self.doc}."
        result = called(self.name, "explain", self.explain, contract, bounds)
        if not (isinstance(result, tuple) and len(result) == 2 and all(isinstance(part, str) for part in result)):
            raise SchemaError(f"Expected a rule and a sentence, got {kind_of(result)} - at {self.name}.explain")
        return result

    def opening(self, case: Case) -> Opening:
        """The changes that would admit the row of a case.

        Raises:
            SchemaError: the gate is a plugin's, and `remedy` raised an exception or returned another type.
        """
        if self.remedy is None:
            return Opening("the row", f"a row of which this holds: {self.doc}", False)
        result = called(self.name, "remedy", self.remedy, case)
        if not isinstance(result, Opening):
            raise SchemaError(f"Expected an Opening, got {kind_of(result)} - at {self.name}.remedy")
        return result

    def planted(self, canary: Canary, ground: Ground) -> tuple[Row, Mapping[str, Any]] | None:
        """The columns of one of its canaries and the fields of every request then; None where such a row is impossible.

        Raises:
            SchemaError: the gate is a plugin's, and a function of the canary raised an exception or returned another
                type.
        """
        row = called(self.name, "canaries.row", canary.row, ground)
        if row is None:
            return None
        asked = called(self.name, "canaries.asked", canary.asked, ground)
        for what, value in (("row", row), ("asked", asked)):
            if not isinstance(value, Mapping):
                raise SchemaError(f"Expected an object, got {kind_of(value)} - at {self.name}.canaries.{what}")
        return dict(row), asked
