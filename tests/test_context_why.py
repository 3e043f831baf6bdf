"""`why`: each of the eight layers by a small session, refusals by their gate, and an answer for every event and file."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from context_session import Session, item, memory, policy, projected, snapshot
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.turns.words import EVENT_KINDS, FAILURE_LAYERS
from scoped_retrieval.pipeline.context.events import read_events
from scoped_retrieval.pipeline.context.why import why

READ = {"path": "src/a.ts", "content": "export const a = 1;", "version": "1"}


def read_session() -> Session:
    """A session that has read a file."""
    session = Session()
    session.add("file.read", turn=1, **READ)
    return session


def asked(session: Session, expected: str, *later: dict[str, Any], **given: Any) -> dict[str, Any]:
    """The answer on an input at the end of a session, from a log in which more happened since."""
    seen = projected(session, **given)
    for each in later:
        session.add(each.pop("kind"), turn=9, **each)
    return why(seen, expected, events=read_events(session.events))


def test_what_a_snapshot_did_not_select_was_not_recalled_for_its_reason() -> None:
    decided = [{"path": "src/b.ts", "evidence_id": "ev-b", "outcome": "dropped", "reason_code": "max_items"}]
    found = why(projected(), "src/b.ts", snapshots={"snap-1": decided})
    assert found["layer"] == "retrieval_not_recalled" and "max_items" in found["answer"]


def test_a_file_that_was_edited_in_place_of_the_rule_it_is_lacks_isolation() -> None:
    session = Session()
    session.add("file.modified", turn=1, path="AGENTS.md", version="2", diff="+Run the tests.")
    found = asked(session, "rule:AGENTS.md:1", rules=[{"path": "AGENTS.md", "text": "Run the tests."}])
    assert found["layer"] == "trust_isolation_missing"


def test_an_event_that_others_went_before_was_not_ranked() -> None:
    session = read_session()
    for number in range(12):
        session.add("search.result", turn=1, query="q", matches=[{"path": f"src/m{number}.ts", "line": 1, "text": "q"}])
    found = asked(session, "event:e2", budget={"maxTokens": 9_000, "tailLimit": 2})
    assert found["layer"] == "ordering_not_ranked"


@pytest.mark.parametrize("expected", ["e1", "a.test.ts:7 expected"])
def test_an_event_before_the_horizon_was_cut_by_the_budget(expected: str) -> None:
    session = Session()
    session.failing("a.test.ts:7 expected 1 received 2")
    for n in range(40):
        session.add("command.finished", turn=n, command="cat", stdout=f"line {n}\n" * 200)
    found = asked(session, expected, budget={"maxTokens": 4_000})
    assert found["layer"] == "budget_cut"
    assert found["source_id"] == "older:command.finished"


def test_words_of_the_user_that_became_a_reference_are_lost_by_the_summary() -> None:
    session = Session()
    session.add("user.message", turn=1, text="Leave the migrations for Bob. " * 200)
    session.add("user.message", turn=1, text="Use the parser of the library.")
    session.add("user.message", turn=2, text="Go on.")
    asked_ = partial(asked, session, budget={"maxTokens": 8_000, "userWordsTokens": 100})
    found = asked_("for Bob")
    assert (found["layer"], found["source_id"]) == ("summary_lost_constraint", "words")
    found = asked_("parser of the library")
    assert (found["layer"], found["source_id"]) == (None, "words"), "another message is there"


def test_words_of_the_user_that_others_quote_are_lost_all_the_same() -> None:
    session = Session()
    session.add("user.message", turn=1, text="Never drop the table users.")
    session.add("command.finished", turn=1, command="git log", exitCode=0, stdout="commit 4e1f9")
    for n in range(38):
        session.add("user.message", turn=n, text=f"message {n} " * 150)
    session.add("command.finished", turn=40, command="cat notes", exitCode=0, stdout="- Never drop the table users.")
    for expected in ("Never drop the table users.", "e1", "event:e1"):
        assert asked(session, expected, budget={"maxTokens": 4_000})["layer"] == "summary_lost_constraint"
    assert asked(session, "message 37", budget={"maxTokens": 4_000})["layer"] is None


@pytest.mark.parametrize(
    ("layer", "later"),
    [
        ("model_did_not_use", [{"kind": "command.finished", "command": "ls docs", "exitCode": 0}]),
        ("tool_execution_wrong", [{"kind": "command.finished", "command": "sed -i s/1/2/ src/a.ts", "exitCode": 1}]),
        ("verification_missing", [{"kind": "file.modified", "path": "src/a.ts"}]),
        (None, [{"kind": "file.modified", "path": "src/a.ts"}, {"kind": "command.finished", "command": "t", "check": "t", "exitCode": 0}]),
        (None, [{"kind": "file.modified", "path": "src/a.ts"}, {"kind": "command.finished", "command": "pnpm test", "exitCode": 0}]),
        (None, [{"kind": "file.modified", "path": "src/a.ts"}, {"kind": "verification.finished", "name": "t", "status": "passed"}]),
        ("verification_missing", [{"kind": "work.changed", "changedFiles": ["src/a.ts"]}]),
        (None, [{"kind": "model.request"}]),
        (None, []),
    ],
)  # fmt: skip
def test_what_happened_later_names_the_layer(layer: str | None, later: list[dict[str, Any]]) -> None:
    found = asked(read_session(), "src/a.ts", *later)
    assert (found["layer"], found["omitted_for"]) == (layer, None)
    assert "in the input" in found["answer"]


@pytest.mark.parametrize(
    ("expected", "source"),
    [
        ("e1", "event:e1"), ("event:e1", "event:e1"), ("src/a.ts", "file:src/a.ts"), ("a.ts", "file:src/a.ts"), ("./src/a.ts", "file:src/a.ts"),
        ("src/a.ts:1", "file:src/a.ts"), ("[abc0:code#1]", "item:snap-1:code#1"), ("abc0:code#1", "item:snap-1:code#1"),
        ("const a = 1", "file:src/a.ts"), ("e2", "constraint:c-1"), ("c-1", "constraint:c-1"), ("the public API", "constraint:c-1"), ("goal:e0", "goal:e0"),
    ],
)  # fmt: skip
def test_a_source_is_found_by_id_path_citation_or_text(expected: str, source: str) -> None:
    session = read_session()
    session.add("user.constraint", turn=1, constraintId="c-1", text="Keep the public API.")
    session.add("command.finished", turn=1, command="ls", exitCode=0)
    found = asked(session, expected, snapshots=[snapshot(item("code#1", "src/c.ts", "export const c = 1;"))])
    assert source in [row["source_id"] for row in found["sources"]]
    assert found["layer"] is None


def test_nothing_expected_is_an_error() -> None:
    with pytest.raises(InputError, match="EXPECTED"):
        why(projected(), " ")


FIELDS: dict[str, dict[str, Any]] = {
    "memory.recalled": memory("m1"), "memory.revoked": {"memoryId": "m1"}, "retrieval.snapshot.created": {"snapshotId": "s"},
    "phase.changed": {"phase": "editing"}, "constraint.ended": {"constraintId": "e1"},
}  # fmt: skip
SIGHTS = st.fixed_dictionaries({}, optional={"zone": st.just("restricted"), "visibility": st.just("runtime-only")})


@given(
    st.lists(st.tuples(st.sampled_from(EVENT_KINDS.values), SIGHTS, st.integers(1, 400)), min_size=1, max_size=40),
    st.sampled_from([600, 2_000, 16_000]),
)
def test_every_event_and_file_has_an_answer(kinds: list[tuple[str, dict[str, str], int]], most: int) -> None:
    session = Session()
    for number, (kind, sight, length) in enumerate(kinds):
        path = f"src/f{number % 5}.ts"
        fields = FIELDS.get(kind, {"text": f"text {number} " * length, "path": path, "requestId": f"r{number}"})
        fields |= {"content": "x\n" * length, "version": str(number)} if kind.startswith("file.") else {}
        session.add(kind, turn=number, top=sight, **fields)
    log = read_events(session.events)
    seen = policy().project(events=log, budget={"maxTokens": most, "reservedOutputTokens": 100})
    for event in log.events:
        for expected in (event["event_id"], *([event["path"]] if event["path"] else [])):
            found = why(seen, expected, events=log)
            assert (
                found["layer"] in FAILURE_LAYERS or "in the input" in found["answer"] or "the gate" in found["answer"]
            )
            assert found["layer"] != "retrieval_not_recalled", expected
