"""Files and folders that a loss of power leaves whole or absent: written aside, synced, renamed, the folder synced.

Everything that must not be half there goes through here: packs and manifests of a corpus, parts and receipts of runs,
grants, captures. Temporary names start with `TEMPORARY`; what a crash left under one is never read.

Note: a rename is not on disk before the folder that holds the name is synced, and that
folder's own name lies in the one above. Whatever names a thing is written after the whole chain of folders was synced.
And a read that fails says nothing of what is there: who removes or replaces something for what it reads takes
`read_whole`, `read_table`, `entries` and `stands`, which tell what is absent or damaged from what cannot be read now.
On an object store a put is all of that: there, what is staged is staged on this machine, and there is nothing to sync.
Who may read what is written: see `file_access`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError, StoreError
from .file_access import make_folder, open_new
from .places import ObjectPlace, Place

TEMPORARY = ".tmp-"
TICK_NS = 2_000_000_000
"""The coarsest clock of a file system in use: FAT writes even seconds. A file that is younger may change and keep its times."""


def write_atomic(path: Place, data: bytes | memoryview, *, sync: bool = True, private: bool = False) -> None:
    """Replace a file; a reader sees the old bytes or the new ones.

    Args:
        sync: bytes and name are on disk when this returns; else `sync_all` brings them there later.
        private: only the owner may read a new file, whatever its folder's access; an existing file keeps its mode. On
            an object store, it is readable for all users who may read the prefix.
    """
    if isinstance(path, ObjectPlace):
        path.write_bytes(data)
        return
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        with open_new(temporary, private=private) as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if private and stands(path):
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        sync_path(path.parent)


def write_table(
    path: Path, table: pa.Table, *, sync: bool = True, observed: Callable[[memoryview], None] | None = None
) -> dict[str, Any]:
    """Write a new Arrow IPC file of one record batch and sync it, or leave that to `sync_all`; the caller publishes its folder.

    Gives the file's `bytes` and `sha256`, counted on the way: what lies on the disk later is compared with them.
    `observed` gets every piece that is written, in order.
    """
    with open_new(path) as file:
        hashed = _Hashed(file, observed)
        with pa.ipc.new_file(pa.PythonFile(hashed, "w"), table.schema) as writer:
            for batch in table.combine_chunks().to_batches():
                writer.write_batch(batch)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    return {"bytes": hashed.tell(), "sha256": hashed.sha256.hexdigest()}


class _Hashed:
    """A file that is written from front to back, and the digest of what went into it."""

    closed = False

    def __init__(self, file: BinaryIO, observed: Callable[[memoryview], None] | None = None) -> None:
        self._file, self._bytes, self.sha256, self._observed = file, 0, hashlib.sha256(), observed

    def write(self, data: bytes | pa.Buffer) -> int:
        view = memoryview(data)
        self.sha256.update(view)
        if self._observed is not None:
            self._observed(view)
        self._file.write(view)
        self._bytes += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self._bytes

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """The file's owner closes it."""


def store_table(path: Place, table: pa.Table) -> None:
    """Write a new Arrow IPC file, whole or not at all, durably."""
    if isinstance(path, ObjectPlace):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        path.write_bytes(memoryview(sink.getvalue()))
        return
    temporary = path.with_name(f"{TEMPORARY}{path.stem}")
    write_table(temporary, table)
    temporary.replace(path)
    sync_path(path.parent)


def read_whole(path: Place) -> bytes:
    """The bytes of a stored file.

    Raises:
        FileNotFoundError: there is none.
        StoreError: it cannot be read now.
    """
    with _read(path):
        return path.read_bytes()


def read_table(path: Place, sha256: str | None = None, hint: str = "") -> pa.Table:
    """A stored Arrow IPC file, mapped where it can be; with `sha256`, one that has it, or `hint` says what to do.

    Raises:
        FileNotFoundError: there is none.
        StoreError: it is damaged, or cannot be read now; the message says which.
    """
    with _read(path):
        try:
            with arrow_source(path) as source:
                data = source.read_buffer()
            if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
                raise StoreError(f"Expected SHA-256 {sha256}, got another - at {path}", hint=hint)
            return pa.ipc.open_file(data).read_all()
        except (pa.ArrowInvalid, OSError) as error:
            if isinstance(error, StoreError) or (isinstance(error, OSError) and error.errno is not None):
                raise  # of the store or the system; those of Arrow, about what it read, have no number
            raise StoreError(f"Expected an Arrow file, got a damaged one - at {path}") from error


def entries(folder: Place) -> list[Place]:
    """What lies in a folder, sorted; nothing where there is none. A glob takes a folder that it cannot list for an empty one.

    Raises:
        StoreError: it cannot be listed now.
    """
    try:
        with _read(folder):
            return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def names_in(folder: Place) -> list[str]:
    """The names of what lies in a folder, in no order; nothing where there is none.

    Raises:
        StoreError: it cannot be listed now.
    """
    if isinstance(folder, ObjectPlace):
        return [entry.name for entry in entries(folder)]
    try:
        with _read(folder):
            return os.listdir(folder)  # noqa: PTH208 (lists of runs make no path of each file)
    except FileNotFoundError:
        return []


