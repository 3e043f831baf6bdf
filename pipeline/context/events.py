"""Session events on arrival: one JSON object per event, validated and turned into rows of the session log.

Gives: `LogReader`, which reads the events of a session one after the other, `read_events` for a list of them, and
`LogRows`, what was read; `read_event_file` for a file.

Note: the order of the log is the order of events, regardless of their clocks. Two events with the same id and the same
content are one event; with different content they are an error. Secrets are masked before anything else reads a text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from ..parsing.strict_json import json_text
from ..parsing.values import TIME
from ..sources.jsonl import Record, parse_json
from .artifacts import EVENT_ID, Artifacts, plain_json
from .event_rows import event_row
from .masking import listed, masked_values

Row = dict[str, Any]
_ZSTD = b"\x28\xb5\x2f\xfd"
_LONGEST = 1 << 29
"""Most bytes of a file of events once it is unpacked: a few kilobytes can unpack to more than the memory."""
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
"""A number for an earlier instant is not the time of an event: it counts seconds, or something else."""


@dataclass(frozen=True)
class LogRows:
    """The events of a session."""

    session_id: str
    events: list[Row]
    memories: list[Row]
    artifacts: Artifacts = field(default_factory=Artifacts)
    """Opens the references of these events."""
    skipped: int = 0
    """Lines that could not be read."""


@dataclass
class LogReader:
    """Reads the events of one session in their order."""

    session_id: str
    seen: MutableMapping[str, str] = field(default_factory=dict)
    """Digests of the events by id."""
    memories: list[Row] = field(default_factory=list)
    """The memories that the events recalled."""
    _turn: int = -1
    _turn_id: str | None = None

    def rows(self, values: Sequence[Mapping[str, Any]], at: Callable[[int], str]) -> dict[int, Row]:
        """The rows of the next events by the place of each in `values`; repeated events have none.

        Raises:
            InputError: an event is malformed, or its id was used before with different content.
        """
        found = dict[int, Row]()
        for number, (value, masked) in enumerate(zip(values, masked_values(values, at), strict=True)):
            if (row := self._row(Record(at(number), masked), value)) is not None:
                found[number] = row
        return found

    def _row(self, record: Record, given: Mapping[str, Any]) -> Row | None:
        name, digest = record.identifier(*EVENT_ID), _digest(given)
        if name is None:
            raise InputError.expected("the event's id", None, f"{record.at}.id")
        if self.seen.get(name) == digest:
            return None
        if name in self.seen:
            raise InputError.described("an id of its own for every event", f"{name!r} again with other content", f"{record.at}.id",
                                       hint="the log is append-only: what happened later is another event.")  # fmt: skip
        session = record.identifier("sessionId")
        if session is not None and session != self.session_id:
            raise InputError.described(
                f"events of session {self.session_id!r}", repr(session), f"{record.at}.sessionId"
            )
        created, row = record.instant("createdAt", "timestamp"), event_row(record, name)
        if created is None:
            raise InputError.expected(TIME, None, f"{record.at}.createdAt")
        if created < _FIRST and not isinstance(number := record.value("createdAt", "timestamp"), str):
            raise InputError.expected(
                "milliseconds since 1970, from the year 2000 on", number, record.place("createdAt", "timestamp"),
                hint="multiply a number of seconds by 1000.",
            )  # fmt: skip
        turn_id = record.identifier("turnId")
        if self._turn < 0 or turn_id not in (None, self._turn_id):
            self._turn, self._turn_id = self._turn + 1, turn_id if turn_id is not None else self._turn_id
        row |= {"session_id": self.session_id, "seq": len(self.seen), "event_id": name, "turn_id": self._turn_id,
                "turn": self._turn, "created_at": created}  # fmt: skip
        if memory := row.pop("memory", None):
            self.memories.append(memory | {"from_seq": row["seq"]})
        self.seen[name] = digest
        return row


@dataclass(frozen=True)
class EventFile:
    """The objects of a file of JSON lines; `lines` are their numbers, from 1, `skipped` the number of other lines."""

    path: Path
    values: list[dict[str, Any]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    skipped: int = 0

    def at(self, number: int) -> str:
        """The place of an event."""
        return f"{self.path}:{self.lines[number]}"


def read_event_file(path: Path) -> EventFile:
    """The objects of a file of JSON lines, which may be compressed (zstd).

    Raises:
        InputError: it cannot be read, is too long, or none of its lines is a JSON object.
    """
    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        if data.startswith(_ZSTD):
            with pa.input_stream(str(path), compression="zstd") as stream:
                data = stream.read(_LONGEST + 1)
    except OSError as error:
        raise InputError(f"{error.strerror or error}: {path}") from error
    if len(data) > _LONGEST:
        raise InputError.described(f"at most {_LONGEST >> 20} MiB of events", "more", str(path))
    found, errors = EventFile(path), list[InputError]()
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            try:
                found.values.append(parse_json(line, f"{path}:{number}"))
                found.lines.append(number)
            except InputError as error:
                errors.append(error)
    if errors and not found.values:
        raise InputError(errors[0].message, hint="a session file has one event per line, an object each (JSON lines)")
    return replace(found, skipped=len(errors))


def as_read(event: Any, at: str) -> dict[str, Any]:
    """An event as it is read back from the line of a log.

    Raises:
        InputError: it is not an object, or contains values that JSON lacks.
    """
    if not isinstance(event, Mapping):
        raise InputError.of_kind("a JSON object", event, at)
    return parse_json(json_text(dict(event), at, plain_json).encode(), at)


def _digest(fields: Mapping[str, Any]) -> str:
    """A digest of the content of an event: two events with equal id and digest are one."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode()).hexdigest()


def read_events(values: Iterable[Any], session_id: str = "session", at: Callable[[int], str] = "events[{}]".format) -> LogRows:  # fmt: skip
    """The rows of all events of a session; `at` returns the place of an event for messages."""
    reader = LogReader(session_id)
    given = [as_read(value, at(number)) for number, value in enumerate(listed(values, "events", "events"))]
    rows = reader.rows(given, at)
    taken = [given[number] for number in rows]
    return LogRows(session_id, list(rows.values()), reader.memories, Artifacts(lambda: taken))
