"""The second line: the context steps as one Hamilton graph, built once; `run_context` runs it.

Reads the records of a projection. Gives the tables of the line: states, model inputs, the ledger and warnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ...nodes.turns.folding import Fact, Folded
from ..line.planned_driver import PlannedDriver, driver_of

CONTEXT_STEPS = ("context_state", "context_sources", "context_selection", "context_ordering", "context_compression", "context_isolation",
                 "context_budget", "context_messages", "context_ledger")  # fmt: skip
"""The step modules in the order of the line."""
OUTPUTS = ("turn_states", "model_inputs", "context_decisions", "turn_warnings")
"""The nodes whose tables a projection keeps."""


@lru_cache(maxsize=1)
def build_context_driver() -> PlannedDriver:
    """The driver of the line. One is enough: it is thread-safe."""
    return driver_of(CONTEXT_STEPS)


def run_context(
    turns: Iterable[Mapping[str, Any]], inputs: Mapping[str, Any], before: Iterable[tuple[str, Fact]] = ()
) -> dict[str, pa.Table]:
    """The tables of `OUTPUTS` for all turns. `turns` are of one session, in the order of its log, so each event is folded
    once; `inputs`: records by name, and `counters`; `before`: facts from before the log.
    """
    driver, events, folded, done = build_context_driver(), inputs["log_events"], Folded(before), 0
    parts: dict[str, list[pa.Table]] = {name: [] for name in OUTPUTS}
    for turn in turns:
        for row in events[done : turn["as_of_seq"]]:
            folded.add(row)
        done = turn["as_of_seq"]
        made = driver.execute(OUTPUTS, inputs={**inputs, "context_turn": turn, "folded": folded})
        for name, table in made.items():
            parts[name].append(table)
    return {name: pa.concat_tables(some).combine_chunks() for name, some in parts.items()}
