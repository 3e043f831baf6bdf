"""Records that people and programs keep, one JSON object per line or one document per file, as rows.

Gives a reader per kind, made by `reads_files` of the function of one file: `read_sessions`, `read_memory`, `read_preferences`, `read_decisions`, `read_standards`, `read_external`
and `read_artifacts`; and `read_evidence`, of prepared rows. Every other one gives one table, and raises InputError naming file, line and field. `source_id` is the class
of origin and the name of the folder, or of the file. snake_case and camelCase names of fields both work.

Note: `conflicted` and `private` are not states of a memory: a conflicted one is verified and belongs to a conflict set, a private
one is verified and belongs to a user (C4, C5). `entity: decision` in a header is the kind of document; the record's id is its
number (`ADR-011`) or the name of its file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from ...nodes.tables import IMPORT_ROWS
from ...nodes.vocabulary import Vocabulary
from ..parsing.data_files import parquet_table
from ..parsing.values import TIME, number
from .file_kinds import file_kind
from .headers import Header, record_number
from .jsonl import LINES, Record, read_lines
from .record_rows import (
    Row,
    common_fields,
    file_rows,
    files_of,
    of_column,
    reads_files,
    record_table,
    rows_of_lines,
    rows_of_text,
)
from .report import PLACE, SourceReport

_MARKDOWN = (".md", ".markdown", ".mdx")
_PROSE = (*_MARKDOWN, ".txt", ".rst", ".html", ".htm", ".adoc", ".pdf", ".docx")


# --- session events

_SPOKEN = ("user", "model", "assistant", "agent", "human")
_TIMES = ("createdAt", "eventTime", "timestamp", "time", "ts")
_TEXT_FIELDS = ("text", "content", "message", "summary", "output")


@reads_files("session-event", LINES, append_only=True)
def read_sessions(file: Path, place: str, base: Row, *, report: SourceReport, **_: Any) -> list[Row]:
    """One row per event (several where its text is long): actions of a user, a model and tools, appended as they happen.

    An event has `createdAt` and a `payload` (or `text`). `source_id` is `session-event:<session id>`, `path`
    `sessions/<session id>`, `section` the event's id, lines and bytes those of the event in its file. The session id of
    events that have none is the file's name. Text of users and models has standing history; that of tools is untrusted.

    A line of a chat has no id: it gets one from its line and time (milliseconds since 1970), so that a growing log keeps the
    ids of earlier lines and the next file of a session has others. Its section and the start of its text name the speaker.
    The evidence id of an event with an id depends on text and section, so they stay unchanged: the speaker is in title and
    tags. An event that is missing from a later file has not ended.
    """
    return rows_of_lines(file, lambda record: _event(record, file.stem, base), report)


def _event(record: Record, default_session: str, base: Row) -> Iterator[Row]:
    common = common_fields(record, ("id", "eventId"), ("kind", "type"), _TIMES)
    if common["event_time"] is None:
        raise InputError.expected(TIME, None, f"{record.at}.createdAt")
    role, speaker = record.text("role"), record.text("speaker", "name", "author")
    kind = common["document_type"] or role or "event"
    spoken = kind.split(".")[0].lower() in _SPOKEN
    turn = record.identifier("turnId")
    session = common["session_id"] or default_session
    text, who = _text(record), _who(speaker, role)
    section = event = common["entity"]
    if event is None:
        event = f"line-{record.line}@{round(common['event_time'].timestamp() * 1000)}"
        section = f"{who} {event}" if who else event
        text = f"{speaker or role}: {text}" if who else text
    speakers = [f"{name}:{value}" for name, value in (("role", role), ("speaker", speaker)) if value]
    row = {
        **common,
        **base,
        "source_id": f"session-event:{session}",
        "evidence_kind": "session-event",
        "document_type": kind,
        "content_type": "excerpt",
        "entity": event,
        "title": common["title"] or f"{who or kind} in {session}" + (f", turn {turn}" if turn else ""),
        "tags": [*(common["tags"] or ()), *speakers] or common["tags"],
        "path": f"sessions/{session}",
        "section": section,
        "session_id": session,
        "declared_standing": "history" if spoken else "untrusted",
        "line_start": record.line,
        "line_end": record.line,
        "byte_start": record.start,
        "byte_end": record.end,
    }
    yield from rows_of_text(text, "event.txt" if spoken else "event.log", row, own_lines=False)


def _who(speaker: str | None, role: str | None) -> str:
    """The speaker in words: `Ada (assistant)`, or the known part."""
    named = " ".join((speaker or role or "").split())
    return f"{named} ({role})" if speaker and role and speaker != role else named


def _text(record: Record) -> str:
    """The event's text, that of its payload, or the payload as JSON. The import handles blank text."""
    own, payload = record.value(*_TEXT_FIELDS), record.value("payload", "data")
    for value in (own, payload):
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            parts = [part.get("text") if isinstance(part, dict) else part for part in value]
            if spoken := [part for part in parts if isinstance(part, str) and part]:
                return "\n".join(spoken)
    if payload is None:
        raise InputError.of_kind("text or a payload", own, f"{record.at}.payload")
    fields = payload if isinstance(payload, dict) else {}
    spoken = next((fields[name] for name in _TEXT_FIELDS if isinstance(fields.get(name), str)), None)
    return spoken or json.dumps(payload, ensure_ascii=False, sort_keys=True, indent=1)


