"""What a measurement leaves behind: one record per row of the table, and the environment it was made in.

A record names its part and row, what was measured in which unit, every system's figure with its settings, the aim and
whether it was met, rounds, versions, cores, load, commit and command. `data/results/bench.jsonl` has one JSON line each.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from scoped_retrieval.pipeline.cores import cores

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "data" / "results" / "bench.jsonl"
PACKAGES = (
    "scoped-retrieval", "numpy", "pyarrow", "numba", "scipy", "bm25s", "tantivy", "rank-bm25", "faiss-cpu", "lancedb",
    "haystack-ai", "llama-index-core", "llama-index-retrievers-bm25", "sentence-transformers", "torch",
    "apache-hamilton", "pandas", "PyStemmer",
)  # fmt: skip


@dataclass
class Row:
    """One row of the table.

    `ours` and `systems` are in `unit`; `better` says which way ("more" or "less"). `value` is what the aim speaks of, in
    `value_unit`: a ratio to the fastest peer, or our own figure. `met` is None where there is no aim or no peer.
    """

    part: str
    row: str
    what: str
    unit: str
    ours: float
    value: float
    value_unit: str
    aim: str
    met: bool | None
    better: str = "more"
    systems: dict[str, float] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    precompute_seconds: float | None = None
    """Computations once per scope before the first query, not part of the time of `ours`."""
    chunks: int | None = None
    rounds: int | None = None
    queries: dict[str, int] = field(default_factory=dict)
    spread: dict[str, list[float]] = field(default_factory=dict)
    """Slowest and fastest round of each system, in `unit`."""
    notes: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


FIELDS = (*Row.__dataclass_fields__, "peak_mib", "cores", "load", "versions", "python", "commit", "at", "command")
"""Fields of a record, in order."""


def environment(command: str) -> dict[str, Any]:
    """Where and with what a record was made."""
    return {
        "cores": cores(),
        "load": round(os.getloadavg()[0], 1),
        "versions": _versions(),
        "python": platform.python_version(),
        "commit": _commit(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
    }


def peak_mib() -> int:
    """The greatest resident memory of a process so far: of this one, or of one of its children."""
    known = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(max(known) / 1024)


def record(row: Row, environment: Mapping[str, Any], peak: int) -> dict[str, Any]:
    """The row with its environment, in the order of FIELDS; figures to four digits."""
    known = {**asdict(row), **environment, "peak_mib": peak}
    return {name: _rounded(known[name]) for name in FIELDS}


def append(records: Iterable[Mapping[str, Any]], path: Path = RESULTS) -> None:
    """Add one JSON line per record."""
    with path.open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(one) + "\n" for one in records)


def latest(path: Path = RESULTS) -> list[dict[str, Any]]:
    """The newest record of each row and corpus size, in the order of the file; lines of other kinds are left out."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        if "row" in one:
            found[one["row"], one["chunks"]] = one
    return list(found.values())


def _rounded(value: Any) -> Any:
    """Four significant digits, all the way down."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """The commit, with a `+` where code differs from it."""
    commit = _git("rev-parse", "--short", "HEAD").strip()
    changed = (line for line in _git("status", "--porcelain", "--untracked-files=no").splitlines())
    return f"{commit}+" if any(not line.endswith((".jsonl", ".md", ".svg")) for line in changed) else commit


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout
