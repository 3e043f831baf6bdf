"""The second line: the context steps as one Hamilton graph, built once; `run_context` runs it.

Reads the records of a projection. Gives the tables of the line: states, model inputs, the ledger and warnings.

Note: many turns run in shards, so that the gathered sources fit in memory; each shard gets the events that its turns look
at, and the state that the events before them left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ...nodes.turns.reading import first_of_window
from ..line.planned_driver import PlannedDriver, driver_of

CONTEXT_STEPS = ("context_state", "context_sources", "context_selection", "context_ordering", "context_compression", "context_isolation",
                 "context_budget", "context_messages", "context_ledger")  # fmt: skip
"""The step modules in the order of the line."""
OUTPUTS = ("turn_states", "model_inputs", "context_decisions", "turn_warnings")
"""The nodes whose tables a projection keeps."""
SHARD = 64
"""Number of turns per shard. No result depends on it."""


@lru_cache(maxsize=1)
def build_context_driver() -> PlannedDriver:
    """The driver of the line. One is enough: it is thread-safe."""
    return driver_of(CONTEXT_STEPS)


def run_context(inputs: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The tables of `OUTPUTS` for all turns, in the order of the turns. `inputs`: records by name, `counters`, and `earlier`, the
    state before the events; turns are of one session, in the order of its log.
    """
    driver = build_context_driver()
    parts = [driver.execute(OUTPUTS, inputs={**inputs, **shard}) for shard in _shards(inputs)]
    return {name: pa.concat_tables([part[name] for part in parts]).combine_chunks() for name in OUTPUTS}


def _shards(given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Turns with the events from the first one's window to the last turn, and the state before that window."""
    turns, events, folded, done = given["context_turns"], given["log_events"], given["earlier"].copy(), 0
    base = events[0]["seq"] if events else 0
    for start in range(0, len(turns), SHARD):
        some = turns[start : start + SHARD]
        first = max(first_of_window(events, some[0]["as_of_seq"] - base), done)
        for row in events[done:first]:
            folded.add(row)
        done = first
        yield {"context_turns": some, "log_events": events[done : some[-1]["as_of_seq"] - base], "earlier": folded}
