"""A denied action stays denied until an authorized user allows the same action (S3.19, S3.30)."""

from __future__ import annotations

from typing import Any

import pytest
from context_session import Session, policy, projected, state_of
from scoped_retrieval.pipeline.context.policy import ContextPolicy
from scoped_retrieval.pipeline.context.transcripts import claude_code, codex


def denied(*grants: tuple[str, dict[str, Any]], **about: Any) -> list[str]:
    session = Session("Fix it.")
    session.add("permission.denied", turn=1, text="no", **{"subject": "push", **about})
    for kind, payload in grants:
        session.add(kind, turn=2, **payload)
    return state_of(session)["approvals"]


def denied_after_each(*grants: tuple[str, dict[str, Any]], **about: Any) -> list[list[str]]:
    """What is denied after each of some grants, in one session; each comes after a denial of its own."""
    session, ends = Session("Fix it."), list[int]()
    for number, (kind, payload) in enumerate(grants):
        session.add("permission.denied", turn=2 * number + 1, text="no", **{"subject": "push", **about})
        session.add(kind, turn=2 * number + 2, **payload)
        ends.append(len(session.events))
    turns = [{"inputId": str(end), "asOfSeq": end} for end in ends]
    seen = policy().project_turns(turns=turns, events=session.events, budget={"maxTokens": 20_000})
    return [seen[n].state["approvals"] for n in range(len(ends))]


NOT_GIVEN: list[dict[str, Any]] = [
    *({"text": text} for text in ("no", "No.", "don't", "Don\u2019t!", "never", "Yes, but not to main.", "yes?", "What would it push?", "hm", "stop", "wait",
                                  "ok, only if the tests pass", "不", "不可以", "行了", "好了", "可以\uff0c但是不要推到主分支", "I deny it", "not yet",
                                  "ok, skip that", "yes, later", "Sure, once the tests pass", "ok when CI is green", "yes to the dry run", "Fine, leave it.",
                                  "ok, do X instead", "proceed without it", "approved in principle", "yes, that was on purpose", "continue, push nothing",
                                  "\u597d\uff0c\u7b49\u6d4b\u8bd5\u901a\u8fc7\u518d\u63a8", "\u597d\u7684\uff0c\u5148\u7b49\u7b49", "\u53ef\u4ee5\u5417", "\u662f\u7981\u6b62\u7684", "\u786e\u8ba4\u53d6\u6d88", "\u884c\u4e86\uff0c\u505c\u4e0b", "\u597d\u50cf\u6709\u95ee\u9898")),
    # The words of a yes in the order of a question, of a wish, or of what the user does.
    *({"text": text} for text in ("are you sure", "is it ok", "is that correct", "can you do that again", "do you agree", "do we continue", "can I go ahead", "you sure",
                                  "please confirm", "confirm this", "please correct it", "correct this", "please correct", "I can do it", "I do it", "ok, I run it",
                                  "we can do it", "\u8bf7\u786e\u8ba4", "\u4f60\u786e\u8ba4", "\u597d\u7684\uff0c\u8bf7\u786e\u8ba4")),
    # Quoted words are not the user's.
    *({"text": text} for text in ("'yes'", "`yes`", "'push it'", "`push it`", "he said 'yes'", "\u2018push it\u2019", "`OK, push it", "ok, 'push it'")),
    # It says no in a field of another name.
    {"denied": True}, {"isDenied": True}, {"verdict": "rejected"}, {"ok": False}, {"permitted": False}, {"reply": "no"}, {"optionId": "reject_once"}, {"reason": "too risky"},
    *({"text": text} for text in ("Given", "Given that", "given this", "Given the approval", "ok, that is all thank you")),
    {"approved": False}, {"granted": False}, {"decision": "denied"}, {"decision": "rejected"}, {"status": "pending"}, {"answer": "no"},
    {"approved": "false"}, {"approved": 1}, {"approved": False, "text": "yes"}, {"approved": True, "text": "no"}, {"decision": "deny", "text": "yes"},
]  # fmt: skip
GIVEN: list[dict[str, Any]] = [
    *({"text": text} for text in ("yes", "Yes.", "OK, push it.", "Go ahead", "approved", "I approve", "Sure, do it!", "同意", "同意了", "我批准了", "可以",
                                  "Yes, please go ahead with the push.", "looks good, approved", "that's fine", "好的", "行吧", "可以\uff0c没问题", "yes, you can do it", "it is fine", "go ahead and push", "yes I do",
                                  "looks good go ahead", "That is correct.", "yes to all", "you may proceed", "confirm", "permission granted",
                                  "Yes, go ahead. Thank you!", "Approved, thank you", "All right, go ahead", "You have my approval", "yes \U0001f44d\U0001f3fd", "Permission given.")),
    {}, {"approved": True}, {"granted": True}, {"decision": "approved"}, {"decision": "allow"}, {"answer": "yes", "text": "for this session"},
    {"decision": "approved_for_session"}, {"decision": "allow_once"},
]  # fmt: skip


