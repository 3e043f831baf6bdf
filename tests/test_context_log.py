"""The session log on disk: no event is lost, none comes twice, a damaged line is detected, and a long log stays cheap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError, StoreError, VerificationError
from scoped_retrieval.pipeline.context.artifacts import artifact
from scoped_retrieval.pipeline.context.events import LogRows, read_events
from scoped_retrieval.pipeline.context.log import SessionLog, read_session


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


EVENTS = session(60)
IDS = [event["id"] for event in EVENTS]


def ids(rows: LogRows) -> list[str]:
    return [row["event_id"] for row in rows.events]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = SessionLog.open(tmp_path / "s", "session")
    log.append(EVENTS[:40])
    log.append(EVENTS[40:])
    return tmp_path / "s"


# --- one session in three forms -----------------------------------------------------------------------------------------


@settings(max_examples=8)
@given(st.lists(st.integers(0, len(EVENTS)), max_size=4))
def test_rows_are_the_same_from_a_list_a_file_and_a_folder(cuts: list[int]):
    with tempfile.TemporaryDirectory() as name:
        file, folder = Path(name, "session.jsonl"), Path(name, "log")
        file.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
        for end in sorted(cuts):
            SessionLog.open(folder, "session").append(EVENTS[:end])
        SessionLog.open(folder, "session").append(EVENTS)
        listed = read_events(EVENTS, "session")
        for place in (file, folder):
            rows = read_session(place)
            assert rows.session_id == "session" and rows.events == listed.events
        reference = next(refs[-1] for refs in (row["refs"] for row in listed.events) if refs)
        for opened in (read_session(file).artifacts, read_session(folder).artifacts):
            assert artifact(opened.open(reference)) == reference
            assert json.loads(opened.open("event:e7")) == EVENTS[7]
            assert opened.open("log:3-4") == listed.artifacts.open("log:3-4")
            with pytest.raises(InputError, match="artifact:ID, event:ID or log:FIRST-LAST"):
                opened.open("event:none")


def test_an_event_that_came_before_is_skipped_and_one_with_its_id_refused(folder: Path):
    log = SessionLog.open(folder)
    assert log.append(EVENTS[:5]) == 0 and len(log.read().events) == len(EVENTS)
    with pytest.raises(InputError, match="an id of its own"):
        log.append([{**EVENTS[-1], "id": "new"}, {**EVENTS[3], "kind": "user.message"}])
    assert ids(log.read()) == IDS and ids(SessionLog.open(folder).read()) == IDS, "nothing of the append is in the log"
    assert log.append([{**EVENTS[-1], "id": "new"}]) == 1


def test_a_log_is_of_one_session(folder: Path, tmp_path: Path):
    with pytest.raises(StoreError, match="log of session 'other'"):
        SessionLog.open(folder, "other")
    with pytest.raises(StoreError, match="the folder of a session log"):
        SessionLog.open(tmp_path / "none")
    with pytest.raises(InputError, match=r"events\[0\].sessionId"):
        SessionLog.open(folder).append([{**EVENTS[0], "id": "new", "sessionId": "other"}])


def test_a_file_skips_lines_that_cannot_be_read_and_counts_them(tmp_path: Path):
    file = tmp_path / "s.jsonl"
    good = [json.dumps(event) for event in EVENTS[:3]]
    damaged = ['{"id": "x", "text": "\\ud800"}', '{"id": "torn", "kind"', "5", ""]
    file.write_text("\n".join([good[0], *damaged, *good[1:], '{"id": "unfinished']))
    rows = read_session(file)
    assert (ids(rows), rows.skipped) == (IDS[:3], 4)


@pytest.mark.parametrize("data", [b"\x00\x00\x00", b"\x1f\x8b\x08\x00", b"a note", b"[{}]"])
def test_a_file_without_a_readable_line_is_no_empty_session(data: bytes, tmp_path: Path):
    (tmp_path / "s.jsonl").write_bytes(data)
    with pytest.raises(InputError, match=r"s\.jsonl:1"):
        read_session(tmp_path / "s.jsonl")


def test_a_malformed_event_of_a_file_is_an_error_and_a_transcript_is_told(tmp_path: Path):
    file = tmp_path / "s.jsonl"
    file.write_text(json.dumps(EVENTS[0]) + "\n" + json.dumps({**EVENTS[1], "kind": "user.wish"}))
    with pytest.raises(InputError, match=r"s\.jsonl:2"):
        read_session(file)
    file.write_text(json.dumps({"type": "user", "sessionId": "s", "parentUuid": None}))
    with pytest.raises(InputError) as caught:
        read_session(file)
    assert "context import" in caught.value.hint


# --- damage -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_line_that_is_changed_or_missing_is_detected(folder: Path, place: int):
    lines = (folder / "EVENTS").read_bytes().splitlines(keepends=True)
    opened = SessionLog.open(folder)
    assert len(opened.read().events) == len(EVENTS)
    missing = [*lines[:place], *lines[place + 1 :]] if place < 2 else lines
    changed = [
        line.replace(b'"createdAt":"2026', b'"createdAt":"2025', number == place) for number, line in enumerate(lines)
    ]
    for damaged in {b"".join(missing), b"".join(changed)} - {b"".join(lines)}:
        (folder / "EVENTS").write_bytes(damaged)
        for log in (lambda: opened, lambda: SessionLog.open(folder)):
            with pytest.raises(VerificationError, match="EVENTS"):
                log().read()
            with pytest.raises(VerificationError, match="EVENTS"):
                log().append(EVENTS[:1])


def test_an_older_copy_that_was_restored_is_read_again(folder: Path):
    log, whole = SessionLog.open(folder), (folder / "EVENTS").read_bytes()
    assert ids(log.read()) == IDS
    (folder / "EVENTS").write_bytes(whole[: whole[:-1].rindex(b"\n") + 1])
    assert (
        ids(log.read()) == IDS[:40]
        and log.append(EVENTS) == 20
        and ids(SessionLog.open(folder).read()) == ids(log.read()) == IDS
    )


# --- several writers ----------------------------------------------------------------------------------------------------


APPENDER = """
import sys, json
from scoped_retrieval.pipeline.context.log import SessionLog
log = SessionLog.open(sys.argv[1])
for line in open(sys.argv[2]):
    log.append([json.loads(line)])
