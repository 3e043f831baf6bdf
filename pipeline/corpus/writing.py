"""Around everything that is written to a corpus: its one lock, and what a disk says that takes no more.

Gives: `locked` and `taken`, contexts around a writer's steps; `expect_writable`, which asks beforehand.

Note: a writer holds the lock for as long as it writes, not while its sources are read. So who
finds it held waits: what others append takes milliseconds, and an import that gave up would have read everything for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..storage.locks import held
from ..storage.places import ObjectPlace, Place
from .manifest import LOCK

__all__ = ["WAIT_SECONDS", "expect_writable", "locked", "taken"]

WAIT_SECONDS = 10.0
"""So long a writer waits for others."""


@contextmanager
def locked(path: Place) -> Iterator[None]:
    """Hold the lock of the corpus at `path`.

    Raises:
        BusyError: others held it for all of `WAIT_SECONDS`.
    """
    busy = f"Expected no other writer, got a held lock - at {path}"
    with held(path / LOCK, WAIT_SECONDS, busy, "wait for the other writer to finish."):
        yield


def expect_writable(path: Place) -> None:
    """Ask before much is read what would be said when it is written: may this process write to the corpus at `path`?

    Where there is none yet, to the folder that it would be made in. Nothing is left there.

    Raises:
        StoreError: it may not.
    """
    if isinstance(path, ObjectPlace):
        return  # a read reports errors of the store itself; there is no cheaper check than a put
    with taken(path, "use another folder or fix the permissions; nothing was read."):
        folder = next(each for each in (path, *path.parents) if each.exists())
        TemporaryFile(dir=folder).close()
        if (path / LOCK).exists():
            (path / LOCK).open("r+b").close()


@contextmanager
def taken(path: Place, hint: str) -> Iterator[None]:
    """What the disk says against being written to, as an error that says what to do."""
    try:
        yield
    except ScopedRetrievalError:
        raise
    except OSError as error:
        if error.errno is None:
            raise
        raise StoreError(f"{error.strerror}: {path}", hint=hint) from error
