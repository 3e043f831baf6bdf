"""A session log whose writer is killed, whose disk is full, whose files are damaged, or that several write: no event is lost, none comes twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import killed_log
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from context_session import Session, memory, policy
from golden_file import expect_golden
from hypothesis import given, settings
from hypothesis import strategies as st
from power_loss import Disk
from scoped_retrieval.nodes.context_state import latest_assertions
from scoped_retrieval.nodes.context_tables import STATE_FACTS
from scoped_retrieval.nodes.errors import BusyError, InputError, StoreError
from scoped_retrieval.nodes.turns.words import EVENT_KINDS
from scoped_retrieval.pipeline.context import checkpoints
from scoped_retrieval.pipeline.context.checkpoints import Checkpoint, base_of
from scoped_retrieval.pipeline.context.events import read_events
from scoped_retrieval.pipeline.context.log import SessionLog
from scoped_retrieval.pipeline.context.log_lines import EVERY, LogLines
from scoped_retrieval.pipeline.context.sessions import open_reference, read_session

EVENTS = killed_log.session(6 * EVERY - 4)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of all events, written at two times."""
    folder = tmp_path_factory.mktemp("stored") / "s"
    log = SessionLog.open(folder, session_id="session")
    log.append(EVENTS[:200])
    log.append(EVENTS[200:])
    return folder


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "s"))


def ids(log: SessionLog) -> list[str]:
    return log.read().tables.events["event_id"].to_pylist()


WRITTEN = [event["id"] for event in EVENTS]


def text(view: Any, at: int) -> str:
    made = policy().project_turns(
        turns=[{"asOfSeq": at, "turnId": "t", "inputId": "x"}], events=view.tables, facts=view.facts, session_id="session",
        budget={"maxTokens": 3000},
    )  # fmt: skip
    return made[0].text()


@pytest.mark.parametrize("what", ["append", "compact", "create"])
def test_a_writer_that_is_killed_at_any_step_leaves_every_event_once(what: str, tmp_path: Path):
    command = [sys.executable, killed_log.__file__, what, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(killed_log.__file__).parent)
    assert found.returncode == 0, found.stderr[-2000:]
    assert int(found.stdout) > {"append": 20, "compact": 15, "create": 5}[what]


def test_a_line_that_was_torn_at_any_byte_is_left_out_and_told_and_removed_by_the_next_append(folder: Path):
    file = folder / "events.jsonl"
    whole = file.read_bytes()
    before = whole.rfind(b"\n", 0, -1) + 1
    for size in range(before + 1, len(whole), 11):
        file.write_bytes(whole[:size])
        view = SessionLog.open(folder).view()
        assert view.tables.events["event_id"].to_pylist()[-1] == WRITTEN[-2]
        note = f"events.jsonl ends with {size - before} bytes"
        assert [each.startswith(note) for each in view.notes] == [True]
        log = SessionLog.open(folder)
        assert log.append(EVENTS) == 1
        assert log.notes == [f"{size - before} bytes of an append that was interrupted were removed"]
        assert SessionLog.open(folder).view().notes == []
        assert file.read_bytes() == whole and log.count() == len(EVENTS)


@pytest.mark.parametrize("place", [0, 70, len(EVENTS) - 2])
@pytest.mark.parametrize("damage", ["{damaged", "", "{}{}", '{"id": "\\ud800"}'])
def test_a_damaged_line_is_an_error_that_names_file_line_and_remedy_wherever_one_looks(
    folder: Path, place: int, damage: str
):
    file = folder / "events.jsonl"
    lines = file.read_text().split("\n")
    lines[place] = damage
    file.write_text("\n".join(lines))
    log = SessionLog.open(folder)
    opened = (lambda: log.open_ref("event:e3"), lambda: log.open_ref("log:3-4"))
    for asked in (
        log.view, log.read, log.count, log.compact, lambda: log.append([EVENTS[0]]), lambda: log.view(300), *opened,
    ):  # fmt: skip
        with pytest.raises(StoreError, match=rf"events\.jsonl:{place + 1}\b") as caught:
            asked()
        assert "restore the file from a backup" in caught.value.hint
    assert not list((folder / "parts").iterdir()), "nothing was compacted"