# --- memories and preferences

_CONFIDENCE = {"low": 0.25, "medium": 0.5, "high": 0.9}
_SCOPE_VISIBILITY = Vocabulary("visibility", ("project", "user"), {"team": "project", "private": "user"})
_SCOPED = ("namespace", "branch", "workspace_root", "test_suite", "session_id", "owner_user")
"""Columns that a memory may state in its scope."""
_WHOLE_PROJECT = ""
"""`owner_user` of a project-wide row in a class whose rows belong to users (see `importing`)."""


_UNKNOWN = datetime.max.replace(tzinfo=UTC)


def _end_replaced(rows: list[Row], report: SourceReport) -> None:
    """Of memories with one id, the later by time, else by lines, ends the earlier. One that ended at an unknown time is left
    out: with the time of the import, each import of the same files would give other rows.
    """
    versions: dict[tuple[Any, ...], list[tuple[datetime, list[Row]]]] = {}
    for version in (list(group) for place, group in groupby(rows, itemgetter(PLACE))):
        one = version[0]
        whose = (one["owner_project"], one["owner_user"], one["entity"])
        versions.setdefault(whose, []).append((one["recorded_time"] or one["event_time"] or _UNKNOWN, version))
    for same in versions.values():
        for (_, old), (end, _) in pairwise(sorted(same, key=itemgetter(0))):
            for row in old:
                row["superseded_at"] = row["superseded_at"] or end
    for row in rows:
        if row["superseded_at"] == _UNKNOWN:
            report.skip("memory that was replaced by one without a time", at=row[PLACE])
    rows[:] = [row for row in rows if row["superseded_at"] != _UNKNOWN]


@reads_files("memory", LINES, finish=_end_replaced)
def read_memory(file: Path, place: str, base: Row, *, report: SourceReport, **_: Any) -> list[Row]:
    """One row per governed memory (S0.114); `source_id` is `memory:<folder or file>`, `path` `memory/<id>`.

    Each memory is a document of its own, with its own lines. It belongs to the user named in it or its scope, else to
    the importing principal; with `"visibility": "project"` in its scope, to the whole project. If an id occurs twice, the
    later ends the earlier; of several sources, and of other ids, `nodes.recall.versions` decides for each request.
    """
    return rows_of_lines(file, lambda record: _memory(record, base), report)


