"""Around everything that is written to a corpus: its one lock, and what a disk says that takes no more.

Gives: `locked` and `taken`, contexts around a writer's steps.

What one would otherwise get wrong: a writer holds the lock for as long as it writes, not while its sources are read. So who
finds it held waits: what others append takes milliseconds, and an import that gave up would have read everything for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..locks import held
from ..places import Place
from .manifest import LOCK

__all__ = ["WAIT_SECONDS", "locked", "taken"]

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
        raise StoreError(f"Expected the disk to take it, got {error.strerror} - at {path}", hint=hint) from error
