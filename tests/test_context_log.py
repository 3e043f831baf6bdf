"""The session log on disk: append-only, with checkpoints that say what the lines say, and texts that can be opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from context_session import Session, policy
from scoped_retrieval.nodes.errors import InputError, StoreError
from scoped_retrieval.pipeline.context.log import SessionLog
from scoped_retrieval.pipeline.context.log_lines import EVERY
from scoped_retrieval.pipeline.context.sessions import read_session


def long_session(count: int = 700) -> list[dict[str, Any]]:
    session = Session("Fix the failing tests.")
    session.add("user.constraint", turn=0, text="Do not change the public API.", constraintId="c1")
    for number in range(2, count):
        turn = number // 4
        if number % 7 == 0:
            session.add("file.modified", turn=turn, path=f"src/m{number % 40}.ts", version=str(number), text="fix")
        elif number % 7 == 3:
            session.failing(f"src/m{number % 40}.ts:{number} expected 1 received 2", turn=turn)
        elif number % 97 == 5:
            session.add("memory.revoked", turn=turn, id=f"m{number}")
        elif number % 50 == 1:
            session.add("phase.changed", turn=turn, phase=("editing", "verifying")[number % 2])
        else:
            session.add(
                "file.read", turn=turn, path=f"src/m{number % 40}.ts", version=str(number), text=f"text {number}"
            )
    return session.events


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[SessionLog, list[dict[str, Any]]]:
    events = long_session()
    log = SessionLog.open(tmp_path_factory.mktemp("log") / "s-1", session_id="s-1")
    for start in range(0, len(events), 90):
        assert log.append(events[start : start + 90]) == len(events[start : start + 90])
    return log, events


def seen(view: Any, at: int) -> Any:
    made = policy().project_turns(turns=[{"asOfSeq": at, "turnId": "t", "inputId": "x"}], events=view.tables, facts=view.facts, session_id="s-1",
                                  budget={"maxTokens": 3000})  # fmt: skip
    return made[0]


@pytest.mark.parametrize("at", [0, 1, 40, EVERY - 1, EVERY, EVERY + 47, EVERY + 48, 2 * EVERY + 100, 700])
def test_a_turn_from_a_checkpoint_is_the_turn_from_the_whole_log(written: tuple[SessionLog, Any], at: int):
    log, _ = written
    part, whole = log.view(at), log.read()
    assert part.tables.events.num_rows < EVERY + 100 or at < EVERY + 48
    one, other = seen(part, at), seen(whole, at)
    assert one.text() == other.text() and one.input_sha256 == other.input_sha256
    assert [dict(row) for row in one.decisions] == [dict(row) for row in other.decisions]


@pytest.mark.parametrize("visibility", ["model-visible", "denied"])
def test_what_a_harness_gives_is_held_against_events_before_the_checkpoint(tmp_path: Path, visibility: str):
    """A snapshot of an earlier turn came back as one of this turn, and a constraint that had ended as one that binds."""
    session = Session("Fix src/a.py")
    session.add("retrieval.snapshot.created", turn=1, snapshotId="s1", visibility=visibility)
    session.add("constraint.ended", turn=1, constraintId="state:0")
    for number in range(3, EVERY + 200):
        session.add("model.message", turn=number, text=f"note {number}")
    log = SessionLog.open(tmp_path / "log", session_id="session")
    log.append(session.events)
    given = {
        "state": {"activeConstraints": ["Never dance.", "Never sing."]},
        "snapshots": [
            {"id": "s1", "items": [{"label": "code#1", "path": "src/a.py", "line": 1, "text": "OLD CONTENT"}]}
        ],
        "session_id": "session",
    }
    view, whole = (policy().project(events=each, **given) for each in (log.view(), session.events))
    assert view.text() == whole.text()
    assert [dict(row) for row in view.decisions] == [dict(row) for row in whole.decisions]
    assert "Never sing." in view.text() and "Never dance." not in view.text() and "OLD CONTENT" not in view.text()


def test_the_end_of_the_log_needs_some_hundred_events(written: tuple[SessionLog, Any]):
    log, events = written
    view = log.view()
    assert view.tables.events.num_rows < EVERY + 100 < len(events)
    assert seen(view, len(events)).text() == seen(log.read(), len(events)).text()


def test_a_view_is_projected_with_what_held_before_it(written: tuple[SessionLog, Any]):
    log, events = written
    view = log.view()
    given = {"turn": {"turnId": "t"}, "session_id": "s-1", "budget": {"maxTokens": 3000}}
    assert policy().project(events=view, **given).text() == policy().project(events=events, **given).text()
    assert policy().project(events=view, **given).state["user_goal"] == "Fix the failing tests."


def test_checkpoints_and_parts_are_copies(written: tuple[SessionLog, Any], tmp_path: Path):
    _, events = written
    log = SessionLog.open(tmp_path / "s-1", session_id="s-1")
    log.append(events[:600])
    before = seen(log.view(), 600).text()
    lines = (tmp_path / "s-1" / "events.jsonl").read_bytes()
    assert log.compact() == 600 and not (tmp_path / "s-1" / "events.jsonl").exists()
    assert seen(log.view(), 600).text() == before
    assert b"".join(f"{line}\n".encode() for line in log.open_ref("log:0-599").split("\n")) == lines, (
        "every line is what it was"
    )
    log.append(events[600:])
    assert seen(log.view(), 700).text() == seen(log.read(), 700).text()
    for file in (tmp_path / "s-1" / "checkpoints").iterdir():
        file.unlink()
    (tmp_path / "s-1" / "head.json").unlink()
    assert SessionLog.open(tmp_path / "s-1").view().tables.events.num_rows == 700
    assert SessionLog.open(tmp_path / "s-1").view().tables.events.num_rows < EVERY + 100, "they were made again"
    assert log.compact() == 100 and seen(log.view(), 700).text() == seen(log.read(), 700).text()


def test_a_checkpoint_knows_where_the_work_is_and_which_words_are_folders(tmp_path: Path):
    session = Session()
    session.add("file.read", turn=0, path="src/a.py", text="x")
    session.add("command.finished", turn=0, command="git -C ../other stash", exitCode=0, cwd="web", root="/srv/shop")
    session.add("command.finished", turn=0, command="git stash", exitCode=0, cwd="/srv/other", root="/srv/shop")
    session.failing("a.py:3 boom", command="pytest")
    for _ in range(3 * EVERY):
        session.add("command.finished", turn=1, command="ls", exitCode=0, stdout="x")
    session.add("command.finished", turn=2, command="git checkout src", exitCode=0, stdout="")
    session.add("command.finished", turn=2, command="pytest", exitCode=0, stdout="3 passed in 0.10s")
    log = SessionLog.open(tmp_path / "log", session_id="session")
    for start in range(0, len(session.events), 50):
        log.append(session.events[start : start + 50])
    again = SessionLog.open(tmp_path / "log")
    assert again.view().tables.events.num_rows < len(session.events)
    for each in (log, again):
        assert policy().state(events=each.view())["failure"] is None


def test_an_event_is_appended_once(tmp_path: Path):
    log = SessionLog.open(tmp_path / "s", session_id="s-1")
    events = long_session(10)
    assert (log.append(events), log.append(events), log.append(events[5:])) == (10, 0, 0)
    with pytest.raises(InputError, match="'e3' again with other words"):
        SessionLog.open(tmp_path / "s").append([{**events[3], "payload": {"text": "rewritten"}}])
    assert log.read().tables.events.num_rows == 10


def test_of_events_with_one_bad_one_nothing_is_appended(tmp_path: Path):
    log = SessionLog.open(tmp_path / "s", session_id="s-1")
    with pytest.raises(InputError, match=r"events\[2\]"):
        log.append([*long_session(1), {"id": "x", "kind": "nonsense", "createdAt": "2026-05-20T08:00:00Z"}])
    assert log.read().tables.events.num_rows == 0


def test_long_texts_are_artifacts_that_can_be_opened(tmp_path: Path):
    session = Session()
    text = "src/a.ts:1 error\n" + "noise\n" * 5000
    session.failing(text)
    log = SessionLog.open(tmp_path / "s", session_id="session")
    log.append(session.events)
    row = seen_row(log)
    assert row["reference"].startswith("artifact:") and log.open_ref(row["reference"]) == text
    assert json.loads(log.open_ref("event:e0"))["payload"]["text"] == "Fix the failing tests."
    for name in ("artifact:../../etc/passwd", "artifact:00", "event:none", "log:x-y", "soup"):
        with pytest.raises(InputError, match="Expected a reference of this log"):
            log.open_ref(name)


def seen_row(log: SessionLog) -> Any:
    view = log.view()
    return policy().project(events=view.tables, budget={"maxTokens": 9000}).decision("event:e1")


def test_what_is_no_log_is_refused(tmp_path: Path):
    with pytest.raises(StoreError, match="Expected the folder of a session log"):
        SessionLog.open(tmp_path)
    SessionLog.open(tmp_path / "s", session_id="s-1")
    with pytest.raises(StoreError, match="Expected the log of session 's-2'"):
        SessionLog.open(tmp_path / "s", session_id="s-2")
    (tmp_path / "s" / "session.json").write_text('{"format": 9, "session_id": "s-1"}')
    with pytest.raises(StoreError, match="format 2"):
        SessionLog.open(tmp_path / "s")
    with pytest.raises(InputError, match="No such file or directory: "):
        read_session(tmp_path / "gone.jsonl")


def test_a_file_of_lines_is_a_log_that_is_only_read(tmp_path: Path):
    file = tmp_path / "s-7.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in long_session(20)))
    session_id, view = read_session(file)
    assert (session_id, view.tables.events.num_rows) == ("s-7", 20)
    file.write_text(file.read_text() + "not json\n")
    with pytest.raises(InputError, match=r"s-7.jsonl:21"):
        read_session(file)


def test_a_late_turn_is_the_same_alone_and_beside_an_early_one():
    events = long_session(200)
    turns = [{"asOfSeq": place, "inputId": str(place)} for place in (20, 110, 190)]
    batch = policy().project_turns(turns=turns, events=events, budget={"maxTokens": 6000})
    for place, turn in enumerate(turns):
        alone = policy().project_turns(turns=[turn], events=events, budget={"maxTokens": 6000})[0]
        assert [dict(row) for row in alone.decisions] == [dict(row) for row in batch[place].decisions]
        assert alone.neutral() == batch[place].neutral()