@reads_files("user-preference", (*LINES, ".md", ".markdown", ".txt"))
def read_preferences(file: Path, place: str, base: Row, *, report: SourceReport, **_: Any) -> list[Row]:
    """One row per preference of a JSONL file, or per section of a Markdown file; `source_id` is `user-preference:<folder or file>`.

    They belong to one user: without `user`, to the importing principal.
    """
    base["evidence_kind"] = "rule"
    if file.suffix.lower() in LINES:
        return rows_of_lines(file, lambda record: _preference(record, base), report)
    return file_rows(file, place, base, report)


def _memory(record: Record, base: Row) -> Iterator[Row]:
    text = record.required("content", "text")
    status = record.required("status", "lifecycle", "state")
    scope = record.mapping("scope")
    shared = scope.word(_SCOPE_VISIBILITY, "visibility") == "project"
    kinds = ("documentType", "kind", "type", "category")
    common = common_fields(record, ("id", "memoryId"), kinds, ("createdAt", "eventTime"))
    scope.fields = {name: value for name, value in scope.fields.items() if name != "visibility"}  # not that of a row
    within = common_fields(scope)
    if common["entity"] is None:
        raise InputError.expected("the memory's id", None, f"{record.at}.id")
    scoped = {key: common[key] or within[key] for key in _SCOPED}
    if shared and scoped["owner_user"]:
        raise InputError.expected("no user with visibility project", scoped["owner_user"], f"{scope.at}.user")
    if shared:
        scoped["owner_user"] = _WHOLE_PROJECT
    row = {
        **common,
        **base,
        **scoped,
        "evidence_kind": "memory",
        "content_type": "paragraph",
        "path": f"memory/{common['entity']}",
        "owner_project": scope.text("project", "projectId") or base["owner_project"],
        "lifecycle": status.lower(),
        "tags": [*(common["tags"] or ()), *(record.strings("userContextScopes") or ())] or None,
        "confidence": _confidence(record),
        "importance": record.number("importance"),
        "reinforcement_count": record.whole("reinforcementCount"),
        "last_verified_at": record.instant("lastVerifiedAt"),
        "event_time": common["event_time"] or common["valid_from"],
    }
    yield from rows_of_text(text, "memory.md", row)


def _preference(record: Record, base: Row) -> Iterator[Row]:
    common = common_fields(record, ("id", "preferenceId"), ("documentType",), ("createdAt", "eventTime", "updatedAt"))
    identifier = common["entity"] or f"line-{record.line}"
    own = {"entity": identifier, "path": f"preferences/{identifier}", "lifecycle": record.text("status", "lifecycle")}
    row = {**common, **base, **own, "content_type": "paragraph"}
    yield from rows_of_text(record.required("text", "content", "preference"), "preference.md", row)


def _confidence(record: Record) -> float | None:
    value = record.value("confidence")
    stated = _CONFIDENCE.get(value.lower(), value) if isinstance(value, str) else value
    return None if stated is None else number(stated, record.place("confidence"), 0, 1)


# --- documents

_STATES = {
    **dict.fromkeys(("accepted", "approved", "active", "implemented", "final"), "verified"),
    **dict.fromkeys(("proposed", "draft", "pending"), "candidate"),
    **dict.fromkeys(("deprecated", "superseded", "replaced"), "deprecated"),
    **dict.fromkeys(("rejected", "withdrawn"), "revoked"),
}
_SUPERSEDED = re.compile(r"superseded by[:\s]+\[?(?P<by>[^\s\])(,;]+)", re.IGNORECASE)


@reads_files("decision-record", _MARKDOWN)
def read_decisions(file: Path, place: str, base: Row, *, report: SourceReport, **_: Any) -> list[Row]:
    """One row per chunk of every Markdown decision record; `source_id` is `decision-record:<folder>`.

    A file without a header is skipped. Status determines the lifecycle: accepted is verified, proposed candidate,
    superseded deprecated, rejected revoked. The header's date is both event time and recorded time. Authority is 2,
    preferred.
    """
    columns = {**base, "evidence_kind": "decision-record", "authority": 2}
    return file_rows(file, place, columns, report, partial(_decision, file, place, report))


