"""How often one principal may ask: a bucket of requests each, refilled as time passes.

Gives: `Rate`. Requests with a credential that nobody has share one bucket, so that guessing tokens slows nobody else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

__all__ = ["Rate"]


class Rate:
    """At most `per_minute` requests at once and, on average, a minute. For one event loop."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = per_minute
        self._clock = clock
        self._left: dict[str | None, tuple[float, float]] = {}

    def seconds_to_wait(self, principal: str | None) -> int:
        """0 for a request that may go on, which is counted; else after how many seconds the next one may."""
        now = self._clock()
        left, at = self._left.get(principal, (float(self._most), now))
        left = min(self._most, left + (now - at) * self._most / 60)
        if left >= 1:
            self._left[principal] = left - 1, now
            return 0
        self._left[principal] = left, now
        return math.ceil((1 - left) * 60 / self._most)
