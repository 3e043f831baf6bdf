"""Readers of records: sessions, memory, preferences, decisions, standards, external texts and artifacts."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest
from record_files import NOW, lines, read, stored
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.sources.readers import READERS, tables_of
from scoped_retrieval.pipeline.sources.records import (
    read_artifacts,
    read_evidence,
    read_external,
    read_memory,
    read_preferences,
    read_sessions,
)
from scoped_retrieval.pipeline.sources.report import SourceReport

EVENT = {"id": "e1", "sessionId": "s-1", "turnId": "t-1", "kind": "tool.finished", "createdAt": "2026-05-20T08:00:00Z"}
MEMORY = {
    "id": "m1", "content": "Fixtures declare roles.", "status": "verified", "scope": {"project": "shop"},
    "sourceRefs": ["s-1"], "confidence": "high", "validFrom": "2026-05-01T00:00:00Z",
}  # fmt: skip


# --- sessions


def test_a_session_event_keeps_who_when_and_where(tmp_path) -> None:
    path = lines(tmp_path, {**EVENT, "payload": {"text": "auth failed"}, "user": "ben", "testSuite": "auth"})
    (row,) = stored(read_sessions, path)
    assert row["text"] == "auth failed"
    assert (row["source_id"], row["path"], row["section"], row["entity"]) == (
        "session-event:s-1",
        "sessions/s-1",
        "e1",
        "e1",
    )
    assert (row["owner_user"], row["test_suite"], row["session_id"]) == ("ben", "auth", "s-1")
    assert row["recorded_time"] == row["event_time"] == datetime(2026, 5, 20, 8, tzinfo=UTC)
    assert (row["line_start"], row["byte_start"], row["byte_end"]) == (1, 0, path.stat().st_size)


def test_what_tools_print_is_untrusted_and_what_people_say_is_history(tmp_path) -> None:
    path = lines(tmp_path, {**EVENT, "payload": "x"}, {**EVENT, "id": "e2", "kind": "user.message", "payload": "y"})
    assert [row["declared_standing"] for row in read(read_sessions, path)[0]] == ["untrusted", "history"]


def test_a_long_event_is_cut_into_rows_of_the_same_event(tmp_path) -> None:
    text = "\n".join(f"line {i} of the output" for i in range(600))
    rows, _ = read(read_sessions, lines(tmp_path, {**EVENT, "payload": text}))
    assert len(rows) > 1
    assert "".join(row["text"] for row in rows) == text
    assert {row["entity"] for row in rows} == {"e1"}


CHAT = [
    {"role": "user", "content": "Which queue?", "timestamp": "2026-01-02T10:00:00Z"},
    {"role": "assistant", "speaker": "Ada", "content": "The one there is.", "timestamp": "2026-01-02T10:01:00Z"},
    {"speaker": "Ben", "text": "Good.", "timestamp": "2026-01-02T10:02:00Z"},
    {"speaker": "Ben", "text": "Good.", "timestamp": "2026-01-02T10:02:00Z"},
]


def test_a_line_of_a_chat_says_who_spoke_and_has_an_id_of_its_own(tmp_path) -> None:
    rows, report = read(read_sessions, lines(tmp_path, *CHAT))
    assert [row["text"] for row in rows] == ["user: Which queue?", "Ada: The one there is.", "Ben: Good.", "Ben: Good."]
    assert [row["section"].rpartition(" ")[0] for row in rows] == ["user", "Ada (assistant)", "Ben", "Ben"]
    assert [row["tags"] for row in rows] == [
        ["role:user"],
        ["role:assistant", "speaker:Ada"],
        ["speaker:Ben"],
        ["speaker:Ben"],
    ]
    assert len({row["entity"] for row in rows}) == 4
    assert all(row["section"].endswith(row["entity"]) for row in rows)
    assert [row["declared_standing"] for row in rows] == ["history", "history", "untrusted", "untrusted"]
    assert not report.notes
    grown, _ = read(read_sessions, lines(tmp_path, *CHAT, {**CHAT[0], "content": "And now?"}))
    assert [row["entity"] for row in grown[:4]] == [row["entity"] for row in rows]


def test_an_event_with_an_id_keeps_the_text_and_section_that_its_evidence_id_rests_on(tmp_path) -> None:
    event = {**EVENT, "payload": "It failed.", "role": "assistant", "speaker": "Ada"}
    (row,), report = read(read_sessions, lines(tmp_path, event))
    assert (row["text"], row["section"]) == ("It failed.", "e1")
    assert (row["title"], row["tags"]) == ("Ada (assistant) in s-1, turn t-1", ["role:assistant", "speaker:Ada"])
    assert not report.notes


# --- memory


def test_a_memory_keeps_state_scope_sources_confidence_and_time(tmp_path) -> None:
    scope = {"project": "shop", "user": "ben", "branch": "main", "testSuite": "auth"}
    more = {"scope": scope, "validUntil": "2026-07-01T00:00:00Z", "tags": ["auth"], "userContextScopes": ["work"]}
    (row,) = stored(read_memory, lines(tmp_path, MEMORY | more))
    assert row["tags"] == ["auth", "work"]
    assert (row["entity"], row["path"], row["source_id"]) == ("m1", "memory/m1", "memory:file")
    assert (row["lifecycle"], row["confidence"], row["source_refs"]) == ("verified", 0.9, ["s-1"])
    assert (row["owner_project"], row["owner_user"], row["branch"], row["test_suite"]) == (
        "shop",
        "ben",
        "main",
        "auth",
    )
    assert row["recorded_time"] == row["valid_from"] == datetime(2026, 5, 1, tzinfo=UTC)
    assert row["valid_until"] == datetime(2026, 7, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "lifecycle", "standing"),
    [
        ("candidate", "candidate", "hint"),
        ("verified", "verified", "evidence"),
        ("deprecated", "deprecated", "history"),
        ("conflicted", "verified", "evidence"),
        ("private", "verified", "evidence"),
        ("superseded", "deprecated", "history"),
        ("never heard of", "candidate", "hint"),
    ],
)
def test_memory_states(tmp_path, status: str, lifecycle: str, standing: str) -> None:
    (row,) = stored(read_memory, lines(tmp_path, {**MEMORY, "status": status}))
    assert (row["lifecycle"], row["declared_standing"]) == (lifecycle, standing)
    assert row["conflict_set"] == ("conflict:m1" if status == "conflicted" else None)
    assert row["owner_user"] == "ana"


@pytest.mark.parametrize(
    ("scope", "owner"),
    [
        ({}, "ana"),
        ({"user": "ben"}, "ben"),
        ({"visibility": "project"}, None),
        ({"visibility": "private"}, "ana"),
        ({"visibility": "user", "user": "ben"}, "ben"),
    ],
)
def test_a_memory_is_the_whole_projects_only_if_its_scope_says_so(tmp_path, scope: dict, owner: str | None) -> None:
    (row,) = stored(read_memory, lines(tmp_path, {**MEMORY, "scope": scope}))
    assert row["owner_user"] == owner


def test_the_user_s_scopes_of_a_memory_are_its_tags_and_those_that_it_states(tmp_path) -> None:
    (row,) = stored(read_memory, lines(tmp_path, {**MEMORY, "tags": ["work"], "userContextScopes": ["private"]}))
    assert row["tags"] == ["work", "private"]


def test_a_later_version_of_a_memory_supersedes_the_earlier(tmp_path) -> None:
    later = {**MEMORY, "content": "Fixtures declare every role.", "createdAt": "2026-05-10T00:00:00Z"}
    rows, report = read(read_memory, lines(tmp_path, later, MEMORY))
    assert [row["superseded_at"] for row in rows] == [None, datetime(2026, 5, 10, tzinfo=UTC)]
    assert report.complete_sources == {"memory:file"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"content": " "}, r"Expected text, got nothing - at .*:1.content"),
        ({"confidence": "sure"}, r"got 'sure' - at .*:1.confidence"),
        (
            {"scope": {"visibility": "project", "user": "ben"}},
            r"Expected no user with visibility project, got 'ben' - at .*:1.scope.user",
        ),
        ({"validFrom": "soon"}, r"got 'soon' - at .*:1.validFrom"),
    ],
)
def test_a_malformed_memory_is_named(tmp_path, change: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(read_memory, lines(tmp_path, {**MEMORY, **change}))


# --- preferences


def test_preferences_are_the_importers_from_json_lines_and_markdown(tmp_path) -> None:
    path = lines(tmp_path, {"id": "p1", "text": "Small diffs."}, {"id": "p2", "text": "Tabs.", "user": "ben"})
    assert [row["owner_user"] for row in stored(read_preferences, path)] == ["ana", "ben"]
    (tmp_path / "prefs.md").write_text("# Editing\n\nShow a small diff first.\n")
    (row,) = stored(read_preferences, tmp_path / "prefs.md")
    assert (row["owner_user"], row["section"], row["origin_class"]) == ("ana", "Editing", "user-preference")


# --- artifacts


def test_a_log_is_untrusted_and_dated_by_its_file(tmp_path) -> None:
    for name in ("vitest-2026-05-20.log", "output.txt"):
        (tmp_path / name).write_text("expected admin, received undefined\n")
        os.utime(tmp_path / name, (1_770_000_000, 1_770_000_000))
    rows = {row["path"]: row for row in stored(read_artifacts, tmp_path)}
    assert {row["event_time"] for row in rows.values()} == {datetime.fromtimestamp(1_770_000_000, UTC)}
    assert {row["declared_standing"] for row in rows.values()} == {"untrusted"}
    assert rows["vitest-2026-05-20.log"]["evidence_kind"] == "test-log"


def test_an_artifact_with_a_summary_shows_the_summary_and_keeps_the_original(tmp_path) -> None:
    (tmp_path / "dump.txt").write_text("HOME=/somewhere\n")
    path = lines(
        tmp_path,
        {
            "id": "a1",
            "path": "dump.txt",
            "summary": "The environment has no default role.",
            "createdAt": "2026-05-20T08:00:00Z",
        },
    )
    rows = {row["section"]: row for row in stored(read_artifacts, path)}
    assert rows["summary"]["declared_visibility"] == "model-visible"
    assert rows[None]["declared_visibility"] == "runtime-only"
    assert rows[None]["text"] == "HOME=/somewhere\n"
    assert {row["entity"] for row in rows.values()} == {"a1"}


def test_a_manifest_says_what_may_be_seen(tmp_path) -> None:
    path = lines(tmp_path, {"id": "a1", "text": "secret dump", "visibility": "user-only", "testSuite": "auth"})
    (row,) = stored(read_artifacts, path)
    assert (row["declared_visibility"], row["test_suite"]) == ("user-only", "auth")


@pytest.mark.parametrize("place", ["../outside.log", "absent.log"])
def test_a_manifest_leads_to_files_below_its_folder_only(tmp_path, place: str) -> None:
    (tmp_path / "outside.log").write_text("x")
    (tmp_path / "in").mkdir()
    with pytest.raises(
        InputError, match=r"Expected a file below the manifest's folder, got .* - at .*file.jsonl:1.path"
    ):
        read(read_artifacts, lines(tmp_path / "in", {"id": "a1", "path": place}))


@pytest.mark.parametrize(
    ("reader", "record", "foreign"),
    [
        (read_memory, MEMORY, {"date": "2026-05-01"}),
        (read_memory, {**MEMORY, "scope": {}}, {"docId": {}}),
        (read_preferences, {"id": "p1", "text": "Small diffs."}, {"time": "mornings"}),
        (read_external, {"id": "x1", "text": "Elsewhere."}, {"entity": {}}),
        (read_artifacts, {"id": "a1", "text": "ok"}, {"ts": "1.25 s"}),
        (read_sessions, {**EVENT, "text": "ok"}, {"category": {}}),
    ],
)
def test_a_field_that_is_another_readers_is_named_and_not_read(tmp_path, reader, record: dict, foreign: dict) -> None:
    rows, _ = read(reader, lines(tmp_path, record))
    same, report = read(reader, lines(tmp_path, record | foreign))
    assert same == [row | {"byte_end": each["byte_end"]} for row, each in zip(rows, same, strict=True)]
    assert report.notes


@pytest.mark.parametrize("reader", [one for one in READERS if one.of_files], ids=lambda reader: reader.name)
def test_nothing_at_the_path_is_an_error(tmp_path, reader) -> None:
    with pytest.raises(InputError, match=r"Expected a file or a folder, got nothing - at .*absent"):
        list(tables_of(reader, tmp_path / "absent", project="shop", now=NOW, report=SourceReport()))


@pytest.mark.parametrize("reader", [one for one in READERS if one.name in ("evidence", "sot", "memory")])
def test_a_file_of_another_ending_is_refused_with_the_endings_that_are_read(tmp_path, reader) -> None:
    path = lines(tmp_path, "text", name="a.md")
    with pytest.raises(InputError, match=r"Expected a folder or a file ending in \..*, got 'a\.md' - at .*a\.md"):
        list(tables_of(reader, path, project="shop", now=NOW, report=SourceReport()))


@pytest.mark.parametrize(
    ("field", "at"),
    [
        ({"text": 5}, "text"),
        ({"source_id": 5}, "source_id"),
        ({"title": 5}, "title"),
        ({"tags": "x"}, "tags"),
        ({"tags": [{"id": "x"}]}, r"tags\[0\]"),
    ],
)
def test_a_prepared_value_of_another_type_is_refused(tmp_path, field: dict, at: str) -> None:
    with pytest.raises(InputError, match=rf"Expected (text|a list), got .* - at .*file.jsonl:1.{at}$"):
        read(read_evidence, lines(tmp_path, {"source_id": "s:1", "text": "Ok.", "tags": ["a"]} | field))


def test_prepared_text_is_kept_as_it_is(tmp_path) -> None:
    row = {"source_id": "s:1", "text": " Ok.\n", "tags": ["a"], "title": None}
    (kept,), _ = read(read_evidence, lines(tmp_path, row))
    assert {name: kept.get(name) for name in row} == row