@pytest.mark.parametrize("place", [0, 70, len(EVENTS) - 1])
def test_an_event_that_was_rewritten_is_noticed(folder: Path, place: int):
    file = folder / "events.jsonl"
    lines = file.read_text().split("\n")
    lines[place] = lines[place].replace('"createdAt":"2026', '"createdAt":"2025')
    file.write_text("\n".join(lines))
    with pytest.raises(StoreError, match=r"Expected the events that were written, got others from event") as caught:
        SessionLog.open(folder).view()
    low, high = (int(word) for word in caught.value.message.split(" from event ")[1].split(" - at")[0].split(" to "))
    assert low <= place <= high < low + EVERY
    lines_named = f"events.jsonl:{low + 1}" + (f" to {high + 1}" if high > low else "")
    assert caught.value.message.endswith(lines_named) and "remove head.json" in caught.value.hint
    assert high == low or place < len(EVENTS) - 1, "the chain before the last event is known: that one is named alone"
    (folder / "head.json").unlink()
    view = SessionLog.open(folder).view()
    assert (text(view, len(EVENTS)), len(ids(SessionLog.open(folder)))) == (
        text(SessionLog.open(folder).read(), len(EVENTS)),
        len(EVENTS),
    ), "the log as it now is; no checkpoint of other lines was used"


def test_a_reference_to_an_event_that_was_rewritten_is_not_opened(folder: Path):
    log = SessionLog.open(folder)
    assert "src/m7.ts" in log.open_ref("event:e7")
    file = folder / "events.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"path":"src/m7.ts"', b'"path":"src/m8.ts"', 1))
    for reference in ("event:e7", "event:e6", "log:0-20"):
        with pytest.raises(StoreError, match=r"got others from event 0 to 63 - at .*/events\.jsonl:1 to 64"):
            log.open_ref(reference)
    file.write_bytes(file.read_bytes().replace(b'"path":"src/m8.ts"', b'"path":"src/m7.ts"', 1))
    assert "src/m7.ts" in log.open_ref("event:e7")


@pytest.mark.parametrize(("first", "again"), [(70, 5), (64, 5), (8, 5), (8, 1)])
def test_an_event_that_was_rewritten_behind_a_part_is_looked_for_in_its_own_file(
    tmp_path: Path, first: int, again: int
):
    log = SessionLog.open(tmp_path / "log", session_id="session")
    log.append(EVENTS[:first])
    log.compact()
    log.append(EVENTS[first : first + again])
    file = tmp_path / "log" / f"events-{first}.jsonl"
    data = file.read_bytes()
    file.write_bytes(data.replace(b'"createdAt":"2026', b'"createdAt":"2025', 1))
    last = max(first, first + again - 2)  # the last event alone is not it: the chain before it is another as well
    lines = f"{first}.jsonl:1 to {again - 1}" if again > 1 else f"{first}.jsonl:1"
    with pytest.raises(StoreError, match="got others from event") as caught:
        SessionLog.open(tmp_path / "log").open_ref("event:e0")
    assert f"from event {first} to {last} - at " in caught.value.message
    assert caught.value.message.endswith(f"events-{lines}")
    file.write_bytes(data)
    (part,) = parts_in(tmp_path / "log")
    table = pq.read_table(part)
    rows = table["line"].to_pylist()
    rows[2] = rows[2].replace(b'"createdAt":"2026', b'"createdAt":"2025')
    pq.write_table(pa.table({"line": pa.array(rows, pa.large_binary())}), part)
    last = min(first, EVERY)
    with pytest.raises(StoreError, match=f"from event 0 to {last - 1} - at .*{part.name}: row 1 to {last}\n"):
        SessionLog.open(tmp_path / "log").view()


def test_a_torn_line_that_was_removed_is_no_lost_event_where_the_append_stopped_behind_it(
    folder: Path, monkeypatch: Any
):
    file = folder / "events.jsonl"
    file.write_bytes(file.read_bytes()[:-7])
    log = SessionLog.open(folder)
    monkeypatch.setattr(type(log._lines), "append", _stopped)
    with pytest.raises(KeyboardInterrupt):
        log.append(EVENTS)
    monkeypatch.undo()
    assert SessionLog.open(folder).view().notes == [] and SessionLog.open(folder).append(EVENTS) == 1


