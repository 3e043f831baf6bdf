"""The ledger: one row for every source, with a reason, and never in the input (S3.14 to S3.17, S3.39 to S3.42)."""

from __future__ import annotations

import pytest
from context_session import Session, item, policy, projected, snapshot


def busy() -> Session:
    session = Session()
    session.add("rules.system", turn=0, text="loaded")
    session.add("user.constraint", turn=0, text="Do not change the public API.")
    session.add("user.message", turn=0, text="bar: 10 %", top={"visibility": "user-only"})
    session.add("user.message", turn=0, text="trace id 7", top={"visibility": "runtime-only"})
    session.add("plan.updated", turn=1, text="parser first")
    session.add("file.read", turn=1, path="src/a.ts", version="1", text="old")
    session.add("file.modified", turn=2, path="src/a.ts", version="2", text="new")
    session.add("history.summarized", turn=2, text="Tried: a.")
    session.failing("src/a.ts:1 error\n" + "x\n" * 900, turn=3)
    return session


def test_items_whose_ids_have_colons_have_a_row_each_and_their_snapshots_no_further_one():
    given = {("a", "b:c"): "ONE", ("a:b", "c"): "TWO", ("sha256:0", "c"): "THREE", ("a%3Ab", "c"): "FOUR"}
    seen = projected(
        snapshots=[snapshot(item(label, f"src/{text}.ts", text), name=name) for (name, label), text in given.items()]
    )
    rows = [row for row in seen.decisions if row["source_kind"] == "retrieval_result"]
    assert [row["source_id"] for row in rows] == ["item:a:b:c", "item:a%3Ab:c", "item:sha256%3A0:c", "item:a%253Ab:c"]
    assert all(row["lines"].endswith(f"| {text}\n") for row, text in zip(rows, given.values(), strict=True))


def test_turns_are_counted_from_the_end_as_well():
    turns = policy().project_turns(turns=[{"inputId": "a"}, {"inputId": "b"}], events=Session().events)
    assert [turns[place].input_id for place in (-1, -2)] == ["b", "a"]
    with pytest.raises(IndexError):
        turns[-3]


def test_the_first_message_is_the_same_bytes_from_turn_to_turn():
    session = busy()
    first = projected(session)
    session.failing("another error at src/b.ts:2", turn=4)
    session.add("file.modified", turn=5, path="src/b.ts", version="2", text="fix")
    second = projected(session)
    assert first.model_input["system_text"] == second.model_input["system_text"]
    assert first.model_input["user_text"] != second.model_input["user_text"]
    assert first.model_input["prefix_sha256"] == second.model_input["prefix_sha256"]
    session.add("user.constraint", turn=6, text="Only touch src.")
    assert projected(session).model_input["prefix_sha256"] != first.model_input["prefix_sha256"]
