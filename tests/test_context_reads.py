"""What was read of a file is current until the same lines are read again, or another version of the file (S3.20)."""

from __future__ import annotations

from typing import Any

import pytest
from context_session import Session, projected

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
