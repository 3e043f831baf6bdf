"""Interleaved rounds: every contestant runs once per round on queries that no system has seen before, and medians count.

Note: a machine that others use is slow for seconds at a time. Contestants that take turns
meet the same slow seconds; one after the other, the first would pay for all of them. The order turns by one each round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bench_records import Row

Named = TypeVar("Named")


@dataclass(frozen=True)
class Contestant:
    """One system in one measurement.

    `batch` makes, off the clock, what `run` gets: from the positions of the round's queries. `most` bounds how many of
    them one call gets: a slow system answers fewer per round, and queries per second stay comparable.
    """

    name: str
    batch: Callable[[range], Any]
    run: Callable[[Any], Any]
    settings: str
    least: int = 1
    """Fewer queries than this in one call are not what is measured: a batch system keeps its batch."""
    most: int = 1 << 30


@dataclass
class Timing:
    """Seconds of each round of one contestant, and how many queries it answered in each."""

    queries: int
    seconds: list[float] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        """Queries per second, by round."""
        return [self.queries / one for one in self.seconds]

    @property
    def rate(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rates)


def turns(names: Sequence[Named], rounds: int) -> list[list[Named]]:
    """Who runs when: every round has every name once, and begins with the next one."""
    return [[*names[turn % len(names) :], *names[: turn % len(names)]] for turn in range(rounds)]


def interleaved(
    contestants: Sequence[Contestant],
    *,
    queries: int,
    rounds: int = 5,
    seconds: float = 1.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """The timings of each contestant over `rounds` rounds.

    Args:
        contestants: with distinct names.
        queries: how many there are; `rounds + 1` slices are cut from them, the first to warm up on.
        rounds: at least 1.
        seconds: a system that takes longer for a slice gets fewer queries per round, at least one.
        clock: seconds.
    """
    share = queries // (rounds + 1)
    if share < 1:
        raise ValueError(f"Expected at least {rounds + 1} queries, got {queries} - at queries")
    by_name = {one.name: one for one in contestants}
    timings = {one.name: Timing(_affordable(one, share, seconds, clock)) for one in contestants}
    for number, order in enumerate(turns(list(by_name), rounds), start=1):
        for name in order:
            start = number * share
            batch = by_name[name].batch(range(start, start + timings[name].queries))
            before = clock()
            by_name[name].run(batch)
            timings[name].seconds.append(clock() - before)
    return timings


def against_peers(contestants: Sequence[Contestant], timings: Mapping[str, Timing], factor: float, **known: Any) -> Row:
    """A row of the table: the medians of all systems, and whether we are `factor` times as fast as the fastest peer.

    Args:
        contestants: with ours, which is named so.
        timings: of each.
        factor: 1 asks for more than the fastest, a greater one for at least as many times.
        **known: the fields of the row that do not come of the timings.
    """
    rates = {name: timing.rate for name, timing in timings.items()}
    ours = rates.pop("ours")
    value = ours / max(rates.values())
    return Row(
        **known, ours=ours, systems=rates, value=value, value_unit="x the fastest",
        met=value >= factor if factor > 1 else value > 1, rounds=len(timings["ours"].seconds),
        settings={one.name: one.settings for one in contestants},
        queries={name: timing.queries for name, timing in timings.items()},
        spread={name: [min(timing.rates), max(timing.rates)] for name, timing in timings.items()},
    )  # fmt: skip


def _affordable(one: Contestant, share: int, seconds: float, clock: Callable[[], float]) -> int:
    """Queries per round for one contestant, found on the warm-up slice: first a few, then as many as fit."""
    most = min(share, one.most)
    count = min(max(4, one.least), most)
    while True:
        for _ in range(2):  # the first call may compile
            batch = one.batch(range(count))
            before = clock()
            one.run(batch)
            taken = clock() - before
        fits = max(min(one.least, most), min(most, int(count * seconds / max(taken, 1e-9))), 1)
        if fits <= 2 * count or count == most:
            return fits
        count = min(most, 8 * count)
