"""Plugins of the line: gates, lanes and score terms, as a driver passes them in.

Gives: `Plugins`, validated on construction, and the inputs of their functions. The objects have the types of the
package's own lists (`Gate`, `Lane`, `ScoreTerm`). Names of plugin objects contain a dot, `acme.embargo`; names of the
package do not.

Note: a plugin can only narrow. A gate is called for rows that no other gate stops, a lane receives rows that pass every
gate, and the value of a term is clipped and rounded so that contributions add up to `final` exactly.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .columns.keys import gathered
from .columns.numbers import array_of
from .errors import InputError, SchemaError, called
from .lanes import Lane
from .score_terms import ScoreTerm
from .tables import EVIDENCE
from .walls.first_wall import CONTRACT_COLUMNS
from .walls.gate import PLUGIN_REASON, Gate
from .walls.gate_order import GateOrder

_NAME = re.compile(r"[a-z][a-z0-9_-]*\.[a-z][a-z0-9_]*")
ASKED = ("principal", "project", "purpose", "mode", "role", "as_of")
"""The fields of each candidate's contract that a score term receives, beside `question` and `terms`, its index terms."""
MOST_WEIGHT = 100.0


@dataclass(frozen=True)
class LaneScope:
    """The input of a plugin lane: the rows that some queries may see, and the queries."""

    rows: pa.Table
    """The columns of EVIDENCE that the lane declares, for every row that passes every gate."""
    queries: pa.Table
    """`query_text` and `intent` of each query."""


@dataclass(frozen=True)
class Scored:
    """The result of a plugin lane: for each hit the positions of its query and its row, and a score above 0."""

    query: Any
    row: Any
    score: Any


@dataclass(frozen=True)
class Plugins:
    """Gates, lanes and score terms in addition to the package's own. `digest` covers their code and enters the snapshot
    digest.

    Raises:
        InputError: an object is incomplete, or has an invalid name or column.
    """

    gates: tuple[Gate, ...] = ()
    lanes: tuple[Lane, ...] = ()
    score_terms: tuple[ScoreTerm, ...] = ()
    digest: str = ""

    def __post_init__(self) -> None:
        for kind, functions in (("gates", ("stops", "removes")), ("lanes", ("recall",)), ("score_terms", ("value",))):
            given = getattr(self, kind)
            check_names([one.name for one in given], kind)
            for one in given:
                _check_columns(one.columns, EVIDENCE.columns, f"{one.name}.columns")
                for name in functions:
                    if getattr(one, name) is None:
                        raise InputError.described("a function", "none", f"{one.name}.{name}")
        for gate in self.gates:
            _check_gate(gate)
        for term in self.score_terms:
            if not isinstance(term.weight, int | float) or not 0.0 <= term.weight <= MOST_WEIGHT:
                raise InputError.expected(f"a number from 0 to {MOST_WEIGHT:g}", term.weight, f"{term.name}.weight")

    @cached_property
    def order(self) -> GateOrder:
        """All gates in the order of the ladder, those of plugins at the end of their class."""
        return GateOrder(self.gates)

    @property
    def names(self) -> tuple[str, ...]:
        """The distinct plugin names: the part before the dot in the names of their objects."""
        return tuple(sorted({one.name.partition(".")[0] for one in (*self.gates, *self.lanes, *self.score_terms)}))

    @property
    def term_names(self) -> tuple[str, ...]:
        """The names of the score terms."""
        return tuple(term.name for term in self.score_terms)

    def __reduce__(self) -> tuple[Any, ...]:
        """Cached properties are computed again in another process."""
        return Plugins, (self.gates, self.lanes, self.score_terms, self.digest)

    def __bool__(self) -> bool:
        return bool(self.gates or self.lanes or self.score_terms)


def check_names(names: Collection[str], kind: str) -> None:
    """Refuse names of plugin objects without a dot, and duplicates.

    Raises:
        InputError: such a name.
    """
    for name in names:
        if not is_plugin_name(name):
            hint = "a name of a plugin is `plugin.name`, lower case"
            raise InputError.expected("a name with a dot in it", name, kind, hint=hint)
    if len(set(names)) < len(names):
        raise InputError.described("names of their own", f"one twice among {', '.join(sorted(names))}", kind)


def is_plugin_name(name: str) -> bool:
    """Whether a name is valid for an object of a plugin: `plugin.name`."""
    return _NAME.fullmatch(name) is not None


def _check_columns(names: Iterable[str], known: Collection[str], at: str) -> None:
    if isinstance(names, str):
        raise InputError.expected("a tuple of names", names, at, hint="one name is written with a comma: ('title',)")
    for name in names:
        if name not in known:
            raise InputError.one_of(known, name, at)


def _check_gate(gate: Gate) -> None:
    if gate.gate_class not in ("access", "visibility"):
        raise InputError.one_of(("access", "visibility"), gate.gate_class, f"{gate.name}.gate_class")
    if gate.reason_code != PLUGIN_REASON:
        raise InputError.expected(PLUGIN_REASON, gate.reason_code, f"{gate.name}.reason_code")
    if not gate.columns:
        raise InputError.described("the columns of EVIDENCE that it reads", "none", f"{gate.name}.columns")
    _check_columns(gate.contract_columns, CONTRACT_COLUMNS, f"{gate.name}.contract_columns")
    if gate.bound_stops is not None:
        hint = "a grant is judged by the gates of the package; `stops` is given the contract"
        raise InputError.described("no `bound_stops`", "a function", f"{gate.name}.bound_stops", hint=hint)


NO_PLUGINS = Plugins()


def values_of(terms: Iterable[ScoreTerm], evidence: pa.Table, rows: Any, asked: pa.Table) -> dict[str, NDArray[Any]]:
    """The values of plugin terms for some frame rows, 0 to 1, by name; `asked` has the request of each row.

    Raises:
        SchemaError: a term did not return a number for each row, or its values depend on other rows.
    """
    found = {}
    for term in terms:
        stored = pa.table({name: gathered(evidence[name], rows) for name in term.columns})
        values, half = _numbers(term, stored, asked), asked.num_rows // 2
        for low, high in ((0, half), (half, asked.num_rows)) if half else ():
            alone = _numbers(term, stored.slice(low, high - low), asked.slice(low, high - low))
            if not np.array_equal(alone, values[low:high]):
                hint = "a value follows from the row and its request alone, whatever else is a candidate"
                raise SchemaError(f"Expected the same values in parts, got others - at {term.name}", hint=hint)
        found[term.name] = values
    return found


def _numbers(term: ScoreTerm, stored: pa.Table, asked: pa.Table) -> NDArray[np.float64]:
    assert term.value is not None
    given = called(term.name, "value", term.value, stored, asked)
    values = array_of(given, f"{term.name}.value", np.float64)
    if values.shape != (asked.num_rows,):
        raise SchemaError(f"Expected {asked.num_rows} values, one per row, got {values.shape} - at {term.name}.value")
    if not np.isfinite(values).all():
        raise SchemaError(f"Expected finite numbers, got one that is not - at {term.name}.value")
    return np.clip(values, 0.0, 1.0)