@pytest.mark.parametrize("payload", NOT_GIVEN, ids=str)
def test_a_confirmation_that_says_no_or_nothing_clear_lifts_no_denial(payload: dict[str, Any]):
    assert denied(("user.confirmation", {"subject": "push", **payload})) == ["push"]


@pytest.mark.parametrize("payload", GIVEN, ids=str)
def test_a_confirmation_that_says_yes_lifts_it(payload: dict[str, Any]):
    assert denied(("user.confirmation", {"subject": "push", **payload})) == []


def test_a_grant_without_a_subject_lifts_every_denial_of_its_action():
    about = {"tool": "Bash", "action": "git push"}
    assert denied(("permission.granted", about), **about) == []
    assert denied(("permission.granted", {**about, "action": "git push -f"}), **about) == ["push (Bash git push)"]
    assert denied(("permission.granted", {**about, "subject": "pull"}), **about) == ["push (Bash git push)"]


PUSH = {"subject": None, "requestId": "r1", "tool": "Bash", "action": "git push"}


@pytest.mark.parametrize(
    "grant",
    [
        ("user.confirmation", {"approved": True, "action": "git push"}),
        ("user.confirmation", {"text": "OK, push it", "action": "git push"}),
        ("user.confirmation", {"text": "yes", "command": "git push"}),
        ("user.confirmation", {"text": "OK, push it", "requestId": "r1"}),
        ("user.confirmation", {"text": "OK, push it", "subject": "e1"}),
        ("permission.granted", {"action": "git push"}),
        ("permission.granted", {"command": "git push"}),
        ("permission.granted", {"action": "git push", "requestId": "r1"}),
        ("permission.granted", {"action": "git push", "tool": "Bash"}),
    ],
    ids=str,
)
def test_a_grant_that_names_the_denied_action_lifts_its_denial(grant: tuple[str, dict[str, Any]]):
    assert denied(grant, **PUSH) == []
    assert denied((grant[0], {**grant[1], "origin": "model"}), **PUSH) == ["r1 (Bash git push)"]
    assert denied((grant[0], {**grant[1], "origin": "web"}), **PUSH) == ["r1 (Bash git push)"]
    long = f"git push {'x' * 100}"
    renamed = {name: long if value == "git push" else value for name, value in grant[1].items()}
    assert denied((grant[0], renamed), **{**PUSH, "action": long}) == []


@pytest.mark.parametrize(
    "grant",
    [
        *(("user.confirmation", {"action": "git push", **payload}) for payload in NOT_GIVEN),
        *(("user.confirmation", {"requestId": "r1", **payload}) for payload in NOT_GIVEN),
        ("permission.granted", {"action": "git push -f"}),
        ("permission.granted", {"action": "push"}),
        ("permission.granted", {"tool": "Edit", "action": "git push"}),
        ("permission.granted", {"requestId": "r2", "action": "git push"}),
        ("permission.granted", {"action": "git push", "text": "no"}),
        ("user.confirmation", {"text": "OK, push it"}),
        ("user.confirmation", {"text": "OK, push it", "requestId": "r2"}),
        ("user.confirmation", {"text": "OK, fetch it", "requestId": "r1"}),
        ("user.confirmation", {"text": "OK, push it", "requestId": "r1", "approved": False}),
    ],
    ids=str,
)
def test_what_names_another_action_or_withholds_lifts_no_denial(grant: tuple[str, dict[str, Any]]):
    assert denied(grant, **PUSH) == ["r1 (Bash git push)"]


