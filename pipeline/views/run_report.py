"""The report of a run: counts of statuses, limits, conditions and losses, the slowest nodes and requests, and its requests.

Reads: the tables of a run, the rows of its snapshots that the reader may see. Gives: `run_report`, HTML as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..progress import counted
from .lineage import duration
from .report import Timings, named, rendered

__all__ = ["AUDITORS_GET", "LISTED", "TABLES_READ", "run_report"]

TABLES_READ = ("blocks", "conditions", "decisions")
"""The tables of the run that are counted."""
LISTED = 500
"""The most requests in the table; those that need attention come first."""
AUDITORS_GET = "Time and losses are shown to auditors only."
"""The note for callers at the top, instead of those sections."""
_SLOWEST = 12
_COLUMNS = (
    {"name": "request"}, {"name": "status"}, {"name": "question"}, {"name": "items", "number": True},
    {"name": "tokens", "number": True}, {"name": "bound by"}, {"name": "snapshot"},
)  # fmt: skip


def run_report(
    run_id: str,
    snapshots: Sequence[Mapping[str, Any]],
    tables: Mapping[str, pa.Table],
    *,
    audit: bool,
    settings: Mapping[str, Any],
    seconds: Mapping[str, float],
    took: Mapping[str, Timings],
) -> str:
    """The report of a run.

    Args:
        snapshots: rows of the snapshots that the reader may see, with question, project and purpose.
        tables: those of `TABLES_READ`, restricted to these snapshots.
        audit: whether the reader audits all of them; otherwise rows that were not shown are omitted.
        settings: the settings in the manifest.
        seconds: for auditors, the seconds of each node, if measured.
        took: for auditors, by snapshot the seconds of its line, if each was measured.
    """
    blocks, conditions, decisions = (tables[name].to_pylist() for name in TABLES_READ)
    statuses = Counter(row["status"] for row in snapshots)
    parts = [
        _part("Statuses", "How the requests ended", "requests", statuses),
        _part("Limits", "The limit that bound a block", "requests", Counter(row["bound_by"] or "none" for row in blocks)),
        _part("Conditions", "Conditions reported to users", "requests", Counter(named(row) for row in conditions if audit or row["audience"] == "caller")),
        _part("Time", f"Seconds of all requests together, {sum(seconds.values()):.2f} in all: the slowest nodes", "seconds",
              seconds),
        _part("Slowest requests", "Seconds from the first node to the last", "seconds",
              {f"{_short(row.get('question'))} ({name})": took[name][0] for row in snapshots if (name := row["snapshot_id"]) in took}),
    ]  # fmt: skip
    if audit:
        lost = Counter(
            f"{row['stage']}: {row['reason_code'] or '-'}" for row in decisions if row["outcome"] != "selected"
        )
        parts.append(
            _part("Losses", "Candidates that were not shown, by stage and reason", "candidates", lost, most=None)
        )
    items = {row["request_id"]: row["items"] for row in blocks}
    listed = sorted(
        snapshots, key=lambda row: (row["status"] == "ok", items.get(row["request_id"], 0), row["request_id"])
    )
    head = {"principal": settings.get("principal"), "corpus generation": settings.get("generation"),
            "lanes": settings.get("lanes"), "BM25": settings.get("bm25"),
            "tokens": f"{sum(row['tokens'] for row in blocks):,} in all blocks together"}  # fmt: skip
    return rendered(
        "run.html",
        title=f"Run {run_id}",
        made_of=f"Run {run_id}.",
        run_id=run_id,
        summary=", ".join(f"{count:,} {status}" for status, count in statuses.most_common()),
        note="" if audit else AUDITORS_GET,
        head=[(name, value) for name, value in head.items() if value],
        parts=[part for part in parts if part["rows"]],
        caption=f"{counted(min(LISTED, len(listed)), 'request')}: what failed or shows least comes first",
        columns=_COLUMNS,
        requests=[
            [row["request_id"], row["status"], _short(row.get("question")), items.get(row["request_id"], 0),
             row.get("estimated_tokens") or 0, row.get("bound_by") or "-", row["snapshot_id"]]
            for row in listed[:LISTED]
        ],
    )  # fmt: skip


def _part(
    title: str, caption: str, unit: str, counts: Mapping[str, float], most: int | None = _SLOWEST
) -> dict[str, Any]:
    """A table of counts, the largest first, with bars."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:most]
    rows = [
        {
            "name": name,
            "shown": f"{count:,}" if isinstance(count, int) else duration(count),
            "share": count / (ordered[0][1] or 1),
        }
        for name, count in ordered
    ]
    return {"title": title, "caption": caption, "unit": unit, "rows": rows}


def _short(question: str | None) -> str:
    words = " ".join((question or "").split())
    return words if len(words) <= 120 else words[:119] + "…"
