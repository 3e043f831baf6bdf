"""Writes the parts of a shard and their receipt, and the manifest of a finished run that names all parts.

stage/receipts/<shard>.json       the parts of a shard with their SHA-256, and its number of requests by status

Note: parts are not synced before a run is finished, so a receipt may survive a crash that loses its parts. A shard is
done if its receipt exists and every part matches it. Files that name a part are written after it: a receipt after the parts of its shard, the manifest once every part
is on disk. On an object store the parts of a shard are put together, to wait for the store only once.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from ...nodes.audit.records import COVERED
from ...nodes.tables import SNAPSHOTS, TABLES
from ..storage.durable import TEMPORARY, read_whole, sync_all
from ..storage.file_access import make_folder
from ..storage.places import ObjectPlace, Place
from .files import files_below, is_unnamed, parquet_bytes, read_parquet, write_bytes, write_json
from .parts import PER_RUN, PERSISTED, Vectors, stored_tables, texts_of
from .timings import LineTimings

STAGE = "stage"
"""Folder of a run that is being written."""
RECEIPTS_STAGED = f"{STAGE}/receipts"
PROVENANCE_PART = "tables/provenance/part-00000.parquet"


def write_shard(
    folder: Place,
    shard: int,
    tables: Mapping[str, pa.Table],
    *,
    vectors: Vectors | None = None,
    per_run: bool = False,
) -> dict[str, Any]:
    """Write the parts of one shard below `folder`; returns its receipt. Tables without rows have no part."""
    declared = [TABLES[name] for name in PER_RUN] if per_run else COVERED
    stored = stored_tables(tables, declared)
    texts = texts_of({t.name: tables[t.name] for t in declared if t.name in tables}, vectors)
    return write_stored(folder, shard, stored, texts)


def write_stored(
    folder: Place,
    shard: int,
    stored: Mapping[str, pa.Table],
    texts: pa.Table,
) -> dict[str, Any]:
    """Write tables in stored form, and their texts, as part number `shard`, in threads; returns the receipt."""
    filled = {name: table for name, table in [*stored.items(), ("texts", texts)] if table.num_rows}
    with ThreadPoolExecutor(min(pa.cpu_count(), len(filled)) or 1) as pool:
        writing = {
            name: pool.submit(_write_part, folder, part_path(name, shard), filled[name]) for name in _by_size(filled)
        }
    written = {name: part.result() for name, part in writing.items()}
    if isinstance(folder, ObjectPlace):
        folder.write_all({part_path(name, shard): data for name, (_, data) in written.items() if data is not None})
    snapshots = stored.get("snapshots", SNAPSHOTS.empty())
    parts = [
        {
            "table": name,
            "path": part_path(name, shard),
            "sha256": written[name][0],
            **({"named": hashlib.sha256(named_lines(snapshots).encode()).hexdigest()} if name == "snapshots" else {}),
        }
        for name, table in filled.items()
    ]
    return {"shard": shard, "parts": parts, "statuses": Counter(snapshots["status"].to_pylist())}


def named_lines(snapshots: pa.Table) -> str:
    """Each snapshot of a part with its digest, one a line: their SHA-256 in the manifest makes the log name them."""
    pairs = zip(snapshots["snapshot_id"].to_pylist(), snapshots["snapshot_digest"].to_pylist(), strict=True)
    return "".join(f"{id_} {digest}\n" for id_, digest in pairs)


def part_path(name: str, shard: int) -> str:
    """The path of a shard's part of a table, or of the texts, in the folder of its run."""
    return f"{'texts' if name == 'texts' else f'tables/{name}'}/part-{shard:05d}.parquet"


def _by_size(tables: Mapping[str, pa.Table]) -> list[str]:
    """Names by size, largest first, so that no thread starts the largest when the others are done."""
    return sorted(tables, key=lambda name: tables[name].nbytes, reverse=True)


def _write_part(folder: Place, path: str, table: pa.Table) -> tuple[str, memoryview | None]:
    """Encode and write a part; returns its SHA-256. On an object store, the bytes are returned, to be put together."""
    data = parquet_bytes(table)
    if isinstance(folder, ObjectPlace):
        return hashlib.sha256(data).hexdigest(), data
    make_folder((folder / path).parent)
    return write_bytes(folder / path, data, sync=False), None


def write_manifest(
    folder: Place,
    plan: Mapping[str, Any],
    receipts: list[dict[str, Any]],
    *,
    kind: str,
    timings: Mapping[str, LineTimings],
) -> str:
    """Remove parts that a crash left, sync every other one and the folders above it, then write manifest.json; returns its
    SHA-256.
    """
    tables: dict[str, Any] = {name: {"parts": []} for name in (*(t.name for t in PERSISTED), "texts")}
    statuses: Counter[str] = Counter()
    for receipt in receipts:
        statuses.update(receipt["statuses"])
        for part in receipt["parts"]:
            entry = tables[part["table"]]
            entry["parts"].append({key: value for key, value in part.items() if key != "table"})
    provenance = read_parquet(folder / PROVENANCE_PART, TABLES["provenance"].schema)
    manifest = {
        **{key: plan[key] for key in ("format", "run_id", "created_at", "settings")},
        "kind": kind,
        # Not in provenance: the same rows have the same digests whatever the history of their corpus.
        **({"corpus_head": head} if (head := (plan.get("pin") or {}).get("head")) else {}),
        "provenance": dict(zip(provenance["part"].to_pylist(), provenance["value"].to_pylist(), strict=True)),
        "snapshots": sum(statuses.values()),
        "statuses": dict(statuses),
        "lineage_sha256": plan["lineage_sha256"],
        "tables": tables,
        "timings_sha256": write_json(folder / "timings.json", timings, sync=True),
    }
    parts = {part["path"] for receipt in receipts for part in receipt["parts"]}
    for name in files_below(folder):
        if is_unnamed(name, parts) and TEMPORARY not in name:  # another compaction may be writing the same part
            (folder / name).unlink(missing_ok=True)
    sync_all((folder / path for path in parts), folder)
    return write_json(folder / "manifest.json", manifest, sync=True)


def receipt_name(shard: int) -> str:
    """The receipt of a shard, as a path in the folder of its run."""
    return f"{RECEIPTS_STAGED}/{shard:05d}.json"


def receipt_of(folder: Place, shard: int) -> dict[str, Any] | None:
    """The receipt of a shard that is done; None if it is not.

    Raises:
        StoreError: the receipt or a part cannot be read now.
    """
    try:
        receipt = json.loads(read_whole(folder / receipt_name(shard)))
        wanted = {part["path"]: part["sha256"] for part in receipt["parts"]}
        one_by_one = (read_whole(folder / path) for path in wanted)
        found = folder.read_all([*wanted]) if isinstance(folder, ObjectPlace) else one_by_one
        same = all(hashlib.sha256(data).hexdigest() == each for data, each in zip(found, wanted.values(), strict=True))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return receipt if same else None