WITHIN: list[tuple[dict[str, Any], bool]] = [
    *(({"expiresAt": until}, False) for until in ("2020-01-01T00:00:00Z", "2020-01-01", 1_577_836_800_000, "soon")),
    ({"expires_at": "2020-01-01T00:00:00Z"}, False), ({"expired": True}, False),
    *(({"expiresAt": until}, True) for until in ("2099-01-01T00:00:00Z", "2099-01-01")), ({"expired": False}, True),
    ({"expired": "true"}, False),
    *(({"scope": scope}, False) for scope in ("git pull", "git", "git push -f", ["git pull"], ["git pull", "git fetch"], {"command": "git pull"}, "Edit")),
    *(({"scope": scope}, True) for scope in ("git push", ["git push"], "git push *", "once", "session", "this command only", "*")),
]  # fmt: skip


@pytest.mark.parametrize(("within", "lifted"), WITHIN, ids=str)
@pytest.mark.parametrize(
    "grant",
    [
        ("user.confirmation", {"text": "yes", "requestId": "r1"}),
        ("user.confirmation", {"text": "OK, push it", "requestId": "r1"}),
        ("user.confirmation", {"text": "yes", "subject": "e1"}),
        ("user.confirmation", {"text": "yes", "tool": "Bash", "command": "git push"}),
        ("user.confirmation", {"approved": True, "action": "git push"}),
        ("permission.granted", {"requestId": "r1"}),
        ("permission.granted", {"tool": "Bash", "action": "git push"}),
    ],
    ids=str,
)
def test_a_permission_counts_until_it_expires_and_only_for_its_scope(
    grant: tuple[str, dict[str, Any]], within: dict[str, Any], lifted: bool
):
    if within == {"scope": "git"} and "requestId" not in grant[1] and "subject" not in grant[1]:
        lifted = True  # the action that it names is one of its scope
    assert denied(grant, **PUSH) == []
    assert (denied((grant[0], {**grant[1], **within}), **PUSH) == []) == lifted


PUBLISH = {"tool": "Bash", "command": "npm publish --tag later"}
FIX = {"tool": "Bash", "command": "git -C web push origin fix"}
ASKED: list[tuple[dict[str, Any], str]] = [
    *((PUBLISH, text) for text in ("go ahead and publish", "publish it", "you may publish", "please publish it", "you can publish now", "Please publish.", "publish please",
                                   "sure, go and publish", "you can go ahead and publish it", "yes publish", "ok publish", "do publish", "Yes. Publish it now.", "publish it\uff0c\u8c22\u8c22")),
    (FIX, "push it"), (FIX, "go ahead and push"), (FIX, "you may push"),
    ({"tool": "WebFetch", "url": "https://a.example"}, "go ahead, fetch it"), ({"tool": "mcp__linear__create_issue", "arguments": '{"title": "fix"}'}, "create it"),
    ({"tool": "Bash", "command": "npm run deploy"}, "deploy it"), ({"tool": "Bash", "command": "gh pr merge 12"}, "merge it"),
    ({"tool": "Bash", "command": "sudo systemctl restart nginx"}, "you can restart it"), ({"tool": "Bash", "arguments": {"command": "git push"}}, "push it"),
    ({"tool": None, "action": "push"}, "push it"), ({"tool": "apply_patch"}, "apply it"),
]  # fmt: skip
NOT_ASKED: list[tuple[dict[str, Any], str]] = [
    *((PUBLISH, text) for text in ("publish", "don't publish", "no, don't publish it", "publish it?", "did you publish", "you may not publish", "publish it later", "publish it, but not now",
                                   "why publish", "who may publish", "you publish", "I publish it", "publish nothing", "may I publish", "can you publish", "you may publish once CI is green",
                                   "publish the docs", "publish and push", "publish it to staging", "never publish it", "I may publish", "you publish it", "> publish it", "> yes",
                                   '"publish it"', "\u201cpublish it\u201d he said", "\u4e0d\u8981 publish", "\u5148\u522b publish", "would you publish", "do you publish", "this may publish", "it may publish",
                                   "publish it yourself", "to publish", "ok, later", "yes, later", "tag it", "ok, tag it", "you may tag")),
    *((FIX, text) for text in ("fix it", "OK, fix it", "you may fix it", "go ahead and fix", "please fix", "web it")),
    *(({"tool": "Bash", "command": command}, text) for command, text in (
        ("rm -rf build", "OK, build it"), ("touch test", "test it"), ("git commit -m 'revert change'", "revert it"), ("npm run deploy", "run it"), ("sleep 5 first", "ok, first"))),
    ({"tool": "mcp__fix__create_issue", "arguments": '{"title": "fix"}'}, "ok, fix it"), ({"tool": "Task", "arguments": '{"prompt": "later"}'}, "ok, later"),
]  # fmt: skip

