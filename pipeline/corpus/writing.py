"""Around everything that is written to a corpus: its one lock, and what a disk says that takes no more.

Gives: `locked` and `taken`, contexts around a writer's steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..locks import held
from ..places import Place
from .manifest import LOCK

__all__ = ["locked", "taken"]


@contextmanager
def locked(path: Place) -> Iterator[None]:
    """Hold the lock of the corpus at `path`."""
    busy = f"Expected no other writer, got a held lock - at {path}"
    with held(path / LOCK, 0, busy, "wait for the other writer to finish."):
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
