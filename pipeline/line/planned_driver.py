"""Hamilton's driver with plans: which nodes run, and in which order, is computed once for each set of outputs.

Reads Hamilton's graph. Gives the outputs, each checked against the table that its node declares; the wiring as text.
`driver_of` makes the driver of a line of step modules.

Note: Hamilton walks the graph at every `execute`, which costs 10,000 calls for a line of 45 nodes: negligible in a
batch, but an eighth of the time of one interactive request.
"""

from __future__ import annotations

import os

os.environ.setdefault("HAMILTON_AUTOLOAD_EXTENSIONS", "0")

import importlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from time import monotonic, perf_counter_ns
from typing import Any, NamedTuple, get_args

from hamilton import driver as hamilton_driver
from hamilton.driver import Variable
from hamilton.node import DependencyType, Node

from ...nodes.errors import InputError
from ...nodes.schema import Table
from ..deadline import DeadlineError, deadline

logging.getLogger("hamilton").setLevel(logging.CRITICAL + 1)

NODE_NOTE = "node: "


class Timing(NamedTuple):
    """The start and end of a node, by `time.perf_counter_ns`."""

    node: str
    began: int
    ended: int


_TIMINGS: ContextVar[list[Timing] | None] = ContextVar("timings", default=None)


@contextmanager
def timings() -> Iterator[list[Timing]]:
    """Every node that runs in this thread within the block, with its times."""
    found: list[Timing] = []
    token = _TIMINGS.set(found)
    try:
        yield found
    finally:
        _TIMINGS.reset(token)


def seconds_by_node(found: Iterable[Timing]) -> dict[str, float]:
    """The total time of each node, in seconds to the microsecond."""
    total: dict[str, int] = {}
    for timing in found:
        total[timing.node] = total.get(timing.node, 0) + timing.ended - timing.began
    return {node: round(spent / 1e9, 6) for node, spent in sorted(total.items())}


class NodeCall(NamedTuple):
    """A call of a node, with the tables named in `needs`; no later node needs those in `spent`."""

    name: str
    function: Callable[..., Any]
    needs: tuple[str, ...]
    table: Table | None
    spent: tuple[str, ...]


class PlannedDriver(hamilton_driver.Driver):
    """A driver of plain functions in this process. It caches plans but no values, so threads may share it."""

    def execute(  # type: ignore[override]  # Hamilton asks for a list and dictionaries; more is taken here
        self,
        final_vars: Iterable[str],
        overrides: Mapping[str, Any] | None = None,
        display_graph: bool = False,
        inputs: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The named outputs; an override replaces its node. A node that raises leaves its name on the exception. No node
        begins after the deadline.

        Raises:
            InputError: an input that some node needs is missing, or there is no such output.
            SchemaError: an output is not the table that its node declares.
        """
        wanted, known = tuple(final_vars), {**(inputs or {}), **(overrides or {})}
        timed, ends, began = _TIMINGS.get(), deadline(), perf_counter_ns()
        for call in self.plan(wanted, frozenset(known)):
            if monotonic() > ends:
                raise DeadlineError
            try:
                made = call.function(**{name: known[name] for name in call.needs})
                known[call.name] = made if call.table is None else call.table.check(made)
            except Exception as error:  # any error of a node gets the node's name
                error.add_note(f"{NODE_NOTE}{call.name}")
                raise
            if timed is not None:
                ended = perf_counter_ns()
                timed.append(Timing(call.name, began, ended))
                began = ended
            for name in call.spent:
                del known[name]
        return {name: known[name] for name in wanted}

    @lru_cache(maxsize=64)  # noqa: B019 - one driver lives as long as its process
    def plan(self, wanted: tuple[str, ...], known: frozenset[str]) -> tuple[NodeCall, ...]:
        """The calls that compute `wanted` from `known`, each after those whose tables it needs."""
        nodes = list(self._ordered(wanted, known))
        needed_later = set(wanted) | known
        calls: list[NodeCall] = []
        for node in reversed(nodes):
            needs = tuple(name for name in node.input_types if name in known or not self.graph.nodes[name].user_defined)
            spent = tuple(name for name in needs if name not in needed_later)
            needed_later.update(spent)
            calls.append(NodeCall(node.name, node.callable, needs, declared_table(node.type), spent))
        return tuple(reversed(calls))

    def made(self) -> list[Variable]:
        """Its nodes, without inputs."""
        return [variable for variable in self.list_available_variables() if not variable.is_external_input]

    def dataflow(self) -> list[str]:
        """The wiring as text: `node <- input, input`, sorted."""
        wired = ((node.name, sorted(node.required_dependencies | node.optional_dependencies)) for node in self.made())
        return sorted(f"{name} <- {', '.join(inputs)}" for name, inputs in wired)

    def _ordered(self, wanted: Iterable[str], known: frozenset[str]) -> Iterator[Node]:
        """The nodes to run, depth first, in the order in which signatures name them."""
        done: set[str] = set(known)

        def before(name: str, optional: bool = False) -> Iterator[Node]:
            if name in done:
                return
            node = self.graph.nodes[name]
            if node.user_defined:
                if optional:
                    return
                raise InputError.described(f"a value of {name}", "none", "inputs")
            done.add(name)
            for need, (_, kind) in node.input_types.items():
                yield from before(need, kind is DependencyType.OPTIONAL)
            yield node

        for name in wanted:
            if name not in known and name not in self.graph.nodes:
                raise InputError.one_of(sorted(self.graph.nodes), name, "outputs")
            yield from before(name)


def driver_of(steps: Iterable[str]) -> PlannedDriver:
    """A driver of step modules, by their names in `nodes`."""
    package = __name__.rsplit(".", 3)[0]
    return PlannedDriver({}, *(importlib.import_module(f"{package}.nodes.{step}") for step in steps))


def declared_table(annotation: Any) -> Table | None:
    """The table that an annotation names, if it names one."""
    return next((item for item in get_args(annotation) if isinstance(item, Table)), None)


def failed_node(error: BaseException) -> str | None:
    """The node that raised an error, if the error came from a node."""
    notes = getattr(error, "__notes__", ())
    return next((note.removeprefix(NODE_NOTE) for note in notes if note.startswith(NODE_NOTE)), None)
