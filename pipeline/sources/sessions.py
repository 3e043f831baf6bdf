"""Session events: actions of a user, a model and tools, one JSON object per line, appended as they happen.

Gives: `read_sessions`. An event has `createdAt` and a `payload` (or `text`), and may have `id`, `sessionId`, `turnId`,
`kind`, `role`, `speaker`, `user`, `testSuite` and the fields every record may have; snake_case names work as well.

A line of a chat has no id: it gets one from its line and time (milliseconds since 1970), so that a growing log keeps the ids
of earlier lines and the next file of a session has others. Its section and the start of its text name the speaker. The
evidence id of an event with an id depends on text and section, so they stay unchanged: the speaker is in title and tags.

Note: an event log is append-only, so no source is reported complete: an event missing from a later file has not ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from ..parsing.values import TIME
from .jsonl import LINES, Record
from .record_rows import common_fields, read_files, rows_of_lines, rows_of_text
from .report import SourceReport

__all__ = ["read_sessions"]

_SPOKEN = ("user", "model", "assistant", "agent", "human")
_TIMES = ("createdAt", "eventTime", "timestamp", "time", "ts")
_TEXT_FIELDS = ("text", "content", "message", "summary", "output")


def read_sessions(
    path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport
) -> Iterator[pa.Table]:
    """One row per event (several where its text is long), in the order of the file.

    `source_id` is `session-event:<session id>`, `path` `sessions/<session id>`, `section` the event's id, lines and bytes
    those of the event in its file. The session id of events that have none is the file's name.
    Text of users and models has standing history; that of tools is untrusted.

    Raises:
        InputError: naming file, line and field.
    """

    def of_file(file: Path, place: str, base: dict[str, Any]) -> list[dict[str, Any]]:
        return rows_of_lines(file, lambda record: _rows(record, file.stem, base), report)

    return read_files(path, "session-event", LINES, of_file, project=project, report=report, append_only=True)


def _rows(record: Record, default_session: str, base: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
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
    own = record.value(*_TEXT_FIELDS)
    payload = record.value("payload", "data")
    for value in (own, payload):
        if isinstance(value, str):
            return value
        if isinstance(value, list) and (parts := [part for part in map(_part, value) if part]):
            return "\n".join(parts)
    if isinstance(payload, dict):
        spoken = next((payload[f] for f in _TEXT_FIELDS if isinstance(payload.get(f), str)), None)
        return spoken or json.dumps(payload, ensure_ascii=False, sort_keys=True, indent=1)
    if payload is not None:
        return json.dumps(payload, ensure_ascii=False, sort_keys=True, indent=1)
    raise InputError.of_kind("text or a payload", own, f"{record.at}.payload")


def _part(part: object) -> str | None:
    """The text of one part of a multipart message."""
    if isinstance(part, dict):
        part = part.get("text")
    return part if isinstance(part, str) else None
