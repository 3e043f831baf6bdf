"""One writer at a time in a folder: a file lock.

Note: on an object store nothing is held. What must have one writer there is created with `ObjectPlace.create`, which
fails if it exists, as the lines of a chain are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from ...nodes.errors import BusyError
from .file_access import file_mode_in
from .places import ObjectPlace, Place

__all__ = ["held"]


@contextmanager
def held(place: Place, timeout: float, busy: str, hint: str = "") -> Iterator[None]:
    """Hold the lock at a place; wait at most `timeout` seconds for it, indefinitely if negative.

    Raises:
        BusyError: another process holds it for longer; `busy` and `hint` are its message.
    """
    if isinstance(place, ObjectPlace):
        yield
        return
    lock = FileLock(place, timeout=timeout, mode=file_mode_in(place.parent))
    try:
        lock.acquire()
    except Timeout as error:
        raise BusyError(busy, hint=hint) from error
    try:
        yield
    finally:
        lock.release()
