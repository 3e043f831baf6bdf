"""Reports on a run, as far as the principal may see it: page, measurements, events.

Reads: settings, a run. Gives: `report_of`, `measured` for `lineage`, `events_of`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow.compute as pc

from ...nodes.tables import BLOCKS, REQUESTS
from ..config.settings import Settings
from ..runs import Run
from ..runs.ids import is_snapshot
from ..runs.parts import READABLE
from ..views.harness_forms import event
from .access import audience_of, expect_reader, open_run
from .snapshots import as_damage, audits_whole, readable

__all__ = ["events_of", "measured", "report_of"]


def report_of(settings: Settings, run_id: str) -> str:
    """The HTML report of a run, as far as the principal may see it.

    Raises:
        AccessError: it does not exist or belongs to another principal.
        StoreError: the run is damaged.
    """
    from ..views.report import TABLES_READ as COUNTED
    from ..views.report import run_report

    run = open_run(settings, run_id)
    expect_reader(settings, run)
    mine = readable(settings, run)
    tables = {table: run.table(table) for table in COUNTED}
    tables = {table: rows.filter(pc.is_in(rows["request_id"], mine.request_ids)) for table, rows in tables.items()}
    ids = set(mine.rows["snapshot_id"].to_pylist())
    with as_damage(run.run_id):
        took = {name: took for name, took in run.timings.items() if name in ids} if mine.audit else {}
        seconds = run.node_seconds if mine.whole else {}
    return run_report(
        run.run_id, mine.listed(), tables, audit=mine.audit, settings=run.settings, seconds=seconds, took=took
    )


def measured(settings: Settings, name: str) -> tuple[Run, Mapping[str, int], Mapping[str, float]]:
    """The run, rows by table and seconds by node: of one snapshot for its id, else of all requests.

    Both disclose withheld rows, so they are for auditors; for a whole run, for auditors of every request, and empty for
    others. Nodes of a snapshot were timed in its session; in a batch, per shard.

    Raises:
        AccessError: it does not exist or belongs to another principal.
        StoreError: the run is damaged.
    """
    run = open_run(settings, name)
    if is_snapshot(name):
        if audience_of(settings, run, name) != "audit":
            return run, {}, {}
        with as_damage(run.run_id):
            took = run.timings_of(name)
            rows = {table.name: run.table(table.name, snapshot_id=name).num_rows for table in READABLE}
        return run, rows, took.nodes if took else {}
    expect_reader(settings, run)
    with as_damage(run.run_id):
        return (run, run.rows, run.node_seconds) if audits_whole(settings, run) else (run, {}, {})


def events_of(run: Run, snapshots: Collection[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The events of S0.83 of some snapshots of a run, in their order."""
    intents = _by_request(run, REQUESTS.name, "intent_id")
    items = _by_request(run, BLOCKS.name, "items")
    return [event(row, items.get(row["request_id"], 0), intents.get(row["request_id"])) for row in snapshots]


def _by_request(run: Run, table: str, column: str) -> dict[str, Any]:
    stored = run.stored(table)
    return dict(zip(stored["request_id"].to_pylist(), stored[column].to_pylist(), strict=True))
