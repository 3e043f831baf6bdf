"""Permissions of written files: only the owner may read them, unless their folder is open to others; and locks.

A corpus and a folder of runs are created with mode 0700, regardless of the umask. Every file and folder below inherits
the access of its folder, so `chmod g+rx` on a corpus opens everything written there from then on.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock

from ...nodes.errors import ScopedRetrievalError, StoreError
from .places import ObjectPlace, Place


def file_mode_in(folder: Path) -> int:
    """The mode of a new file in a folder: 0600, plus the access that the folder gives to its group and others."""
    return stat.S_IMODE(folder.stat().st_mode) & 0o066 | 0o600


def open_new(path: Path, *, private: bool = False, append: bool = False) -> BinaryIO:
    """Open a file to write or append; a new one inherits the access of its folder, or with `private` is for its owner
    only.
    """
    new = not path.exists()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_TRUNC), 0o600)
    if new and not private and (mode := file_mode_in(path.parent)) != 0o600:
        os.fchmod(handle, mode)
    return os.fdopen(handle, "ab" if append else "wb")


def make_folder(path: Place) -> None:
    """Make a folder and its missing parents, each with the access of its own parent."""
    if isinstance(path, ObjectPlace) or path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    if (mode := stat.S_IMODE(path.parent.stat().st_mode) & 0o077) != 0:
        path.chmod(mode | 0o700)


def opened_below(folder: Path) -> tuple[list[str], list[str]]:
    """The files below a folder that its group or others can read, and those that they can write.

    A file counts only if every folder from `folder` down to it is accessible to them.
    """
    readable, writable = list[str](), list[str]()
    for at, folders, files in os.walk(folder):
        mode = Path(at).stat().st_mode
        if not mode & 0o011:
            folders.clear()
            continue
        for name in sorted(files):
            file = Path(at, name).lstat().st_mode
            if file & 0o044:
                readable.append(str(Path(at, name).relative_to(folder)))
            if file & 0o022:
                writable.append(str(Path(at, name).relative_to(folder)))
    return readable, writable


def others_may_write(file: Path) -> str:
    """The path by which the group or others could replace a file: the file or its folder; empty if there is none."""
    for path in (file, file.parent):
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o022 and not path.stat().st_mode & stat.S_ISVTX:
            return str(path)
    return ""


def keep_out(folder: Place) -> None:
    """Write a `.gitignore` that ignores everything in a folder of this tool; the readers honor it, too."""
    if isinstance(folder, ObjectPlace):
        return
    mark = folder / ".gitignore"
    if not mark.exists():
        with open_new(mark) as file:
            file.write(b"# Written by scoped-retrieval: nothing below is a source.\n*\n")


@contextmanager
def system_errors(path: Place, hint: str = "") -> Iterator[None]:
    """Raise errors of the disk as a StoreError with this hint."""
    try:
        yield
    except ScopedRetrievalError:
        raise
    except OSError as error:
        if error.errno is None:
            raise
        raise StoreError(f"{error.strerror}: {path}", hint=hint) from error


def held(place: Place) -> AbstractContextManager[object]:
    """The lock at a place, to be held by `with`, which waits for it; on an object store, nothing is held."""
    return nullcontext() if isinstance(place, ObjectPlace) else FileLock(place, mode=file_mode_in(place.parent))
