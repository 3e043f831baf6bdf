"""Compression: shorter forms keep the way back, and rules keep their duties (S3.26 to S3.30)."""

from __future__ import annotations

import hashlib

from context_session import Session, instructing, projected

LONG_LOG = "FAIL src/parser.test.ts\nsrc/parser.test.ts:42 expected 3 received 2\n" + "".join(
    f"    at frame {n}\n" for n in range(400)
)


def test_a_long_log_becomes_its_failing_fragment_with_the_way_to_the_rest():
    session = Session()
    session.failing(LONG_LOG, stdout_ref="artifacts/test-003.stdout.txt")
    seen = projected(session)
    row = seen.decision("event:e1")
    assert (row["action"], row["mode"], row["original_ref"]) == ("include", "excerpt", "artifacts/test-003.stdout.txt")
    assert row["summary_id"].startswith("sum-")
    assert (
        "- Key failure: src/parser.test.ts:42 expected 3 received 2\n- Full text is stored as artifacts/test-003.stdout.txt.\n"
        in seen.text()
    )
    assert "frame 300" not in seen.text()


def test_the_event_of_the_document_is_summarized_as_it_says():
    session = Session()
    session.add("tool.finished", turn=1, command="npm test -- parser", exit_code=1, stdout_ref="artifacts/test-003.stdout.txt",
                stderr_ref="artifacts/test-003.stderr.txt", key_excerpt="expected 3 received 2 at parser.test.ts:42")  # fmt: skip
    text = projected(session).text()
    assert (
        "- Command failed: npm test -- parser (exit 1)\n- Key failure: expected 3 received 2 at parser.test.ts:42\n"
        in text
    )
    row = projected(session).decision("event:e1")
    assert row["reference"] == "artifacts/test-003.stdout.txt"


def test_every_shortened_form_names_its_original_and_the_ledger_lists_it():
    session = Session()
    session.failing(LONG_LOG, turn=1)
    session.add("file.read", turn=2, path="src/a.ts", version="1", text="x\n" * 4000)
    session.add("command.finished", turn=3, command="ls", exitCode=0, stdout="a\nb\nc\n")
    seen = projected(session)
    short = [row for row in seen.decisions if row["mode"] in ("excerpt", "summary", "reference")]
    assert short and all(row["original_ref"] for row in short)
    compactions = {each["sourceId"]: each for each in seen.ledger()["compactions"]}
    assert compactions["event:e1"]["originalRef"].startswith("artifact:")
    assert seen.open(compactions["event:e1"]["originalRef"]) == LONG_LOG
    assert all(each["summaryId"] and each["originalRef"] for each in compactions.values())


def test_a_summary_overwrites_nothing():
    session = Session()
    session.failing(LONG_LOG)
    before = repr(session.events)
    seen = projected(session)
    assert repr(session.events) == before
    again = projected(session)
    assert (again.input_sha256, again.text()) == (seen.input_sha256, seen.text())


def test_the_input_has_goal_constraints_error_files_eight_events_and_references():
    session = Session("Fix the failing tests.")
    session.add("user.constraint", turn=0, text="Do not change the public API.")
    for number in range(20):
        session.add("user.message", turn=number, text=f"note {number}")
    session.add("file.modified", turn=20, path="src/a.ts", version="2", text="fix")
    session.failing("src/a.ts:1 error", turn=21, stdout_ref="artifacts/run-12.txt")
    text = projected(session).text()
    for wanted in ("Fix the failing tests.", "Do not change the public API.", "current failure: src/a.ts:1 error", "modified_files: src/a.ts",
                   "artifacts: artifacts/run-12.txt"):  # fmt: skip
        assert wanted in text, wanted
    tail = text.split("Recent tail:\n")[1].split("</recent_tail")[0].splitlines()
    assert len(tail) == 8


def test_a_history_keeps_what_was_tried_and_names_where_it_comes_from():
    session = Session()
    id_ = session.add(
        "history.summarized", turn=1, text="Tried: a default role. Rejected: editing the lock file. User: keep the API."
    )
    for number in range(60):
        session.add("command.finished", turn=2 + number, command="ls", exitCode=0, stdout="x")
    seen = projected(session)
    assert "Tried: a default role. Rejected: editing the lock file." in seen.text()
    assert (
        "Earlier rounds, as the model sums them up, not verified:\n- Tried: a default role. Rejected: editing the lock file. User: keep the API.\n"
        "References, to be opened on demand:\n- Events 0 to "
    ) in seen.text()
    row = seen.decision(f"history:{id_}")
    assert (row["action"], row["original_ref"], row["level"]) == ("summarize", f"event:{id_}", 9)
    assert (row["content_class"], row["standing"], row["trust_level"]) == ("guess", "hint", "untrusted_text")


RULE = "# Guide\n\n## About\n\nThis repository holds a parser.\nThe weather is fine today.\n\n## Duties\n\nNever edit files below dist.\nIt is old.\nAsk the owner before a release.\n"


def test_sections_without_a_duty_become_references_where_rules_are_too_long():
    rules = [{"path": "AGENTS.md", "text": RULE}]
    seen = projected(rules=rules, budget={"maxTokens": 3000, "reserved": {"rules": 10}})
    told = instructing(seen)
    assert "Never edit files below dist.\n  It is old.\n  Ask the owner before a release.\n" in told, (
        "no sentence is dropped"
    )
    assert "weather" not in told and "- Rules of AGENTS.md:4 (About): open AGENTS.md\n" in seen.text()
    row = seen.decision("rule:AGENTS.md:4")
    assert (row["action"], row["mode"], row["reason_code"], row["original_ref"], row["lost_sentences"]) == (
        "reference", "reference", "section_referenced", "AGENTS.md", 2,
    )  # fmt: skip
    assert seen.decision("rule:AGENTS.md:9")["lost_sentences"] == 0
    assert "weather" in instructing(projected(rules=rules)), "where there is room, rules stand as they are"


def test_rules_of_the_system_are_never_cut():
    told = instructing(
        projected(rules=["The weather is fine today."], budget={"maxTokens": 3000, "reserved": {"rules": 0}})
    )
    assert "The weather is fine today." in told


def test_a_summary_id_is_the_hash_of_the_summary():
    session = Session()
    session.failing(LONG_LOG)
    row = projected(session).decision("event:e1")
    shown = "\n".join(line[2:] for line in projected(session).text().splitlines() if line.startswith("| "))
    assert row["summary_id"] == f"sum-{hashlib.sha256(shown.encode()).hexdigest()[:16]}"