MAY_MEAN_TO_DROP = (
    *(({"tool": f"mcp__x__{verb}_thing"}, verb) for verb in ("drop", "forget", "abort", "postpone", "undo", "revert", "skip", "leave", "scrap", "ditch", "end", "quit", "pause", "ignore",
                                                             "delay", "defer", "shelve", "park", "table", "archive", "close", "dismiss", "block", "disable", "veto", "mothball")),
    *(({"tool": "Bash", "command": command}, verb) for command, verb in (
        ("kill 4711", "kill"), ("npm run watch", "watch"), ("git revert HEAD", "revert"), ("make mine", "make"), ("git stash", "stash"))),
)  # fmt: skip


@pytest.mark.parametrize(("about", "verb"), MAY_MEAN_TO_DROP, ids=str)
def test_a_verb_that_may_mean_to_drop_the_matter_grants_only_beside_a_clear_yes(about: dict[str, Any], verb: str):
    refused = {"subject": None, "requestId": "r1", **about}
    texts = [text.format(verb) for text in ("{} it", "please {} it", "please {} that", "you may {} it", "ok, {} it", "Fine, {} it.", "sure, {} it", "do {} it", "alright, {} that",
                                            "great, {} it", "go {} it", "continue, {} it")]  # fmt: skip
    said = [{"requestId": "r1", "text": text} for text in texts]
    unclear = [*said, *({**refused, **each} for each in said)]
    still = denied_after_each(*(("user.confirmation", each) for each in unclear), **refused)
    assert [each["text"] for each, left in zip(unclear, still, strict=True) if not left] == []
    named = {**refused, "requestId": verb}
    still = denied_after_each(*(("user.confirmation", {**each, "requestId": verb}) for each in said), **named)
    assert [text for text, left in zip(texts, still, strict=True) if not left] == [], "where the request is named so"
    if verb not in ("skip", "leave", "stash", "make"):
        clear = [f"yes, {verb} it", f"go ahead and {verb} it", f"approved, {verb} it"]
        still = denied_after_each(
            *(("user.confirmation", {"requestId": "r1", "text": text}) for text in clear), **refused
        )
        assert still == [[], [], []]


@pytest.mark.parametrize("text", ["ok, git push", "yes, run `git push`", "go ahead with `git push`", "OK, push it"])
def test_a_yes_may_name_the_command_as_it_stands(text: str):
    assert denied(("user.confirmation", {**PUSH, "text": text}), **PUSH) == []


def test_a_confirmation_of_many_blank_lines_is_read_at_once():
    assert denied(("user.confirmation", {"requestId": "r1", "text": f"yes{chr(10) * 200_000}yes"}), **PUSH) == []


@pytest.mark.parametrize(("about", "text"), ASKED, ids=str)
def test_a_user_who_tells_the_model_to_do_what_was_denied_grants_it(about: dict[str, Any], text: str):
    assert denied(("user.confirmation", {"requestId": "r1", "text": text}), subject=None, requestId="r1", **about) == []