def stands(path: Place) -> bool:
    """Whether something is there. From Python 3.14 on, `exists` denies what it cannot look at.

    Raises:
        StoreError: it cannot be determined now.
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
    """What the system says against a read, as an error that names it; `FileNotFoundError` alone says that nothing is there."""
    try:
        yield
    except (ScopedRetrievalError, FileNotFoundError):
        raise
    except NotADirectoryError as error:  # what should hold it is a file
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    except OSError as error:
        got = os.strerror(error.errno) if error.errno is not None else type(error).__name__
        hint = "try again; if the error persists, check the file's permissions."
        raise StoreError(f"{got}: {path}", hint=hint) from error


def arrow_source(path: Place) -> Any:
    """A stored file for Arrow to read: mapped, or read whole where it cannot be."""
    return pa.BufferReader(path.read_bytes()) if isinstance(path, ObjectPlace) else pa.memory_map(str(path))


def file_sha256(path: Place) -> str | None:
    """SHA-256 of a file's bytes, None if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


@contextmanager
def staging_folder(parent: Place, prefix: str = TEMPORARY) -> Iterator[Path]:
    """A temporary folder beside its future name; it is gone afterwards unless `publish_folder` renamed it."""
    if isinstance(parent, ObjectPlace):
        with tempfile.TemporaryDirectory(prefix=prefix) as temporary:
            yield Path(temporary)
        return
    folder = parent / f"{prefix}{uuid.uuid4().hex}"
    make_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish_folder(folder: Path, path: Place, *, last: str = "") -> None:
    """Give a finished folder its final name, durably; its files are synced already, see `sync_all`.

    A folder that is under that name stays: names say the content, or are given once. On an object store, its files
    are put one by one, `last` after all others: by it others know that the folder is whole.
    """
    if isinstance(path, ObjectPlace):
        names = [each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()]
        with ThreadPoolExecutor(max_workers=16) as pool:
            list(pool.map(lambda name: (path / name).upload(folder / name), (name for name in names if name != last)))
        if last:
            (path / last).upload(folder / last)
        return
    sync_path(folder)
    if not stands(path):
        folder.rename(path)
    sync_path(path.parent)


def make_folders(path: Place, root: Place | None = None, *, private: bool = False) -> None:
    """Make a folder and those above it that are missing, their names on disk, `root` and what it lists included.

    Without `root`, up to the first folder that was there, and `path` is a new root: it and the new ones above it are
    their owner's alone, and so is one that was made for it and is empty. With `private`, all new ones are.
    """
    if isinstance(path, ObjectPlace) or isinstance(root, ObjectPlace):
        return
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    for folder in reversed(missing):
        if root is None or private:
            folder.mkdir(mode=0o700, exist_ok=True)
        else:
            make_folder(folder)
    if root is None and not missing and not any(path.iterdir()):
        with suppress(PermissionError):  # another's folder: theirs to decide
            path.chmod(0o700)
    if root is not None:
        sync_up(path.parent, root)
    elif missing:
        sync_up(path.parent, missing[-1].parent)


def sync_all(paths: Iterable[Place], root: Place) -> None:
    """Bring files to disk, and every folder from theirs up to `root`. Threads let the file system commit many at once."""
    if isinstance(root, ObjectPlace):
        return
    files = [path for path in paths if isinstance(path, Path)]
    folders = sorted({folder for path in {file.parent for file in files} for folder in _up(path, root)})
    with ThreadPoolExecutor(max_workers=16) as pool:
        list(pool.map(sync_path, [*files, *folders]))


def sync_up(folder: Path, root: Path) -> None:
    """Bring the names in a folder and in those above it to disk, `root` the last."""
    for each in _up(folder, root):
        sync_path(each)


def sync_path(path: Place) -> None:
    """Bring a file, or the names in a folder, to disk, where the system can."""
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
    """Remove a folder and all that lies in it."""
    if isinstance(path, ObjectPlace):
        path.remove_below()
    else:
        shutil.rmtree(path)


def remove_published(folder: Place) -> None:
    """Remove a folder that `publish_folder` made: a crash leaves none of its name, which would pass for a whole one."""
    if isinstance(folder, ObjectPlace) or folder.name.startswith(TEMPORARY):
        remove_tree(folder)
        return
    aside = folder.with_name(f"{TEMPORARY}{folder.name}")
    if stands(aside):
        remove_tree(aside)
    remove_tree(folder.rename(aside))


def copy_tree(path: Place, folder: Path) -> None:
    """Copy a folder, or what lies below a prefix, to a new folder of this machine."""
    if not isinstance(path, ObjectPlace):
        shutil.copytree(path, folder)
        return
    for name in path.files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((path / name).read_bytes())


def remove_leftovers(parent: Place) -> None:
    """Remove what crashed writers left under temporary names; the caller holds the lock. A put leaves nothing."""
    if isinstance(parent, ObjectPlace):
        return
    for path in parent.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _up(folder: Path, root: Path) -> list[Path]:
    """The folder and those above it, `root` the last; the folder alone if it does not lie below."""
    above = [folder, *folder.parents]
    return above[: above.index(root) + 1] if root in above else [folder]
