"""Index, run or erase the demo's shop in a process of its own, and kill it at the n-th touch of a file below a folder.

Each line `["index", FOLDER, N]`, `["run", FOLDER, N]` or `["erase", FOLDER, N]` that `python killed.py` reads is done by a
process that is forked from it, imports done; the answer is a line with its exit code, 9 when it was killed, and how many touches there were
when it finished, as with N = -1. Touches are audit events of opening, renaming, removing, linking and making folders, so a kill falls between
any two steps of a write, staging and rename included.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

WHEN = datetime(2026, 5, 20, 8, 45, tzinfo=UTC)
SHOP = Path(__file__).parents[2] / "data" / "demo" / "shop"
TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "shutil.")


def index(folder: Path) -> str:
    """Index the shop into `folder/corpus`; the generation."""
    from scoped_retrieval.pipeline.config.settings import load_settings
    from scoped_retrieval.pipeline.indexing.importing import IndexRequest, index_into

    flags = {"corpus": str(folder / "corpus"), "project": "shop", "principal": "ana"}
    settings = load_settings(flags, cwd=folder, environ={}, user=None)
    request = IndexRequest(
        paths=(SHOP / "work_tree",),
        read=(("sessions", SHOP / "sessions.jsonl"), ("memory", SHOP / "memory.jsonl")),
        semantic=False,
    )
    return index_into(settings, request, now=WHEN).generation


def run(folder: Path) -> str:
    """Run twelve requests in four shards, or finish the run that was begun; its id."""
    from scoped_retrieval.pipeline.asking.retriever import Retriever
    from scoped_retrieval.pipeline.runs import Runs

    requests = [
        {"request_id": f"r{n:02d}", "question": f"default role {n}", "project": "shop", "purpose": "answer-question"}
        for n in range(12)
    ]
    with Retriever.open(
        folder / "corpus", principal="ana", runs=folder / "runs", encoder=None, shard_requests=3, clock=lambda: WHEN
    ) as retriever:
        unfinished = Runs(folder / "runs").unfinished()
        summary = retriever.run(resume=unfinished[0]) if unfinished else retriever.run(requests)
    return summary.run_id


def erase(folder: Path) -> int:
    """Erase what the shop's work tree says, from the corpus and the run; the number of rows."""
    from scoped_retrieval.pipeline.config.settings import load_settings
    from scoped_retrieval.pipeline.maintenance.erasure import erase as erased

    flags = {"corpus": str(folder / "corpus"), "runs": str(folder / "runs"), "principal": "ana"}
    settings = load_settings(flags, cwd=folder, environ={}, user=folder / "none.toml")
    return erased(settings, source="workspace:work_tree").rows


def main(what: str, folder: Path, at: int) -> int:
    """The number of touches, if it gets so far."""
    touches = 0

    def watch(event: str, args: tuple[object, ...]) -> None:
        nonlocal touches
        if event.startswith(TOUCHES) and args and str(folder) in str(args[0]):
            touches += 1
            if touches - 1 == at:
                os._exit(9)

    action = {"index": index, "run": run, "erase": erase}[what]
    sys.addaudithook(watch)
    action(folder)
    return touches


def forked(what: str, folder: Path, at: int) -> tuple[int, int | None]:
    """The exit code of a child that does it, and the number of touches that it tells."""
    answer, told = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.write(told, str(main(what, folder, at)).encode())
            code = 0
        finally:  # nothing of this process is the child's to end
            os._exit(code)
    os.close(told)
    with os.fdopen(answer) as file:
        said = file.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), int(said) if said else None


def imported() -> None:
    """What the actions import, done once."""
    import scoped_retrieval.pipeline.asking.retriever
    import scoped_retrieval.pipeline.indexing.importing
    import scoped_retrieval.pipeline.maintenance.erasure  # noqa: F401


if __name__ == "__main__":
    imported()
    for line in sys.stdin:
        what, folder, at = json.loads(line)
        print(json.dumps(forked(what, Path(folder), at)), flush=True)