def _stopped(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_log_whose_head_is_gone_is_what_its_lines_say(folder: Path):
    file = folder / "events.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    (folder / "head.json").unlink()
    assert SessionLog.open(folder).count() == len(EVENTS) - 1


@pytest.mark.parametrize("place", [0, 1, 70, len(EVENTS) - 2, len(EVENTS) - 1])
def test_one_line_that_is_gone_is_noticed_wherever_it_stood(folder: Path, place: int):
    file = folder / "events.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:place], *lines[place + 1 :]]))
    log = SessionLog.open(folder)
    for asked in (log.view, log.count, log.compact, lambda: log.append([EVENTS[0]])):
        with pytest.raises(
            StoreError, match=rf"Expected the {len(EVENTS)} events that were written, got {len(EVENTS) - 1}"
        ):
            asked()


def test_a_lost_last_line_does_not_excuse_one_that_was_rewritten(folder: Path):
    file = folder / "events.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    assert '"createdAt":"2026' in lines[3]
    lines[3] = lines[3].replace('"createdAt":"2026', '"createdAt":"2025')
    file.write_text("".join(lines[:-1]))
    with pytest.raises(
        StoreError, match=rf"Expected the {len(EVENTS)} events that were written, got {len(EVENTS) - 1}"
    ):
        SessionLog.open(folder).view()


def test_events_that_are_gone_are_noticed(folder: Path):
    file = folder / "events.jsonl"
    file.write_text("".join(f"{line}\n" for line in file.read_text().splitlines()[:-3]))
    with pytest.raises(StoreError, match=f"the {len(EVENTS)} events that were written, got {len(EVENTS) - 3}"):
        SessionLog.open(folder).view()


@contextmanager
def full(bytes_: int) -> Iterator[None]:
    """A disk on which no file grows beyond some bytes."""
    resource = pytest.importorskip("resource", reason="needs limits on what a process writes")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_an_append_that_a_full_disk_stopped_leaves_the_file_as_it_was(folder: Path):
    file, log = folder / "events.jsonl", SessionLog.open(folder)
    before = file.read_bytes()
    more = Session()
    more.events[:] = EVENTS
    for number in range(80):
        more.add("file.read", turn=900, path="src/late.ts", version=str(number), text="late " * 20)
    size = sum(len(json.dumps(event)) for event in more.events[len(EVENTS) :])
    for room in range(0, size - 80 * 40, size // 9):
        with (
            full(len(before) + room),
            pytest.raises(StoreError, match="File too large: ") as caught,
        ):
            log.append(more.events)
        assert caught.value.hint == "no event was added: free disk space and append them again"
        assert file.read_bytes() == before and ids(SessionLog.open(folder)) == WRITTEN
    assert log.append(more.events) == 80 and ids(log)[: len(EVENTS)] == WRITTEN


def test_events_are_safe_where_the_disk_takes_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log = SessionLog.open(tmp_path / "s", session_id="session")
    shutil.rmtree(tmp_path / "s" / "checkpoints")
    (tmp_path / "s" / "checkpoints").write_text("a file where a folder must be")
    assert log.append(EVENTS[:100]) == 100
    assert any("could not be written" in sentence and "safe" in sentence for sentence in log.notes), log.notes
    (tmp_path / "s" / "checkpoints").unlink()
    (tmp_path / "s" / "checkpoints").mkdir()
    assert SessionLog.open(tmp_path / "s").append(EVENTS) == len(EVENTS) - 100
    assert (tmp_path / "s" / "checkpoints" / f"{EVERY}.checkpoint").exists(), "it was written later"


def test_a_compaction_that_a_full_disk_stopped_leaves_the_log_as_it_was(folder: Path):
    log = SessionLog.open(folder)
    with full(1000), pytest.raises(StoreError, match="File too large: "):
        log.compact()
    assert ids(log) == WRITTEN and not list((folder / "parts").iterdir())
    assert log.compact() == len(EVENTS) and ids(log) == WRITTEN


def test_a_damaged_part_is_named(folder: Path):
    SessionLog.open(folder).compact()
    (part,) = (folder / "parts").iterdir()
    data = part.read_bytes()
    part.write_bytes(data[: len(data) // 2])
    for asked in (SessionLog.open(folder).view, SessionLog.open(folder).read):
        with pytest.raises(StoreError, match="Expected a whole part of the log, got a damaged one") as caught:
            asked()
        assert part.name in caught.value.message and "restore the file from a backup" in caught.value.hint


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """A log of three parts."""
    log = SessionLog.open(tmp_path / "s", session_id="session")
    for start in (0, 100, 200):
        log.append(EVENTS[start : start + 100])
        log.compact()
    return sorted((tmp_path / "s" / "parts").iterdir())


def test_a_part_that_is_missing_is_named(parts: list[Path]):
    parts[1].unlink()
    message = f"Expected a part that begins with event 100, got events 200 to {len(EVENTS[:300]) - 1} - at {parts[2]}"
    with pytest.raises(StoreError, match="a part before it is missing: restore the file") as caught:
        SessionLog.open(parts[0].parent.parent).view()
    assert caught.value.message == message


def test_parts_that_overlap_are_told_apart_from_one_that_is_missing(parts: list[Path]):
    shutil.copy(parts[1], parts[1].with_name("000000000050-000000000150.parquet"))
    with pytest.raises(StoreError, match="the part before it has the same events: move the one away") as caught:
        SessionLog.open(parts[0].parent.parent).view()
    assert "Expected a part that begins with event 100, got events 50 to 149" in caught.value.message


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone", "foreign"])
@pytest.mark.parametrize("mark", [EVERY, 4 * EVERY, 5 * EVERY])
def test_a_damaged_checkpoint_is_passed_over_told_and_made_again(
    folder: Path, stored: Path, tmp_path: Path, mark: int, damage: str
):
    SessionLog.open(folder).view()
    file = folder / "checkpoints" / f"{mark}.checkpoint"
    before = data = file.read_bytes()
    if damage == "foreign":
        other = SessionLog.open(tmp_path / "other", session_id="session")
        other.append([{**event, "createdAt": event["createdAt"].replace("2026", "2025")} for event in EVENTS])
        before, data = data, (tmp_path / "other" / "checkpoints" / file.name).read_bytes()
    changed = {
        "cut": data[:-9],
        "flipped": data[:400] + bytes([data[400] ^ 1]) + data[401:],
        "empty": b"",
        "foreign": data,
    }
    file.unlink()
    if damage != "gone":
        file.write_bytes(changed[damage])
    at = mark + 60
    view = SessionLog.open(folder).view(at)
    assert text(view, at) == text(SessionLog.open(folder).read(), at)
    if damage != "gone":
        assert [note.split(" was ")[0] for note in view.notes] == [f"the checkpoint at event {mark}"]
        assert file.read_bytes() == before, "it was made again"
        assert SessionLog.open(folder).view(at).notes == []
    else:
        SessionLog.open(folder).append([*EVENTS, {**EVENTS[-1], "id": "one-more"}])
        assert file.exists()


def test_checkpoints_of_an_earlier_format_are_passed_over_told_and_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    SessionLog.open(folder).view()
    file = folder / "checkpoints" / f"{EVERY}.checkpoint"
    before = file.read_bytes()
    made = Checkpoint.from_bytes(before, "session")
    others = pa.array(["as it was named then"] * made.facts.num_rows, pa.string())
    old = replace(made, facts=made.facts.set_column(2, made.facts.schema.field(2), others))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "FORMAT", checkpoints.FORMAT - 1)
        file.write_bytes(old.to_bytes("session"))
    at = EVERY + 60
    view = SessionLog.open(folder).view(at)
    assert text(view, at) == text(SessionLog.open(folder).read(), at)
    assert view.notes == [f"the checkpoint at event {EVERY} was not used: of another session or version"]
    assert file.read_bytes() == before and SessionLog.open(folder).view(at).notes == []


def test_a_checkpoint_knows_that_other_code_lies_in_the_place_of_the_work(tmp_path: Path):
    session = Session()
    session.failing("a.py:3 boom", command="pytest")
    session.add("command.finished", turn=1, command="git stash", exitCode=0, stdout="")
    for number in range(2 * EVERY):
        session.add("command.finished", turn=2, command=f"ls {number}", exitCode=0, stdout="x")
    session.add("command.finished", turn=3, command="pytest", exitCode=0, stdout="3 passed in 0.10s")
    log = SessionLog.open(tmp_path, session_id="session")
    log.append(session.events)
    for each in (log, SessionLog.open(tmp_path)):
        assert "current failure: a.py:3 boom" in text(each.view(), len(session.events))


@pytest.mark.golden
def test_a_fold_that_gives_other_facts_has_another_format():
    """Otherwise checkpoints of a log would go on saying what an earlier version made of its events."""
    session = Session()
    for origin in ({}, {"origin": "mcp"}, {"origin": "model"}):
        for kind in EVENT_KINDS.values:
            said = {
                "text": f"Never {kind}.",
                "command": "pnpm test",
                "path": "src/a.ts",
                "version": "1",
                "phase": "editing",
            }
            session.add(kind, turn=1, **(memory() | origin | said), snapshotId="s", evidenceIds=["e"])
    found = latest_assertions(read_events(session.events).events, STATE_FACTS.empty())
    told = [" ".join(json.dumps(value, default=str) for value in row.values()) for row in found.to_pylist()]
    golden = Path(__file__).parent / "golden" / "checkpoint_facts.txt"
    stated, _, facts = golden.read_text(encoding="utf-8").partition("\n") if golden.exists() else ("", "", "")
    made = "\n".join(told) + "\n"
    assert facts == made or stated != f"format {checkpoints.FORMAT}", "raise FORMAT in pipeline/context/checkpoints.py"
    expect_golden(golden, f"format {checkpoints.FORMAT}\n{made}")


def test_checkpoints_take_no_more_than_a_share_of_their_log(tmp_path: Path):
    """A session that names a new file at every event, so that its state grows as it does."""
    sizes = {}
    for count in (512, 2048):
        session = Session()
        for number in range(1, count):
            session.add(
                "file.modified",
                turn=number // 4,
                path=f"src/module_{number}.ts",
                version=str(number),
                text=f"change {number} " * 12,
            )
        log = SessionLog.open(tmp_path / str(count), session_id="session")
        log.append(session.events)
        written = (tmp_path / str(count) / "events.jsonl").stat().st_size
        sizes[count] = sum(file.stat().st_size for file in (tmp_path / str(count) / "checkpoints").iterdir()) / written
        at = count - 40
        assert text(log.view(at), at) == text(log.read(), at)
        assert log.view(at).tables.events.num_rows < EVERY + 100
    assert sizes[2048] < 0.36 and sizes[2048] < 1.4 * sizes[512], sizes


def test_a_checkpoint_continues_one_that_is_there():
    for block in range(1, 200):
        assert base_of(block * EVERY) in range(0, block * EVERY, EVERY)
        steps, seq = 0, block * EVERY
        while seq:
            seq, steps = base_of(seq), steps + 1
        assert steps == block.bit_count()


def test_two_objects_append_to_one_log(tmp_path: Path):
    one = SessionLog.open(tmp_path / "s", session_id="session")
    two = SessionLog.open(tmp_path / "s")
    assert (one.append(EVENTS[:10]), two.append(EVENTS[:12]), one.append(EVENTS[:14])) == (10, 2, 2)
    with pytest.raises(InputError, match="'e11' again with other words"):
        one.append([{**EVENTS[11], "payload": {"text": "rewritten"}}])
    assert two.compact() == 14 and one.append(EVENTS[:90]) == 76 and two.append(EVENTS) == len(EVENTS) - 90
    assert ids(one) == ids(two) == WRITTEN
    assert text(one.view(), len(EVENTS)) == text(one.read(), len(EVENTS))


APPENDER = """
import sys, json
from scoped_retrieval.pipeline.context.log import SessionLog
log = SessionLog.open(sys.argv[1])
for line in open(sys.argv[2]):
    log.append([json.loads(line)])
"""


def test_two_processes_append_to_one_log(tmp_path: Path):
    SessionLog.open(tmp_path / "s", session_id="session")
    writers = []
    for name in "ab":
        lines = [json.dumps({**event, "id": f"{name}-{event['id']}"}) for event in EVENTS[:70]]
        lines += [json.dumps(event) for event in EVENTS[:40]]  # both bring these
        (tmp_path / name).write_text("\n".join(lines))
        writers.append(subprocess.Popen([sys.executable, "-c", APPENDER, str(tmp_path / "s"), str(tmp_path / name)]))
    assert [writer.wait() for writer in writers] == [0, 0]
    found = ids(SessionLog.open(tmp_path / "s"))
    assert len(found) == len(set(found)) == 180
    for name in "ab":
        assert [id_ for id_ in found if id_.startswith(name)] == [f"{name}-{each}" for each in WRITTEN[:70]]
    log = SessionLog.open(tmp_path / "s")
    assert text(log.view(), 180) == text(log.read(), 180)


def test_a_writer_waits_for_another_one_and_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch):
    from scoped_retrieval.pipeline.context import log as module
    from scoped_retrieval.pipeline.storage.locks import hold

    lock = hold(folder / "events")
    assert lock is not None
    held = module.held
    monkeypatch.setattr(module, "held", lambda place, _timeout, *said: held(place, 0.0, *said))
    with pytest.raises(BusyError, match="being written by another process"):
        SessionLog.open(folder).append(EVENTS)
    assert SessionLog.open(folder).view().tables.events.num_rows, "reading waits for nobody"
    lock.release()


def test_what_json_has_not_is_refused_by_name(tmp_path: Path):
    log = SessionLog.open(tmp_path / "s", session_id="session")
    event = EVENTS[0]
    for payload, message in (
        ({"text": "\ud800"}, r"Expected Unicode text, got a lone surrogate - at events\[0\]"),
        ({"text": {1, 2}}, r"Expected JSON values, got set - at events\[0\]"),
        ({"text": "a", "n": float("nan")}, r"Expected JSON values, got NaN or infinity - at events\[0\]"),
    ):
        with pytest.raises(InputError, match=message):
            log.append([{**event, "payload": payload}])
    with pytest.raises(InputError, match=r"Expected a JSON object, got text - at events\[0\]"):
        log.append(["text"])  # type: ignore[list-item]
    assert log.count() == 0 and log.view().tables.events.num_rows == 0


def test_an_event_with_a_time_of_python_is_the_same_event_when_it_is_read_again(tmp_path: Path):
    from datetime import datetime

    event = {**EVENTS[0], "createdAt": datetime.fromisoformat(EVENTS[0]["createdAt"])}
    assert SessionLog.open(tmp_path / "s", session_id="session").append([event]) == 1
    assert SessionLog.open(tmp_path / "s").append([event]) == 0


def test_a_clock_that_goes_back_and_events_that_come_twice_are_told(tmp_path: Path):
    file = tmp_path / "s.jsonl"
    late = {**EVENTS[3], "createdAt": "2020-01-01T00:00:00Z"}
    file.write_text("".join(json.dumps(event) + "\n" for event in [*EVENTS[:3], late, *EVENTS[4:8], EVENTS[5]]))
    _, view = read_session(file)
    assert view.notes == [
        "the clock went back before 1 event: events keep the order of the log", "1 event came again and was left out",
    ]  # fmt: skip
    assert view.tables.events["event_id"].to_pylist() == WRITTEN[:8]


def test_a_file_that_is_being_written_is_read_up_to_its_last_whole_line(tmp_path: Path):
    file = tmp_path / "s.jsonl"
    whole = "".join(json.dumps(event) + "\n" for event in EVENTS[:5])
    file.write_text(whole[:-30])
    _, view = read_session(file)
    assert view.tables.events.num_rows == 4 and view.notes[0].startswith("line 5 is unfinished")
    file.write_text(whole[:-1])
    assert read_session(file)[1].tables.events.num_rows == 5, "a whole line without a newline is an event"
    assert (
        open_reference(file, "log:1-2").count('"id"') == 2
        and json.loads(open_reference(file, "event:e2"))["id"] == "e2"
    )


@pytest.mark.parametrize("data", [b"\x00\x00\x00", b"\x7fELF\x02\x01", b"\x1f\x8b\x08\x00", b"a note", b"[{}"])
def test_a_file_that_is_no_log_is_no_empty_session(data: bytes, tmp_path: Path):
    file = tmp_path / "s.jsonl"
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"s\.jsonl:1"):
        read_session(file)


def test_a_damaged_text_is_no_artifact(folder: Path):
    (file, *_) = (folder / "artifacts").iterdir()
    file.write_text("another text")
    with pytest.raises(StoreError, match="Expected the text of artifact:"):
        SessionLog.open(folder).open_ref(f"artifact:{file.stem}")


def test_there_is_no_place_behind_the_end(folder: Path):
    with pytest.raises(InputError, match=f"Expected a place in the log from 0 to {len(EVENTS)}, got 999"):
        SessionLog.open(folder).view(999)


def test_a_clock_that_goes_back_is_a_condition_of_the_turns_that_see_it():
    session = Session()
    for number in range(60):
        session.add("file.read", turn=number, path="a.ts", version=str(number), text="a")
    session.events[5]["createdAt"] = "2020-01-01T00:00:00Z"
    turns = [{"asOfSeq": at, "inputId": str(at)} for at in (5, 6, 53, 54)]
    batch = policy().project_turns(turns=turns, events=session.events, budget={"maxTokens": 9000})
    assert ["clock_backwards" in seen.conditions for seen in batch] == [False, True, False, False]
    session.events[5]["createdAt"] = session.events[4]["createdAt"]
    turns = [{"asOfSeq": 6, "inputId": "6"}]
    assert "clock_backwards" not in policy().project_turns(turns=turns, events=session.events)[0].conditions


def test_an_unknown_field_of_a_turn_is_refused_by_name():
    with pytest.raises(InputError, match=r"Expected one of inputId, turnId, .*, got 'turnid' - at turns\[0\]"):
        policy().project(events=EVENTS[:3], turn={"turnid": "9"})
    with pytest.raises(InputError, match=r"Expected an object, got text - at turns\[1\]"):
        policy().project_turns(turns=[{}, "9"], events=EVENTS[:3])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ({"events": [{**EVENTS[0], "payload": {"text": "a \ud800"}}]}, r"events\[0\]"),
        ({"memories": [{"memoryId": "m", "text": "a \ud800"}]}, r"memories\[0\]"),
        ({"state": {"userGoal": "a \ud800"}}, "state"),
        ({"turn": {"turnId": "a \ud800"}}, r"turns\[0\]"),
        ({"snapshots": [{"snapshot_id": "s", "items": [{"label": "code#1", "text": "a \ud800"}]}]}, "snapshots"),
    ],
)
def test_half_a_character_is_refused_wherever_it_stands(given: dict[str, Any], at: str):
    with pytest.raises(InputError, match=f"Expected Unicode text, got a lone surrogate - at {at}"):
        policy().project(**{"events": EVENTS[:3], **given})
    with pytest.raises(InputError, match=r"got a lone surrogate - at rules\[0\]"):
        policy(rules=["a \ud800"])


