"""Atomic, durable files: written to a temporary name, synced, renamed, and the folder synced.

Everything that must not be written partially goes through here: packs and manifests of a corpus, parts and receipts of
runs, grants. Temporary names start with `TEMPORARY`; leftovers under such names are never read.

Note: a rename is not durable before the containing folder is synced, whose own name is in its parent. Anything that
refers to a file is written after the whole chain of folders was synced. A failed read does not prove absence: code that
removes or replaces something because of a read uses `read_whole`, `entries` and `exists`, which
distinguish absent or damaged files from those that are temporarily unreadable. On an object store, a single put is
atomic and durable, and there is nothing to sync.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from ...nodes.errors import ScopedRetrievalError, StoreError
from .places import ObjectPlace, Place

TEMPORARY = ".tmp-"


def write_atomic(path: Place, data: bytes | memoryview, *, sync: bool = True, private: bool = False) -> None:
    """Replace a file atomically; a reader sees either the old or the new bytes.

    Args:
        sync: bytes and name are on disk when this returns; else call `sync_all` later.
        private: only the owner may read a new file, whatever the umask gives others; an existing file keeps its mode.
            On an object store, all users who may read the prefix can read it.
    """
    if isinstance(path, ObjectPlace):
        path.write_bytes(data)
        return
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if private and exists(path):
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        sync_path(path.parent)


def read_whole(path: Place) -> bytes:
    """The bytes of a stored file.

    Raises:
        FileNotFoundError: it does not exist.
        StoreError: it cannot be read at present.
    """
    with _read(path):
        return path.read_bytes()


def entries(folder: Place) -> list[Place]:
    """The entries of a folder, sorted; empty if it does not exist. A glob would treat an unlistable folder as empty.

    Raises:
        StoreError: it cannot be listed at present.
    """
    try:
        with _read(folder):
            return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def exists(path: Place) -> bool:
    """Whether a path exists. From Python 3.14 on, `Path.exists` returns False for paths that it cannot access.

    Raises:
        StoreError: it cannot be determined at present.
    """
    if isinstance(path, ObjectPlace):
        return path.exists()
    try:
        with _read(path):
            path.stat()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _read(path: Place) -> Iterator[None]:
    """Turns system errors of a read into `StoreError`; only `FileNotFoundError` means that the path does not exist."""
    try:
        yield
    except (ScopedRetrievalError, FileNotFoundError):
        raise
    except NotADirectoryError as error:  # its parent is a file
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    except OSError as error:
        got = os.strerror(error.errno) if error.errno is not None else type(error).__name__
        hint = "try again; if the error persists, check the file's permissions."
        raise StoreError(f"{got}: {path}", hint=hint) from error


def file_sha256(path: Place) -> str | None:
    """SHA-256 of a file's bytes, None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def make_folders(path: Place, root: Place | None = None) -> None:
    """Make a folder and its missing parents, with their names synced to disk up to and including `root`.

    Without `root`, syncs up to the first existing folder, and a new `path` is a new root, which only its owner may open:
    what is below has the access that the umask gives, once the owner opens it to others.
    """
    if isinstance(path, ObjectPlace) or isinstance(root, ObjectPlace):
        return
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    path.mkdir(mode=0o777 if root else 0o700, parents=True, exist_ok=True)
    if root is not None:
        sync_up(path.parent, root)
    elif missing:
        sync_up(path.parent, missing[-1].parent)


def sync_all(paths: Iterable[Place], root: Place) -> None:
    """Sync files, and every folder from theirs up to `root`. Threads let the file system commit many at once."""
    if isinstance(root, ObjectPlace):
        return
    files = [path for path in paths if isinstance(path, Path)]
    folders = sorted({folder for path in {file.parent for file in files} for folder in _up(path, root)})
    with ThreadPoolExecutor(max_workers=16) as pool:
        list(pool.map(sync_path, [*files, *folders]))


def sync_up(folder: Path, root: Path) -> None:
    """Sync the names in a folder and its parents up to `root`."""
    for each in _up(folder, root):
        sync_path(each)


def sync_path(path: Place) -> None:
    """Sync a file, or the names in a folder, if the system supports it."""
    if isinstance(path, ObjectPlace):
        return
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_tree(path: Place) -> None:
    """Remove a folder, if there is one, and everything in it."""
    with suppress(FileNotFoundError):
        path.remove_below() if isinstance(path, ObjectPlace) else shutil.rmtree(path)


def copy_tree(path: Place, folder: Path) -> None:
    """Copy a folder, or everything below a prefix, to a new local folder."""
    if not isinstance(path, ObjectPlace):
        shutil.copytree(path, folder)
        return
    for name in path.files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((path / name).read_bytes())


def remove_leftovers(parent: Place) -> None:
    """Remove temporary files of crashed writers; the caller holds the lock. A put leaves nothing behind."""
    if isinstance(parent, ObjectPlace):
        return
    for path in parent.glob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)


def _up(folder: Path, root: Path) -> list[Path]:
    """The folder and its parents up to `root`; only the folder if it is not below `root`."""
    above = [folder, *folder.parents]
    return above[: above.index(root) + 1] if root in above else [folder]
