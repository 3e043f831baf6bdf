"""What the user forbids, wants to approve or wants checked holds for the session, whatever comes after it (S3.7, S3.25, S3.28, S3.47)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from context_session import Session, instructing, policy, projected, reasons
from scoped_retrieval.pipeline.context.log import SessionLog

SAID = "Looks like whitespace. Ask me before you add a dependency, and leave the CLI alone."


def later(session: Session, count: int) -> Session:
    """Results of tools, as they come."""
    for number in range(count):
        session.add("command.finished", turn=2 + number, command=f"ls {number}", exitCode=0, stdout="x")
    return session


@pytest.mark.parametrize("count", [0, 7, 18, 60, 300])
@pytest.mark.parametrize("kind", ["user.message", "user.confirmation", "user.goal", "user.constraint"])
def test_a_prohibition_stands_however_many_results_come_after_it(kind: str, count: int):
    session = Session("Fix the tests.")
    session.add(kind, turn=1, text=SAID)
    later(session, count)
    assert SAID in instructing(projected(session))


@pytest.mark.parametrize("count", [7, 18, 60, 300])
def test_a_message_that_binds_nothing_stays_in_the_tail_beside_the_newest_results(count: int):
    session = Session("Fix the tests.")
    for number in range(12):
        session.add("user.message", turn=1, text=f"It may be function {number}.")
    later(session, count)
    seen = projected(session)
    tail = seen.text().split("Recent tail:\n")[1].split("</recent_tail")[0]
    assert [number for number in range(12) if f"function {number}." in tail] == [7, 8, 9, 10, 11], "the newest five"
    assert tail.count("command finished") == 3 and f"ls {count - 2}:" in tail


def test_what_a_goal_forbids_outlives_it():
    session = Session("Fix the parser. Do not change the public API.")
    before = projected(session)
    assert instructing(before).count("Do not change the public API.") == 1, "the goal says it"
    session.add("user.goal", turn=1, text="Now fix the serializer.")
    seen = projected(later(session, 60))
    told = instructing(seen)
    assert "User goal:\n- Now fix the serializer.\n" in told
    assert (
        "- From an earlier goal; what it forbids or requires still holds: Fix the parser. Do not change the public API.\n"
        in told
    )
    assert seen.decision("constraint:e0")["reason_code"] == "always_present"
    session.add("constraint.ended", turn=70, subject="e0")
    assert "public API" not in instructing(projected(session))


def test_a_goal_that_forbids_nothing_is_gone_when_another_comes():
    session = Session("Fix the parser.")
    session.add("user.goal", turn=1, text="Fix the serializer.")
    assert "Fix the parser." not in instructing(projected(session))


def test_a_goal_that_the_harness_keeps_binds_as_one_of_the_log():
    state = {"userGoal": "Fix the parser. Never push."}
    seen = policy().project(events=Session("Fix the serializer.").events, state=state, budget={"maxTokens": 9000})
    assert "Fix the parser. Never push." in instructing(seen)


def test_the_same_words_stand_once():
    session = Session("Fix it.")
    for _ in range(3):
        session.add("user.message", turn=1, text="Never push.")
    seen = projected(later(session, 9))
    assert instructing(seen).count("Never push.") == 1
    assert [reasons(seen)[f"constraint:e{n}"] for n in (1, 2, 3)] == ["always_present", "stands_above", "stands_above"]
    assert [reasons(seen)[f"event:e{n}"] for n in (0, 1, 2, 3)] == ["stands_above"] * 3 + ["user_message"], (
        "the last one stands in the tail as well"
    )


def test_a_long_message_binds_with_the_sections_that_forbid_and_stands_whole_while_it_is_the_last():
    log = "\n".join(f"frame {number} at module_{number}.py" for number in range(120))
    text = f"Here is what I see:\n\n{log}\n\nMust hold:\n\n- never edit module_7\n- run nothing in production\n\nThat is all."
    session = Session("Fix it.")
    session.add("user.message", turn=1, text=text)
    seen = projected(session)
    told = instructing(seen)
    assert "- never edit module_7\n  - run nothing in production\n" in told and "frame 3" not in told
    assert "frame 119 at module_119.py" in seen.text(), "the last message stands in the tail as it is"
    session.add("user.message", turn=2, text="Go on.")
    seen = projected(later(session, 20), budget={"maxTokens": 9000})
    assert "never edit module_7" in instructing(seen) and "frame 119" not in seen.text()
    row = seen.decision("event:e1")
    assert (row["reason_code"], row["original_ref"]) == ("message_shortened", "event:e1")


def test_constraints_are_never_cut_the_turn_fails():
    session = Session("Fix it.")
    for number in range(40):
        session.add("user.message", turn=number, text=f"Never touch module {number}, it belongs to somebody else.")
    seen = projected(session, budget={"maxTokens": 2500, "reservedOutputTokens": 0})
    assert all(f"Never touch module {number}," in instructing(seen) for number in range(40))
    assert "constraints_crowd" in seen.conditions and "constraints_crowd" not in projected().conditions
    assert projected(session, budget={"maxTokens": 700, "reservedOutputTokens": 0}).status == "over_budget"


def test_messages_of_other_zones_bind_in_no_later_round():
    session = Session("Fix it.")
    session.add("user.message", turn=1, text="Never say ACME.", top={"zone": "restricted"})
    session.add("user.message", turn=1, text="Never show it.", top={"visibility": "runtime-only"})
    seen = projected(later(session, 5))
    assert "ACME" not in seen.text() and "Never show it." not in seen.text()


def test_a_log_folder_keeps_what_the_user_said(tmp_path: Path):
    session = Session("Fix it. Never push.")
    for number in range(30):
        session.add("user.message", turn=number, text=f"Perhaps {number}." if number % 3 else f"Don't touch m{number}.")
        later(session, 9)
    session.add("user.goal", turn=40, text="Now the docs.")
    later(session, 50)
    log = SessionLog.open(tmp_path / "s", session_id="session")
    log.append(session.events)
    made = policy()
    for at in (70, 140, len(session.events)):
        views = [log.view(at), log.read()]
        seen = [
            made.project_turns(turns=[{"asOfSeq": at, "inputId": "x"}], events=v.tables, facts=v.facts)[0]
            for v in views
        ]
        assert seen[0].neutral() == seen[1].neutral()
        assert [dict(row) for row in seen[0].decisions] == [dict(row) for row in seen[1].decisions]
    assert views[0].tables.events.num_rows < len(session.events)
    assert "Never push." in instructing(seen[0]) and instructing(seen[0]).count("Don't touch") == 10


def test_a_last_message_that_has_no_room_leaves_a_reference():
    session = Session("Fix it.")
    session.add("user.message", turn=1, text="It may be here. " * 700)
    seen = projected(session, budget={"maxTokens": 900, "reservedOutputTokens": 0})
    row = seen.decision("event:e1")
    assert (row["action"], row["reason_code"], row["original_ref"]) == ("reference", "reference_for_budget", "event:e1")
    assert "- Turn 1, user message: no room for its text, open event:e1\n" in seen.text()


@pytest.mark.parametrize(
    ("only", "agrees", "disagrees"),
    [
        ("Never commit without running the tests.", "Always run the tests before you commit.", "Commit after every change."),
        ("Do not commit without asking.", "Ask before each commit.", "Before you finish, commit and push."),
        ("Do not push without my approval.", "Push only when asked.", "Run the tests before you commit, then push."),
        ("Never merge until the tests pass.", "Run the tests before you merge.", "Merge every branch."),
        ("Don\u2019t push unless I ask.", "Before each push, run the linter.", "Always push."),
        ("Never commit without running the tests.", "Run the tests, then commit.", "Commit and run the tests."),
        ("Never push without asking.", "When asked, push.", "Push when done."),
        ("Never push without asking.", "Always ask the user before you commit, push or merge.", "Push, then ask."),
        ("Never merge before CI is green.", "Merge only once CI is green.", "Merge if CI is red."),
        ("NEVER commit unless the user explicitly asks.", "Commit only when requested by the user.", "Commit after every change or when asked."),
        ("Never push without asking.", "Commit and push only when asked.", "Push if CI is green or if asked."),
        ("Never push without asking.", "Commit, push, and merge only when asked.", "Push nightly or only when asked."),
        ("Never push without asking.", "Always commit and push only when asked.", "Push on Mondays as well as when asked."),
        ("Never push without asking the user.", "Before you commit or push, ask the user.", "Before you commit, push."),
        ("Never finish without a run of the full tests.", "Always run the full tests.", "Do not run the full tests."),
    ],
)  # fmt: skip
def test_a_prohibition_with_a_condition_agrees_with_a_rule_that_asks_for_the_condition(
    only: str, agrees: str, disagrees: str
):
    def listed(*texts: str) -> int:
        rules = [{"path": path, "text": text} for path, text in zip(("AGENTS.md", "CLAUDE.md"), texts, strict=True)]
        seen = projected(Session("Fix it."), rules=rules)
        assert bool(conflicts_in(seen)) == ("conflicting_rules" in seen.conditions)
        return len(conflicts_in(seen))

    assert listed(only, agrees) == listed(agrees, only) == 0
    assert listed(only, disagrees) == listed(disagrees, only) == 1
    assert listed(only, f"{agrees} {disagrees}") == listed(f"{disagrees} {agrees}", only) == 1, "in one file"


@pytest.mark.parametrize(
    ("only", "asks"),
    [
        ("Never push without asking.", "Commit, push and open a pull request when you are done."),
        ("Always ask before you push. Never push without asking.", "Push after every commit and open a pull request."),
        ("Never push without my approval.", "Push the branch, then request a review from the team."),
        ("Do not push unless I ask.", "Always push after you commit and confirm that CI passes."),
        ("Do not push unless I ask.", "Push and report back if asked."),
        ("Never push without asking.", "Ask before you commit, then push."),
        ("Don't run the full test suite before committing.", "Always run the full test suite before committing."),
        ("Don't run the full test suite until you are asked.", "Run the full test suite before you ask for a review."),
        ("Never merge before CI is green.", "Merge before CI is green."),
        ("Do not commit before I approve.", "Commit before I approve."),
        ("Never push until the release.", "Push daily until the release."),
        ("Never commit without running the tests.", "Commit first, then run the tests."),
        ("Never commit without running the tests.", "Commit after every change; CI runs the tests."),
        ("Never commit unless the tests are run.", "Commit before you run the tests."),
        ("Never push without asking.", "Push and ask questions later."),
        ("Do not commit unless asked.", "Commit every change and push only when asked."),
        ("Do not push unless I ask.", "Push even when nobody asks."),
        ("Do not push unless I ask.", "Push only when asked; merge at once."),
        ("Never commit without asking.", "Commit, and push only when asked."),
        ("Never push without asking.", "Push at night or at least when asked."),
    ],
)
def test_a_rule_that_asks_for_the_act_itself_and_mentions_its_condition_is_listed(only: str, asks: str):
    for texts in ((only, asks), (asks, only)):
        rules = [{"path": path, "text": text} for path, text in zip(("AGENTS.md", "CLAUDE.md"), texts, strict=True)]
        seen = projected(Session("Fix it."), rules=rules)
        assert len(conflicts_in(seen)) == 1
        assert "conflicting_rules" in seen.conditions


@pytest.mark.parametrize(
    "text", ["Never push without asking; never commit.", "Never commit, and merge without asking."]
)
def test_a_condition_of_another_prohibition_lifts_none(text: str):
    rules = [{"path": "AGENTS.md", "text": text}, {"path": "CLAUDE.md", "text": "Ask before each commit."}]
    assert len(conflicts_in(projected(Session("Fix it."), rules=rules))) == 1


def test_a_permission_to_rename_what_the_user_wants_unchanged_is_named():
    rules = [{"path": "AGENTS.md", "text": "You may rename exported functions freely."}]
    seen = projected(Session("Fix it. Do not change exported names."), rules=rules)
    assert [line.partition(":")[0] for line in conflicts_in(seen)] == ["- May disagree about public interface"]


def conflicts_in(seen: Any) -> list[str]:
    told = instructing(seen).partition("Active constraints:\n")[2].splitlines()
    return [line for line in told if line.startswith("- May disagree about")]


def test_rules_of_different_scopes_that_may_disagree_are_named_as_active_constraints():
    rules = [
        {"path": "AGENTS.md", "text": "Always run the full test suite before you finish."},
        {"path": "packages/p/AGENTS.md", "text": "Never run the full test suite; run package tests only."},
        {"text": "Run the smallest relevant test first.", "origin": "global"},
    ]
    seen = projected(Session("Fix it."), rules=rules, defaults={"working_directory": "packages/p"})
    assert conflicts_in(seen) == [
        '- May disagree about which tests to run: packages/p/AGENTS.md:1 says "Never run the full test suite; run package tests only."; '
        'AGENTS.md:1 says "Always run the full test suite before you finish."',
        '- May disagree about which tests to run: packages/p/AGENTS.md:1 says "Never run the full test suite; run package tests only."; '
        'global rule says "Run the smallest relevant test first."',
    ]
    assert "- (global rule) Run the smallest relevant test first." in instructing(seen)
    assert "conflicting_rules" in seen.conditions


def test_a_goal_and_a_rule_of_the_repository_that_may_disagree_are_named():
    seen = projected(
        Session("Fix it. Do not commit."), rules=[{"path": "AGENTS.md", "text": "Commit after every change."}]
    )
    assert conflicts_in(seen) == [
        '- May disagree about commits: User goal (event:e0) says "Do not commit."; AGENTS.md:1 says "Commit after every change."'
    ]
    assert "conflicting_rules" in seen.conditions
    (row,) = [row for row in seen.decisions if row["source_kind"] == "rule_conflict"]
    assert (row["mode"], row["reason_code"], row["level"]) == ("full", "rules_disagree", 3)


def test_a_conflict_quotes_no_rule_that_is_left_out():
    rules = [
        {"path": "AGENTS.md", "text": "Commit after every change."},
        {"path": "web/AGENTS.md", "text": "Never commit."},
    ]
    assert conflicts_in(projected(Session("Fix it."), rules=rules, turn={"taskPaths": ["web/a.ts"]}))
    for turn in ({}, {"taskPaths": ["web/a.ts"], "instructionSources": ["AGENTS.md"]}):
        seen = projected(Session("Fix it."), rules=rules, turn=turn)
        assert not conflicts_in(seen) and "Never commit" not in seen.text()
        (row,) = [row for row in seen.decisions if row["source_kind"] == "rule_conflict"]
        assert (row["mode"], row["reason_code"]) == ("none", "rule_left_out")


def test_rules_of_one_scope_and_rules_that_agree_are_no_conflict():
    for rules in (
        [{"path": "AGENTS.md", "text": "Never commit to main. Commit after every change."}],
        [{"path": "AGENTS.md", "text": "Never commit."}, {"path": "CLAUDE.md", "text": "Do not commit."}],
    ):
        assert not conflicts_in(projected(Session("Fix it."), rules=rules))


def test_the_tail_says_of_a_constraint_that_it_is_no_longer_in_force():
    session = Session("Refactor the parser.")
    rule = session.add("user.constraint", turn=1, text="Never touch db/")
    session.add("user.constraint", turn=1, text="Keep the API.", constraintId="c1")
    session.add("user.constraint", turn=2, text="Keep the CLI.", constraintId="c1")
    said = session.add("user.message", turn=2, text="Never push. What is next?")
    before = len(session.events)
    session.add("constraint.ended", turn=3, constraintId=rule)
    session.add("constraint.ended", turn=3, constraintId=said)
    session.add("user.message", turn=4, text="Never deploy.")
    seen = projected(session).text()
    assert "- Turn 1, user constraint, no longer in force: Never touch db/" in seen
    assert "- Turn 1, user constraint, no longer in force: Keep the API." in seen
    assert "- Turn 2, user message, what it forbids or requires is no longer in force: Never push." in seen
    assert "- Turn 4, user message: Never deploy." in seen
    assert seen.count("no longer in force") == 3
    session.events = session.events[:before]
    assert projected(session).text().count("no longer in force") == 1, "only what another one replaced"