def test_an_append_and_a_compaction_are_on_disk_when_they_return(tmp_path: Path):
    disk = Disk()
    with disk.watched():
        log = SessionLog.open(tmp_path / "s", session_id="session")
        log.append(EVENTS[:100])
        assert (
            disk.lost(tmp_path / "s" / "events.jsonl", tmp_path / "s" / "session.json", tmp_path / "s" / "artifacts")
            == []
        )
        before = len(disk.calls)
        log.append(EVENTS[:110])
        assert ("sync", tmp_path / "s" / "events.jsonl") in disk.calls[before:]
        log.compact()
        assert disk.lost(tmp_path / "s" / "parts") == []


def test_a_compaction_between_two_looks_of_a_reader_hides_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch):
    looked = []
    parts = LogLines._parts

    def compacted_after(self: LogLines) -> Any:
        found = parts(self)
        if not looked:
            looked.append(True)
            SessionLog.open(folder).compact()
        return found

    monkeypatch.setattr(LogLines, "_parts", compacted_after)
    assert ids(SessionLog.open(folder)) == WRITTEN


def test_a_reader_sees_what_stood_when_it_began(folder: Path):
    with LogLines(folder).opened() as lines:
        SessionLog.open(folder).append([{**EVENTS[-1], "id": "later"}])
        SessionLog.open(folder).compact()
        assert [json.loads(line)["id"] for _, line in lines.read()] == WRITTEN