def _decision(file: Path, place: str, report: SourceReport, header: Header, title: str | None) -> Row | None:
    if not header.fields:
        report.skip("decision record without a header (front matter, a `Status:` line or `## Status`)", at=place)
        return None
    status = header.text("status") or ""
    word = re.match(r"[A-Za-z]*", status)[0].lower()  # type: ignore[index]  # it matches every text
    if word not in _STATES:
        report.note(
            f"a decision record whose status is not one of {', '.join(_STATES)} counts as candidate",
            at=header.place("status"),
        )
    by = _SUPERSEDED.search(status)
    own = record_number(title or "") or record_number(file.stem) or file.stem
    return {
        "entity": header.text("id") or own,
        "lifecycle": _STATES.get(word, "candidate"),
        "superseded_by": header.text("superseded_by") or (by["by"] if by else None),
    }


@reads_files("team-standard", _PROSE)
def read_standards(file: Path, place: str, base: Row, *, report: SourceReport, **_: Any) -> list[Row]:
    """One row per chunk of every team standard: rules of authority 2; `source_id` is `team-standard:<folder>`."""
    return file_rows(file, place, {**base, "evidence_kind": "rule", "authority": 2}, report)


@reads_files("external", (*_PROSE, *LINES))
def read_external(file: Path, place: str, base: Row, *, report: SourceReport, **_: Any) -> list[Row]:
    """One row per chunk of external documents: a folder, or one JSON object per line; `source_id` is `external:<folder>`.

    Always authority 0 and standing untrusted, whatever the documents declare.
    """
    base |= {
        "evidence_kind": "doc",
        "authority": 0,
        "declared_standing": "untrusted",
        "declared_safety": "requires-review",
    }
    if file.suffix.lower() in LINES:
        return rows_of_lines(file, lambda record: _external(record, base), report)
    return file_rows(file, place, base, report)


def _external(record: Record, base: Row) -> Iterator[Row]:
    common = common_fields(record, ("id", "docId"), ("documentType",), ("publishedAt", "createdAt", "eventTime"))
    identifier = common["entity"] or f"line-{record.line}"
    row = {**common, **base, "entity": identifier, "path": record.text("path") or identifier}
    yield from rows_of_text(record.required("text", "content", "body"), "document.md", row)


# --- artifacts


@reads_files("artifact", ())
def read_artifacts(
    file: Path, place: str, base: Row, *, path: Path, report: SourceReport, now: datetime, **_: Any
) -> list[Row]:
    """One row per failure block or chunk of what commands left behind; `source_id` is `artifact:<folder>`, standing untrusted.

    They are a folder, one file, or a manifest: each line names a `path` below its folder, or carries `text`. An artifact
    with a `summary` shows that summary to the model; the original is `runtime-only` unless `visibility` is given (S0.44).
    The event time is `createdAt`, or the modification time of a file, never later than `now`.
    """
    base["declared_standing"] = "untrusted"
    if path.is_file() and file.suffix.lower() in LINES:
        return rows_of_lines(file, lambda record: _described(record, file.parent, base, now, report), report)
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    own = {**base, "evidence_kind": _kind(place), "event_time": min(modified, now), "recorded_time": None}
    return file_rows(file, place, own, report)


