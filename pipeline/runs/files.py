"""Writing files so that a crash at any point leaves nothing half-visible.

Every byte of a run goes through here: a temporary file beside the target, then one rename. A name that exists is
whole; a leftover starts with a dot and means nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from ...nodes.errors import BusyError, StoreError

TEMPORARY = ".tmp-"


def write_bytes(path: Path, data: bytes | memoryview, *, sync: bool) -> str:
    """Write a file whole or not at all; returns its SHA-256 in hex.

    With `sync`, its bytes are on disk before it has its name, and its name is when this returns.
    """
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
        if sync:
            sync_path(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"Expected to write a file, got {error.strerror or error} - at {path.name}") from error
    return hashlib.sha256(data).hexdigest()


def write_json(path: Path, value: Any, *, sync: bool) -> str:
    """Write JSON with sorted keys, one indent, a final newline; returns its SHA-256."""
    return write_bytes(
        path, (json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode(), sync=sync
    )


def write_parquet(path: Path, table: pa.Table) -> str:
    """Write a table as Parquet; returns the file's SHA-256. Its bytes are synced when the run is finished.

    Words, ids and hashes repeat and are stored by dictionary; numbers mostly do not.
    """
    sink = pa.BufferOutputStream()
    words: Any = [path for field in table.schema for path in _words(field)]
    pq.write_table(table, sink, compression="zstd", compression_level=1, write_statistics=False, use_dictionary=words)
    return write_bytes(path, memoryview(sink.getvalue()), sync=False)


def _words(field: pa.Field) -> list[str]:
    """The Parquet paths of the strings in a column."""
    if pa.types.is_list(field.type):
        return [f"{field.name}.list.{path}" for path in _words(field.type.value_field.with_name("element"))]
    return [field.name] if pa.types.is_string(field.type) else []


def read_json(path: Path) -> Any:
    """A JSON file of this store.

    Raises:
        StoreError: the file is missing or no JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise StoreError(f"Expected a file, got none - at {path.parent.name}/{path.name}") from None
    except (OSError, ValueError):
        raise StoreError(f"Expected JSON, got text that is not - at {path.parent.name}/{path.name}") from None


def read_parquet(path: Path, schema: pa.Schema) -> pa.Table:
    """A Parquet part with the given schema.

    Raises:
        StoreError: the file is missing, damaged or of another schema.
    """
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(use_threads=False)
    except FileNotFoundError:
        raise StoreError(f"Expected a part, got none - at {path.parent.name}/{path.name}") from None
    except (pa.ArrowException, OSError):
        raise StoreError(f"Expected a whole part, got a damaged one - at {path.parent.name}/{path.name}") from None
    if table.schema.names != schema.names:
        raise StoreError(f"Expected columns {', '.join(schema.names)}, got others - at {path.name}")
    return table.cast(schema)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_all(paths: Iterable[Path]) -> None:
    """Bring files and the folders that list them to disk. Threads let the file system commit many at once."""
    files = list(paths)
    folders = sorted({path.parent for path in files})
    with ThreadPoolExecutor(max_workers=16) as pool:
        list(pool.map(sync_path, [*files, *folders]))


def sync_path(path: Path) -> None:
    """Bring a file, or the names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def files_below(folder: Path) -> Iterator[str]:
    """Paths of all files below a folder, relative, `/` separated, sorted."""
    found = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    yield from sorted(path.relative_to(folder).as_posix() for path in found)


@contextmanager
def locked(path: Path, what: str, timeout: float = 10.0) -> Iterator[None]:
    """Hold a lock file.

    Raises:
        BusyError: another process holds it for longer than `timeout` seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, timeout=timeout)
    try:
        lock.acquire()
    except Timeout:
        raise BusyError(f"Expected to write {what}, got a lock that another process holds - at {path.name}") from None
    try:
        yield
    finally:
        lock.release()
