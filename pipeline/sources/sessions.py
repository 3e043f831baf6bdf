"""Session events: what a user, a model and tools did, one JSON object per line, appended as it happens.

Gives: `read_sessions`. An event has `id`, `createdAt` and a `payload` (or `text`), and may have `sessionId`, `turnId`,
`kind`, `user`, `testSuite` and the fields every record may have; snake_case names work as well.

What one would otherwise get wrong: an event log only grows, so no source is named complete: an event that a later file
lacks has not ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from os import PathLike
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from .jsonl import Record, files_of, note_unread, read_lines
from .record_rows import common_fields, rows_of_text, tables
from .report import SourceReport

__all__ = ["read_sessions"]

_SPOKEN = ("user", "model", "assistant", "agent", "human")
_TEXT_FIELDS = ("text", "content", "message", "summary", "output")


def read_sessions(
    path: str | PathLike[str], *, project: str, now: datetime, report: SourceReport, name: str | None = None
) -> Iterator[pa.Table]:
    """One row per event (several where its text is long), in the order of the file.

    `source_id` is `session-event:<session id>`, `path` `sessions/<session id>`, `section` the event's id, lines and bytes
    those of the event in its file. `name` stands for the session id of events that have none (default: the file's name).
    Text of users and models may speak as history; of tools it is untrusted.

    Raises:
        InputError: naming file, line and field.
    """
    rows: list[dict[str, Any]] = []
    for file in files_of(path, (".jsonl", ".ndjson"), report):
        records = read_lines(file)
        for record in records:
            rows += _rows(record, name or file.stem, project)
        report.read += len(records)
        note_unread(records, report, file.name)
    yield from tables(rows)


def _rows(record: Record, default_session: str, project: str) -> Iterator[dict[str, Any]]:
    event = record.identifier("id", "eventId", "event_id")
    if event is None:
        raise InputError.expected("the event's id", None, f"{record.at}.id")
    happened = record.instant("createdAt", "created_at", "event_time", "eventTime", "timestamp")
    if happened is None:
        raise InputError.expected("an ISO 8601 instant with a time zone", None, f"{record.at}.createdAt")
    kind = record.text("kind", "type") or "event"
    turn = record.identifier("turnId", "turn_id")
    common = common_fields(record)
    session = common["session_id"] or default_session
    row = {
        **common,
        "source_id": f"session-event:{session}",
        "origin_class": "session-event",
        "evidence_kind": "session-event",
        "document_type": kind,
        "content_type": "excerpt",
        "entity": event,
        "title": common["title"] or f"{kind} in {session}" + (f", turn {turn}" if turn else ""),
        "path": f"sessions/{session}",
        "section": event,
        "event_time": happened,
        "session_id": session,
        "owner_project": project,
        "declared_standing": "history" if kind.split(".")[0].lower() in _SPOKEN else "untrusted",
        "version": record.version,
        "line_start": record.line,
        "line_end": record.line,
        "byte_start": record.start,
        "byte_end": record.end,
    }
    log_like = any(word in kind.lower() for word in ("tool", "test", "command", "log"))
    yield from rows_of_text(_text(record), "event.log" if log_like else "event.txt", row, own_lines=False)


def _text(record: Record) -> str:
    """The event's words: its text, that of its payload, or the payload as JSON. Blank text is left to the import."""
    own = record.value(*_TEXT_FIELDS)
    payload = record.value("payload", "data")
    for value in (own, payload):
        if isinstance(value, str):
            return value
    if isinstance(payload, dict):
        spoken = next((payload[f] for f in _TEXT_FIELDS if isinstance(payload.get(f), str)), None)
        return spoken or json.dumps(payload, ensure_ascii=False, sort_keys=True, indent=1)
    if payload is not None:
        return json.dumps(payload, ensure_ascii=False, sort_keys=True, indent=1)
    raise InputError.of_kind("text or a payload", own, f"{record.at}.payload")
