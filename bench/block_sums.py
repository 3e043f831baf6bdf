"""What verifying blocks costs: openings and requests with the checksums of blocks verified and not, in turns.

Run: `python bench/block_sums.py [--chunks N] [--requests N] [--rounds N] [--work FOLDER]`. A block is verified when a
process first reads it, so each turn forgets what was verified, opens the corpus of the bench again and asks. Seconds are of the
processor, user and system, so that other work of the machine counts little; the order of the two changes from turn to turn.
Requests keep no snapshots: writing would hide the difference, and the share of a durable request is smaller still.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import synthetic
from bench_world import World, open_world
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.corpus import blocks

LANES = ("lexical", "symbol")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--work", type=Path, default=None, help="folder to keep the corpus in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        world = open_world(options.work or Path(temporary), options.chunks)
        for name, requests in (("opening", 0), (f"opening and {options.requests} requests", options.requests)):
            report(name, taken(world, requests, options.rounds))


def taken(world: World, requests: int, rounds: int) -> list[tuple[float, float]]:
    """Processor seconds of each round, with checksums and without; one before is not counted."""
    both = list[tuple[float, float]]()
    for number in range(rounds + 1):
        order = (True, False) if number % 2 else (False, True)
        seconds = {verified: turn(world, requests, verified=verified) for verified in order}
        both.append((seconds[True], seconds[False]))
    return both[1:]


def turn(world: World, requests: int, *, verified: bool) -> float:
    """Processor seconds of an opening and requests over 99 owners; of openings alone, of a hundred."""
    blocks._verified.cache_clear()
    asked = (
        [
            {"question": question, "project": f"p{number % 99:03d}", "purpose": "answer-question"}
            for number, question in enumerate(synthetic.questions(requests, seed=11))
        ]
        if requests
        else []
    )
    with checksums(verified):
        begun = time.process_time()
        for _ in range(1 if requests else 100):
            with Retriever.open(
                world.path, principal="bench", grants=world.grants, lanes=LANES, encoder=None
            ) as retriever:
                for row in asked:
                    retriever.retrieve(row)
        return (time.process_time() - begun) / (1 if requests else 100)


@contextmanager
def checksums(verified: bool) -> Iterator[None]:
    """Blocks are verified, or nothing of them is looked at."""
    if verified:
        yield
        return
    nothing = {"expect_bytes": lambda *_: None, "expect_rows": lambda *_: None, "_expect_metadata": lambda *_: None}
    with patch.multiple(blocks.CheckedFile, **nothing):
        yield


def report(name: str, both: list[tuple[float, float]]) -> None:
    """The medians, and the median of the differences in per cent of the time without."""
    on, off = (1_000 * statistics.median(side) for side in zip(*both, strict=True))
    shares = sorted(100 * (with_ - without) / without for with_, without in both)
    print(
        f"{name}: {on:.2f} ms with checksums, {off:.2f} ms without; difference per round {statistics.median(shares):+.1f} % "
        f"({shares[0]:+.1f} to {shares[-1]:+.1f})"
    )


if __name__ == "__main__":
    main()
