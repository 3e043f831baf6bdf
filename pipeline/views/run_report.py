"""The content of the report of a run: counts of statuses, losses, conditions and budgets, and its requests.

Reads: the tables of a run, the rows of its snapshots that the reader may see. Gives: `run_report`, HTML as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..progress import counted
from .report import Timings, run_page

__all__ = ["LISTED", "TABLES_READ", "run_report"]

TABLES_READ = ("blocks", "contracts", "conditions", "decisions")
"""The tables of the run that are counted."""
LISTED = 500
"""The most requests in the table; those that need attention come first."""
AUDITORS_GET = "Quality, time, slowest requests and losses are shown to auditors only."
"""The note for callers at the top, instead of those sections."""
_SLOWEST = 12
_FIFTHS = ("up to a fifth", "up to two fifths", "up to three fifths", "up to four fifths", "up to the whole")
_TIME = {"name": "ms", "number": True}
_COLUMNS = (
    {"name": "request"}, {"name": "status"}, {"name": "question"}, {"name": "items", "number": True},
    {"name": "tokens", "number": True}, _TIME, {"name": "bound by"}, {"name": "snapshot"},
)  # fmt: skip


def run_report(
    run_id: str,
    snapshots: Sequence[Mapping[str, Any]],
    tables: Mapping[str, pa.Table],
    *,
    audit: bool,
    settings: Mapping[str, Any],
    seconds: Mapping[str, float] | None = None,
    took: Mapping[str, Timings] | None = None,
    shards: Sequence[tuple[str, int, float]] = (),
) -> str:
    """The report of a run.

    Args:
        snapshots: rows of the snapshots that the reader may see, with question, project and purpose.
        tables: those of `TABLES_READ`, restricted to these snapshots.
        audit: whether the reader audits all of them; otherwise rows that were not shown are omitted.
        settings: the settings in the manifest.
        seconds: the seconds of each node, if measured.
        took: for auditors, by snapshot the seconds of its line and how many requests shared them, if measured.
        shards: for a batch, the name of each shard, its requests and its seconds: its requests run together, so none
            has a time of its own.
    """
    statuses = _counted([row["status"] for row in snapshots])
    blocks, contracts = tables["blocks"], tables["contracts"]
    items = dict(zip(blocks["request_id"].to_pylist(), blocks["items"].to_pylist(), strict=True))
    tokens = pc.sum(blocks["tokens"]).as_py() or 0
    parts = [
        {"title": "Statuses", "note": "", "caption": "How the requests ended", "what": "status", "counted": "requests", "rows": statuses},
        {"title": "Budgets", "note": f"{counted(tokens, 'token')} in all blocks together", "caption": "Share of its tokens that a block uses",
         "what": "tokens used", "counted": "requests", "rows": _shares(blocks, contracts)},
        {"title": "Limits", "note": "", "caption": "The limit that bound a block", "what": "limit", "counted": "requests",
         "rows": _counted([value or "none" for value in blocks["bound_by"].to_pylist()])},
        {"title": "Conditions", "note": "", "caption": "Conditions reported to users", "what": "condition",
         "counted": "requests", "rows": _counted(_spoken(tables["conditions"], audit))},
    ]  # fmt: skip
    if seconds:
        slowest = sorted(seconds.items(), key=lambda one: (-one[1], one[0]))[:_SLOWEST]
        total = sum(seconds.values())
        note = f"{total:.2f} s in all nodes, {1_000 * total / max(1, len(snapshots)):.2f} ms per request; the slowest nodes"
        parts.append({"title": "Time", "note": note, "caption": "Seconds of all requests together", "what": "node",
                      "counted": "seconds", "rows": slowest})  # fmt: skip
    parts += _slowest(snapshots, took or {}, shards)
    if audit:
        parts.append(
            {"title": "Losses", "note": "Candidates that were not shown, of all requests", "caption": "Where candidates were lost",
             "what": "stage and reason", "counted": "candidates", "rows": _losses(tables["decisions"])}
        )  # fmt: skip
    listed = sorted(
        snapshots,
        key=lambda row: (
            row["status"] == "ok", items.get(row["request_id"], 0), row["request_id"],
        ),
    )  # fmt: skip
    rows = [
        [row["request_id"], row["status"], _short(row.get("question")), items.get(row["request_id"], 0),
         row.get("estimated_tokens"), *([_milliseconds((took or {}).get(row["snapshot_id"]))] if took else []),
         row.get("bound_by"), row["snapshot_id"]]
        for row in listed[:LISTED]
    ]  # fmt: skip
    more = f", the first {LISTED:,} of them" if len(listed) > LISTED else ""
    head = [
        ("snapshots", f"{len(snapshots):,}"),
        ("principal", settings.get("principal")),
        ("corpus generation", settings.get("generation")),
        ("lanes", ", ".join(str(settings.get("lanes") or "").split(","))),
        ("BM25", settings.get("bm25")),
    ]
    return run_page(
        run_id,
        head,
        parts,
        {
            "caption": f"Requests{more}: what failed or shows least comes first",
            "columns": _COLUMNS if took else [column for column in _COLUMNS if column is not _TIME],
            "rows": rows,
        },
        ", ".join(f"{count:,} {status}" for status, count in statuses),
        "" if audit else AUDITORS_GET,
    )


def _slowest(
    snapshots: Sequence[Mapping[str, Any]],
    took: Mapping[str, Timings],
    shards: Sequence[tuple[str, int, float]],
) -> list[dict[str, Any]]:
    """The slowest requests if each was measured, else the slowest shards."""
    if took:
        asked = {row["snapshot_id"]: row for row in snapshots if row["snapshot_id"] in took}
        slowest = sorted(asked, key=lambda name: (-took[name][0], name))[:_SLOWEST]
        together = sum(took[name][1] > 1 for name in asked)
        note = "Time from the first node to the last; writing the snapshot is not in it"
        if together:
            note += f"; {together:,} were answered in one pass with others, whose time each shows"
        rows = [
            (f"{_short(asked[name].get('question'))} ({name})", round(1_000 * took[name][0], 3)) for name in slowest
        ]
        return [{"title": "Slowest requests", "note": note, "caption": "Requests that took longest", "what": "request",
                 "counted": "ms", "rows": rows}]  # fmt: skip
    if not shards:
        return []
    slowest_shards = sorted(shards, key=lambda one: (-one[2] / max(1, one[1]), one[0]))[:_SLOWEST]
    note = (
        "Requests of a shard run together, so none has a time of its own: a shard's seconds over its requests. "
        "To measure each, run with -c shard_requests=1"
    )
    mean = [
        (f"{name}: {counted(requests, 'request')}", 1_000 * spent / max(1, requests))
        for name, requests, spent in slowest_shards
    ]
    return [{"title": "Slowest requests", "note": note, "caption": "Shards whose requests took longest", "what": "shard",
             "counted": "ms per request", "rows": mean}]  # fmt: skip


def _milliseconds(took: Timings | None) -> str | None:
    return None if took is None else f"{1_000 * took[0]:.1f}"


def _counted(values: Sequence[str]) -> list[tuple[str, int]]:
    """Distinct values with their counts, most frequent first."""
    counts = pc.value_counts(pa.array(values, pa.string())).to_pylist()
    return sorted(((one["values"], one["counts"]) for one in counts), key=lambda one: (-one[1], one[0]))


def _shares(blocks: pa.Table, contracts: pa.Table) -> list[tuple[str, int]]:
    """The number of blocks by the share of their tokens in use, in fifths, without blocks that have no contract."""
    at = pc.index_in(blocks["request_id"], contracts["request_id"].combine_chunks())
    most = contracts["max_tokens"].combine_chunks().take(at.combine_chunks() if isinstance(at, pa.ChunkedArray) else at)
    used = blocks["tokens"].combine_chunks().filter(most.is_valid())
    share = pc.divide(used.cast(pa.float64()), most.drop_null().cast(pa.float64()))
    fifth = pc.min_element_wise(pc.cast(pc.floor(pc.multiply(share, 5)), pa.int64()), 4).to_pylist()
    return [(name, fifth.count(place)) for place, name in enumerate(_FIFTHS)] if fifth else []


def _spoken(conditions: pa.Table, audit: bool) -> list[str]:
    if not audit:
        conditions = conditions.filter(pc.equal(conditions["audience"], "caller"))
    names = zip(conditions["condition"].to_pylist(), conditions["subject"].to_pylist(), strict=True)
    return [f"{condition} ({subject})" if subject else condition for condition, subject in names]


def _losses(decisions: pa.Table) -> list[tuple[str, int]]:
    lost = decisions.filter(pc.not_equal(decisions["outcome"], "selected"))
    reasons = pc.binary_join_element_wise(lost["stage"], pc.fill_null(lost["reason_code"], "-"), ": ")
    return _counted(reasons.to_pylist())


def _short(question: str | None) -> str:
    words = " ".join((question or "").split())
    return words if len(words) <= 120 else words[:119] + "…"
