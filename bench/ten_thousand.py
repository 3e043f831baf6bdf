"""10,000 distinct requests over 100,000 chunks in 100 projects at 1,000 instants, lexical and symbol lanes, one run.

Run: `python bench/ten_thousand.py [--chunks N] [--projects N] [--requests N]`. Prints one JSON record with
throughput on all cores and in one process, bytes per request and peak resident memory of this process; `--record` appends it to `data/results/bench.jsonl`. `--governed`
asks the same by another credential that may act for the principal, under grants with zones, an expiry and denials, each
request with bounds of its own: what governance costs is the difference.
What it does not show: other machines, disks with slow sync, semantic recall, real text.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import synthetic
import yaml
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.cores import cores
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.engines.process_engine import local_engine
from scoped_retrieval.pipeline.engines.shards import ShardJob, in_this_process
from scoped_retrieval.pipeline.sources.importing import normalize

ALONE = 5_120
"""Requests that are asked once more in this process, to time what writing costs."""
RESULTS = Path(__file__).parents[1] / "data" / "results" / "bench.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--projects", type=int, default=100)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--work", type=Path, default=None, help="folder to keep the corpus and the run in")
    parser.add_argument("--governed", action="store_true", help="under grants and requests that bound and deny")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        record = measure(work, options.chunks, options.projects, options.requests, options.governed)
    print(json.dumps(record, indent=2))
    if options.record:
        with RESULTS.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record, sort_keys=True) + "\n")


def measure(work: Path, chunks: int, projects: int, count: int, governed: bool) -> dict[str, object]:
    rows = synthetic.corpus_rows(chunks, projects)
    asked = synthetic.requests(rows, count)
    if governed:
        asked = [{**row, "principal": "bench", **BOUNDS} for row in asked]
    corpus_path, grants = work / "corpus", work / "grants.yaml"
    started = time.perf_counter()
    if not corpus_path.exists():
        build(rows, corpus_path)
    built = time.perf_counter() - started
    del rows
    names = sorted({str(request["project"]) for request in asked})
    if governed:
        grants.write_text(yaml.safe_dump(governing(names)), encoding="utf-8")
    else:
        for project in names:
            write_starter_grants(grants, "bench", project)
    retriever = Retriever.open(
        Corpus.open(corpus_path), principal="bot" if governed else "bench", grants=grants, runs=work / "runs",
        lanes=("lexical", "symbol"),
    )  # fmt: skip
    started = time.perf_counter()
    summary = retriever.run(asked, engine=local_engine(None))
    seconds = time.perf_counter() - started
    writing = TimedWriting()
    started = time.perf_counter()
    retriever.run(asked[:ALONE], engine=writing)
    alone = time.perf_counter() - started
    run = work / "runs" / summary.run_id
    size = sum(file.stat().st_size for file in run.rglob("*") if file.is_file())
    return {
        "what": "whole line, lexical and symbol lanes, durable snapshots" + (", governed" if governed else ""),
        "chunks": chunks,
        "projects": projects,
        "requests": count,
        "index_seconds": round(built, 2),
        "run_seconds": round(seconds, 2),
        "requests_per_second": round(count / seconds, 1),
        "one_process_requests_per_second": round(min(count, ALONE) / alone, 1),
        "writing_us_per_request": round(1e6 * writing.seconds / min(count, ALONE)),
        "bytes_per_request": round(size / count),
        "peak_resident_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "cores": cores(),
        "python": platform.python_version(),
        "commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        ).stdout.strip(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": f"python bench/ten_thousand.py {' '.join(sys.argv[1:])}".strip(),
    }


class TimedWriting:
    """The engine of this process, with a watch on the writing of shards."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Generator[int]:
        """Run shards, see `Engine`."""
        yield from in_this_process(replace(job, staged=_Watched(job.staged, self)), shards, clock)


class _Watched:
    """A staged run whose `write` is timed; everything else is the run's own."""

    def __init__(self, staged: Any, watch: TimedWriting) -> None:
        self._staged = staged
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._staged, name)

    def write(self, *given: Any) -> None:
        """As the run's."""
        started = time.perf_counter()
        self._staged.write(*given)
        self._watch.seconds += time.perf_counter() - started


BOUNDS = {
    "denied_sources": ["external", "memory:*"],
    "denied_paths": ["**/secrets/", "vault/"],
    "max_unverified_items": 0,
}
"""What every governed request asks for on its own."""


def governing(projects: list[str]) -> dict[str, object]:
    """Grants of `bench` with a zone, an expiry and denials in each project, and `bot`, who may act for it."""
    own = [
        {"project": name, "zones": "internal", "denied_paths": ["**/keys/"], "expires": "2099-01-01T00:00:00Z"}
        for name in projects
    ]
    return {
        "principals": {
            "bench": {"projects": own, "groups": ["core"], "denied_paths": ["vault/"]},
            "bot": {"act_as": [{"principal": "bench", "project": name} for name in projects]},
        }
    }


def build(rows, corpus_path: Path) -> None:
    now = datetime(2026, 11, 1, tzinfo=UTC)
    normal, _ = normalize(rows, project="p000", principal="bench", now=now)
    Corpus.create(corpus_path).publish(normal, now=now)


if __name__ == "__main__":
    main()