@pytest.mark.parametrize(("about", "text"), NOT_ASKED, ids=str)
def test_words_that_do_not_clearly_ask_for_what_was_denied_grant_nothing(about: dict[str, Any], text: str):
    refused = {"subject": None, "requestId": "r1", **about}
    assert denied(("user.confirmation", {"requestId": "r1", "text": text}), **refused) != []
    assert denied(("user.confirmation", {**refused, "text": text}), **refused) != [], "nor where the event names it"


def test_a_grant_to_one_tool_lifts_what_was_denied_to_all():
    about = {"subject": None, "action": "git push"}
    assert denied(("permission.granted", {"tool": "Bash", "action": "git push"}), **about) == []
    assert denied(("permission.granted", {"tool": "Bash"}), **about) == ["git push"]


def test_a_yes_by_request_to_one_of_several_programs_is_no_yes_to_all():
    about = {"subject": None, "requestId": "r1", "tool": "Bash", "command": "npm test && npm publish"}
    assert denied(("user.confirmation", {"requestId": "r1", "text": "OK, publish it"}), **about) != []


def test_a_grant_that_says_no_is_none():
    for payload in (
        {"granted": False},
        {"decision": "rejected"},
        {"text": "no"},
        {"text": "The user did not allow it."},
        {"denied": True},
        {"permitted": False},
        {"verdict": {"behavior": "deny"}},
    ):
        assert denied(("permission.granted", {"subject": "push", **payload})) == ["push"]
    assert denied(("permission.granted", {"subject": "push", "text": "The user allowed it once."})) == []
    assert denied(("permission.granted", {"subject": "push", "by": "the user", "remember": False})) == []


@pytest.mark.parametrize(
    ("text", "lifted"),
    [("yes", True), ("ok, npm publish", False), ("yes, npm test", False), ("ok, test and publish it", True)],
)
def test_a_yes_to_one_of_several_programs_is_no_yes_to_all(text: str, lifted: bool):
    about = {"tool": "Bash", "command": "npm test && npm publish"}
    assert (denied(("user.confirmation", {"subject": "push", "text": text, **about}), **about) == []) == lifted


def test_a_word_that_says_no_is_a_no_even_where_the_action_names_it():
    for text in ("ok, no", "yes, only if needed"):
        about = {"tool": "Bash", "action": "push --no-verify --only-if needed"}
        assert denied(("user.confirmation", {"subject": "push", "text": text, **about}), **about) != []


def test_a_denial_without_a_subject_is_about_its_action():
    session = Session("Fix it.")
    session.add("permission.denied", turn=1, tool="Bash", action="git push", text="no")
    session.add("permission.denied", turn=1, tool="Bash", action=f"echo {'x' * 100}", text="no")
    first = session.add("permission.denied", turn=1, tool="Edit", text="no")
    session.add("permission.granted", turn=2, tool="Bash", action="git status")
    cut = f"Bash echo {'x' * 70}..."
    assert state_of(session)["approvals"] == ["Edit", cut, "Bash git push"]
    session.add("permission.granted", turn=2, tool="Bash", action="git push")
    assert state_of(session)["approvals"] == ["Edit", cut]
    session.add("user.confirmation", turn=2, subject=first, text="yes")
    assert state_of(session)["approvals"] == [cut], "the event that denied it may be named as well"


@pytest.mark.parametrize("origin", ["repository", "global"])
def test_a_rule_file_grants_nothing_and_changes_no_phase(origin: str):
    assert denied(("permission.granted", {"subject": "push", "origin": origin})) == ["push"]
    session = Session("Fix it.")
    session.add("phase.changed", turn=1, phase="editing", origin=origin)
    assert state_of(session)["phase"] == "diagnosing"


@pytest.mark.parametrize("origin", ["system", "user"])
def test_the_reason_of_a_denial_is_quoted(origin: str):
    session = Session("Fix it.")
    session.add("permission.denied", turn=1, tool="Bash", command="psql prod", reason="Use staging", origin=origin)
    assert "| Use staging\n" in projected(session).text()
    session.add(
        "permission.denied", turn=1, tool="Bash", command="psql", text="No.", reason="Never prod", origin=origin
    )
    session.add("permission.denied", turn=1, tool="Bash", command="ls", text="No.", reason={"code": 3}, origin=origin)
    seen = projected(session)
    assert "| No.\n| Never prod\n" in seen.text()
    assert all(row["standing"] != "instruction" for row in seen.decisions if row["source_id"].startswith("event:"))


