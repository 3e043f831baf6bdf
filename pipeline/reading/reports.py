"""Reports on a run, as far as the principal may see it: page, measurements, events.

Reads: settings, a run. Gives: `report_of`, `measured` for `lineage`, `events_of`, and `actions_of`, which is a view:
the snapshots are the record, and `index --add logs=context_actions.csv` imports it as evidence for review, each line owned
by its principal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow.compute as pc

from ...nodes.tables import BLOCKS, REQUESTS
from ..config.settings import Settings
from ..runs import Run
from ..runs.ids import is_snapshot
from ..runs.parts import READABLE
from ..views.harness_forms import event
from ..views.text_table import csv_table
from .access import audience_of, expect_reader, open_run
from .snapshots import as_damage, audits_whole, readable

__all__ = ["actions_of", "as_csv", "events_of", "measured", "report_of"]


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


COLUMNS = ("timestamp", "principal", "action", "project", "mode", "purpose", "scope", "k_in", "k_out", "question", "status",
           "snapshot_id", "citations")  # fmt: skip
_EVERYWHERE = "all paths"


def actions_of(run: Any, snapshots: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`context_actions.csv` (S1.33): a line for each of these snapshots of a run, with its mode, scope, counts and citations:
    rows with question, project and purpose. A request that was refused
    on arrival has no principal.
    """
    principal = _by_request(run, REQUESTS.name, "principal")
    columns = ["request_id", "mode", "search_paths", "lane_k", "max_items"]
    contracts = {row["request_id"]: row for row in run.stored("contracts").select(columns).to_pylist()}
    locators: dict[str, list[str]] = {}
    for row in run.table("citations", texts=True).select(["request_id", "locator"]).to_pylist():
        locators.setdefault(row["request_id"], []).append(row["locator"] or "erased")
    found = []
    for snapshot in snapshots:
        request_id = snapshot["request_id"]
        contract = contracts.get(request_id, {})
        paths = contract.get("search_paths")
        found.append(
            {
                "timestamp": snapshot["created_at"].isoformat(),
                "principal": principal.get(request_id),
                "action": "retrieve",
                "project": snapshot["project"],
                "mode": contract.get("mode") or "",
                "purpose": snapshot["purpose"],
                "scope": _EVERYWHERE if paths is None else "; ".join(f"/{path}" for path in paths),
                "k_in": contract.get("lane_k"),
                "k_out": contract.get("max_items"),
                "question": " ".join((snapshot["question"] or "").split()),
                "status": snapshot["status"],
                "snapshot_id": snapshot["snapshot_id"],
                "citations": "; ".join(locators.get(request_id, [])),
            }
        )
    return found


def as_csv(actions: Iterable[Mapping[str, Any]]) -> str:
    """The lines as CSV with a header; no cell begins like a formula."""
    return csv_table(COLUMNS, ([action[name] for name in COLUMNS] for action in actions))
