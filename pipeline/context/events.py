"""Session events on arrival: one JSON object per event, validated and turned into rows of the session log.

Gives: `LogReader`, which turns events into LOG_EVENTS, LOG_MATCHES and MEMORY_RECORDS one by one, and `read_events` for
a list of them. Field names of document 003 and snake_case are both read; an unknown kind is an error that lists the kinds.

Note: the order of the log is the order of events, regardless of their clocks. Two events with the same id and the same
content are one event; with different content they are an error. Secrets are masked before anything else reads a text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ...nodes.context_tables import LOG_EVENTS, LOG_MATCHES, MEMORY_RECORDS
from ...nodes.errors import InputError
from ...nodes.turns.words import EVENT_KINDS
from ..parsing.quoting import canonical
from ..parsing.values import TIME
from ..sources.jsonl import Record
from .artifacts import IDS, Artifacts, artifact
from .checks import place_of
from .event_rows import event_row, match_rows, payload_of, ran_in, recalled_row
from .log_lines import EVERY
from .masking import listed, masked_values
from .work_places import WorkPlace

__all__ = ["LogReader", "LogTables", "identity_of", "read_events"]

_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
"""A number for an earlier instant is not the time of an event: it counts seconds, or something else."""


@dataclass(frozen=True)
class LogTables:
    """The rows of some events."""

    events: pa.Table
    matches: pa.Table
    memories: pa.Table
    artifacts: Artifacts = field(default_factory=Artifacts)
    """The targets of references to these events, if the events themselves are loaded."""
    before: Callable[[], LogTables] | None = None
    """Reads the rows of earlier events, if these are the end of a log; the ledger has rows for them as well."""
    later: Callable[[Collection[str]], set[str]] | None = None
    """Returns which of the given snapshots later events name, if the log has later events."""

    def snapshots(self, given: Collection[str]) -> set[str]:
        """The snapshots that these events name, and the given ones that later events name."""
        own = {name for names in self.events["snapshot_ids"].to_pylist() for name in names or ()}
        return own if self.later is None else own | self.later(given)

    @classmethod
    def empty(cls) -> LogTables:
        return cls(LOG_EVENTS.empty(), LOG_MATCHES.empty(), MEMORY_RECORDS.empty())

    def then(self, other: LogTables) -> LogTables:
        """These rows followed by those of later events."""
        pairs = ((self.events, other.events), (self.matches, other.matches), (self.memories, other.memories))
        events, matches, memories = (pa.concat_tables(pair).combine_chunks() for pair in pairs)
        return LogTables(events, matches, memories, self.artifacts)


@dataclass
class LogReader:
    """Reads the events of one session in their order. `keep` stores a text as an artifact and returns its reference."""

    session_id: str
    seq: int = 0
    turn: int = -1
    turn_id: str | None = None
    keep: Callable[[str], str] = artifact
    seen: MutableMapping[str, str] = field(default_factory=dict)
    """Digests of the loaded events, by id."""
    taken: list[int] = field(default_factory=list)
    """Which of the values read last became rows; the others were repeated."""
    last: datetime | None = None
    place: WorkPlace = field(default_factory=WorkPlace)
    """Where the session is: a pass on code other than that of its work does not end a failure of the work."""
    places: dict[int, WorkPlace] = field(default_factory=dict)
    """The work place before each event at which a checkpoint is due."""
    repeated: int = 0
    """Number of repeated events, which were left out."""
    backwards: int = 0
    """Number of events whose clock is behind that of the previous one."""

    def read(self, values: Iterable[Any], at: Callable[[int], str] = lambda n: f"events[{n}]") -> LogTables:
        """The rows of the next events.

        Raises:
            InputError: an event is malformed, or its id was used before with different content.
        """
        events: list[dict[str, Any]] = []
        matches: list[dict[str, Any]] = []
        memories: list[dict[str, Any]] = []
        self.taken = []
        given = [dict(value) if isinstance(value, Mapping) else value for value in values]
        for number, (value, masked) in enumerate(zip(given, masked_values(given, at), strict=True)):
            place = at(number)
            if not isinstance(value, Mapping):
                raise InputError.of_kind("a JSON object", value, place)
            record = Record(place, masked, number)
            row = self._event(record, value)
            if row is None:
                continue
            events.append(row)
            self.taken.append(number)
            payload = payload_of(record)
            found = match_rows(payload, row) if row["kind"] == "search.result" else []
            matches += found
            if row["kind"] == "memory.recalled":
                memories.append(recalled_row(payload, row))
            paths = [
                row["path"],
                *(row["may_change"] or ()),
                *(row["doubtful"] or ()),
                *(each["path"] for each in found),
            ]
            self.place = self.place.seeing(place_of("", ran_in(payload)[1], path) for path in paths if path)
            if self.seq % EVERY == 0:
                self.places[self.seq] = self.place
        return LogTables(
            LOG_EVENTS.from_rows(events), LOG_MATCHES.from_rows(matches), MEMORY_RECORDS.from_rows(memories)
        )

    def _event(self, record: Record, given_: Mapping[str, Any]) -> dict[str, Any] | None:
        given = record.value("kind", "type")
        kind = canonical(EVENT_KINDS, given, record.place("kind", "type")) if given is not None else None
        if kind is None:
            raise InputError.one_of(EVENT_KINDS.values, None, record.place("kind"))
        id_ = record.identifier(*IDS)
        if id_ is None:
            raise InputError.expected("the event's id", None, f"{record.at}.id")
        digest = identity_of(given_)[1]
        if (known := self.seen.get(id_)) is not None:
            if known == digest:
                self.repeated += 1
                return None
            raise InputError.described("an id of its own for every event", f"{id_!r} again with other words", f"{record.at}.id",
                                       hint="the log is append-only: what happened later is another event.")  # fmt: skip
        created = record.instant("createdAt", "created_at", "timestamp")
        if created is None:
            raise InputError.expected(TIME, None, f"{record.at}.createdAt")
        created = created.astimezone(UTC)
        if created < _FIRST and not isinstance(given_at := record.value("createdAt", "created_at", "timestamp"), str):
            raise InputError.expected("milliseconds since 1970, from the year 2000 on", given_at,
                                      record.place("createdAt", "created_at", "timestamp"),
                                      hint="a number of seconds is one of milliseconds once it is multiplied by 1000.")  # fmt: skip
        session = record.identifier("sessionId", "session_id")
        if session is not None and session != self.session_id:
            raise InputError.described(
                f"events of session {self.session_id!r}", repr(session), f"{record.at}.sessionId"
            )
        self.seen[id_] = digest
        self.backwards += self.last is not None and created < self.last
        self.last = created
        turn_id = record.identifier("turnId", "turn_id")
        if self.turn < 0 or (turn_id is not None and turn_id != self.turn_id):
            self.turn, self.turn_id = self.turn + 1, turn_id if turn_id is not None else self.turn_id
        row = event_row(record, kind, str(given), Record(record.at, dict(given_)), self.keep)
        row |= {"session_id": self.session_id, "seq": self.seq, "event_id": id_, "turn_id": self.turn_id, "turn": self.turn,
                "created_at": created}  # fmt: skip
        checks, self.place = self.place.through(row, *ran_in(payload_of(record)))
        row |= _placed(row, checks)
        self.seq += 1
        return row


def _placed(row: Mapping[str, Any], places: Sequence[WorkPlace]) -> dict[str, Any]:
    """The names of checks by the places where they ran: of several, it is unknown which passed, and any may have
    failed.
    """
    clears, fails = row["check_clears"], row["check_fails"]
    return {
        "check_clears": places[0].passed(clears) if clears and len(places) == 1 else None,
        "check_fails": [name for place in places for name in place.failed(fails)] if fails else None,
    }


def identity_of(fields: Mapping[str, Any]) -> tuple[str | None, str]:
    """The id of an event, and a digest of its content: two events with equal id and digest are one."""
    id_ = next((fields[name] for name in IDS if fields.get(name) is not None), None)
    words = json.dumps(fields, sort_keys=True, default=str).encode()
    return None if id_ is None else str(id_), hashlib.sha256(words).hexdigest()


def read_events(values: Iterable[Any], session_id: str = "session") -> LogTables:
    """The rows of all events of a session; their long texts are kept in memory."""
    held, given = Artifacts(), listed(values, "events", "events")
    reader = LogReader(session_id, keep=held.keep)
    tables = reader.read(given)
    held.events = [given[place] for place in reader.taken]
    return replace(tables, artifacts=held)