def test_denials_of_two_actions_on_one_subject_are_two():
    session = Session("Fix it.")
    session.add("permission.denied", turn=1, subject="src/a.ts", tool="Edit", text="no")
    session.add("permission.denied", turn=1, subject="src/a.ts", tool="Delete", text="no")
    session.add("permission.denied", turn=1, subject="src/a.ts", tool="Delete", text="no, again")
    assert state_of(session)["approvals"] == ["src/a.ts (Delete)", "src/a.ts (Edit)"]
    session.add("permission.granted", turn=2, subject="src/a.ts", tool="Edit")
    assert state_of(session)["approvals"] == ["src/a.ts (Delete)"], "one that names an action lifts that one"
    session.add("permission.denied", turn=2, subject="src/a.ts", tool="Bash", command="rm src/a.ts", text="no")
    session.add("permission.granted", turn=2, subject="src/a.ts", tool="Bash", command="cat src/a.ts")
    assert state_of(session)["approvals"] == ["src/a.ts (Bash rm src/a.ts)", "src/a.ts (Delete)"]
    session.add("user.confirmation", turn=3, subject="src/a.ts", text="yes")
    assert state_of(session)["approvals"] == [], "one that names none lifts all of its subject"
    session.add("permission.denied", turn=4, subject="src/a.ts", tool="Edit", text="no")
    assert state_of(session)["approvals"] == ["src/a.ts (Edit)"], "what is denied later is denied"


NOTHING_SINCE, WRITTEN_SINCE = "denied, no approval recorded since", "denied, and the user has written since"


@pytest.mark.parametrize(
    ("later", "told"),
    [
        ([], NOTHING_SINCE),
        ([("command.finished", {"command": "ls", "exitCode": 0, "stdout": "a"})], NOTHING_SINCE),
        ([("user.message", {"text": "yes you can push now"})], WRITTEN_SINCE),
        ([("user.message", {"text": "ok push it, but not to main"})], WRITTEN_SINCE),
        ([("user.message", {"text": "no, don't"})], WRITTEN_SINCE),
        ([("user.message", {"text": "why would you push?"})], WRITTEN_SINCE),
        ([("user.message", {"text": "> you may push\n\nhe said"})], WRITTEN_SINCE),
        ([("user.message", {"text": "\u53ef\u4ee5\u63a8\u9001\u4e86"})], WRITTEN_SINCE),
        ([("user.message", {"text": "yes", "visibility": "user-only"})], WRITTEN_SINCE),
        ([("user.message", {"text": "yes", "zone": "private"})], WRITTEN_SINCE),
        ([("user.goal", {"text": "Push it."})], WRITTEN_SINCE),
        ([("user.constraint", {"text": "Push nothing."})], WRITTEN_SINCE),
        ([("user.confirmation", {"text": "yes, later", "requestId": "r1"})], WRITTEN_SINCE),
        ([("user.confirmation", {"text": "yes", "requestId": "r1"})], None),
        *(([("user.message", {"text": "yes", "origin": other})], NOTHING_SINCE) for other in ("model", "tool", "web", "subagent", "memory")),
        ([("user.message", {"text": "yes"}), ("permission.denied", {**PUSH, "text": "no"})], NOTHING_SINCE),
    ],
    ids=str,
)  # fmt: skip
def test_the_state_says_of_a_denial_what_is_true_of_it(later: list[tuple[str, dict[str, Any]]], told: str | None):
    session = Session("Fix it.")
    session.add("user.message", turn=1, text="You may push.")  # before the denial
    session.add("permission.denied", turn=1, text="no", **PUSH)
    for kind, payload in later:
        session.add(kind, turn=2, **payload)
    lines = [line for line in projected(session).text().splitlines() if line.startswith("- denied, ")]
    assert lines == ([f"- {told}: r1 (Bash git push)"] if told else [])


