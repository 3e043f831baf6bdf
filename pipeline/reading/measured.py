"""What was measured of a run or a snapshot: rows by table and seconds by node, as far as the principal may see them.

Reads: a run. Gives: `measured`, for `lineage`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..config.settings import Settings
from ..runs import Run
from ..runs.parts import PERSISTED
from .access import audience_of, audits_whole, expect_reader, open_run

__all__ = ["measured"]


def measured(settings: Settings, name: str) -> tuple[Run, Mapping[str, int], Mapping[str, float]]:
    """The run, rows by table and seconds by node: of one snapshot if its id is named, else of all requests.

    Rows tell how much was withheld, so they are for auditors; of a whole run, for those who audit every request. The nodes
    of a snapshot were timed in a session; of a batch, a shard at a time.

    Raises:
        AccessError: it is another's, or there is none.
        StoreError: the run is damaged.
    """
    run = open_run(settings, name)
    if name.startswith("retr-snap-"):
        if audience_of(settings, run, name) != "audit":
            return run, {}, {}
        took = run.request_seconds_of(name)
        rows = {table.name: run.table(table.name, snapshot_id=name).num_rows for table in PERSISTED}
        return run, rows, took.nodes if took else {}
    expect_reader(settings, run)
    return run, run.rows if audits_whole(settings, run) else {}, run.node_seconds
