"""`context_actions.csv` (S1.33): every retrieval as one line, with its mode, scope, counts and citations.

Reads the tables of runs. Gives `actions_of` and `as_csv`. The file is a view: the snapshots are the record, and `index
--add logs=context_actions.csv` imports it as evidence for review, each line owned by its principal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .text_table import csv_table

COLUMNS = ("timestamp", "principal", "action", "project", "mode", "purpose", "scope", "k_in", "k_out", "question", "status",
           "snapshot_id", "citations")  # fmt: skip
_EVERYWHERE = "all paths"


def actions_of(run: Any, snapshots: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A line for each of these snapshots of a run, rows with question, project and purpose. A request that was refused
    on arrival has no principal.
    """
    asked = {row["request_id"]: row for row in run.stored("requests").select(["request_id", "principal"]).to_pylist()}
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
                "principal": asked.get(request_id, {}).get("principal"),
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
