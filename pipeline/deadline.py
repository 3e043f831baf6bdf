"""The deadline of the work of one request: long work looks at it between its steps, and ends there.

A thread cannot be ended from outside. A server that has answered that the time is up would otherwise go on with the work.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
_ENDS: ContextVar[float] = ContextVar("ends", default=math.inf)


class DeadlineError(BaseException):
    """The time is up. Like an interrupt it is no Exception: nothing may take it for the failure of one step and go on."""


def within(seconds: float, work: Callable[[], T]) -> Callable[[], T]:
    """The work with a deadline that is counted from now, also while it waits for a thread.

    Raises:
        TimeoutError: the time is up.
    """
    ends = time.monotonic() + seconds

    def bounded() -> T:
        token = _ENDS.set(ends)
        try:
            expect_time()
            return work()
        except DeadlineError as error:
            raise TimeoutError from error
        finally:
            _ENDS.reset(token)

    return bounded


def expect_time() -> None:
    """Raises DeadlineError once the deadline of this thread's work has passed."""
    if time.monotonic() > _ENDS.get():
        raise DeadlineError


def deadline() -> float:
    """The deadline of this thread's work, on the clock `time.monotonic`; infinite if there is none."""
    return _ENDS.get()


def seconds_left() -> float | None:
    """The seconds until the deadline; None if there is none."""
    return None if (ends := deadline()) == math.inf else max(ends - time.monotonic(), 0.0)
