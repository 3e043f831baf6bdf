"""What was read of a file is current until the same lines are read again, or another version of the file (S3.20)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from context_session import Session, item, projected, snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

Part = tuple[int, int] | None


def read(session: Session, text: str, lines: Part = None, *, path: str = "src/a.ts", turn: int = 1, **more: Any) -> str:
    span = {} if lines is None else {"lineStart": lines[0], "lineEnd": lines[1]}
    return session.add("file.read", turn=turn, path=path, text=text, **span, **more)


def seen(*reads: tuple[str, Part, dict[str, Any]]) -> tuple[str, dict[str, str]]:
    session = Session()
    for number, (text, lines, more) in enumerate(reads):
        read(session, text, lines, turn=number, **more)
    session.add("command.finished", turn=9, command="ls", exitCode=0, stdout="src")
    made = projected(session)
    return made.text(), {row["source_id"]: row["reason_code"] for row in made.decisions}


@pytest.mark.parametrize(
    ("old", "new", "superseded"),
    [
        ((1, 100), (1, 100), True), ((1, 100), None, True), (None, None, True), ((10, 20), (1, 100), True),
        ((1, 100), (101, 200), False), ((1, 100), (50, 150), False), (None, (1, 100), False), ((1, 100), (10, 20), False),
    ],
)  # fmt: skip
def test_lines_that_are_read_again_are_as_they_are_now(old: Part, new: Part, superseded: bool):
    text, reasons = seen(("the old text", old, {}), ("the new text", new, {}))
    assert "the new text" in text and ("the old text" not in text) == superseded
    assert (reasons["event:e1"] == "superseded") == superseded


@pytest.mark.parametrize(("old", "new"), [((1, 100), (101, 200)), (None, (1, 100)), ((1, 100), (50, 150))])
def test_what_was_read_of_another_version_is_stale(old: Part, new: Part):
    text, reasons = seen(("the old text", old, {"version": "1"}), ("the new text", new, {"version": "2"}))
    assert "the old text" not in text and reasons["event:e1"] == "stale_version"
    text, reasons = seen(("the old text", old, {"version": "1"}), ("the new text", new, {"version": "1"}))
    assert "the old text" in text and "the new text" in text


def test_a_read_that_the_turn_may_not_see_and_one_of_another_file_end_nothing():
    for more in ({"top": {"zone": "private"}}, {"top": {"visibility": "user-only"}}, {"path": "src/b.ts"}):
        text, _ = seen(("the old text", (1, 9), {}), ("the new text", (1, 9), more))
        assert "the old text" in text


def test_of_many_turns_each_has_what_it_had_read():
    session = Session()
    for number in range(6):
        read(session, f"text {number}", (1, 9), turn=number)
    session.add("command.finished", turn=9, command="ls", exitCode=0, stdout="src")
    from context_session import policy

    turns = [{"asOfSeq": n, "inputId": str(n)} for n in range(2, 8)]
    for made in policy().project_turns(turns=turns, events=session.events, budget={"maxTokens": 20_000}):
        last = min(int(made.input_id), 7) - 2
        assert [f"text {n}" in made.text() for n in range(6)] == [n == last for n in range(6)]


def judged(reads: list[str | None], place: int, *, found: str, path: str = "src/a.ts", **more: Any) -> str:
    """The reason for what was found of a file before the read at `place`; a read has a version or none."""
    session = Session()
    for number, version in enumerate([*reads, "end"]):
        if number == place and found == "search":
            session.add(
                "search.result", turn=1, query="q", matches=[{"path": "src/a.ts", "line": 1, "text": "as it was"}]
            )
        elif number == place and found == "event":
            session.add("retrieval.snapshot.created", turn=1, snapshotId="snap-1")
        elif number == place:
            session.add("user.message", turn=1, text="Go on.")
        if number < len(reads):
            read(session, f"text {number}", (1, 9), path=path, **({"version": version} if version else {}), **more)
    session.add("command.finished", turn=9, command="ls", exitCode=0, stdout="src")
    dated = {"asOf": f"2026-05-20T08:{place + 1:02}:30Z"} if found == "date" else {}
    given_ = {} if found == "search" else {"snapshots": [snapshot(item(text="as it was")) | dated]}
    made = {row["source_id"]: row["reason_code"] for row in projected(session, **given_).decisions}
    return next(reason for name, reason in made.items() if name.startswith(("match:", "item:")))


@pytest.mark.parametrize("found", ["search", "event", "date"])
@pytest.mark.parametrize(
    ("reads", "place", "stale"),
    [
        (["1", "2"], 0, "stale_version"), (["1", "2"], 1, "may_have_changed"), (["1", "2"], 2, None), (["1", "1"], 0, None), (["1", None], 0, None),
        (["1", None, "2"], 0, "stale_version"), (["1", "2", "2"], 2, None), (["1", "2", "3"], 1, "stale_version"), (["2"], 0, None),
    ],
)  # fmt: skip
def test_what_was_found_before_reads_of_two_versions_is_stale(
    found: str, reads: list[str | None], place: int, stale: str | None
):
    reason = judged(reads, place, found=found)
    if found == "search" and stale == "may_have_changed":
        stale = "on_demand"  # a place to open: its text is not shown
    assert reason == stale if stale else reason not in ("stale_version", "may_have_changed")


def test_reads_of_another_file_and_hidden_ones_prove_no_change_of_what_was_found():
    for more in ({"top": {"zone": "private"}}, {"top": {"visibility": "user-only"}}, {"path": "src/b.ts"}):
        assert judged(["1", "2"], 0, found="search", **more) not in ("stale_version", "may_have_changed")


def test_what_was_found_after_a_change_that_the_log_has_stays_current():
    session = Session()
    read(session, "text 1", (1, 9), path="src/a.ts", version="1")
    session.add("file.modified", turn=1, path="src/a.ts", text="changed")
    session.add("retrieval.snapshot.created", turn=1, snapshotId="snap-1")
    read(session, "text 2", (1, 9), path="src/a.ts", version="2")
    session.add("command.finished", turn=9, command="ls", exitCode=0, stdout="src")
    made = projected(session, snapshots=[snapshot(item(text="as it was"))]).decisions
    reason = next(row["reason_code"] for row in made if row["source_id"].startswith("item:"))
    assert reason not in ("stale_version", "may_have_changed")


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["1", "2", None]), max_size=6), st.integers(0, 6), st.sampled_from(["search", "event"]))
def test_what_is_found_after_the_last_change_that_reads_prove_stays_current(
    reads: list[str | None], place: int, found: str
):
    place = min(place, len(reads))
    versions = [(at, version) for at, version in enumerate(reads) if version]
    changes = [(a, b) for (a, old), (b, new) in pairwise(versions) if old != new]
    reason = judged(reads, place, found=found)
    assert (reason == "stale_version") == any(place <= first for first, _ in changes)
    assert found == "search" or (reason == "may_have_changed") == (
        any(first < place <= last for first, last in changes) and not any(place <= first for first, _ in changes)
    )
