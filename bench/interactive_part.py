"""One request after another, each with a durable snapshot, and the command line from a cold process.

Every request is another question; the retriever stays open, as a service or a notebook would keep it. "Cold" is a new
process; the files of the corpus may be in the page cache, and the bytecode is there, as `pip install` leaves it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import synthetic
from bench_records import Row
from bench_world import World, open_world
from options import Options
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.runs import packed
from scoped_retrieval.pipeline.runs.parts import stored_whole
from scoped_retrieval.pipeline.runs.writing import write_parts
from scoped_retrieval.pipeline.storage.durable import write_atomic

REQUESTS = 2_000
WARM_UP = 40
SECONDS = 300.0
"""After so many, no further request is asked; how many were is recorded."""
STARTS = 7
WRITTEN = 200


def interactive_rows(options: Options) -> Iterator[Row]:
    """p50, p99, one snapshot in either form, and the two cold starts."""
    world = open_world(options.work, options.chunks)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        taken = latencies(world, Path(folder), options.batch(REQUESTS))
        yield from latency_rows(taken, options.chunks)
        yield writing_row(world, Path(folder), options)
        yield from start_rows(world, Path(folder), options)


def latencies(world: World, runs: Path, most: int) -> list[float]:
    """Milliseconds of each request."""
    questions = synthetic.questions(most + WARM_UP, seed=11)
    taken: list[float] = []
    with Retriever.open(
        world.path, principal="bench", grants=world.grants, runs=runs / "live", lanes=("lexical",), encoder=None
    ) as retriever:
        begun = time.perf_counter()
        for number, question in enumerate(questions):
            row = {"question": question, "project": f"p{number % 99:03d}", "purpose": "answer-question"}
            started = time.perf_counter()
            assert retriever.retrieve(row).snapshot_id
            taken.append(1_000 * (time.perf_counter() - started))
            if time.perf_counter() - begun > SECONDS:
                break
        retriever.close(compacted=False)
    return taken[WARM_UP:]


def latency_rows(taken: Sequence[float], chunks: int) -> Iterator[Row]:
    """The median and the 99th percentile against their aims."""
    for name, percentile, aim in (("p50", 50, 15.0), ("p99", 99, 40.0)):
        value = float(np.percentile(taken, percentile))
        yield Row(
            part="interactive", row=f"interactive/{name}", what=f"one request, durable snapshot, lexical: {name}",
            unit="ms", ours=value, value=value, value_unit="ms", aim=f"at most {aim:.0f} ms", met=value <= aim,
            better="less", chunks=chunks, queries={"ours": len(taken)},
            spread={"ours": [float(min(taken)), float(max(taken))]},
            settings={"ours": f"distinct questions over 99 owners, lane lexical, {WARM_UP} before the first counted"},
        )  # fmt: skip


def writing_row(world: World, folder: Path, options: Options) -> Row:
    """Processor time of one durable snapshot: as the file of an interactive request, and as the shard of a batch of one."""
    asked = options.batch(WRITTEN)
    forms: dict[str, Callable[[Path, Mapping[str, pa.Table]], None]] = {"file": as_file, "shard of one": as_shard}
    taken: dict[str, list[float]] = {name: [] for name in forms}
    with Retriever.open(
        world.path, principal="bench", grants=world.grants, lanes=("lexical",), encoder=None
    ) as retriever:
        for number, question in enumerate(synthetic.questions(asked + WARM_UP, seed=11)):
            row = {"question": question, "project": f"p{number % 99:03d}", "purpose": "answer-question"}
            tables = retriever.retrieve(row).tables
            for name, write in forms.items():
                place = folder / name / str(number)
                place.mkdir(parents=True)
                begun = time.process_time()
                write(place, tables)
                taken[name].append(1_000 * (time.process_time() - begun))
    medians = {name: statistics.median(times[WARM_UP:]) for name, times in taken.items()}
    kept = {name: [file.stat().st_size for file in (folder / name).rglob("*") if file.is_file()] for name in forms}
    ratio = medians["shard of one"] / medians["file"]
    return Row(
        part="interactive", row="interactive/writing", what="one durable snapshot: CPU of writing", unit="ms",
        ours=medians["file"], value=ratio, value_unit="x", aim="", met=None, better="less", chunks=options.chunks,
        systems={"shard of one": medians["shard of one"]}, queries=dict.fromkeys(("ours", "shard of one"), asked),
        spread={"ours": [min(taken["file"][WARM_UP:]), max(taken["file"][WARM_UP:])]},
        settings={"shard of one": "the parts of a batch of one request, Parquet, synced"},
        extra={
            name: {"kb": sum(sizes) / 1e3 / len(taken[name]), "files": len(sizes) / len(taken[name])}
            for name, sizes in kept.items()
        },
    )  # fmt: skip


def as_file(place: Path, tables: Mapping[str, pa.Table]) -> None:
    """What an interactive request writes."""
    write_atomic(place / "snapshot.arrow.lz4", packed(tables).data)


def as_shard(place: Path, tables: Mapping[str, pa.Table]) -> None:
    """What a batch of this request alone would write, without its manifest."""
    write_parts(place, "00000", stored_whole(tables))


def start_rows(world: World, folder: Path, options: Options) -> Iterator[Row]:
    """`--help` and a lexical `ask`, each in new processes."""
    program = Path(sys.executable).with_name("scoped-retrieval")
    command = [str(program)] if program.exists() else [sys.executable, "-m", "scoped_retrieval.pipeline.cli"]
    ask = ["ask", "where does the value come from?", "--project", "p042", "--corpus", str(world.path),
           "--runs", str(folder / "asked"), "--grants", str(world.grants)]  # fmt: skip
    settings = {
        "SCOPED_RETRIEVAL_PRINCIPAL": "bench",
        "SCOPED_RETRIEVAL_LANES": "lexical",
        "PYTHONDONTWRITEBYTECODE": "",  # what a shell may set that develops; the first start, not counted, compiles
        "PYTHONPYCACHEPREFIX": str(options.work.resolve() / "bytecode"),
    }
    for name, words, aim in (("help", ["--help"], 0.3), ("ask", ask, 1.5)):
        taken = [started([*command, *words], folder, settings) for _ in range(STARTS + 1)][1:]
        value = statistics.median(taken)
        yield Row(
            part="interactive", row=f"start/{name}", what="`--help`" if name == "help" else "`ask`, cold, lexical",
            unit="s", ours=value, value=value, value_unit="s", aim=f"at most {aim} s", met=value <= aim, better="less",
            chunks=None if name == "help" else options.chunks, rounds=STARTS,
            spread={"ours": [min(taken), max(taken)]}, settings={"ours": "a new process, bytecode kept, median"},
        )  # fmt: skip


def started(command: Sequence[str], folder: Path, settings: dict[str, str]) -> float:
    """Seconds until a command has ended well."""
    before = time.perf_counter()
    ran = subprocess.run(command, cwd=folder, env={**os.environ, **settings}, capture_output=True, check=False)
    taken = time.perf_counter() - before
    assert ran.returncode == 0, f"Expected exit 0, got {ran.returncode}: {ran.stderr.decode()[-300:]}"
    return taken
