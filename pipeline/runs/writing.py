"""Writes the parts of a shard, which its line names: `tables/<table>/<shard>-<random>-<SHA-256>.parquet`, and `texts/...`.

A name is new each time that a part is written, and says what is in it: so a part that no line names is a leftover, and no
writer meets another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any

import pyarrow as pa

from ..storage.durable import sync_all, write_atomic
from ..storage.file_access import system_errors
from ..storage.places import Place
from .files import parquet_bytes

_THREADS = 16


def write_parts(folder: Place, shard: str, stored: Mapping[str, pa.Table], files: list[Place]) -> dict[str, Any]:
    """Write stored tables as the parts of a shard, durably, and add them to `files`; returns what its line says: the SHA-256 of
    each part by its path in the folder of the run, and the digest of each snapshot by its id. Tables without rows have no part.
    """
    filled = {name: table for name, table in stored.items() if table.num_rows}
    largest_first = sorted(filled, key=lambda name: filled[name].nbytes, reverse=True)
    with ThreadPoolExecutor(_THREADS) as pool:
        written = list(pool.map(lambda name: _write(folder, shard, name, filled[name], files), largest_first))
    sync_all([folder / path for path, _ in written], folder)
    snapshots = filled["snapshots"]
    return {
        "shard": shard,
        "parts": dict(written),
        "snapshots": dict(
            zip(*(snapshots[name].to_pylist() for name in ("snapshot_id", "snapshot_digest")), strict=True)
        ),
    }


def write_texts(folder: Place, shard: str, texts: pa.Table, files: list[Place]) -> tuple[str, str]:
    """Write the texts of a shard without some, durably, and add them to `files`; returns path and SHA-256 of the part."""
    path, sha256 = _write(folder, shard, "texts", texts, files)
    sync_all([folder / path], folder)
    return path, sha256


def _write(folder: Place, shard: str, name: str, table: pa.Table, files: list[Place]) -> tuple[str, str]:
    data = parquet_bytes(table)
    sha256 = hashlib.sha256(data).hexdigest()
    path = f"{'texts' if name == 'texts' else f'tables/{name}'}/{shard}-{token_hex(4)}-{sha256[:32]}.parquet"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    files.append(folder / path)
    with system_errors(folder / path):
        write_atomic(folder / path, data, sync=False)
    return path, sha256


def is_named_for(path: str, sha256: str | None) -> bool:
    """Whether the name of a part says that it has this content."""
    return sha256 is not None and path.endswith(f"-{sha256[:32]}.parquet")


def table_of(path: str) -> str:
    """The stored table that a part belongs to, by its path in the folder of the run."""
    return path.split("/")[-2]


def shard_name(shard: int) -> str:
    """The name of a shard in the order of shards."""
    return f"{shard:05d}"
