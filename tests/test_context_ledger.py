"""The ledger: one row for every source, with a reason, and never in the input (S3.14 to S3.17, S3.39 to S3.42)."""

from __future__ import annotations

import hashlib
import json

import pytest
from context_session import Session, item, memory, policy, projected, snapshot
from scoped_retrieval.nodes.turns.words import (
    CONTENT_CLASSES,
    DECISION_TRUST,
    FORMS,
    LEDGER_ACTIONS,
    LEDGER_TRUST,
    REASONS,
    SOURCE_KINDS,
)


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


def seen():
    return projected(
        busy(),
        memories=[memory(), memory("m2", lifecycle="candidate")],
        snapshots=[snapshot(item())],
        turn={"snapshotIds": ["snap-1", "gone"]},
    )


def test_every_source_ends_in_exactly_one_row_with_a_reason():
    rows = seen().decisions
    ids = [row["source_id"] for row in rows]
    assert len(ids) == len(set(ids))
    assert all(row["reason_code"] in REASONS and row["reason"] == REASONS[row["reason_code"]] for row in rows)
    assert {row["action"] for row in rows} == set(LEDGER_ACTIONS.values) - {"reference"}
    assert all(row["mode"] in FORMS and row["source_kind"] in SOURCE_KINDS for row in rows)
    assert all((row["action"] == "exclude") == (row["mode"] == "none") for row in rows)


def test_items_whose_ids_have_colons_have_a_row_each_and_their_snapshots_no_further_one():
    given = {("a", "b:c"): "ONE", ("a:b", "c"): "TWO", ("sha256:0", "c"): "THREE", ("a%3Ab", "c"): "FOUR"}
    seen = projected(
        snapshots=[snapshot(item(label, f"src/{text}.ts", text), name=name) for (name, label), text in given.items()]
    )
    rows = {row["source_id"]: row["action"] for row in seen.decisions if row["source_kind"] == "retrieval_result"}
    assert rows == dict.fromkeys(("item:a:b:c", "item:a%3Ab:c", "item:sha256%3A0:c", "item:a%253Ab:c"), "include")
    assert [seen.load_texts()[source] for source in rows] == list(given.values())
    assert all(text in seen.text() for text in given.values())


def test_turns_are_counted_from_the_end_as_well():
    turns = policy().project_turns(turns=[{"inputId": "a"}, {"inputId": "b"}], events=Session().events)
    assert [turns[place].input_id for place in (-1, -2)] == ["b", "a"]
    with pytest.raises(IndexError):
        turns[-3]


CLASSES = {
    "fact": (
        "user.goal", "user.message", "user.confirmation", "user.constraint", "permission.denied", "permission.granted", "phase.changed",
        "retrieval.snapshot.created", "model.request",
    ),
    "guess": ("plan.updated", "tool.intent", "model.message"),
    "untrusted_text": (
        "file.read", "file.modified", "search.result", "command.finished", "tool.error", "external.result", "verification.finished",
    ),
}  # fmt: skip
"""Who spoke decides: the user and the harness state facts, the model guesses, and the text of tools is untrusted (S3.4)."""
KINDS = [(kind, content) for content, kinds in CLASSES.items() for kind in kinds]


@pytest.mark.parametrize(("kind", "content"), KINDS)
def test_each_kind_of_event_has_its_class_of_content(kind: str, content: str):
    session = Session()
    payload = {
        "text": "words",
        "path": "src/a.ts",
        "phase": "editing",
        "snapshotId": "s",
        "evidenceIds": [],
        "tool": "grep",
    }
    id_ = session.add(kind, turn=1, **payload)
    session.add("command.finished", turn=2, command="ls", exitCode=0, stdout="x")
    assert projected(session).decision(f"event:{id_}")["content_class"] == content


@pytest.mark.parametrize(
    ("visibility", "content"), [("model-visible", "guess"), ("user-only", "ui_only"), ("runtime-only", "audit_only")]
)
def test_an_event_that_the_model_may_not_see_is_of_the_class_of_its_readers(visibility: str, content: str):
    session = Session()
    id_ = session.add("model.message", turn=1, text="words", top={"visibility": visibility})
    assert projected(session).decision(f"event:{id_}")["content_class"] == content


def test_each_other_source_has_its_class_of_content():
    classes = {row["source_id"]: row["content_class"] for row in seen().decisions}
    expected = {
        "event:e6": "stale", "memory:m1": "fact", "memory:m2": "fact", "item:snap-1:code#1": "fact", "snapshot:gone": "fact",
    }  # fmt: skip
    assert {id_: classes[id_] for id_ in expected} == expected
    assert {row["content_class"] for row in seen().decisions if row["source_kind"] == "system_rules"} == {"rule"}


def test_five_classes_of_content_are_told_apart():
    classes = {row["content_class"] for row in seen().decisions}
    assert classes == set(CONTENT_CLASSES.values)


def test_the_decision_has_the_five_fields_of_the_document():
    for row in seen().as_dict()["decisions"]:
        assert list(row) == ["sourceKind", "action", "reason", "tokenBudget", "trustLevel"]
        assert row["trustLevel"] in ("instruction", "fact", "untrusted_text")
    assert set(DECISION_TRUST.values()) == {"instruction", "fact", "untrusted_text"}