def test_denials_before_and_behind_what_the_user_wrote_are_told_apart():
    session = Session("Fix it.")
    for number in range(14):
        session.add("permission.denied", turn=1, text="no", action=f"old {number}")
    session.add("user.message", turn=2, text="hm")
    session.add("permission.denied", turn=2, text="no", action="new 1")
    session.add("permission.denied", turn=2, text="no", action="new 2")
    old = ", ".join(f"old {number}" for number in range(13, 3, -1))
    seen = projected(session)
    assert f"- {NOTHING_SINCE}: new 2, new 1\n- {WRITTEN_SINCE}: {old} and 4 more\n" in seen.text()
    assert (seen.state["approval_count"], seen.state["unanswered_count"]) == (16, 2)
    for number in range(12):
        session.add("permission.denied", turn=3, text="no", action=f"newer {number}")
    assert f"newer 0 and 2 more\n- {WRITTEN_SINCE}: 14 more\n" in projected(session).text()


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({}, "permission granted, Bash git push\n"),
        ({"text": "once"}, "permission granted, Bash git push: once\n"),
        ({"summary": "for this session"}, "permission granted, Bash git push: for this session"),
    ],
)
def test_a_grant_without_words_is_shown_as_what_it_is(payload: dict[str, Any], told: str):
    session = Session("Fix it.")
    session.add("permission.granted", turn=1, tool="Bash", action="git push", **payload)
    seen = projected(session).text()
    assert f"- Turn 1, {told}" in seen and "not shown, 0 characters" not in seen


@pytest.mark.parametrize(
    ("said", "told"),
    [({"approved": True}, "yes"), ({"approved": False}, "not approved"), ({}, "yes"), ({"x": 1}, "not approved")],
)
def test_a_confirmation_without_words_is_shown_with_what_it_says(said: dict[str, Any], told: str):
    session = Session("Fix it.")
    session.add("user.confirmation", turn=1, requestId="r1", **said)
    assert f"- Turn 1, user confirmation: {told}\n" in projected(session).text()


# --- whose denial it is, in transcripts -------------------------------------------------------------------------------

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def of_claude(tool: str, text: str, given: dict[str, str] | None = None, **record: Any) -> dict[str, Any]:
    call = {
        "type": "assistant",
        "message": {
            "id": "m",
            "content": [{"type": "tool_use", "id": "t", "name": tool, "input": given or {"command": "x"}}],
        },
    }
    block = {"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": True}
    result = {"type": "user", "message": {"role": "user", "content": [block]}, **record}
    return claude_code.events_of([call, result], "t").events[-1]


@pytest.mark.parametrize(
    ("tool", "text", "record"),
    [
        ("Bash", REFUSED, {}),
        ("Bash", "This Bash command contains multiple operations. The following part requires approval: rm x", {}),
        ("Write", "Permission for this action was denied by the Claude Code auto mode classifier.", {}),
        ("ExitPlanMode", "The agent proposed a plan that was rejected by the user.", {}),
        ("mcp__pay__send", REFUSED, {"toolUseResult": "User rejected tool use"}),
        ("mcp__pay__send", "no", {"toolDenialKind": "user-rejected"}),
        ("Bash", "no", {"toolDenialKind": "permission-rule"}),
    ],
)
def test_a_denial_of_the_harness_is_one(tool: str, text: str, record: dict[str, Any]):
    assert of_claude(tool, text, **record)["kind"] == "permission.denied"


@pytest.mark.parametrize(
    ("tool", "given"),
    [("Bash", {"command": "pip install moneyed"}), ("Write", {"file_path": "src/a.py"}), ("WebFetch", {"url": "https://a.example"})],
)  # fmt: skip
def test_the_state_names_what_the_user_refused(tool: str, given: dict[str, str]):
    seen = ContextPolicy().project(events=[of_claude(tool, REFUSED, given)])
    assert f"({tool} {next(iter(given.values()))})" in seen.text()


