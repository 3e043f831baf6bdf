"""10,000 requests over the corpus in one run: throughput, what writing costs per request, and what the graph adds.

The run is that of `ten_thousand.py`. The graph is the line's own driver, which calls the nodes of Hamilton's graph by a plan
and checks their tables, against the same functions called in the order of that plan with nothing between them.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import synthetic
import ten_thousand
from bench_records import Row
from options import Options
from ours import NOW
from scoped_retrieval.nodes.recall.vector_recall import NOTHING_ENCODED
from scoped_retrieval.nodes.tables import CAPTURES, FAILURES, LANE_STATES
from scoped_retrieval.pipeline.asking.retriever import SHARD_REQUESTS, Retriever
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.line.driver import SCOPED, build_driver, outputs

REQUESTS = 10_000
PROJECTS = 100


def batch_rows(options: Options) -> Iterator[Row]:
    """Throughput, writing, bytes, memory, and the graph's share."""
    count = options.batch(REQUESTS)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        work = Path(folder)
        found = ten_thousand.measure(work, options.chunks, PROJECTS, count, governed=False)
        del found["command"]  # of this part, with folders of this machine
        what = f"{count:,} requests, lexical and symbol lanes, durable snapshots"
        common: dict[str, Any] = {"part": "batch", "chunks": options.chunks, "queries": {"ours": count}, "extra": found}
        rate, writing = float(found["requests_per_second"]), float(found["writing_us_per_request"])
        size = float(found["bytes_per_request"]) / 1_000
        yield Row(
            row="batch/throughput", what=f"{what}: throughput", unit="requests/s", ours=rate, value=1e6 / rate,
            value_unit="us per request", aim="", met=None, **common,
        )  # fmt: skip
        yield Row(
            row="batch/writing", what=f"{what}: writing", unit="us/request", ours=writing, value=writing,
            value_unit="us per request", aim="at most 300 us", met=writing <= 300, better="less", **common,
        )  # fmt: skip
        yield Row(
            row="batch/bytes", what=f"{what}: bytes on disk", unit="KB/request", ours=size, value=size,
            value_unit="KB per request", aim="at most 25 KB", met=size <= 25, better="less", **common,
        )  # fmt: skip
        memory = float(found["peak_resident_mib"]) / 1_024
        yield Row(
            row="batch/memory", what=f"indexing and {count:,} requests in one process: peak resident memory", unit="GiB",
            ours=memory, value=memory, value_unit="GiB", aim="under 8 GiB at 1,000,000 chunks", better="less",
            met=memory < 8 if options.chunks >= 1_000_000 else None, notes="the maker of the synthetic rows included",
            **common,
        )  # fmt: skip
        yield graph_row(work, options)


def graph_row(work: Path, options: Options) -> Row:
    """The same shard by the driver and by plain calls, in turns."""
    inputs, overrides = shard_inputs(work, options)
    driver = build_driver()
    wanted = [name for name in outputs() if name not in overrides]
    calls = driver.plan(tuple(wanted), frozenset({*inputs, *overrides}))

    def by_graph() -> None:
        driver.execute(wanted, inputs=inputs, overrides=overrides)

    def plainly() -> None:
        known: dict[str, Any] = {**inputs, **overrides}
        for call in calls:
            known[call.name] = call.function(**{need: known[need] for need in call.needs})

    taken: dict[str, list[float]] = {"graph": [], "plain": []}
    for turn in range(2 * options.rounds + 1):
        both = [("graph", by_graph), ("plain", plainly)]
        for name, function in both if turn % 2 else both[::-1]:
            started = time.process_time()
            function()
            taken[name].append(time.process_time() - started)
    graph, plain = (statistics.median(one[1:]) for one in taken.values())
    value = 100 * (graph / plain - 1)
    return Row(
        part="batch", row="batch/graph", what=f"graph overhead on a shard of {SHARD_REQUESTS} requests, table checks included",
        unit="us/request", ours=1e6 * (graph - plain) / SHARD_REQUESTS, value=value, value_unit="%", aim="at most 2 %",
        met=value <= 2, better="less", chunks=options.chunks, rounds=len(taken["graph"]) - 1,
        systems={"plain calls": 1e6 * plain / SHARD_REQUESTS}, settings={"plain calls": "CPU seconds, the same nodes in order"},
        spread={name: [1e6 * min(one) / SHARD_REQUESTS, 1e6 * max(one) / SHARD_REQUESTS] for name, one in taken.items()},
    )  # fmt: skip


def shard_inputs(work: Path, options: Options) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the line's driver is given for one shard of requests in one project, and the tables before the corpus."""
    corpus = Corpus.open(work / "corpus")
    write_starter_grants(work / "grants.yaml", "bench", "p000")
    retriever = Retriever.open(
        corpus, principal="bench", grants=work / "grants.yaml", lanes=("lexical", "symbol"), encoder=None
    )
    line = retriever._session.line
    rows = synthetic.corpus_rows(PROJECTS, PROJECTS)
    asked = [{**row, "project": "p000"} for row in synthetic.requests(rows, SHARD_REQUESTS)]
    requests, _ = retriever._session.resolver.resolve(asked, NOW)
    requests = requests.combine_chunks()
    captures = CAPTURES.build(
        {
            "request_id": requests["request_id"],
            "snapshot_id": [f"s-{number}" for number in range(SHARD_REQUESTS)],
            "created_at": [datetime(2026, 11, 2, tzinfo=UTC)] * SHARD_REQUESTS,
        }
    )
    inputs: dict[str, Any] = {
        **line.policies, "requests": requests, "failures": FAILURES.empty(), "grants": line.grants,
        "lanes": line.lanes, "bm25": line.bm25, "counters": line.counters, "provenance": line.provenance,
        "captures": captures, "lane_states": LANE_STATES.empty(), "query_vectors": NOTHING_ENCODED,
        "cross_encoder": line.pairs,
    }  # fmt: skip
    overrides = build_driver().execute(list(SCOPED), inputs=inputs)
    return inputs | line.corpus.frame(["p000"]).inputs(), overrides
