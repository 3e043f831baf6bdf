"""At random commits of a repository, do the rows admissible at that time equal its tree? And what does indexing cost?

Run: `python tests/bench/history.py REPOSITORY [--commits 50] [--record]`. Compares, for every file within the declared
limits, the text put together from the rows alive at the commit with the blob Git gives, byte for byte.
What it does not show: files the limits leave out (binary, over the size limit, not UTF-8, links), masked secrets.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from scoped_retrieval.pipeline.sources.git_history import commit_times, read_git_history
from scoped_retrieval.pipeline.sources.history_check import differences
from scoped_retrieval.pipeline.sources.report import SourceReport

RESULTS = Path(__file__).parents[2] / "data" / "results" / "history.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    started = time.perf_counter()
    now = datetime.now(UTC)
    tables = list(read_git_history(options.repository, project="p", now=now, report=SourceReport()))
    rows = pa.concat_tables(tables, promote_options="default")
    seconds = time.perf_counter() - started
    commits = commit_times(options.repository).column(0).to_pylist()
    picked = random.Random(options.seed).sample(commits, min(options.commits, len(commits)))
    wrong = [sha for sha in picked if differences(options.repository, sha, rows)]
    total = subprocess.run(
        ["git", "-C", str(options.repository), "rev-list", "--count", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    )
    record = {
        "what": "rows admissible at random commits equal the tree",
        "repository": options.repository.resolve().name,
        "commits": int(total.stdout),
        "first_parent_commits": len(commits),
        "checked": len(picked),
        "wrong": len(wrong),
        "placements": rows.num_rows,
        "read_seconds": round(seconds, 1),
        "table_mib": round(rows.nbytes / 2**20),
        "peak_resident_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "at": now.isoformat(timespec="seconds"),
    }
    print(json.dumps(record, indent=2))
    if options.record:
        with RESULTS.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