def _described(record: Record, folder: Path, base: Row, now: datetime, report: SourceReport) -> Iterator[Row]:
    times = ("createdAt", "eventTime", "capturedAt")
    common = common_fields(record, ("id", "artifactId"), ("documentType", "kind", "type", "command"), times)
    common = {key: value for key, value in common.items() if value is not None}
    place = record.text("path", "file")
    text = record.text("text", "content")
    summary = record.text("summary", "projection")
    if place is None and text is None and summary is None:
        raise InputError.expected("a path, a text or a summary", None, f"{record.at}.path")
    shown_as = place or f"artifacts/{common.get('entity', f'line-{record.line}')}"
    row: Row = {**common, **base, "path": shown_as, "evidence_kind": _kind(shown_as)}
    if "event_time" in row:
        row["event_time"] = min(row["event_time"], now)
    if summary is not None:
        yield from rows_of_text(
            summary, "summary.md", {**row, "section": "summary", "declared_visibility": "model-visible"}
        )
        row.setdefault("declared_visibility", "runtime-only")
    if text is not None:
        yield from rows_of_text(text, shown_as if place else "artifact.log", row)
    elif place is not None:
        file = (folder / place).resolve()
        if not file.is_relative_to(folder.resolve()) or not file.is_file():
            raise InputError.expected("a file below the manifest's folder", place, f"{record.at}.path")
        yield from file_rows(file, place, {}, report, lambda header, title: row)


def _kind(place: str) -> str:
    return "test-log" if file_kind(place).evidence_kind == "test-log" else "tool-output"


# --- prepared rows

_ARROW = (".arrow", ".feather", ".ipc")
_PARQUET = (".parquet", ".pq")


def read_evidence(path: str | PathLike[str], *, report: SourceReport, **_: Any) -> Iterator[pa.Table]:
    """Prepared rows of a file, or of all such files in a folder: Parquet, Arrow IPC or JSON lines with columns of
    IMPORT_ROWS, at least `source_id` and `text`; one table per file, counted in `report`.

    Columns that the corpus derives (`evidence_id`, `text_sha256`, ...) are refused like unknown ones, because a value given
    for them would be ignored.

    Raises:
        InputError: a file is damaged or cut off, or a line of JSON has an unknown or missing field, or a value of the
            wrong type: names file, line and field.
    """
    for file, _place in files_of(path, (*_PARQUET, *_ARROW, *LINES, ".json"), report):
        suffix = file.suffix.lower()
        rows = _stored(file, suffix) if suffix in (*_PARQUET, *_ARROW) else _of_lines(file)
        report.read += rows.num_rows
        yield rows


def _stored(path: Path, suffix: str) -> pa.Table:
    try:
        if suffix in _PARQUET:
            rows = parquet_table(path)
        else:
            with pa.memory_map(str(path)) as source:
                rows = pa.ipc.open_file(source).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        got = "one that is damaged or cut off"
        raise InputError(f"Expected a whole Arrow file, got {got}", at=path, hint="write the file again") from error
    places = pa.array([f"{path}:row {number}" for number in range(1, rows.num_rows + 1)], pa.string())
    return rows.append_column(PLACE, places)


def _of_lines(path: Path) -> pa.Table:
    rows = list[Row]()
    for record in read_lines(path):
        record.expect_no_others(IMPORT_ROWS.columns)
        for name in ("source_id", "text"):
            if record.value(name) is None:
                raise InputError.expected("a value", None, f"{record.at}.{name}")
        rows.append({PLACE: record.at} | {name: _prepared(record, name) for name in record.fields})
    return record_table(rows)


def _prepared(record: Record, name: str) -> Any:
    """The value of a column; where that holds text or lists of text, nothing is converted."""
    value, at, type_ = record.value(name), f"{record.at}.{name}", IMPORT_ROWS.columns[name].type
    if value is None or type_ not in (pa.string(), pa.large_string(), pa.list_(pa.string())):
        return of_column(record, name, name)
    listed = pa.types.is_list(type_)
    if listed and not isinstance(value, list):
        raise InputError.of_kind("a list", value, at)
    for position, each in enumerate(value if listed else [value]):
        if not isinstance(each, str):
            raise InputError.of_kind("text", each, f"{at}[{position}]" if listed else at)
    return value
