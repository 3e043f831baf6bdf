"""What reading the inputs of public transcripts found, as short sessions."""

from __future__ import annotations

from pathlib import Path

from context_session import Session, item, projected, snapshot
from scoped_retrieval.pipeline.context.log import SessionLog

from scoped_retrieval import ContextPolicy

CHECKED = ContextPolicy(checks=["pnpm test"])


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
