"""At random commits of a repository, are the rows admissible at that `as_of` its tree? And what does indexing cost?

Run: `python bench/history.py REPOSITORY [--commits 50] [--record]`. The repository is indexed with `--history` and asked
once per commit. Three things must agree at each: the digest of admissible rows that the line wrote down, the rows of the
corpus alive then, and, put together, the blobs of `git ls-tree`, byte for byte.
What it does not show: files the limits leave out (binary, over the size limit, not UTF-8, links); the masked bytes of
secrets, which are taken from Git where the text around them fits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import resource
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from history_check import alive_at, differences, readable_files
from scoped_retrieval.nodes.tables import ADMISSIBLE
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.indexing.following import IndexRequest
from scoped_retrieval.pipeline.indexing.importing import index_into
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.sources.git_commands import Git
from scoped_retrieval.pipeline.sources.git_history import commit_table

RESULTS = Path(__file__).parents[1] / "data" / "results" / "history.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    repository = options.repository.resolve()
    git = Git(repository)
    commits = commit_table(git.commits(git.branch()[1]))
    line = dict(zip(commits["version"].to_pylist(), commits["recorded_time"].to_pylist(), strict=True))
    picked = random.Random(options.seed).sample(sorted(line), min(options.commits, len(line)))
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        started = time.perf_counter()
        settings = load_settings(
            {"corpus": str(work / "corpus"), "project": "p", "principal": "bench"}, cwd=work, environ={}, user=None
        )
        report = index_into(settings, IndexRequest(paths=(repository,), history=True, semantic=False))
        seconds = time.perf_counter() - started
        digests = admissible_digests(work, picked)
        placements = committed_placements(work / "corpus")
        wrong = {sha: why for sha in picked if (why := judge(repository, sha, placements, line[sha], digests[sha]))}
        size = sum(file.stat().st_size for file in (work / "corpus").rglob("*") if file.is_file())
    record = {
        "what": "rows admissible at random commits equal the tree",
        "repository": repository.name,
        "head": git(repository, "rev-parse", "HEAD"),
        "commits": int(git(repository, "rev-list", "--count", "HEAD")),
        "first_parent_commits": len(line),
        "checked": len(picked),
        "wrong": len(wrong),
        "placements": placements.num_rows,
        "masked_spans": report.masked,
        "index_seconds": round(seconds, 1),
        "corpus_mib": round(size / 2**20),
        "peak_resident_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    print(json.dumps(record | {"differences": wrong}, indent=2))
    if options.record:
        with RESULTS.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record, sort_keys=True) + "\n")


def admissible_digests(work: Path, commits: list[str]) -> dict[str, str]:
    """What the line wrote down as admissible at each commit: a digest of evidence ids."""
    grants = work / "grants.yaml"
    with Retriever.open(
        work / "corpus", principal="bench", runs=work / "runs", encoder=None, grants=grants if grants.exists() else None
    ) as retriever:
        asked = [
            {
                "request_id": sha,
                "question": "x",
                "project": "p",
                "purpose": "answer-question",
                "time": {"as_of": f"commit:{sha}"},
            }
            for sha in commits
        ]
        run = Runs(work / "runs").open(retriever.run(asked).run_id)
    table = run.table(ADMISSIBLE.name)
    return dict(zip(table["request_id"].to_pylist(), table["row_digest"].to_pylist(), strict=True))


def committed_placements(corpus: Path) -> pa.Table:
    """Every placement of the corpus with what its evidence says; uncommitted files left out."""
    frame = Corpus.open(corpus).frame()
    evidence = frame.evidence.select(["evidence_id", "path", "text", "redactions", "workspace_root"]).take(
        frame.placements["row"]
    )
    for name in ("byte_start", "byte_end", "recorded_time", "superseded_at", "deleted_at"):
        evidence = evidence.append_column(name, frame.placements[name])
    return evidence.filter(pc.is_null(evidence["workspace_root"]))


def judge(repository: Path, sha: str, placements: pa.Table, at: datetime, digest: str) -> dict[str, Any]:
    """What disagrees at one commit; empty if nothing."""
    alive = alive_at(placements, at)
    ids = "".join(f"{name}\n" for name in sorted(set(alive["evidence_id"].to_pylist())))
    wrong = dict(differences(repository, sha, unmasked(alive, readable_files(repository, sha))))
    return wrong if hashlib.sha256(ids.encode()).hexdigest() == digest else wrong | {"": "other rows are admissible"}


def unmasked(rows: pa.Table, files: dict[str, bytes]) -> pa.Table:
    """The rows with masked spans filled in from Git, where the text around them fits."""
    texts = rows["text"].to_pylist()
    for i, spans in enumerate(rows["redactions"].to_pylist()):
        if spans:
            path, start, end = (rows[name][i].as_py() for name in ("path", "byte_start", "byte_end"))
            original, masked, cut = files.get(path, b"")[start:end], texts[i].encode(), [0]
            for span in spans:
                cut += [span["start"], span["end"]]
            kept = [masked[a:b] for a, b in zip(cut[::2], [*cut[1::2], len(masked)], strict=True)]
            if re.fullmatch(b"(?s:.*)".join(map(re.escape, kept)), original):
                texts[i] = original.decode()
    return rows.set_column(rows.schema.get_field_index("text"), "text", pa.array(texts, pa.large_string()))


def git(repository: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
