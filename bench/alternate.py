"""What a change costs: two checkouts do the same work in turns, and CPU seconds count.

Run: `python bench/alternate.py OTHER [--what lexical/whole ...] [--rounds N]`. OTHER is the folder of another checkout
with a `.venv-bench` of its own, as `make bench` makes it. Each checkout stays open in a process of its own and builds its
corpora in its own `.bench`; the one that began a round is second in the next. Two runs of `make bench` one after the other
differ by up to a third on a machine that others use; medians of turns differ by a few hundredths.

Note: both checkouts must have the modules of the bench that this one calls by name.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

CHUNKS = 100_000
QUERIES = 1_000
SINGLE = 40
WARM_UP = 2
"""Rounds that are not counted."""
SCOPES = ("whole", "one-owner", "scattered", "ten-owners", "instants")
KINDS = {
    **{f"lexical/{scope}": f"{QUERIES} queries of the lexical lane" for scope in SCOPES},
    **{f"dense/{scope}": f"{QUERIES} queries of the semantic lane" for scope in SCOPES[:3]},
    "line/words": f"a run of {QUERIES} requests, lexical and symbol lanes, durable snapshots",
    "line/vectors": f"a run of {QUERIES} requests, lexical and semantic lanes, vectors given",
    "line/single": f"{SINGLE} requests one after another, lexical, durable snapshots",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="folder of another checkout")
    parser.add_argument(
        "--what", nargs="+", choices=list(KINDS), default=list(KINDS), metavar="ROW", help=", ".join(KINDS)
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.other.resolve(), given.what)
        return
    here = Path(__file__).parents[1]
    with worker(given.other.resolve(), given.what) as other, worker(here, given.what) as own:
        for kind in given.what:
            taken = in_turns([other, own], kind, given.rounds)
            print(line(kind, *taken), flush=True)


def line(kind: str, other: Sequence[float], own: Sequence[float]) -> str:
    """Medians and minima in CPU milliseconds, and what this checkout takes more."""
    more = [100 * (of(own) / of(other) - 1) for of in (statistics.median, min)]
    figures = " ".join(f"{1_000 * of(one):9.1f}" for one in (other, own) for of in (statistics.median, min))
    return f"{kind:20} {figures}  {more[0]:+.1f} % (medians) {more[1]:+.1f} % (minima)  {KINDS[kind]}"


def in_turns(workers: Sequence[Callable[[str, int], float]], kind: str, rounds: int) -> list[list[float]]:
    """The CPU seconds of each worker, round by round."""
    from rounds import turns  # not above: a worker takes this module from its own checkout

    taken: list[list[float]] = [[] for _ in workers]
    for number, order in enumerate(turns(range(len(workers))[::-1], rounds + WARM_UP)):
        for place in order:
            seconds = workers[place](kind, number)
            if number >= WARM_UP:
                taken[place].append(seconds)
    return taken


@contextmanager
def worker(checkout: Path, kinds: Sequence[str]) -> Iterator[Callable[[str, int], float]]:
    """A process of a checkout that does one round of a kind when asked."""
    python = checkout / ".venv-bench" / "bin" / "python"
    if not python.exists():
        sys.exit(
            f"Expected a venv for the bench, got none - at {python}; run `make bench BENCH_ARGS=--help` in {checkout}"
        )
    command = [str(python), __file__, str(checkout), "--worker", "--what", *kinds]
    with subprocess.Popen(command, cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout

        def ask(kind: str, number: int) -> float:
            print(kind, number, file=process.stdin, flush=True)
            return answered(process.stdout, checkout)

        answered(process.stdout, checkout)
        yield ask
        process.stdin.close()


def answered(lines: IO[str] | None, checkout: Path) -> float:
    """The next figure that a worker prints."""
    for text in lines or ():
        if text.startswith('{"seconds"'):
            return float(json.loads(text)["seconds"])
    sys.exit(f"Expected an answer, got none - at {checkout}: its error stands above")


def work(checkout: Path, kinds: Sequence[str]) -> None:
    """Do rounds as standard input asks for them."""
    sys.path[0] = str(checkout / "bench")
    rounds = Rounds(checkout / ".bench", any(kind.endswith("vectors") or kind.startswith("dense") for kind in kinds))
    print(json.dumps({"seconds": 0}), flush=True)
    for asked in sys.stdin:
        kind, number = asked.split()
        call = rounds.call(kind, int(number))
        started = time.process_time()
        call()
        print(json.dumps({"seconds": time.process_time() - started}), flush=True)


class Rounds:
    """The work of each kind, by the modules of the bench that the checkout has."""

    def __init__(self, folder: Path, vectors: bool) -> None:
        import bench_world
        import ours
        import synthetic

        ours.compiled.load()
        self._scopes, self._work = bench_world.SCOPES, folder / "alternate"
        shutil.rmtree(self._work, ignore_errors=True)
        self._world: Any = bench_world.open_world(folder, CHUNKS, vectors=vectors)
        self._terms = self._world.queries(6 * QUERIES)
        self._questions = synthetic.questions(6 * QUERIES, seed=11)
        self._vectors: Any = self._world.encoder.encode(synthetic.questions(6 * QUERIES)) if vectors else None
        self._opened: dict[str, Any] = {}
        self._calls = 0

    def call(self, kind: str, number: int) -> Callable[[], object]:
        """What one round does; the clock runs while it is called."""
        part, name = kind.split("/")
        self._calls += 1
        at = range(number % 6 * QUERIES, (number % 6 + 1) * QUERIES)
        if part == "line":
            return self._line(name, at, number)
        scoped = self._scoped(name, part)
        if part == "lexical":
            batch = scoped.terms_batch([self._terms[one] for one in at])
            return lambda: scoped.lexical(batch)
        batch = scoped.vectors_batch(self._vectors[at.start : at.stop])
        return lambda: scoped.semantic(batch)

    def _scoped(self, name: str, part: str) -> Any:
        if (part + name) not in self._opened:
            self._opened[part + name] = self._world.scoped(self._scopes[name], QUERIES, 100)
        return self._opened[part + name]

    def _line(self, name: str, at: range, number: int) -> Callable[[], object]:
        retriever = self._retriever(name)
        if name == "single":
            at = range(number * SINGLE % QUERIES, number * SINGLE % QUERIES + SINGLE)
        asked = [
            {"request_id": f"r{self._calls}-{one}", "question": self._question(name, one), "project": f"p{one % 99:03d}",
             "purpose": "answer-question"}
            for one in at
        ]  # fmt: skip
        return (
            (lambda: retriever.run(asked)) if name != "single" else lambda: [retriever.retrieve(one) for one in asked]
        )

    def _question(self, name: str, at: int) -> str:
        return " ".join(self._terms[at]) if name == "vectors" else self._questions[at]

    def _retriever(self, name: str) -> Any:
        if name not in self._opened:
            import pipelines_part

            lanes = {"words": ("lexical", "symbol"), "vectors": ("lexical", "semantic"), "single": ("lexical",)}[name]
            encoder = None
            if name == "vectors":
                floats = self._vectors.astype("float32") / 2**15
                texts = {self._question(name, at): vector for at, vector in enumerate(floats)}
                encoder = pipelines_part.Given(texts, self._world.encoder.profile)
            self._opened[name] = pipelines_part.Retriever.open(
                self._world.path, principal="bench", grants=self._world.grants, runs=self._work / name, lanes=lanes,
                encoder=encoder,
            )  # fmt: skip
        return self._opened[name]


if __name__ == "__main__":
    main()
