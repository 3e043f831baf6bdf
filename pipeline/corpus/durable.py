"""Files that are whole or absent: written under a temporary name, synced, then renamed.

Temporary names start with `TEMPORARY`; whatever a crash left under one is never read and goes with the next `gc`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

TEMPORARY = ".tmp-"


def write_atomic(path: Path, data: bytes) -> None:
    """Replace a file; a reader sees the old bytes or the new ones."""
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_table(path: Path, table: pa.Table) -> dict[str, Any]:
    """Write a new Arrow IPC file of one record batch and sync it; the caller renames its folder.

    Gives the file's `bytes` and `sha256`, counted on the way: what lies on the disk later is held against them.
    """
    with path.open("wb") as file:
        hashed = _Hashed(file)
        with pa.ipc.new_file(pa.PythonFile(hashed, "w"), table.schema) as writer:
            for batch in table.combine_chunks().to_batches():
                writer.write_batch(batch)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": hashed.tell(), "sha256": hashed.sha256.hexdigest()}


class _Hashed:
    """A file that is written from front to back, and the digest of what went into it."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._bytes, self.sha256 = file, 0, hashlib.sha256()

    def write(self, data: bytes | pa.Buffer) -> int:
        view = memoryview(data)
        self.sha256.update(view)
        self._file.write(view)
        self._bytes += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self._bytes

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """The file's owner closes it."""


def file_sha256(path: Path) -> str | None:
    """SHA-256 of a file's bytes, None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


@contextmanager
def staging_folder(parent: Path) -> Iterator[Path]:
    """A temporary folder beside its future name; it is gone afterwards unless `publish_folder` renamed it."""
    folder = parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish_folder(folder: Path, path: Path) -> None:
    """Give a finished folder its final name. Names say the content: one that is there already stays."""
    sync_folder(folder)
    if not path.exists():
        folder.rename(path)
        sync_folder(path.parent)


def remove_leftovers(parent: Path) -> None:
    """Remove what crashed writers left under temporary names; the caller holds the lock."""
    for path in parent.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
