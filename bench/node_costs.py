"""Where time goes: CPU milliseconds per request of every node, in a run and for single requests.

Run: `python bench/node_costs.py [--chunks N] [--requests N] [--single N] [--work FOLDER]`. The corpus and requests are
those of `ten_thousand.py`. Each node is timed around its function; the rest is the graph, reading
and resolving requests, and writing snapshots.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import synthetic
import ten_thousand
from rich.console import Console
from rich.table import Table
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.line.planned_driver import NodeCall, PlannedDriver

PROJECTS = 100
WARM_UP = 20
SHOWN = 18


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=2_560)
    parser.add_argument("--single", type=int, default=60)
    parser.add_argument("--work", type=Path, default=None, help="folder to keep the corpus and the runs in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        rows = synthetic.corpus_rows(options.chunks, PROJECTS)
        asked = synthetic.requests(rows, options.requests + options.single + WARM_UP)
        if not (work / "corpus").exists():
            ten_thousand.build(rows, work / "corpus")
        for project in sorted({str(request["project"]) for request in asked}):
            write_starter_grants(work / "grants.yaml", "bench", project)
        many, few = asked[: options.requests], asked[options.requests :]
        with opened(work) as retriever:
            batch = costs(lambda: retriever.run(many))
        with opened(work) as retriever:
            for request in few[:WARM_UP]:
                retriever.retrieve(request)
            single = costs(lambda: [retriever.retrieve(request) for request in few[WARM_UP:]])
    show({"in a run": (batch, len(many)), "alone": (single, options.single)})


@contextmanager
def opened(work: Path) -> Iterator[Retriever]:
    """The retriever of `ten_thousand.py`."""
    with Retriever.open(
        Corpus.open(work / "corpus"), principal="bench", grants=work / "grants.yaml", runs=work / "runs",
        lanes=("lexical", "symbol"),
    ) as retriever:  # fmt: skip
        yield retriever


def costs(ask: Callable[[], Any]) -> Counter[str]:
    """CPU seconds by node; the rest is under "(beside the nodes)"."""
    taken: Counter[str] = Counter()
    plan = PlannedDriver.plan

    def timed(call: NodeCall) -> NodeCall:
        def function(**tables: Any) -> Any:
            started = time.process_time()
            try:
                return call.function(**tables)
            finally:
                taken[call.name] += time.process_time() - started

        return call._replace(function=function)

    def timed_plan(driver: PlannedDriver, *names: Any) -> tuple[NodeCall, ...]:
        return tuple(map(timed, plan(driver, *names)))

    PlannedDriver.plan = timed_plan
    try:
        started = time.process_time()
        ask()
        whole = time.process_time() - started
    finally:
        PlannedDriver.plan = plan
    taken["(beside the nodes)"] = whole - taken.total()
    return taken


def show(found: dict[str, tuple[Counter[str], int]]) -> None:
    """A table, the most expensive of the first column on top."""
    table = Table("ms of one core per request", *found)
    per = {
        name: {node: 1_000 * value / count for node, value in taken.items()} for name, (taken, count) in found.items()
    }
    first, *_ = per.values()
    ordered = sorted(first, key=lambda node: -first[node])
    for node in ordered[:SHOWN]:
        table.add_row(node, *(f"{one.get(node, 0.0):.2f}" for one in per.values()))
    table.add_row("others", *(f"{sum(one.get(node, 0.0) for node in ordered[SHOWN:]):.2f}" for one in per.values()))
    table.add_row("all", *(f"{sum(one.values()):.2f}" for one in per.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
