"""Two sessions of one principal that start together, in processes of their own: what was acknowledged, and what is stored.

`python two_sessions.py ROUNDS` prints the number of acknowledged snapshots and of those that are lost. In each round the first
session asks three questions, and the second begins as soon as anything of the first is in the folder of runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE

QUESTIONS = 3
WHEN = datetime(2026, 5, 20, 8, 45, tzinfo=UTC)
SHOP = Path(__file__).parents[2] / "data" / "demo" / "shop"


def index(folder: Path) -> str:
    """Index the shop into `folder/corpus`; the generation."""
    from scoped_retrieval.pipeline.config.settings import load_settings
    from scoped_retrieval.pipeline.indexing.importing import index_into
    from scoped_retrieval.pipeline.indexing.request import IndexRequest

    flags = {"corpus": str(folder / "corpus"), "project": "shop", "principal": "ana"}
    settings = load_settings(flags, cwd=folder, environ={}, user=None)
    request = IndexRequest(
        paths=(SHOP / "work_tree",),
        read=(("sessions", SHOP / "sessions.jsonl"), ("memory", SHOP / "memory.jsonl")),
        semantic=False,
    )
    return index_into(settings, request, now=WHEN).generation


def ask(folder: Path, runs: Path, who: str) -> list[tuple[str, str]]:
    """The snapshot id of each question that one session asked."""
    from scoped_retrieval.pipeline.asking.retriever import Retriever

    retriever = Retriever.open(folder / "corpus", principal="ana", runs=runs, encoder=None)
    while who == "second" and not anything(runs):
        pass
    asked = [f"{who} session asks about the default role, number {n}" for n in range(QUESTIONS)]
    found = [(str(retriever.retrieve(question, project="shop").snapshot_id), question) for question in asked]
    retriever.close(compacted=False)
    return found


def anything(runs: Path) -> bool:
    """Whether a session has begun to write."""
    return any(entry.is_dir() and any(entry.iterdir()) for entry in runs.iterdir())


@contextmanager
def sessions(folder: Path) -> Iterator[tuple[subprocess.Popen[str], ...]]:
    """The two processes, imports done; each reads a folder of runs per line and writes what it was told."""
    script = [sys.executable, str(Path(__file__).resolve()), "--session", str(folder)]
    with (
        subprocess.Popen([*script, "first"], stdin=PIPE, stdout=PIPE, text=True) as first,
        subprocess.Popen([*script, "second"], stdin=PIPE, stdout=PIPE, text=True) as second,
    ):
        yield first, second
        for process in (first, second):
            assert process.stdin
            process.stdin.close()


def lost(runs: Path, acknowledged: list[tuple[str, str]]) -> list[str]:
    """The acknowledged snapshots that are not stored as they were answered."""
    from scoped_retrieval.nodes.errors import ScopedRetrievalError
    from scoped_retrieval.pipeline.runs import Runs, replay, verify

    store, gone = Runs(runs), []
    for snapshot_id, question in acknowledged:
        try:
            kept = replay(store, snapshot_id).request["question"] == question and verify(store, snapshot_id).ok
        except ScopedRetrievalError:
            kept = False
        if not kept or [name for name, _ in acknowledged].count(snapshot_id) > 1:
            gone.append(snapshot_id)
    return gone


def raced(folder: Path, rounds: int) -> tuple[int, list[str]]:
    """How many snapshots two sessions were told of in some rounds, and those of them that are lost."""
    index(folder)
    count, gone = 0, list[str]()
    with sessions(folder) as pair:
        for number in range(rounds):
            runs = folder / f"runs-{number}"
            runs.mkdir()
            for process in pair:
                print(runs, file=process.stdin, flush=True)
            acknowledged: list[tuple[str, str]] = []
            for process in pair:
                assert process.stdout
                acknowledged += [(name, question) for name, question in json.loads(process.stdout.readline())]
            count += len(acknowledged)
            gone += lost(runs, acknowledged)
    return count, gone


if __name__ == "__main__":
    if sys.argv[1] == "--session":
        import scoped_retrieval.pipeline.asking.retriever  # noqa: F401 - once, before a process forks

        for line in sys.stdin:
            print(json.dumps(ask(Path(sys.argv[2]), Path(line.strip()), sys.argv[3])), flush=True)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            asked, missing = raced(Path(temporary), int(sys.argv[1]))
        print(f"{asked} acknowledged, {len(missing)} lost")
