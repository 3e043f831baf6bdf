"""Rate limit: how many requests a principal may make per minute.

Gives: `Rate`, a token bucket per principal. Requests with an unknown credential share one bucket, so that somebody who
guesses tokens slows down nobody else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

__all__ = ["Rate"]


class Rate:
    """Allows bursts of `per_minute` requests, and `per_minute` requests per minute on average. For one event loop."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = per_minute
        self._clock = clock
        self._left: dict[str | None, tuple[float, float]] = {}

    def seconds_to_wait(self, principal: str | None) -> int:
        """Counts a request that is allowed and returns 0; for any other, returns the seconds until the next is allowed."""
        now = self._clock()
        left, at = self._left.get(principal, (float(self._most), now))
        left = min(self._most, left + (now - at) * self._most / 60)
        if left >= 1:
            self._left[principal] = left - 1, now
            return 0
        self._left[principal] = left, now
        return math.ceil((1 - left) * 60 / self._most)
