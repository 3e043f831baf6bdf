"""A record of inputs whose writer is killed at every touch of a file, one after the other, and what is left.

`python killed_log.py record|erase FOLDER` prints how many kills there were. Each is a process of its own, forked from
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

TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate")


def session(count: int) -> list[dict[str, Any]]:
    """A session of so many events: files read and modified, long outputs."""
    kinds = ("file.read", "file.modified", "command.finished")
    events = [
        ("user.goal", {"text": "Fix the failing tests."}),
        ("user.constraint", {"text": "Do not change the API."}),
    ]
    for number in range(2, count):
        text = f"src/m{number}.ts:1 error\n" + "noise\n" * 1500 if number % 3 == 2 else f"text {number}"
        path = {} if number % 3 == 2 else {"path": f"src/m{number % 9}.ts", "version": str(number)}
        events.append((kinds[number % 3], {"text": text, **path}))
    return [
        {"id": f"e{n}", "turnId": str(n // 4), "kind": kind, "createdAt": f"2026-05-20T{8 + n // 60:02}:{n % 60:02}:00Z", "payload": payload}
        for n, (kind, payload) in enumerate(events[:count])
    ]  # fmt: skip


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


def expect(is_so: bool, what: object) -> None:
    """Stop where something is not so: asserts may be off."""
    if not is_so:
        sys.exit(f"not so: {what}")


@cache
def inputs() -> Any:
    """Three inputs that show a row of evidence, made once."""
    from context_session import item, policy, snapshot

    turns = [{"asOfSeq": place, "turnId": str(place), "snapshotIds": ["snap-1"]} for place in (2, 4, 6)]
    shown = [snapshot(item(evidence_id="ev-1"))]
    return policy().project_turns(turns=turns, events=session(8), snapshots=shown, session_id="session")


def readable(store: Any) -> bool:
    """Whether every record that is listed replays."""
    return all(store.replay(name).record for manifest in store.records() for name in manifest["inputs"])


def record(folder: Path, step: int) -> bool:
    from scoped_retrieval.pipeline.context.store import ContextStore

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
    from scoped_retrieval.pipeline.context.store import ContextStore

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
    step = 0
    while True:
        work = folder / "work"
        work.mkdir()
        killed = {"record": record, "erase": erase}[what](work, step)
        shutil.rmtree(work)
        if not killed:
            break
        step += 1
    print(step)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