def test_the_projection_has_the_four_parts_of_the_document():
    value = seen().as_dict()
    assert {"messages", "toolSchemas", "decisions", "estimatedTokens"} <= set(value)
    assert [message["role"] for message in value["messages"]] == ["system", "user"]


def test_the_ledger_is_the_one_of_the_document():
    found = seen().ledger()
    assert list(found) == ["runId", "turnId", "modelInputId", "estimatedTokens", "included", "excluded", "compactions"]
    assert all(list(row) == ["sourceId", "sourceKind", "mode", "reason", "trustLevel"] for row in found["included"])
    assert all(list(row) == ["sourceId", "sourceKind", "reason"] for row in found["excluded"])
    assert all(list(row) == ["sourceId", "summaryId", "originalRef"] for row in found["compactions"])
    assert (
        {row["trustLevel"] for row in found["included"]}
        == {"trusted", "fact", "untrusted"}
        == set(LEDGER_TRUST.values())
    )
    assert {row["mode"] for row in found["included"]} <= {"full", "excerpt", "summary", "reference"}
    assert all(row["reason"] for row in [*found["included"], *found["excluded"]])
    assert len(found["included"]) + len(found["excluded"]) == len(seen().decisions)


def test_the_model_sees_nothing_of_the_ledger():
    found = seen()
    text = found.text()
    for row in found.decisions:
        if row["action"] == "exclude" and row["reason_code"] not in (
            "stale_version",
            "generated_file",
            "outside_package",
        ):
            assert row["reason"] not in text
    assert "decided_by" not in text and "budget_tokens" not in text


def test_the_input_is_recorded_by_the_hash_of_its_neutral_form():
    found = seen()
    assert hashlib.sha256(found.neutral().encode()).hexdigest() == found.input_sha256
    value = json.loads(found.neutral())
    assert value["messages"] == found.messages and value["tools"] == found.tool_schemas


def test_the_shapes_of_providers_have_the_same_texts():
    found = seen()
    openai, anthropic = found.openai(), found.anthropic()
    assert [message["content"] for message in openai["messages"]] == [message["content"] for message in found.messages]
    assert openai["tools"][0] == {"type": "function", "function": found.tool_schemas[0]}
    assert anthropic["system"] == [
        {"type": "text", "text": found.messages[0]["content"], "cache_control": {"type": "ephemeral"}}
    ]
    assert anthropic["messages"][0]["content"][0]["text"] == found.messages[1]["content"]
    assert anthropic["tools"][0]["input_schema"] == found.tool_schemas[0]["parameters"]


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


def test_the_event_of_a_request_names_snapshots_tools_and_hash():
    found = seen()
    event = found.request_event(event_id="e99", created_at="2026-05-20T10:00:00Z", model_input_ref="inputs/9.json")
    payload = event["payload"]
    assert payload["retrievalSnapshotIds"] == ["snap-1"] and payload["modelInputRef"] == "inputs/9.json"
    assert (
        payload["visibleToolSet"] == list(found.model_input["tools"])
        and payload["contextHash"] == f"sha256:{found.input_sha256}"
    )
    assert payload["evidenceIds"] == ["snap-1:code#1", "memory:m1"]


def test_an_empty_session_gives_an_honest_input():
    found = projected(Session(None))
    assert found.status == "ok" and "User goal" not in found.text()
    assert {"empty_session", "no_user_goal"} <= set(found.conditions)


def test_rules_of_different_origin_about_one_thing_are_told():
    rules = ["Do not modify generated files.", {"path": "AGENTS.md", "text": "Run full tests after each change."}]
    session = Session("Fix this failure.")
    session.add("user.constraint", turn=0, text="Run only the parser tests; only fix the current failure.")
    session.add(
        "user.constraint",
        turn=0,
        text="After modifying the parser package, run pnpm test --filter parser.",
        origin="repository",
    )
    session.add("user.constraint", turn=0, text="Do not modify generated files.", origin="global")
    found = projected(session, rules=rules)
    assert "conflicting_rules" in found.conditions
    lines = found.model_input["system_text"].split("Active constraints:\n")[1]
    assert lines.startswith(
        "- User request: Run only the parser tests; only fix the current failure.\n- Repo rule: After modifying the parser package"
    )
    assert "- Global rule: Do not modify generated files." in lines
    assert "conflicting_rules" not in projected(Session(), rules=["Be kind."]).conditions


def test_two_repository_files_that_contradict_each_other_are_told():
    def told(*files: tuple[str, str]) -> bool:
        rules = [{"path": path, "text": text} for path, text in files]
        seen = projected(
            Session("Fix the failing test in src/a.py"), rules=rules, defaults={"working_directory": "src"}
        )
        assert all(text in seen.text() for _, text in files)
        return "conflicting_rules" in seen.conditions

    always, never = "Always run the tests.", "Never run the tests."
    assert told(("AGENTS.md", always), ("CLAUDE.md", never))
    assert told(("AGENTS.md", never), ("src/AGENTS.md", always))
    assert not told(("AGENTS.md", always), ("CLAUDE.md", "Run the tests after each change."))
    assert not told(("AGENTS.md", never), ("CLAUDE.md", "Be kind."))
    assert not told(("AGENTS.md", f"{always} {never}"))
