"""Counts and durations as text, and progress lines for when no bar is shown."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Say", "StepReporter", "counted", "quiet", "taking"]

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
    """Reports progress at each tenth of a total but the last, and at most once per `least` items.

    `line` has placeholders for both numbers: `read {:,} of {:,} changes`.
    """

    def __init__(self, say: Say, line: str, *, least: int = 1) -> None:
        self._say, self._line, self._least = say, line, least
        self._last_step = 0

    def __call__(self, done: int, total: int) -> None:
        step = max(self._least, -(-total // 10))
        if done == 0:
            self._last_step = 0
        elif done // step > self._last_step and done < total:
            self._last_step = done // step
            self._say(self._line.format(done, total))
