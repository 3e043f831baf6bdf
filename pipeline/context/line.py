"""The second line: the context steps as one Hamilton graph, built once; `run_context` runs it, and
`fold_states` its first step alone.

Reads the tables of a projection. Gives the tables of the line: the ledger, the model inputs and intermediate tables.

Note: many turns are one table. They run in shards, so that the gathered sources fit in memory; the state of the
sessions is folded once, before the shards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.blocks.token_counting import Counters
from ...nodes.context_tables import (
    CONTEXT_TURNS,
    LOG_EVENTS,
    LOG_MATCHES,
    MEMORY_RECORDS,
    PHASE_POLICIES,
    RETRIEVED_ITEMS,
    RULE_TEXTS,
    STATE_FACTS,
    TOOL_SCHEMAS,
)
from ...nodes.turns.as_of import HORIZON
from ..line.planned_driver import PlannedDriver, driver_of

__all__ = [
    "CONTEXT_STEPS",
    "OUTPUTS",
    "ContextInputs",
    "build_context_driver",
    "fold_states",
    "run_context",
]

CONTEXT_STEPS = (
    "context_state",
    "context_sources",
    "context_selection",
    "context_ordering",
    "context_compression",
    "context_isolation",
    "context_budget",
    "context_messages",
    "context_ledger",
)
"""The step modules in the order of the line."""
OUTPUTS = (
    "turn_states",
    "selection",
    "ordering",
    "isolated",
    "fitted",
    "model_inputs",
    "context_decisions",
    "turn_warnings",
)
"""The nodes whose tables a projection records."""
SHARD = 512
"""Number of turns per shard. No result depends on it."""


@dataclass(frozen=True)
class ContextInputs:
    """The inputs of a projection."""

    turns: pa.Table
    events: pa.Table
    matches: pa.Table
    facts: pa.Table
    rules: pa.Table
    memories: pa.Table
    items: pa.Table
    tools: pa.Table
    phases: pa.Table
    counters: Counters

    def checked(self) -> dict[str, Any]:
        """The inputs of the nodes by name, each checked against its declared table."""
        given = {
            "context_turns": (CONTEXT_TURNS, self.turns),
            "log_events": (LOG_EVENTS, self.events),
            "log_matches": (LOG_MATCHES, self.matches),
            "checkpoint_facts": (STATE_FACTS, self.facts),
            "rule_texts": (RULE_TEXTS, self.rules),
            "memory_records": (MEMORY_RECORDS, self.memories),
            "retrieved_items": (RETRIEVED_ITEMS, self.items),
            "tool_schemas": (TOOL_SCHEMAS, self.tools),
            "phase_policies": (PHASE_POLICIES, self.phases),
        }
        return {name: declared.check(table).combine_chunks() for name, (declared, table) in given.items()} | {
            "counters": self.counters
        }


@lru_cache(maxsize=1)
def build_context_driver() -> PlannedDriver:
    """The driver of the line. One is enough: it is thread-safe."""
    return driver_of(CONTEXT_STEPS)


def run_context(inputs: ContextInputs) -> dict[str, pa.Table]:
    """The tables of `OUTPUTS` for all turns, in the order of the turns."""
    driver, given = build_context_driver(), inputs.checked()
    facts = driver.execute(["state_facts"], inputs=given)
    parts: list[Mapping[str, pa.Table]] = []
    for start in range(0, max(inputs.turns.num_rows, 1), SHARD):
        turns = given["context_turns"].slice(start, SHARD).combine_chunks()
        near = _near(turns, given, facts["state_facts"])
        parts.append(driver.execute(OUTPUTS, inputs={**given, "context_turns": turns, **near[0]}, overrides=near[1]))
    return {name: pa.concat_tables([part[name] for part in parts]).combine_chunks() for name in OUTPUTS}


def fold_states(inputs: ContextInputs) -> pa.Table:
    """TURN_STATES of all turns alone, in the order of the turns."""
    return build_context_driver().execute(["turn_states"], inputs=inputs.checked())["turn_states"]


def _near(
    turns: pa.Table, given: Mapping[str, Any], facts: pa.Table
) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """The log rows and facts that these turns can see, so that their cost does not depend on the length of the log."""
    places = turns.group_by("session_id", use_threads=False).aggregate([("as_of_seq", "min"), ("as_of_seq", "max")])

    def bounds(table: pa.Table) -> tuple[pa.Array, pa.Array]:
        at = pc.index_in(table["session_id"], value_set=places["session_id"].combine_chunks())
        return places["as_of_seq_min"].take(at), places["as_of_seq_max"].take(at)

    found = {}
    for name in ("log_events", "log_matches"):
        table = given[name]
        low, high = bounds(table)
        seen = pc.and_(pc.greater_equal(table["seq"], pc.subtract(low, HORIZON)), pc.less(table["seq"], high))
        found[name] = table.filter(pc.fill_null(seen, False)).combine_chunks()
    low, high = bounds(facts)
    held = pc.and_(pc.less(facts["from_seq"], high), pc.fill_null(pc.greater_equal(facts["until_seq"], low), True))
    return found, {"state_facts": facts.filter(pc.fill_null(held, False)).combine_chunks()}