STEPS = st.lists(
    st.sampled_from(["append", "append", "append", "compact", "tear", "no head", "no checkpoint", "bad checkpoint", "reopen", "view"]),
    min_size=3, max_size=14,
)  # fmt: skip


@settings(max_examples=100 if os.environ.get("TEST_PROFILE") == "full" else 12, deadline=None)
@given(STEPS, st.data())
def test_whatever_happens_to_a_log_its_events_stay_and_a_turn_is_the_turn_from_all_of_them(
    steps: list[str], data: st.DataObject
):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "s"
        log, count = SessionLog.open(path, session_id="session"), 0
        for step in steps:
            files = sorted((path / "checkpoints").iterdir())
            if step == "append":
                more = count + data.draw(st.sampled_from([1, 3, 63, 64, 65, 130]))
                more = min(more, len(EVENTS))
                assert log.append(EVENTS[:more]) == more - count
                count = more
            elif step == "compact":
                log.compact()
            elif step == "tear":
                with (path / f"events{f'-{log.count() - lines_in(path)}' if parts_in(path) else ''}.jsonl").open(
                    "ab"
                ) as file:
                    file.write(b'{"id": "torn", "kind"')
            elif step == "no head":
                (path / "head.json").unlink(missing_ok=True)
            elif step == "no checkpoint" and files:
                data.draw(st.sampled_from(files)).unlink()
            elif step == "bad checkpoint" and files:
                data.draw(st.sampled_from(files)).write_bytes(b"damaged")
            elif step == "reopen":
                log = SessionLog.open(path)
            elif step == "view":
                at = data.draw(st.integers(0, count))
                assert text(log.view(at), at) == text(log.read(), at)
        assert ids(log) == WRITTEN[:count] and log.count() == count
        assert text(log.view(), count) == text(log.read(), count)