"""


def test_two_processes_append_to_one_log(tmp_path: Path):
    SessionLog.open(tmp_path / "s", "session")
    writers = []
    for name in "ab":
        lines = [json.dumps({**event, "id": f"{name}-{event['id']}"}) for event in EVENTS[:12]]
        lines += [json.dumps(event) for event in EVENTS[:8]]  # both bring these
        (tmp_path / name).write_text("\n".join(lines))
        writers.append(subprocess.Popen([sys.executable, "-c", APPENDER, str(tmp_path / "s"), str(tmp_path / name)]))
    assert [writer.wait() for writer in writers] == [0, 0]
    found = ids(SessionLog.open(tmp_path / "s").read())
    assert len(found) == len(set(found)) == 32
    for name in "ab":
        assert [each for each in found if each.startswith(name)] == [f"{name}-{each}" for each in IDS[:12]]


STEPS = st.lists(
    st.sampled_from(["append", "append", "other", "tear", "reopen", "read", "refused"]), min_size=3, max_size=14
)


@settings(max_examples=100 if os.environ.get("TEST_PROFILE") == "full" else 20, deadline=None)
@given(STEPS, st.data())
def test_whatever_happens_to_a_log_its_events_stay_in_order(steps: list[str], data: st.DataObject):
    with tempfile.TemporaryDirectory() as name:
        path, count = Path(name, "s"), 0
        log = SessionLog.open(path, "session")
        for step in steps:
            if step in ("append", "other"):
                more = min(count + data.draw(st.sampled_from([0, 1, 3, 17])), len(EVENTS))
                writer = log if step == "append" else SessionLog.open(path)
                assert writer.append(EVENTS[:more]) == more - count
                count = more
            elif step == "tear":
                with (path / "EVENTS").open("ab") as file:
                    file.write(b"1f8a {")
            elif step == "refused":
                with pytest.raises(InputError):
                    log.append([{**EVENTS[0], "id": "new"}, {"id": "no event"}])
            elif step == "reopen":
                log = SessionLog.open(path)
            assert ids(log.read()) == IDS[:count]
        assert ids(log.read()) == ids(SessionLog.open(path).read()) == IDS[:count]
