"""The second line: the context steps as one Hamilton graph, built once; `run_context` runs it.

Reads the tables of a projection. Gives the tables of the line: the ledger, the model inputs and intermediate tables.

Note: many turns are one table. They run in shards, so that the gathered sources fit in memory; each shard gets the
events that its turns look at, and the state that the events before them left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ...nodes.context_tables import CONTEXT_TABLES
from ...nodes.turns.folding import Folded
from ...nodes.turns.reading import first_of_window, rows_of
from ..line.planned_driver import PlannedDriver, driver_of

__all__ = ["CONTEXT_STEPS", "OUTPUTS", "build_context_driver", "run_context"]

CONTEXT_STEPS = ("context_state", "context_sources", "context_selection", "context_ordering", "context_compression", "context_isolation",
                 "context_budget", "context_messages", "context_ledger")  # fmt: skip
"""The step modules in the order of the line."""
OUTPUTS = ("turn_states", "context_sources", "selection", "ordering", "compressed", "isolated", "fitted", "model_inputs", "context_decisions",
           "turn_warnings")  # fmt: skip
"""The nodes whose tables a projection keeps."""
SHARD = 64
"""Number of turns per shard. No result depends on it."""


@lru_cache(maxsize=1)
def build_context_driver() -> PlannedDriver:
    """The driver of the line. One is enough: it is thread-safe."""
    return driver_of(CONTEXT_STEPS)


def run_context(inputs: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The tables of `OUTPUTS` for all turns, in the order of the turns. `inputs`: the input tables by name, and `counters`;
    turns are of one session, in the order of its log.
    """
    tables = {name: each for name, each in inputs.items() if name in CONTEXT_TABLES}
    checked = {name: CONTEXT_TABLES[name].check(each).combine_chunks() for name, each in tables.items()}
    driver, given = build_context_driver(), {**inputs, **checked}
    parts: list[Mapping[str, pa.Table]] = [
        driver.execute(OUTPUTS, inputs={**given, **shard}) for shard in _shards(given)
    ]
    return {name: pa.concat_tables([part[name] for part in parts]).combine_chunks() for name in OUTPUTS}


def _shards(given: Mapping[str, Any]) -> Iterator[dict[str, pa.Table]]:
    """Turns with the events from the first one's window to the last turn, and the state before that window."""
    turns, events = given["context_turns"], given["log_events"]
    if turns.num_rows <= SHARD:
        yield {}
        return
    sizes = events.select(["characters"]).to_pylist()
    ends = turns["as_of_seq"].to_pylist()
    base = events["seq"][0].as_py() if events.num_rows else 0
    folded, done = Folded.of(given["state_facts"]), 0
    session = turns["session_id"][0].as_py()
    for start in range(0, turns.num_rows, SHARD):
        some = turns.slice(start, SHARD).combine_chunks()
        first = first_of_window(sizes, ends[start] - base)
        for row in rows_of(events.slice(done, first - done)):
            folded.add(row)
        done = max(first, done)
        last = ends[min(start + SHARD, len(ends)) - 1] - base
        yield {
            "context_turns": some,
            "log_events": events.slice(done, last - done).combine_chunks(),
            "state_facts": folded.table(session),
        }