def parts_in(path: Path) -> list[Path]:
    return sorted((path / "parts").iterdir())


def lines_in(path: Path) -> int:
    """The whole lines of the file that grows."""
    return sum(file.read_bytes().count(b"\n") for file in path.glob("events*.jsonl"))


def test_a_bit_that_flipped_without_a_trace_is_found_before_lines_are_compacted(folder: Path):
    file, head = folder / "events.jsonl", folder / "head.json"
    file.write_bytes(file.read_bytes().replace(b'"path":"src/m7.ts"', b'"path":"src/m8.ts"', 1))
    with LogLines(folder).opened() as lines:
        head.write_text(json.dumps(json.loads(head.read_text()) | {"files": lines.stats()}))
    while head.stat().st_ctime_ns <= file.stat().st_ctime_ns:  # the clock of a file system advances in steps
        os.utime(head)
    assert SessionLog.open(folder).count() == len(EVENTS), "the word of head.json is taken"
    with pytest.raises(StoreError, match="Expected the events that were written, got others from event 0 to 63"):
        SessionLog.open(folder).compact()
    assert file.exists() and not parts_in(folder)


def test_a_line_that_somebody_wrote_twice_is_an_error_and_never_shifts_the_state(folder: Path):
    file = folder / "events.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("".join(f"{line}\n" for line in [*lines[:70], lines[69], *lines[70:]]))
    (folder / "head.json").unlink()
    log = SessionLog.open(folder)
    for asked in (log.read, lambda: log.append(EVENTS[:1]), lambda: log.view(100)):
        with pytest.raises(StoreError, match=r"Expected every event once, got one again - at .*events\.jsonl:71"):
            asked()
    file.write_text("".join(f"{line}\n" for line in lines))
    assert ids(SessionLog.open(folder)) == WRITTEN
