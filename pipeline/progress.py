"""Counts and durations as text, and progress lines for when no bar is shown."""

from __future__ import annotations

import time
from collections.abc import Callable

LONG_SECONDS = 60
"""Work that takes this long is announced with an estimate."""
Say = Callable[[str], None]
"""Receives a line of progress."""


def quiet(line: str) -> None:
    """Discard the line."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things: `1 shard`, `3,000 requests`, `2 queries`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def taking(seconds: float) -> str:
    """A duration for people: `40 seconds`, `12 minutes`, `3.5 hours`."""
    if seconds < 90:
        return counted(max(round(seconds), 1), "second")
    return f"{seconds / 60:.0f} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"


class StepReporter:
    """Reports progress at each tenth of a total but the last, and at most once per `least` items, with an estimate of
    the time left if it is `LONG_SECONDS` or more.

    `line` has placeholders for both numbers: `read {:,} of {:,} changes`.
    """

    def __init__(self, say: Say, line: str, *, least: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._line, self._least, self._clock = say, line, least, clock
        self._last_step, self._began = 0, clock()

    def __call__(self, done: int, total: int) -> None:
        step = max(self._least, -(-total // 10))
        if done == 0:
            self._last_step, self._began = 0, self._clock()
        elif done // step > self._last_step and done < total:
            self._last_step = done // step
            left = (self._clock() - self._began) / done * (total - done)
            more = f"; about {taking(left)} left" if left >= LONG_SECONDS else ""
            self._say(self._line.format(done, total) + more)