@pytest.mark.parametrize(
    ("tool", "text", "record"),
    [
        ("mcp__pay__send", "The payment was rejected", {}),
        ("mcp__pay__send", REFUSED, {"toolUseResult": f"Error: {REFUSED}"}),
        ("WebFetch", "The request was rejected by the server", {}),
        ("Read", "The change requires approval of the owner", {}),
        ("Task", "Somebody noted that the user does not want this", {}),
        ("Read", REFUSED, {"toolDenialKind": "interrupted"}),
    ],
)
def test_what_a_tool_says_is_no_denial_of_the_user(tool: str, text: str, record: dict[str, Any]):
    assert of_claude(tool, text, **record)["kind"] != "permission.denied"


STARTS = "exec_command failed for `/bin/bash -lc 'git push'`"
NOT_ASKED = "approval required by policy, but AskForApproval is set to Never"


def kind_in_rollout(tool: str, arguments: str, output: str) -> str:
    """The kind of event that the output of a call in a rollout becomes."""
    items = [
        {"type": "function_call", "name": tool, "call_id": "1", "arguments": arguments},
        {"type": "function_call_output", "call_id": "1", "output": output},
    ]
    made = codex.events_of([{"type": "response_item", "payload": each} for each in items], "t")
    return made.events[-1]["kind"]


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("exec command rejected by user", "permission.denied"),
        ('{"output": "exec command rejected by user", "metadata": {"exit_code": 0}}', "command.finished"),
        ("The push was rejected by user rules", "command.finished"),
        (f"{STARTS}: CreateProcess {{ message: \"Rejected(\\\"rejected by user\\\")\" }}", "permission.denied"),
        ('exec_command failed: Rejected("rejected by user")', "permission.denied"),
        (f'{STARTS}: CreateProcess {{ message: "Rejected(\\"{NOT_ASKED}\\")" }}', "permission.denied"),
        ("`git push` rejected: blocked by policy", "permission.denied"),
        (f'{STARTS}: CreateProcess {{ message: "Rejected(\\"Failed to create unified exec process: os error 2\\")" }}', "command.finished"),
        (f'{STARTS}: SandboxDenied {{ message: "fatal: Rejected(no)" }}', "command.finished"),
        ("$ cat log\nexec_command failed: Rejected(no)", "command.finished"),
    ],
)  # fmt: skip
def test_a_denial_in_a_rollout_is_all_of_an_output(output: str, kind: str):
    assert kind_in_rollout("shell", '{"command": ["git", "push"]}', output) == kind


@pytest.mark.parametrize(
    ("output", "kind"),
    [("user rejected MCP tool call", "permission.denied"), ('err: "user rejected MCP tool call"', "permission.denied"),
     ("exec command rejected by user", "command.finished")],
)  # fmt: skip
def test_a_call_of_a_server_that_the_user_refused_in_a_rollout_is_a_denial(output: str, kind: str):
    assert kind_in_rollout("mcp__pay__send", "{}", output) == kind


def test_a_patch_that_the_user_refused_changed_no_file():
    patch = "*** Begin Patch\n*** Update File: a.ts\n-1\n+2\n*** End Patch"
    items = [
        {"type": "custom_tool_call", "name": "apply_patch", "call_id": "1", "input": patch},
        {"type": "custom_tool_call_output", "call_id": "1", "output": "patch rejected by user"},
    ]
    made = codex.events_of([{"type": "response_item", "payload": each} for each in items], "t")
    assert [each["kind"] for each in made.events if each["kind"] != "model.request"] == [
        "tool.intent",
        "permission.denied",
    ]


def test_the_tail_says_of_a_grant_that_gives_nothing_that_it_gives_none():
    session = Session()
    session.add("permission.denied", turn=1, tool="Bash", action="git push", subject="r1")
    session.add("permission.granted", turn=2, subject="r1", approved=False)
    session.add("permission.granted", turn=3, subject="r1", origin="model")
    session.add("permission.granted", turn=4, subject="other")
    session.add("command.finished", turn=5, command="ls", stdout="a", exitCode=0)
    text = projected(session).text()
    for line in (
        "Turn 2, permission not granted",
        "Turn 3, not a permission: words of the model",
        "Turn 4, permission granted",
    ):
        assert f"- {line}" in text, line
