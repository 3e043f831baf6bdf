"""What a turn of the context policy costs: 10,000 turns in one run, and turn 10,000 on its own against turn 100.

    python tests/bench/context_turns.py [--turns 10000] [--record]

The session is generated: four to seven events a turn, a growing log, 200 files edited again and again, memories revoked, a
snapshot retrieved for each turn, constraints that begin and end; it is appended 64 events at a time. Turn 100 is the last of a
log that ends there, as its user would see it; read from the log of 10,000 turns it costs more. A caller gives the snapshots of the last `KEPT` turns before its own and that of its own. Times are processor time of one thread, so that other work on the machine does not count; medians of
`ROUNDS`. `compacted_…` are the same turns once the lines are Parquet; bytes are those of the folder.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from context_session import Session, item, memory, policy, snapshot
from scoped_retrieval.pipeline.context.events import read_events
from scoped_retrieval.pipeline.context.log import SessionLog

ROUNDS = 15
KEPT = 20
RESULTS = Path(__file__).parents[2] / "data" / "results" / "context.jsonl"


def session_of(turns: int) -> tuple[list[dict[str, Any]], list[int]]:
    """A session of so many turns, and where in its log each begins."""
    session = Session("Fix the failing tests.")
    session.add("user.constraint", turn=0, text="Do not change the public API.")
    places: list[int] = []
    bounds: list[str] = []
    for turn in range(turns):
        session.add("retrieval.snapshot.created", turn=turn, snapshotId=f"snap-{turn}")
        if turn % 20 == 3:
            session.add("user.constraint", turn=turn, text=f"Do not touch src/m{turn % 200}.ts.")
            bounds.append(session.events[-1]["id"])
        if turn % 20 == 13 and bounds:
            session.add("constraint.ended", turn=turn, subject=bounds.pop())
        session.add("tool.intent", turn=turn, tool="run_command", text="run the tests")
        if turn % 3 == 0:
            session.add(
                "file.modified", turn=turn, path=f"src/m{turn % 200}.ts", version=str(turn), text=f"change {turn}"
            )
        if turn % 5 == 0:
            session.add(
                "file.read",
                turn=turn,
                path=f"src/m{turn % 200}.ts",
                version=str(turn),
                text=f"export const m{turn} = {turn};\n" * 20,
            )
        if turn % 50 == 7:
            session.add("memory.revoked", turn=turn, id=f"m{turn % 100}")
        log = f"src/m{turn % 200}.test.ts:{turn} expected 1 received 2\n" + f"line {turn} of the log\n" * (
            20 + turn % 60
        )
        session.failing(log, turn=turn)
        places.append(len(session.events))
        session.add("model.request", turn=turn, evidenceIds=[f"ev-{turn % 300}"])
    return session.events, places


def snapshots(turn: int, kept: int = KEPT) -> list[dict[str, Any]]:
    """The snapshot of a turn and those of the `kept` turns before it."""
    return [
        snapshot(
            *(item(f"code#{n}", f"src/m{(each + n) % 200}.ts", f"export const m{each} = {n};", line=n) for n in (1, 2, 3)),
            name=f"snap-{each}", ref=f"{each:04x}",
        )
        for each in range(max(turn - kept, 0), turn + 1)
    ]  # fmt: skip


def size(folder: Path, pattern: str) -> int:
    """Bytes of the files of a log."""
    return sum(file.stat().st_size for file in folder.glob(pattern))


def measured(turns: int) -> dict[str, Any]:
    """The figures."""
    events, places = session_of(turns)
    memories = [memory(f"m{n}", f"Fact number {n} about this project.") for n in range(20)]
    made, log = policy(), read_events(events)
    given: dict[str, Any] = {"memories": memories, "budget": {"maxTokens": 4000}}
    rows = [{"asOfSeq": place, "turnId": str(n)} for n, place in enumerate(places)]
    start = time.process_time()
    found = made.project_turns(turns=rows, events=log, snapshots=snapshots(turns - 1, turns), **given)
    whole = time.process_time() - start
    decisions = found.tables["context_decisions"].num_rows
    early = min(100, turns - 1)

    def alone(logs: dict[int, SessionLog]) -> dict[int, float]:
        """Milliseconds of a turn on its own, by its number, each the last of its log."""
        found: dict[int, list[float]] = {turn: [] for turn in logs}
        shown = {turn: snapshots(turn) for turn in found}
        for _ in range(ROUNDS):
            for turn, times in found.items():
                begun = time.process_time()
                view = logs[turn].view(places[turn])
                made.project_turns(turns=[rows[turn]], events=view, snapshots=shown[turn], **given)
                times.append(time.process_time() - begun)
        return {turn: statistics.median(times) * 1000 for turn, times in found.items()}

    with tempfile.TemporaryDirectory() as folder:
        logs = {turn: SessionLog.open(Path(folder) / str(turn), session_id="session") for turn in (early, turns - 1)}
        for turn, written in logs.items():
            begun = time.process_time()
            for first in range(0, places[turn], 64):
                written.append(events[first : min(first + 64, places[turn])])
            appending, appended = time.process_time() - begun, places[turn]
        medians, path = alone(logs), Path(folder) / str(turns - 1)
        lines, checkpoints = size(path, "events*.jsonl"), size(path, "checkpoints/*")
        for written in logs.values():
            written.compact()
        compacted, parts = alone(logs), size(path, "parts/*")
    return {
        "turns": turns, "events": len(events), "ledger_rows": decisions, "batch_seconds": round(whole, 2),
        "batch_ms_per_turn": round(whole / turns * 1000, 3), "early_turn": early, "early_ms": round(medians[early], 2),
        "last_ms": round(medians[turns - 1], 2), "last_over_early": round(medians[turns - 1] / medians[early], 3),
        "compacted_early_ms": round(compacted[early], 2), "compacted_last_ms": round(compacted[turns - 1], 2),
        "compacted_last_over_early": round(compacted[turns - 1] / compacted[early], 3),
        "append_ms_per_event": round(appending / appended * 1000, 3),
        "log_bytes": lines, "checkpoint_bytes": checkpoints, "parts_bytes": parts,
        "disk_bytes_per_event": round((lines + checkpoints) / appended, 1),
        "over_budget": found.tables["model_inputs"]["status"].to_pylist().count("over_budget"),
    }  # fmt: skip


def main() -> None:
    """Measure, print, and record where told so."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--record", action="store_true", help=f"append a row to {RESULTS.name}")
    options = parser.parse_args()
    row = measured(options.turns)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    row = {
        "commit": commit,
        "python": platform.python_version(),
        "command": f"python tests/bench/context_turns.py --turns {options.turns}",
        **row,
    }
    print(json.dumps(row, indent=1))
    if options.record:
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
