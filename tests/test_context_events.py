"""Events as rows: what their fields state, and nothing else; secrets are masked, long texts stay whole somewhere."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.turns.words import EVENT_ACTORS, EVENT_KINDS
from scoped_retrieval.pipeline.context.artifacts import artifact
from scoped_retrieval.pipeline.context.event_rows import with_checks
from scoped_retrieval.pipeline.context.events import LogRows, read_events
from scoped_retrieval.pipeline.context.masking import masked_values

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(["MIIEowIBAAKCAQEA" + "x7Qm" * 12] * 160)
    + "\n-----END RSA PRIVATE KEY-----"
)
NEEDED: dict[str, dict[str, Any]] = {
    "phase.changed": {"phase": "editing"}, "constraint.ended": {"constraintId": "c"}, "memory.recalled": {"memoryId": "m"},
    "memory.revoked": {"memoryId": "m"}, "retrieval.snapshot.created": {"snapshotId": "s"},
}  # fmt: skip
"""Fields without which an event of a kind says nothing."""


def event(kind: str, number: int = 0, *, top: dict[str, Any] | None = None, **payload: Any) -> dict[str, Any]:
    at = f"2026-05-20T08:{number % 60:02}:00Z"
    return {"id": f"e{number}", "kind": kind, "createdAt": at, "payload": payload, **(top or {})}


def read(*events: dict[str, Any]) -> LogRows:
    return read_events(events)


def row(kind: str, **payload: Any) -> dict[str, Any]:
    return read(event(kind, **payload)).events[0]


# --- what fields state --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fields", "outcome"), [
    ({"exitCode": 0}, "succeeded"), ({"exitCode": 3}, "failed"), ({"exit_code": 4294967295}, "failed"),
    ({"isError": True}, "failed"), ({"is_error": False}, "succeeded"), ({"status": "succeeded"}, "succeeded"),
    ({"exitCode": 0, "isError": True}, "failed"), ({"exitCode": 1, "interrupted": True}, "interrupted"),
    ({"interrupted": True, "timedOut": True}, "timed_out"), ({"status": "running", "exitCode": 1}, "running"),
    ({}, None), ({"text": "error: 3 tests failed"}, None), ({"text": "Traceback", "exitCode": 0}, "succeeded"),
])  # fmt: skip
def test_the_outcome_is_what_fields_state_and_no_text(fields: dict[str, Any], outcome: str | None):
    assert row("command.finished", command="pytest", **fields)["outcome"] == outcome


def test_kinds_that_state_an_outcome():
    assert row("timeout", command="sleep 9")["outcome"] == "timed_out"
    assert row("tool.error", tool="Read", text="no such file")["outcome"] == "failed"
    assert row("command.finished", exitCode=4294967295)["exit_code"] == -1


@pytest.mark.parametrize(("command", "fields", "check"), [
    ("pnpm test", {"exitCode": 0}, ("pnpm test", "passed")), ("pnpm test --filter a", {"exitCode": 1}, ("pnpm test", "failed")),
    ("pnpm test", {"timedOut": True}, ("pnpm test", "failed")), ("pnpm test", {"interrupted": True}, ("pnpm test", "unknown")),
    ("pnpm test", {}, ("pnpm test", "unknown")), ("pnpm test:e2e", {"exitCode": 0}, (None, None)),
    ("echo pnpm test", {"exitCode": 0}, ("pnpm test", "unknown")), ("pytest -q", {"exitCode": 1}, (None, None)),
    ("pnpm test unit -x", {"exitCode": 0}, ("pnpm test unit", "passed")), ("pnpm testing", {"exitCode": 1}, (None, None)),
    ("pnpm test --filter parser 2>&1", {"exitCode": 1}, ("pnpm test", "failed")), ("pnpm test &> log.txt", {"exitCode": 0}, ("pnpm test", "passed")),
    *((line, {"exitCode": 0}, ("pnpm test", "unknown")) for line in (
        "cd pkg && pnpm test", "CI=1 pnpm test", "timeout 60 pnpm test", "bash -lc 'pnpm test'", "pnpm test 2>&1 | tail -30", "pnpm test && git push",
        "pnpm test; ls", "pnpm test -u\nls", "pnpm test &",
    )),
    ("pnpm test", {"exitCode": 1, "check": "unit"}, ("unit", "failed")),
    ("pnpm test", {"exitCode": 1, "check": {"name": "unit", "status": "passed"}}, ("unit", "passed")),
])  # fmt: skip
def test_a_command_is_a_check_if_the_event_or_the_configuration_says_so(
    command: str, fields: dict[str, Any], check: tuple[str | None, str | None]
):
    found = with_checks(row("command.finished", command=command, **fields), ("pnpm test", "pnpm test unit"))
    assert found["checks"] == ({} if check[0] is None else dict([check]))


def test_a_verification_names_its_checks():
    found = row("verification.finished", name="lint", status="passed")
    assert (found["checks"], found["tool"]) == ({"lint": "passed"}, None)
    several = event("verification.finished", checks=[{"name": "lint", "status": "passed"}, {"name": "unit", "status": "failed"}])  # fmt: skip
    (found,) = read(several).events
    assert found["checks"] == {"lint": "passed", "unit": "failed"}  # fmt: skip


def test_changed_files_are_stated_or_unknown():
    assert row("command.finished", command="sed -i s/a/b/ src/a.py", exitCode=0)["changed_files"] is None
    assert row("command.finished", command="make", changedFiles=[])["changed_files"] == []
    assert row("work.changed", changed_files=["src/b.py", "./src/a.py", "src/a.py"])["changed_files"] == ["src/b.py", "src/a.py"]  # fmt: skip
    assert row("file.modified", path="src\\a.py")["changed_files"] == ["src/a.py"]


def test_every_reference_is_kept_in_order_before_that_of_a_cut_text():
    text = "line\n" * 2_000
    found = row(
        "command.finished", stdoutRef="o", stderr_ref="e", ref="r", artifact="o", artifacts=["x", "y"], stdout=text
    )
    assert found["refs"] == ["o", "e", "r", "x", "y", artifact(text)] and found["cut"]


def test_the_content_of_a_file_is_no_text_and_may_be_empty():
    found = row("file.read", path="a.py", content="", lineStart=3, lineEnd=9, sha256="abc")
    assert (found["content"], found["text"], found["line_start"], found["line_end"], found["version"]) == ("", None, 3, 9, "abc")  # fmt: skip
    assert row("user.message", content="hello")["text"] == "hello"


def test_what_an_event_is_about():
    assert row("permission.denied", requestId=7, action="rm x", reason="not allowed")["subject"] == "7"
    assert row("permission.denied", text="no", reason="not allowed")["text"] == "no\nnot allowed"
    assert row("user.constraint", text="Never push.", topic="git")["subject"] == "e0"
    assert row("constraint.ended", constraintId="c1")["subject"] == "c1"
    assert row("phase.changed", phase="editing")["subject"] == "editing"


def test_matches_of_a_search_are_fields():
    found = row("search.result", query="x", matches=[{"path": "./a.py", "line": 3, "text": "x = 1"}])["matches"]
    flags = {"generated": False, "public_api": False}
    assert found == [{"path": "a.py", "line": 3, "text": "x = 1", **flags}]


def test_a_recalled_memory_is_a_record_and_one_of_a_tool_a_candidate():
    fields = {"text": "Uses pnpm.", "lifecycle": "verified", "confidence": 0.9, "verify": "package.json"}
    found = read(event("memory.recalled", 0, memoryId="m0", **fields), event("memory.recalled", 1, memoryId="m1", origin="tool", **fields))  # fmt: skip
    assert [(m["memory_id"], m["from_seq"], m["lifecycle"], m["verify"]) for m in found.memories] == [
        ("m0", 0, "verified", "package.json"), ("m1", 1, "candidate", "package.json"),
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "fields", "at"), [
    ("user.goal", {}, "text"), ("constraint.ended", {}, "constraintId"), ("phase.changed", {}, "phase"), ("memory.revoked", {}, "memoryId"),
    ("retrieval.snapshot.created", {}, "snapshotId"), ("command.finished", {"isError": "no"}, "isError"),
    ("command.finished", {"status": "done"}, "status"), ("file.read", {"lineStart": 0}, "lineStart"),
    ("user.message", {"text": "x", "actor": "nurse"}, "actor"), ("tool.finished", {"capability": "magic"}, "capability"),
])  # fmt: skip
def test_a_field_that_is_missing_or_malformed_is_named(kind: str, fields: dict[str, Any], at: str):
    with pytest.raises(InputError) as caught:
        row(kind, **fields)
    assert f"- at events[0].payload.{at}" in caught.value.message


def test_an_id_is_used_once_and_a_repeated_event_is_one():
    one = event("user.message", text="a")
    assert [row["seq"] for row in read(one, one, event("user.message", 1, text="b")).events] == [0, 1]
    with pytest.raises(InputError, match="an id of its own"):
        read(one, event("user.message", text="other"))


def test_rounds_are_numbered_as_they_begin_and_clocks_do_not_order():
    late = event("user.message", 3, text="c", top={"turnId": "b", "createdAt": "2020-01-01T00:00:00Z"})
    found = read(
        event("user.message", 1, text="a", top={"turnId": "a"}), event("user.message", 2, text="b"), late
    ).events
    assert [(row["turn"], row["turn_id"]) for row in found] == [(0, "a"), (0, "a"), (1, "b")]


def test_a_time_in_seconds_is_refused_rather_than_dated_1970() -> None:
    late = read_events([event("user.message", 1, text="a", top={"createdAt": 1_700_000_000_000})]).events
    assert late[0]["created_at"].year == 2023
    with pytest.raises(InputError, match="createdAt"):
        read_events([event("user.message", 1, text="a", top={"createdAt": 1_700_000_000})])


# --- who speaks ---------------------------------------------------------------------------------------------------------


@given(
    kind=st.sampled_from(EVENT_KINDS.values),
    outside=st.sampled_from([None, "user", "model", "tool", "system"]),
    inside=st.sampled_from([None, "user", "model", "tool", "system"]),
)
def test_only_an_event_whose_kind_and_origins_are_the_users_is_the_users(
    kind: str, outside: str | None, inside: str | None
):
    fields = {"text": "Stop.", "origin": inside, **NEEDED.get(kind, {})}
    (found,) = read(event(kind, top={"actor": outside} if outside else None, **fields)).events
    assert (found["actor"] == "user") == ({outside, inside, EVENT_ACTORS[kind]} <= {None, "user"})


# --- long texts ---------------------------------------------------------------------------------------------------------


def test_a_long_text_is_cut_and_opens_whole_but_words_of_the_user_are_never_cut():
    long = "begin\n" + "noise\n" * 1_500 + "the middle\n" + "noise\n" * 1_500 + "end"
    found = read(event("external.result", 0, text=long), event("user.message", 1, text=long))
    tool, user = found.events
    assert tool["cut"] and len(tool["text"]) < 6_100 and "the middle" not in tool["text"]
    assert tool["text"].startswith("begin") and tool["text"].endswith("end") and tool["characters"] == len(long)
    assert found.artifacts.open(tool["refs"][-1]) == long
    assert user["text"] == long and not user["cut"] and user["refs"] == []


@pytest.mark.parametrize(("failed", "summary"), [
    ("{noise}\nerror: no match\n --> src/lib.rs:4:5\n{noise}\nlib.rs:9", "error: no match --> src/lib.rs:4:5"),
    ('{noise}\n  File "app.py", line 3\nKeyError: 1\n=====', "KeyError: 1"),
])  # fmt: skip
def test_a_failed_output_is_summarized_by_its_first_place_or_its_end_and_another_by_its_beginning(
    failed: str, summary: str
):
    output = "==\n\x1b[1mrun\x1b[0m\n" + failed.format(noise="\n".join(f"step {number}" for number in range(400)))
    found = [row("command.finished", stdout=output, exitCode=code) for code in (1, 0)]
    assert [each["summary"] for each in found] == [summary, "run"]
    assert all(len(each["excerpt"]) < 1_100 and "run\nstep 0" in each["excerpt"] for each in found)


def test_a_stated_summary_and_excerpt_stay_as_they_are():
    found = row(
        "command.finished", stdout="error: x\n" * 900, exitCode=1, summary="one of many", visibleExcerpt="error: x"
    )
    assert (found["summary"], found["excerpt"]) == ("one of many", "error: x")


@pytest.mark.parametrize(("diff", "summary"), [
    ("--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1,2 +1,3 @@\n x\n-y\n+z\n+--- w", "+2 -1 lines in src/a.ts"),
    ("*** Begin Patch\n*** Update File: b.ts\n@@\n-y\n+z\n*** End Patch", "+1 -1 lines in src/a.ts"),
    ("--- a/a\n+++ b/a\n@@\n+z\n--- a/b\n+++ b/b\n@@\n-z", "+1 -1 lines in src/a.ts"),
    ("fix the parser", "fix the parser"),
])  # fmt: skip
def test_a_diff_is_summarized_by_its_lines(diff: str, summary: str):
    assert row("file.modified", path="src/a.ts", text=diff)["summary"] == summary
    assert row("command.finished", command="x", diff=diff)["summary"] == summary.removesuffix(" in src/a.ts")


# --- paths and secrets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("path", ["./src/café.ts", "src//café.ts", "src\\café.ts", "lib/../src/café.ts"])
def test_a_path_is_the_same_in_every_spelling(path: str, form: str):
    other = unicodedata.normalize(form, path)
    found = row("file.modified", path=other, changedFiles=[other], matches=[{"path": other}])
    assert {found["path"], *found["changed_files"], found["matches"][0]["path"]} == {"src/café.ts"}
    assert row("file.read", path="../a.ts")["path"] == "../a.ts"


@given(
    kind=st.sampled_from(EVENT_KINDS.values),
    name=st.sampled_from(["text", "stdout", "summary", "visibleExcerpt", "command", "arguments", "content", "reason", "turnId", "ref", "topic",
                          "requestId", "changedFiles", "path"]),
    secret=st.sampled_from([TOKEN, f"{PEM}\n", f"--token={TOKEN} x"]),
    before=st.integers(0, 60),
)  # fmt: skip
def test_no_secret_of_an_event_reaches_a_row_or_what_a_reference_opens(kind: str, name: str, secret: str, before: int):
    value = "w " * before + secret + " w" * 4_000 if name == "text" else secret
    fields = {"text": "x", **NEEDED.get(kind, {}), name: [value] if name == "changedFiles" else value}
    found = read(event(kind, **fields))
    (one,) = found.events
    opened = [found.artifacts.open(each) for each in ("event:e0", "log:0-0", *(one["refs"][-1:] if one["cut"] else ()))]
    said = f"{one}{found.memories}{opened}"
    assert TOKEN not in said and "x7Qm" not in said and TOKEN[:12] not in said and TOKEN[-12:] not in said


def test_a_value_is_masked_by_the_name_of_its_field_and_ids_stay_two():
    found = row("tool.intent", tool="deploy", arguments={"password": "hunter2-Sup3rS3cret!", "deep": [{TOKEN: 1}]})
    assert "hunter2" not in found["arguments"] and TOKEN not in found["arguments"] and found["masked"] >= 2
    ids = [f"key {TOKEN}{end}" for end in "ab"]
    (masked,) = masked_values([{"requestId": ids[0], "evidenceIds": ids}], str)
    assert (
        TOKEN not in str(masked)
        and len(set(masked["evidenceIds"])) == 2
        and masked["requestId"] in masked["evidenceIds"]
    )
    assert masked_values([masked], str) == [masked]


def test_values_that_json_lacks_are_refused():
    value: list[Any] = []
    for _ in range(100):
        value = [value]
    with pytest.raises(InputError, match="64 levels of nesting"):
        row("tool.intent", arguments=value)
    for refused in ("\ud800", {1, 2}, float("nan")):
        with pytest.raises(InputError, match=r"at events\[0\]"):
            row("user.message", text=refused)


@given(
    st.dictionaries(
        st.sampled_from(
            ["text", "stdout", "command", "summary", "topic", "path", "arguments", "content", "exitCode", "isError"]
        ),
        st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.lists(st.text(max_size=5), max_size=3),
    ),
    st.sampled_from(EVENT_KINDS.values),
)
def test_an_event_is_a_row_or_an_error_that_names_a_field(payload: dict[str, Any], kind: str):
    try:
        assert len(read(event(kind, **{**NEEDED.get(kind, {}), **payload})).events) == 1
    except InputError as error:
        assert " - at events[0]" in error.message
