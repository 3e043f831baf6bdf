"""Files and folders that a loss of power leaves whole or absent: written aside, synced, renamed, the folder synced.

Everything that must not be half there goes through here: packs and manifests of a corpus, parts and receipts of runs,
grants, captures. Temporary names start with `TEMPORARY`; what a crash left under one is never read.

What one would otherwise get wrong: a rename is not on disk before the folder that holds the name is synced, and that
folder's own name lies in the one above. Whatever names a thing is written after the whole chain of folders was synced.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

TEMPORARY = ".tmp-"


def write_atomic(path: Path, data: bytes | memoryview, *, sync: bool = True, private: bool = False) -> None:
    """Replace a file; a reader sees the old bytes or the new ones.

    Args:
        sync: bytes and name are on disk when this returns; else `sync_all` brings them there later.
        private: a new file is its owner's alone, and one that stands keeps its mode.
    """
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if private and path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        sync_path(path.parent)


def write_table(path: Path, table: pa.Table) -> dict[str, Any]:
    """Write a new Arrow IPC file of one record batch and sync it; the caller publishes its folder.

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
    """Give a finished folder its final name, durably; its files are synced already, see `sync_all`.

    A folder that stands under that name stays: names say the content, or are given once.
    """
    sync_path(folder)
    if not path.exists():
        folder.rename(path)
    sync_path(path.parent)


def make_folders(path: Path, root: Path | None = None, *, private: bool = False) -> None:
    """Make a folder and those above it that are missing, their names on disk, `root` and what it lists included.

    Without `root`, up to the first folder that was there. With `private`, the new ones are their owner's alone.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700 if private else 0o777, exist_ok=True)
    if root is not None:
        sync_up(path.parent, root)
    elif missing:
        sync_up(path.parent, missing[-1].parent)


def sync_all(paths: Iterable[Path], root: Path) -> None:
    """Bring files to disk, and every folder from theirs up to `root`. Threads let the file system commit many at once."""
    files = list(paths)
    folders = sorted({folder for path in {file.parent for file in files} for folder in _up(path, root)})
    with ThreadPoolExecutor(max_workers=16) as pool:
        list(pool.map(sync_path, [*files, *folders]))


def sync_up(folder: Path, root: Path) -> None:
    """Bring the names in a folder and in those above it to disk, `root` the last."""
    for each in _up(folder, root):
        sync_path(each)


def sync_path(path: Path) -> None:
    """Bring a file, or the names in a folder, to disk, where the system can."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_leftovers(parent: Path) -> None:
    """Remove what crashed writers left under temporary names; the caller holds the lock."""
    for path in parent.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _up(folder: Path, root: Path) -> list[Path]:
    """The folder and those above it, `root` the last; the folder alone if it does not lie below."""
    above = [folder, *folder.parents]
    return above[: above.index(root) + 1] if root in above else [folder]
