"""Writing to a corpus: its one lock, and the errors of a disk that cannot be written to.

Gives: `locked` and `taken`, contexts around a writer's steps; `expect_writable`, which asks beforehand.

Note: a writer holds the lock while it writes, not while its sources are read. So a second writer waits: appends take
milliseconds, and an import that gave up would have read everything for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..storage.locks import held
from ..storage.places import ObjectPlace, Place
from .manifest import LOCK

__all__ = ["CACHE", "WAIT_SECONDS", "expect_writable", "locked", "taken"]

CACHE = "cache"
"""The folder of what was read before, see `sources/chunk_cache.py`."""
WAIT_SECONDS = 10.0
"""How long a writer waits for others."""


@contextmanager
def locked(path: Place) -> Iterator[None]:
    """Hold the lock of the corpus at `path`.

    Raises:
        BusyError: other writers held it for `WAIT_SECONDS`.
    """
    busy = f"Expected no other writer, got a held lock - at {path}"
    with held(path / LOCK, WAIT_SECONDS, busy, "wait for the other writer to finish."):
        yield


def expect_writable(path: Place) -> None:
    """Check that this process may write to the corpus at `path`, before sources are read.

    If there is no corpus yet, check the folder that it would be created in. Leaves nothing there.

    Raises:
        StoreError: it may not.
    """
    if isinstance(path, ObjectPlace):
        return  # reads report errors of the store itself, and no check is cheaper than a put
    with taken(path, "use another folder or fix the permissions; nothing was read."):
        folder = next(each for each in (path, *path.parents) if each.exists())
        TemporaryFile(dir=folder).close()
        if (path / LOCK).exists():
            (path / LOCK).open("r+b").close()


@contextmanager
def taken(path: Place, hint: str) -> Iterator[None]:
    """Raise errors of the disk as a StoreError with this hint."""
    try:
        yield
    except ScopedRetrievalError:
        raise
    except OSError as error:
        if error.errno is None:
            raise
        raise StoreError(f"{error.strerror}: {path}", hint=hint) from error
