"""Why an aim is missed, by row: shown on the page as long as the row misses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bench_table import figures_of

_PER_REQUEST = (
    "A request passes through 45 nodes over some 30 tables. It makes about 15,800 calls of Python, NumPy and Arrow at 1 to 20 us each, "
    "of which 500 are Arrow kernels. No node takes a tenth. An Arrow `take` costs 3.5 us in a loop but 12 us here: "
    "each runs only a few times per request, and its code has left the processor's caches by then. In a batch the same calls serve "
    "all requests; a single request pays for them alone. Reaching the aim would take fewer tables per request, not faster ones."
)

_ONE_LOOP = (
    "One compiled loop visits every posting of the words in the scope and every term is handled in Python once. Bounds by which whole "
    "scopes were skipped, and four more loops, went on 2026-11-30: in a line recall is a hundredth of the time."
)

LIMITS = {
    **{f"lexical/{scope}": _ONE_LOOP for scope in ("whole", "one-owner", "scattered", "ten-owners", "instants")},
    "pipelines/hybrid": (
        "Peers recall, fuse and return row numbers. Ours also judges every candidate twice, and packs, trims, cites and stores each "
        "with its reasons. Recall is a sixth of its time; trimming, packing, decisions, digests and Parquet take the rest."
    ),
    "batch/writing": (
        "A request writes some 19,000 values in 23 tables. Encoding them as compressed Parquet takes two thirds of the time, at some "
        "20 ns a value; hashing texts, checking that every candidate was decided once, and digests take the rest. Two threads "
        "share the work, and in parallel they take 1.3 times the processor time of one."
    ),
    "batch/bytes": (
        "The aim is for 100,000 chunks, where it is met. With projects of 10,000 rows a request has twice as many candidates as "
        "with projects of 1,000, and the record contains each of them with its reasons."
    ),
    "batch/graph": (
        "In a profile the graph takes 0.3 % and the checks of tables 0.1 % of a shard. Four measurements on one day lie between "
        "-4.2 % and 4.4 %: the figure is within the noise of the machine."
    ),
    "interactive/p50": _PER_REQUEST,
    "interactive/p99": "As above; the rest is syncing one file and its folder, and other load on the machine.",
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
