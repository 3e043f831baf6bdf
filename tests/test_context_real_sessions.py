"""What reading the inputs of public transcripts found, as short sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from context_session import Session, item, projected, snapshot
from scoped_retrieval.pipeline.context.log import SessionLog

from scoped_retrieval import ContextPolicy

CHECKED = ContextPolicy(checks=["pnpm test"])


def check_after(command: str, **ended: object) -> str:
    """The status of the check after a command, where it had failed before."""
    session = Session()
    session.failing("a.test.ts:1 expected 1 received 2")
    session.add("command.finished", turn=2, command=command, stdout="1 failed", **ended)
    (check,) = CHECKED.project(events=session.events).state["checks"]
    return check["status"]


@pytest.mark.parametrize(
    "line", ["pnpm test 2>&1 | tail -30", "pnpm test && git push", "pnpm test; ls", "pnpm test -u\nls", "pnpm test &"]
)
def test_a_line_that_goes_on_after_a_check_leaves_its_status_unknown(line: str) -> None:
    assert check_after(line, exitCode=0) == "unknown"
    assert check_after(line, exitCode=1) == "unknown"


@pytest.mark.parametrize("line", ["pnpm test", "pnpm test --filter parser 2>&1", "pnpm test &> log.txt"])
def test_a_check_with_arguments_and_redirects_has_the_status_of_its_command(line: str) -> None:
    assert check_after(line, exitCode=0) == "passed"
    assert check_after(line, exitCode=1) == "failed"
    assert check_after(line) == "unknown"


def test_an_edit_in_the_tail_names_its_file() -> None:
    session = Session()
    session.add("file.modified", turn=1, tool="Edit", path="src/parser.ts", diff="-a\n+b")
    session.add("command.finished", turn=2, command="ls")
    tail = projected(session).text().partition("Recent tail:")[2]
    assert "src/parser.ts" in tail.splitlines()[1]


def test_the_output_of_a_failing_check_is_kept_before_newer_output() -> None:
    session = Session()
    failed = session.failing("\n".join(f"a.test.ts:{n} expected {n} received 0" for n in range(60)))
    others = [
        session.add("command.finished", turn=n, command=f"cat {n}", exitCode=0, stdout=f"line of file {n}\n" * 60)
        for n in range(2, 20)
    ]
    seen = CHECKED.project(events=session.events, budget={"maxTokens": 8_000})
    assert seen.decision(f"event:{others[0]}")["mode"] != "full"
    assert seen.decision(f"event:{failed}")["mode"] == "full"


def test_a_summary_of_earlier_rounds_is_shown_once() -> None:
    session = Session()
    event = session.add("history.summarized", turn=1, text="The parser was rewritten.")
    session.add("command.finished", turn=2, command="ls")
    seen = projected(session)
    assert seen.text().count("The parser was rewritten.") == 1
    assert [row["source_id"] for row in seen.decisions if event in row["source_id"]] == [f"history:{event}"]


def test_a_snapshot_of_an_early_event_is_not_taken_for_one_of_this_turn(tmp_path: Path) -> None:
    session = Session()
    session.add("retrieval.snapshot.created", turn=1, snapshotId="snap-1")
    for n in range(2_500):
        session.add("retrieval.snapshot.created", turn=n, snapshotId=f"later-{n}")
    log = SessionLog.open(tmp_path / "s", "session")
    log.append(session.events)
    early = [snapshot(item(), name="snap-1"), snapshot(item("code#2", "src/b.ts"), name="of this turn")]
    seen = ContextPolicy().project(events=log.view(), snapshots=early)
    shown = [row["source_id"] for row in seen.decisions if row["source_id"].startswith("item:")]
    assert shown == ["item:of this turn:code#2"]
    assert log.view().facts.num_rows < 10
