"""What others may read or write of a folder, the mark that keeps it out of sources, errors of the disk, and locks."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from filelock import FileLock

from ...nodes.errors import ScopedRetrievalError, StoreError
from .places import ObjectPlace, Place


def opened_to_others(folder: Path) -> list[str]:
    """What its group or others may do with the files in a folder: read, write, both or neither."""
    mode = folder.stat().st_mode
    return [verb for verb, bits in (("read", 0o055), ("write", 0o022)) if mode & bits]


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
        mark.write_text("# Written by scoped-retrieval: nothing below is a source.\n*\n")


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
    return nullcontext() if isinstance(place, ObjectPlace) else FileLock(place)
