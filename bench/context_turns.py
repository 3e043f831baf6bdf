"""What inputs of the context policy show and cost: public transcripts, and a generated session of 10,000 turns.

    python bench/context_turns.py [--transcripts FOLDER] [--turns 10000] [--record]

Of every transcript of `transcripts.tsv` that FOLDER has, each request of the agent gets its input, under the checks of the
list, no rules and the default budget. An input shows a file if a source with its path has text in it; `edited_next` counts the
inputs before an edit of a file that the session had read or changed. A message of the user is dropped if it is not
verbatim in the first message, and neither a line there nor the condition `user_words_referenced` says where it is.

The generated session has four to seven events a turn, a growing log, 200 files, memories revoked, a snapshot per turn, and
constraints that begin and end. Turn 100 is the last of a log that ends there. A caller gives the snapshots of the last
`KEPT` turns. The batch is the last `BATCH` turns.

Times are processor time of one thread; medians of `ROUNDS`, or of `SAMPLES` inputs of a transcript.
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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from context_session import Session, item, memory, policy, snapshot
from scoped_retrieval.nodes.columns.hidden_characters import escape
from scoped_retrieval.nodes.turns.words import USER_WORDS
from scoped_retrieval.pipeline.context.events import read_events
from scoped_retrieval.pipeline.context.log import SessionLog
from scoped_retrieval.pipeline.context.policy import ContextPolicy
from scoped_retrieval.pipeline.context.projection import Projection
from scoped_retrieval.pipeline.context.transcripts import events_of_transcript
from transcripts import found_in, listed

ROUNDS, SAMPLES, KEPT, BATCH = 15, 12, 20, 640
RESULTS = Path(__file__).parents[1] / "data" / "results" / "context.jsonl"

Row = dict[str, Any]


def milliseconds(work: Callable[[], Any]) -> float:
    """Processor time of one call."""
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000


# --- public transcripts ----------------------------------------------------------------------------------------------


def of_transcript(path: Path, checks: list[str]) -> tuple[Row, list[float]]:
    """The figures of one transcript, and the share of the window that each of its inputs uses."""
    session_id, values, _ = events_of_transcript(path)
    made = ContextPolicy(checks=checks)
    log = read_events(values, session_id)
    rows = log.events
    requests = [row["seq"] for row in rows if row["kind"] == "model.request"]
    turns = [{"asOfSeq": seq, "inputId": str(seq)} for seq in requests]
    begun = time.process_time()
    inputs = made.project_turns(turns=turns, events=log, session_id=session_id)
    batch = (time.process_time() - begun) * 1000
    shown = [seen_by(seen, rows) for seen in inputs]
    sampled = turns[:: -(-len(turns) // SAMPLES)]
    with tempfile.TemporaryDirectory() as folder:
        opened = SessionLog.open(folder, session_id=session_id)
        opened.append(values)
        alone = [milliseconds(lambda: made.project(events=opened.read(), turn=turn)) for turn in sampled]  # noqa: B023 - called at once
    whole = [milliseconds(lambda: made.project(events=values[: turn["asOfSeq"]])) for turn in sampled[-3:]]  # noqa: B023 - called at once
    return {
        "events": len(rows), "inputs": len(requests), "ledger_rows": inputs.tables["context_decisions"].num_rows,
        "batch_ms_per_turn": round(batch / len(turns), 1), "alone_ms": round(statistics.median(alone), 1),
        "from_events_ms": round(statistics.median(whole), 1),
        **{name: sum(each[name] for each in shown) for name in shown[0] if name != "used"},
    }, [each["used"] for each in shown]  # fmt: skip


def seen_by(seen: Projection, rows: list[Row]) -> Row:
    """What one input shows."""
    before, after = rows[: seen.turn["as_of_seq"]], rows[seen.turn["as_of_seq"] :]
    system = " ".join(seen.model_input["system_text"].split())
    words = [row for row in before if row["kind"] in USER_WORDS and row["actor"] == "user" and row["text"]]
    lost = [
        row for row in words
        if " ".join(escape(row["text"]).split()) not in system and not ("user_words_referenced" in seen.conditions and ": open log:" in system)
    ]  # fmt: skip
    edited = next((row["path"] for row in after if row["kind"] == "file.modified"), None)
    known = edited is not None and any(row["path"] == edited and (row["content"] or row["text"]) for row in before)
    return {
        "used": seen.estimated_tokens / (seen.turn["max_tokens"] - seen.turn["reserved_output_tokens"]), "over_budget": int(seen.status != "ok"),
        "dropped_user_messages": len(lost), "current_failures": int(seen.state["currentFailure"] is not None), "edited_next": int(known),
        "edited_shown": int(known and any(row["path"] == edited and row["shown_characters"] for row in seen.decisions)),
    }  # fmt: skip


def of_transcripts(folder: Path) -> Iterable[Row]:
    """A row for each transcript, and one for all of them."""
    checks = {row["sha256"]: [each for each in row["checks"].split("; ") if each] for row in listed()}
    every: list[Row] = []
    used: list[float] = []
    for sha256, path in found_in(folder).items():
        row, mine = of_transcript(path, checks[sha256])
        every.append(row)
        used += mine
        yield {"transcript": sha256[:12], **row, **share(mine)}
    inputs = sum(row["inputs"] for row in every)
    mean = ("batch_ms_per_turn", "alone_ms", "from_events_ms")
    total = {name: sum(row[name] for row in every) for name in every[0] if name not in mean}
    weighted = {name: round(sum(row[name] * row["inputs"] for row in every) / inputs, 1) for name in mean}
    yield {"transcript": f"all {len(every)}", **total, **weighted, **share(used)}


def share(used: list[float]) -> Row:
    return {"window_median": round(statistics.median(used), 3), "window_max": round(max(used), 3)}


# --- the generated session -------------------------------------------------------------------------------------------


def session_of(turns: int) -> tuple[list[Row], list[int]]:
    """A session of so many turns, and where in its log each begins."""
    session = Session("Fix the failing tests.")
    session.add("user.constraint", turn=0, text="Do not change the public API.")
    places: list[int] = []
    bounds: list[str] = []
    for turn in range(turns):
        path = f"src/m{turn % 200}.ts"
        session.add("retrieval.snapshot.created", turn=turn, snapshotId=f"snap-{turn}")
        if turn % 20 == 3:
            bounds.append(session.add("user.constraint", turn=turn, text=f"Do not touch {path}."))
        if turn % 20 == 13 and bounds:
            session.add("constraint.ended", turn=turn, constraintId=bounds.pop())
        session.add("tool.intent", turn=turn, tool="run_command", text="run the tests")
        if turn % 3 == 0:
            session.add("file.modified", turn=turn, path=path, version=str(turn), text=f"change {turn}")
        if turn % 5 == 0:
            content = f"export const m{turn} = {turn};\n" * 20
            session.add("file.read", turn=turn, path=path, version=str(turn), content=content)
        if turn % 50 == 7:
            session.add("memory.revoked", turn=turn, memoryId=f"m{turn % 100}")
        session.failing(
            f"src/m{turn % 200}.test.ts:{turn} expected 1 received 2\n" + f"line {turn} of the log\n" * (20 + turn % 60), turn=turn
        )  # fmt: skip
        places.append(len(session.events))
        session.add("model.request", turn=turn, evidenceIds=[f"ev-{turn % 300}"])
    return session.events, places


def snapshots(turn: int, kept: int = KEPT) -> list[Row]:
    """The snapshot of a turn and those of the `kept` turns before it."""
    return [
        snapshot(
            *(item(f"code#{n}", f"src/m{(each + n) % 200}.ts", f"export const m{each} = {n};", line=n) for n in (1, 2, 3)),
            name=f"snap-{each}", ref=f"{each:04x}",
        )
        for each in range(max(turn - kept, 0), turn + 1)
    ]  # fmt: skip


def of_generated(turns: int) -> Row:
    """The figures of the generated session."""
    events, places = session_of(turns)
    made = policy()
    given: Row = {"memories": [memory(f"m{n}", f"Fact number {n} about this project.") for n in range(20)]}
    rows = [{"asOfSeq": place, "turnId": str(n)} for n, place in enumerate(places)]
    some = rows[-BATCH:]
    log = read_events(events)
    begun = time.process_time()
    found = made.project_turns(turns=some, events=log, snapshots=snapshots(turns - 1, BATCH), **given)
    batch = (time.process_time() - begun) * 1000
    early, last = min(100, turns - 1), turns - 1
    times: dict[int, list[float]] = {early: [], last: []}
    with tempfile.TemporaryDirectory() as folder:
        logs = {turn: SessionLog.open(Path(folder) / str(turn), "session") for turn in times}
        appending = 0.0
        for turn, written in logs.items():
            appending = sum(
                milliseconds(lambda: written.append(events[first : min(first + 64, places[turn])]))  # noqa: B023 - called at once
                for first in range(0, places[turn], 64)
            )
        shown = {turn: snapshots(turn) for turn in times}
        for _ in range(ROUNDS):
            for turn, taken in times.items():
                taken.append(milliseconds(lambda: made.project_turns(
                    turns=[rows[turn]], events=logs[turn].read(), snapshots=shown[turn], **given  # noqa: B023 - called at once
                )))  # fmt: skip
        size = (Path(folder) / str(last) / "EVENTS").stat().st_size
    medians = {turn: statistics.median(taken) for turn, taken in times.items()}
    return {
        "turns": turns, "events": len(events), "ledger_rows": found.tables["context_decisions"].num_rows,
        "batch_ms_per_turn": round(batch / len(some), 2), "early_turn": early, "early_ms": round(medians[early], 1),
        "last_ms": round(medians[last], 1), "last_over_early": round(medians[last] / medians[early], 3),
        "append_ms_per_event": round(appending / places[last], 3), "bytes_per_event": round(size / places[last], 1),
        "over_budget": found.tables["model_inputs"]["status"].to_pylist().count("over_budget"),
    }  # fmt: skip


def main() -> None:
    """Measure, print, and record where told so."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--transcripts", type=Path, help="a folder of transcripts, see transcripts.py")
    parser.add_argument("--turns", type=int, default=10_000, help="turns of the generated session; 0 = none")
    parser.add_argument("--record", action="store_true", help=f"append the rows to {RESULTS.name}")
    options = parser.parse_args()
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    about = {"commit": commit, "python": platform.python_version()}
    generated = [of_generated(options.turns)] if options.turns else []
    for row in (*(of_transcripts(options.transcripts) if options.transcripts else ()), *generated):
        print(json.dumps(row), flush=True)
        if options.record:
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(about | row) + "\n")


if __name__ == "__main__":
    main()
