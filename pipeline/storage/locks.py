"""One writer at a time: a file lock in a folder, a lease on an object store.

Gives: `held`, the context of a lock at a place; `confirm`, which checks before a decisive write that it is still held;
`hold`, a lock of a folder that lasts until it is released or its process ends.

A lease is a numbered object next to the place, `<place>.lease/000001`: the creator of the next number holds the lock,
and a store creates an object only once. It names its owner and expiry time, and is renewed while it is held; the number
of a released lease stays, so that no number is reused.

Note: the holder of a lease may be suspended for longer than the lease lasts, and resume when another process holds it.
So every publication calls `confirm` immediately before. The clocks of all writing machines must agree to within `TTL -
RENEWED`, and a store that overwrites an existing object on `create` is refused.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from filelock import FileLock, Timeout

from ...nodes.errors import BusyError, StoreError
from .file_access import file_mode_in, make_folder
from .places import ObjectPlace, Place

__all__ = ["Hold", "Lease", "confirm", "expect_create", "held", "hold"]

TTL = 60.0
"""Seconds that a lease lasts unless renewed: a writer that died blocks others that long."""
RENEWED = 15.0
"""Seconds between renewals."""
_MAY_BE_DEAD = f"its writer may have crashed: its lease then expires within {TTL:.0f} seconds; retry after that"
"""The hint about a lease that another process holds."""
_ASKED_AGAIN = 0.2
"""Seconds between polls of a lease that another process holds."""

Clock = Callable[[], float]


@contextmanager
def held(place: Place, timeout: float, busy: str, hint: str = "") -> Iterator[None]:
    """Hold the lock at a place; wait at most `timeout` seconds for it, indefinitely if negative.

    Raises:
        BusyError: another process holds it for longer; `busy` and `hint` are its message.
        StoreError: the store does not support leases.
    """
    if not isinstance(place, ObjectPlace):
        lock = FileLock(place, timeout=timeout, mode=file_mode_in(place.parent))
        try:
            lock.acquire()
        except Timeout as error:
            raise BusyError(busy, hint=hint) from error
        try:
            yield
        finally:
            lock.release()
        return
    lease = Lease(place.with_name(f"{place.name}.lease"))
    if not lease.acquire(timeout):
        raise BusyError(busy, hint=f"{hint.rstrip('.')}; {_MAY_BE_DEAD}" if hint else _MAY_BE_DEAD)
    before = _held.get()
    _held.set({**before, str(place): lease})
    try:
        with _renewed(lease):
            yield
    finally:
        _held.set(before)
        with suppress(OSError):  # it will expire
            lease.release()


class Hold(FileLock):
    """A lock of a folder that any thread may release."""


def hold(place: Place) -> Hold | None:
    """Hold the lock at a place until `release`, or for as long as this process lives.

    None if another process holds it, and on an object store, whose leases would need constant renewal.
    """
    if isinstance(place, ObjectPlace):
        return None
    make_folder(place.parent)
    lock = Hold(place, timeout=0, thread_local=False, mode=file_mode_in(place.parent))
    with suppress(Timeout):
        lock.acquire()
        return lock
    return None


def confirm(place: Place) -> None:
    """Check that the lock at a place is still held; a file lock is held as long as its process lives.

    Raises:
        BusyError: the lease expired, and another thread or process may be writing by now; or this thread acquired none.
            Nothing more may be published.
    """
    if not isinstance(place, ObjectPlace):
        return
    lease = _held.get().get(str(place))
    if lease is None or not lease.confirmed():
        hint = "this process was suspended for longer than its lease; run it again."
        raise BusyError(f"Lost the lock to another writer - at {place}", hint=hint)


_held: ContextVar[Mapping[str, Lease]] = ContextVar("_held", default=MappingProxyType({}))
"""The leases of this thread by place: another thread of the process may acquire an expired one."""


@dataclass
class Lease:
    """A lock on an object store. `clock` is the time of day in seconds, the same on all machines."""

    place: ObjectPlace
    clock: Clock = time.time
    ttl: float = TTL
    owner: str = field(default_factory=lambda: f"{platform.node()}:{os.getpid()}:{uuid.uuid4().hex}")
    number: int = 0
    expires: float = 0.0

    def acquire(self, timeout: float = 0.0) -> bool:
        """Acquire the lock; False if another process holds it for longer than `timeout` seconds."""
        expect_create(self.place)
        deadline = time.monotonic() + timeout
        while True:
            newest = self._newest()
            if newest and self._live(newest):
                if timeout >= 0 and time.monotonic() >= deadline:
                    return False
                time.sleep(_ASKED_AGAIN)
                continue
            self.number = newest + 1
            self.expires = self.clock() + self.ttl
            try:
                self._object(self.number).create(self._lease_bytes(self.expires))
            except FileExistsError:
                if self._read(self.number).get("owner") != self.owner:
                    continue
            # A process that listed numbers before older ones were removed may have created one of those again.
            if self._newest() == self.number:
                break
            self._object(self.number).unlink(missing_ok=True)
        for old in self._numbers():
            if old < self.number:
                self._object(old).unlink(missing_ok=True)
        return True

    def renew(self) -> None:
        """Extend the lease; an expired one is left alone.

        It takes effect once stored: other processes decide by the stored expiry when they may write.
        """
        if self.confirmed():
            expires = self.clock() + self.ttl
            self._object(self.number).write_bytes(self._lease_bytes(expires))
            self.expires = expires

    def confirmed(self) -> bool:
        """Whether the lease has not expired and no other process took the next number."""
        return self.clock() < self.expires and self._newest() == self.number

    def release(self) -> None:
        """Release the lock; does nothing if another process acquired it in the meantime."""
        if self._newest() == self.number:
            self.expires = 0.0
            self._object(self.number).write_bytes(self._lease_bytes(self.expires))

    def _lease_bytes(self, expires: float) -> bytes:
        return json.dumps({"owner": self.owner, "expires": expires}).encode()

    def _object(self, number: int) -> ObjectPlace:
        return self.place / f"{number:06d}"

    def _numbers(self) -> list[int]:
        return sorted(int(entry.name) for entry in self.place.iterdir() if entry.name.isdecimal())

    def _newest(self) -> int:
        return max(self._numbers(), default=0)

    def _read(self, number: int) -> dict[str, Any]:
        try:
            found = json.loads(self._object(number).read_bytes())
            return found if isinstance(found, dict) else {}
        except (FileNotFoundError, ValueError):
            return {}

    def _live(self, number: int) -> bool:
        """Whether a lease is held: it has neither expired nor been released."""
        return float(self._read(number).get("expires", 0)) > self.clock()


@contextmanager
def _renewed(lease: Lease) -> Iterator[None]:
    """Renew a lease in a thread while the context is open."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(RENEWED):
            with suppress(OSError):  # the next one may succeed; `confirm` checks
                lease.renew()

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def expect_create(place: ObjectPlace) -> None:
    """Refuse a store that creates an object twice: it cannot support locks.

    Raises:
        StoreError: it does.
    """
    if place.fs in _sound:
        return
    probe = place / f"probe-{uuid.uuid4().hex}"
    probe.create(b"1")
    try:
        probe.create(b"2")
    except FileExistsError:
        _sound.append(place.fs)
        return
    finally:
        probe.unlink(missing_ok=True)
    raise StoreError(
        f"Expected a store that creates an object once, got one that overwrites it - at {place}",
        hint="use one with conditional writes (S3 `If-None-Match`), or a folder.",
    )


_sound: list[Any] = []
"""Stores that this process has found to create an object only once."""
