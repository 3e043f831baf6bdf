"""Why an aim is missed, by row: shown on the page as long as the row misses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bench_table import figures_of

__all__ = ["LIMITS", "limits_of"]

_PER_REQUEST = (
    "A request passes 45 nodes over some 30 tables, whose smallest steps are calls of Python, NumPy and Arrow at 1 to 20 us each: "
    "about 28,000, of which 1,000 are kernels of Arrow. No node takes a tenth. A `take` of Arrow costs 3.5 us in a loop and 12 us here: "
    "each is met a few times per request, and its code has left the processor's caches by then. In a batch the same calls serve "
    "all requests; alone, one request pays for them. Less takes fewer tables per request, not faster ones."
)

LIMITS = {
    "pipelines/hybrid": (
        "Peers recall, fuse and return row numbers. Ours also judges every candidate twice, packs, trims, cites and stores each "
        "with its reasons. Recall is a sixth of its time; `fits`, packing, decisions, digests and Parquet share the rest."
    ),
    "batch/writing": (
        "A request leaves some 19,000 values in 23 tables. Encoding them as compressed Parquet is two thirds of it, at some 20 ns "
        "a value; hashing texts, checking that every candidate was decided once, and digests are the rest. Two threads "
        "share it, and side by side they take 1.3 times the processor time of one."
    ),
    "batch/bytes": (
        "The aim is for 100,000 chunks, where it is met. Projects of 10,000 rows give a request twice the candidates of "
        "projects of 1,000, and the record has each of them with its reasons."
    ),
    "interactive/p50": _PER_REQUEST,
    "interactive/p99": "As above; the rest is syncing one file and its folder, and other work of the machine.",
}


def limits_of(records: Iterable[Mapping[str, Any]]) -> str:
    """The missed rows as Markdown: by how much, and what limits them; empty if none is missed."""
    missed = [one for one in records if one["met"] is False]
    if not missed:
        return ""
    lines = ["## What was missed, and what limits it\n"]
    for one in missed:
        limit = LIMITS.get(one["row"], "Not looked into yet.")
        lines.append(f"- {one['what']}: {figures_of(one)}; the aim is {one['aim']}. {limit}")
    return "\n".join(lines) + "\n"
