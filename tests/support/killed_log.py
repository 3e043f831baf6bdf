"""A session log, or a record of inputs, whose writer is killed at every touch of a file, one after the other, and what is left.

`python killed_log.py append|compact|create|record|erase FOLDER` prints how many kills there were. Each is a process of its own, forked from
this one: touches are audit events of opening, renaming, removing, cutting and making folders below the folder, and syncs.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from context_session import Session, item, policy, snapshot
from scoped_retrieval.pipeline.context.log import SessionLog
from scoped_retrieval.pipeline.context.log_lines import EVERY
from scoped_retrieval.pipeline.context.store import ContextStore

TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate")
BEFORE, AFTER = 2 * EVERY + 2, 3 * EVERY + 8


def session(count: int) -> list[dict[str, Any]]:
    """A session of so many events: files read and modified, a long output, a constraint."""
    made = Session()
    made.add("user.constraint", turn=0, text="Do not change the public API.")
    for number in range(2, count):
        if number % 40 == 21:
            made.failing(f"src/m{number}.ts:1 error\n" + "noise\n" * 1500, turn=number // 4)
        else:
            kind = ("file.read", "file.modified")[number % 2]
            made.add(kind, turn=number // 4, path=f"src/m{number % 9}.ts", version=str(number), text=f"text {number}")
    return made.events


def killed_at(step: int, folder: Path, action: Callable[[], object]) -> bool:
    """Whether a process that does this was killed at a touch; it ended before where there are fewer."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    touches = 0

    def touched() -> None:
        nonlocal touches
        touches += 1
        if touches > step:
            os._exit(9)

    def watch(event: str, args: tuple[object, ...]) -> None:
        if event in TOUCHES and args and str(folder) in str(args[0]):
            touched()

    sync = os.fsync

    def counted_sync(handle: int) -> None:
        touched()
        sync(handle)

    os.fsync = counted_sync
    sys.addaudithook(watch)
    action()
    os._exit(0)


def ids(log: SessionLog) -> list[str]:
    return log.read().tables.events["event_id"].to_pylist()


def expect(is_so: bool, what: object) -> None:
    """Stop where something is not so: asserts may be off."""
    if not is_so:
        sys.exit(f"not so: {what}")


def facts(log: SessionLog, at: int) -> list[dict[str, Any]]:
    return log.view(at).facts.to_pylist()


def append(folder: Path, step: int) -> bool:
    events = session(AFTER)
    killed = killed_at(step, folder, lambda: SessionLog.open(folder).append(events[BEFORE:]))
    found = ids(SessionLog.open(folder))
    expect(
        found == [event["id"] for event in events[: len(found)]] and len(found) in (BEFORE, AFTER), (step, len(found))
    )
    view = SessionLog.open(folder).view()
    expect(view.tables.events["seq"].to_pylist()[-1] == len(found) - 1, (step, "the end"))
    log = SessionLog.open(folder)
    expect(log.append(events) == AFTER - len(found), (step, "the rest is appended"))
    expect(ids(log) == [event["id"] for event in events], (step, "every event once"))
    checkpoints = {file.name for file in (folder / "checkpoints").iterdir()}
    expect({f"{EVERY * n}.checkpoint" for n in (1, 2, 3)} <= checkpoints, (step, checkpoints))
    expect(all(row["from_seq"] < 3 * EVERY for row in facts(log, AFTER)), (step, "facts of a checkpoint"))
    return killed


def compact(folder: Path, step: int) -> bool:
    events = session(AFTER)
    killed = killed_at(step, folder, lambda: SessionLog.open(folder).compact())
    expect(ids(SessionLog.open(folder)) == [event["id"] for event in events[:BEFORE]], (step, "every event once"))
    log = SessionLog.open(folder)
    expect(log.append(events) == AFTER - BEFORE and log.compact() >= AFTER - BEFORE, (step, "it goes on"))
    expect(ids(SessionLog.open(folder)) == [event["id"] for event in events], (step, "every event once, later"))
    left = sorted(file.name for file in folder.rglob("*") if file.name.startswith(".tmp-"))
    expect(not left and not list(folder.glob("events*.jsonl")), (step, left))
    return killed


def create(folder: Path, step: int) -> bool:
    shutil.rmtree(folder)
    killed = killed_at(step, folder, lambda: SessionLog.open(folder, session_id="session"))
    log = SessionLog.open(folder, session_id="session")
    expect(log.append(session(3)) == 3 and ids(log) == ["e0", "e1", "e2"], (step, "a new log"))
    return killed


@cache
def inputs() -> Any:
    """Three inputs that show a row of evidence, made once."""
    turns = [{"asOfSeq": place, "turnId": str(place), "snapshotIds": ["snap-1"]} for place in (2, 4, 6)]
    shown = [snapshot(item(evidence_id="ev-1"))]
    return policy().project_turns(turns=turns, events=session(8), snapshots=shown, session_id="session")


def readable(store: ContextStore) -> bool:
    """Whether every record that is listed replays."""
    return all(store.replay(name).record for manifest in store.records() for name in manifest["inputs"])


def record(folder: Path, step: int) -> bool:
    made, store = inputs(), ContextStore(str(folder), principal="ana")
    killed = killed_at(step, folder, lambda: store.record(made))
    expect(len(store.records()) <= 1 and readable(store), (step, "whole or not there"))
    store.erase(["ev-1"])
    left = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    expect(b"export const a" not in left, (step, "erased from what was left"))
    shutil.rmtree(folder / "contexts", ignore_errors=True)
    store.record(made)
    expect(store.replay("session/4").projection.text() == made[1].text(), (step, "recorded by asking again"))
    return killed


def erase(folder: Path, step: int) -> bool:
    store = ContextStore(str(folder), principal="ana")
    store.record(inputs())
    killed = killed_at(step, folder, lambda: store.erase(["ev-1"]))
    expect(readable(store), (step, "can be read"))
    store.erase(["ev-1"])
    expect(store.replay("session/4").erased == ("item:snap-1:code#1",), (step, "erased"))
    left = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    expect(b"export const a" not in left and b"erasing" not in left, (step, "nothing is left"))
    return killed


def main(what: str, folder: Path) -> None:
    before = folder / "before"
    log = SessionLog.open(before, session_id="session")
    log.append(session(BEFORE)[:70])
    if what == "compact":
        log.compact()
    log.append(session(BEFORE))
    step = 0
    while True:
        work = folder / "work"
        shutil.copytree(before, work)
        killed = {"append": append, "compact": compact, "create": create, "record": record, "erase": erase}[what](
            work, step
        )
        shutil.rmtree(work)
        if not killed:
            break
        step += 1
    print(step)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
