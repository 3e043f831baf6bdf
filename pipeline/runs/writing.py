"""Writes the parts of a shard, and makes the line of a finished run, which names all parts.

    stage/receipts/<shard>.json       the SHA-256 of each part of a shard, and its number of requests by status

What names parts is written once they are on disk: a receipt after the parts of its shard, the line after all receipts.
So a shard is done if it has a receipt.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from ..storage.durable import TEMPORARY, sync_all
from ..storage.file_access import make_folder
from ..storage.places import Place
from .files import files_below, parquet_bytes, write_bytes

STAGE = "stage"
"""Folder of a run that is being written."""
INPUTS = "inputs"
"""The name of the shard with the tables that are the same for all requests."""
_THREADS = 16


def write_parts(folder: Place, shard: str, stored: Mapping[str, pa.Table]) -> dict[str, Any]:
    """Write stored tables as the parts of a shard, durably; returns its receipt. Tables without rows have no part."""
    filled = {name: table for name, table in stored.items() if table.num_rows}
    largest_first = sorted(filled, key=lambda name: filled[name].nbytes, reverse=True)

    def write(name: str) -> str:
        file = folder / part_path(name, shard)
        make_folder(file.parent)
        return write_bytes(file, parquet_bytes(filled[name]), sync=False)

    with ThreadPoolExecutor(_THREADS) as pool:
        parts = dict(zip(largest_first, pool.map(write, largest_first), strict=True))
    sync_all([folder / part_path(name, shard) for name in parts], folder)
    receipt: dict[str, Any] = {"parts": parts, "statuses": {}}
    if "snapshots" in filled:
        snapshots = filled["snapshots"]
        receipt["statuses"] = Counter(snapshots["status"].to_pylist())
        receipt["named"] = hashlib.sha256(named_lines(snapshots).encode()).hexdigest()
    return receipt


def named_lines(snapshots: pa.Table) -> str:
    """Each snapshot of a part with its digest, one a line: their SHA-256 in a line makes the log name them."""
    pairs = zip(snapshots["snapshot_id"].to_pylist(), snapshots["snapshot_digest"].to_pylist(), strict=True)
    return "".join(f"{id_} {digest}\n" for id_, digest in pairs)


def shard_name(shard: int) -> str:
    """The name of a shard in the order of shards."""
    return f"{shard:05d}"


def part_path(name: str, shard: str) -> str:
    """The path of a shard's part of a table, or of the texts, in the folder of its run."""
    return f"{'texts' if name == 'texts' else f'tables/{name}'}/part-{shard}.parquet"


def manifest(
    folder: Place,
    plan: Mapping[str, Any],
    receipts: Mapping[str, Mapping[str, Any]],
    provenance: pa.Table,
) -> dict[str, Any]:
    """What the line of a finished run says: its plan, provenance and statuses, and the parts of each shard. Parts that a
    crash left are removed.
    """
    statuses: Counter[str] = Counter()
    for receipt in receipts.values():
        statuses.update(receipt["statuses"])
    # Temporary files stay: another compaction may be writing the same part.
    named = {part_path(name, shard) for shard, receipt in receipts.items() for name in receipt["parts"]}
    for name in files_below(folder):
        if name.startswith(("tables/", "texts/")) and name not in named and TEMPORARY not in name:
            (folder / name).unlink(missing_ok=True)
    return {
        **{key: plan[key] for key in ("format", "run_id", "created_at", "settings", "lineage_sha256")},
        "started_by": plan["settings"].get("principal"),
        # Not in provenance: the same rows have the same digests whatever the history of their corpus.
        **({"corpus_head": head} if (head := (plan.get("pin") or {}).get("head")) else {}),
        "provenance": dict(zip(provenance["part"].to_pylist(), provenance["value"].to_pylist(), strict=True)),
        "snapshots": sum(statuses.values()),
        "statuses": dict(statuses),
        "shards": {
            shard: {key: value for key, value in receipt.items() if key != "statuses"}
            for shard, receipt in receipts.items()
        },
    }
