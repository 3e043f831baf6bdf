"""Reports on runs, as far as the principal may see them: page, measurements, and what `verify` finds.

Reads: settings, a run. Gives: `report_of`, `measured` for `lineage`, `actions_of`, and `verified` of one run or
a folder of them, where a run that cannot be read is a finding about that run, and the others are checked regardless.

Note: `actions_of` is a view: the snapshots are the record, and `index --add logs=context_actions.csv` imports it as
evidence for review, each line owned by its principal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

import pyarrow.compute as pc

from ...nodes.errors import VerificationError
from ...nodes.tables import REQUESTS
from ..config.opening import signer_of
from ..config.settings import Settings
from ..runs import Run, RunProblem, Runs, verify
from ..runs.ids import RUN_ID, run_named
from ..runs.log import LOG, RunLog
from ..runs.parts import READABLE
from ..views.text_table import csv_table
from .access import known_runs, opened, unknown
from .present_rights import JUDGED_BY, items_within_rights
from .snapshots import readable


def report_of(settings: Settings, run_id: str) -> str:
    """The HTML report of a run, as far as the principal may see it.

    Raises:
        AccessError: it does not exist or belongs to another principal.
        StoreError: the run is damaged.
    """
    from ..views.report import TABLES_READ as COUNTED
    from ..views.report import run_report

    mine = opened(settings, run_id)
    run = mine.run
    tables = {table: run.table(table) for table in COUNTED}
    tables = {table: rows.filter(pc.is_in(rows["request_id"], mine.request_ids)) for table, rows in tables.items()}
    ids = set(mine.rows["snapshot_id"].to_pylist())
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
    seen = opened(settings, name)
    run = seen.run
    if not seen.whole:
        return run, {}, {}
    if seen.snapshot is None:
        return run, run.rows, run.node_seconds
    took = run.timings_of(name)
    rows = {table.name: run.table(table.name, snapshot_id=name).num_rows for table in READABLE}
    return run, rows, took.nodes if took else {}


def _by_request(run: Run, table: str, column: str) -> dict[str, Any]:
    stored = run.stored(table)
    return dict(zip(stored["request_id"].to_pylist(), stored[column].to_pylist(), strict=True))


COLUMNS = ("timestamp", "principal", "action", "project", "mode", "purpose", "scope", "k_in", "k_out", "question", "status",
           "snapshot_id", "citations")  # fmt: skip
_EVERYWHERE = "all paths"


def actions_of(settings: Settings, run: Any, snapshots: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """`context_actions.csv` (S1.33): a line for each of these snapshots of a run that the principal may read, with its mode,
    scope, counts and citations: rows with question, project and purpose. A request that was refused
    on arrival has no principal.
    """
    seen = readable(settings, run)
    principal = _by_request(run, REQUESTS.name, "principal")
    columns = ["request_id", "mode", "search_paths", "lane_k", "max_items"]
    contracts = {row["request_id"]: row for row in run.stored("contracts").select(columns).to_pylist()}
    locators: dict[str, list[str]] = {}
    tables = {name: run.table(name, texts=True) for name in ("citations", *JUDGED_BY)}
    tables = tables if seen.audit else items_within_rights(tables, seen.grants)
    for row in tables["citations"].select(["request_id", "locator"]).to_pylist():
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


def verified(settings: Settings, run_id: str | None = None, *, anchor: str | None = None) -> dict[str, Any]:
    """The verification of one run, or of every run of the folder that the principal may know of, as plain values.

    `head` is the hash of the last line of the log about a run that the principal may know of: it vouches for all lines
    before it, and discloses nothing about later runs of others.

    Raises:
        AccessError: the run does not exist or the principal may not know of it.
        VerificationError: the log was changed, or there is an anchor and no run that the principal may know of.
    """
    store = Runs(settings["runs"], create=False)
    named = [run_named(run_id)] if run_id else None
    if named and not RUN_ID.fullmatch(named[0]):
        raise unknown(str(run_id))
    lines = store.log.lines()
    known = known_runs(settings, store)
    ids = [one for one in named or store.log.by_run() if known(one)]
    if run_id and not ids:
        raise unknown(run_id)
    if anchor is not None and not ids:
        # Runs of others are not reported, so the answer is the same whether there are any.
        raise VerificationError("Expected the anchor in a log of runs visible to you, got no such run", at="LOG")
    reports = [verify(store, one, anchor=anchor) for one in ids]
    try:
        RunLog(store.path, signer_of(settings)).last()
    except VerificationError as error:
        found = RunProblem("changed", LOG, error.message)
        reports = [replace(report, problems=(found, *report.problems), state="") for report in reports]
    if not named:  # a batch in progress is not a finding about the folder
        pending = {report.run_id for report in reports if report.status == "unfinished"}
        reports = [report for report in reports if report.run_id not in pending]
    return {
        "ok": all(report.ok for report in reports),
        "head": next((line.hash for line in reversed(lines) if known(line.body.get("run_id") or "")), ""),
        "runs": [
            {"run_id": report.run_id, "status": report.status}
            | {
                name: value
                for name, value in asdict(report).items()
                if name in ("parts", "snapshots", "problems", "erased")
            }
            for report in reports
        ],
    }
