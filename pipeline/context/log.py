"""The session log on disk: a folder to which events are only appended.

    log = SessionLog.open("sessions/s-1", session_id="s-1")
    log.append([{"id": "e1", "kind": "user.goal", ...}])
    view = log.view()                    # the rows and facts for a projection at the end of the log

`events.jsonl` has the events as they came, one line each; `head.json` the number of lines written and the digest of
their chain, so that a changed or missing line is detected. Several objects and processes may append to one folder.

`read_session` reads a whole session from a folder or from a file of JSON lines, which is a read-only log (a line of it
that is not a JSON object is left out and counted); `open_reference` the text of a reference in a model input.

Note: the lines are authoritative. They are on disk before `append` returns and before the head that counts them, so
lines after the head are events as well. Bytes after the last newline are an append in progress or interrupted: readers
skip them, and the next append removes them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.context_tables import STATE_FACTS
from ...nodes.errors import InputError, StoreError
from ...nodes.turns.folding import Folded
from ...nodes.turns.reading import first_of_window
from ..progress import counted
from ..runs.files import read_json
from ..sources.jsonl import parse_json
from ..storage.durable import sync_path, write_atomic
from ..storage.file_access import keep_out, make_folder, open_new
from ..storage.locks import held
from .artifacts import Artifacts
from .events import LogReader, LogTables, Row, event_line
from .masking import listed
from .transcripts import kind_of

__all__ = ["LogView", "SessionLog", "of_other_file", "open_reference", "read_event_file", "read_session"]

FORMAT = 3
_START = hashlib.sha256(b"").hexdigest()
"""The chain of a log without events."""
_DAMAGED = (
    "restore the file from a backup, or remove head.json and open the log with its session id to take it as it is"
)


@dataclass(frozen=True)
class LogView:
    """Rows of a session from some event on, the facts that held there, and notes about the session."""

    tables: LogTables
    facts: pa.Table
    notes: tuple[str, ...] = ()
    skipped: int = 0
    """Lines that could not be read."""
    named: frozenset[str] = frozenset()
    """Retrieval snapshots that events of the whole log name: one of a later event is not of an earlier turn."""


class SessionLog:
    """The log of one session. An open log keeps its rows in memory and reads only what was appended since."""

    def __init__(self, path: Path, session_id: str, checks: Sequence[str]) -> None:
        self.path, self.session_id, self.checks = path, session_id, checks
        self.notes: list[str] = []
        """Repaired damage, in sentences."""
        self._file, self._head = path / "events.jsonl", path / "head.json"
        self._forget()

    @classmethod
    def open(cls, path: str | Path, session_id: str | None = None, checks: Sequence[str] = ()) -> SessionLog:
        """Opens the log in a folder; with `session_id`, creates it if there is none. `checks` are commands that count
        as checks.

        Raises:
            StoreError: there is no log, or it is of another session or version.
        """
        place = Path(path)
        head = place / "head.json"
        if not head.exists():
            if session_id is None:
                hint = "`context log LOG --session ID` makes one, `context import` one of a transcript"
                raise StoreError(f"Expected the folder of a session log, got none - at {place}", hint=hint)
            _create(place, session_id)
        stated = _stated(head)
        if session_id is not None and stated["session_id"] != session_id:
            got = stated["session_id"]
            raise StoreError(f"Expected the log of session {session_id!r}, got that of {got!r} - at {place}")
        return cls(place, stated["session_id"], listed(checks, "commands", "checks"))

    # --- reading ----------------------------------------------------------------------------------------------------

    def view(self, at: int | None = None) -> LogView:
        """The newest rows before a place of the log (default: its end), and the facts of the events before them.

        Raises:
            InputError: the log has no such place.
            StoreError: the log is damaged.
        """
        self._refresh()
        end = len(self._rows) if at is None else at
        if not 0 <= end <= len(self._rows):
            raise InputError.expected(f"a place in the log from 0 to {len(self._rows)}", at, str(self.path))
        first = first_of_window(self._rows, end)
        if end == len(self._rows):  # the window only moves on
            folded, since, self._since = self._folded, self._since, first
        else:
            folded, since = Folded(), 0
        for row in self._rows[since:first]:
            folded.add(row)
        return LogView(
            self._tables(first, end), folded.table(self.session_id), self._notes(), named=frozenset(self._snapshots)
        )

    def read(self) -> LogView:
        """The rows of every event.

        Raises:
            StoreError: the log is damaged.
        """
        self._refresh()
        return LogView(self._tables(0, len(self._rows)), STATE_FACTS.empty(), self._notes())

    def count(self) -> int:
        """The number of events."""
        self._refresh()
        return len(self._rows)

    def ids(self) -> list[str]:
        """The ids of the events."""
        self._refresh()
        return [row["event_id"] for row in self._rows]

    def open_ref(self, reference: str) -> str:
        """The text of a reference in a model input (`artifact:…`, `event:…`, `log:0-41`), its secrets masked.

        Raises:
            InputError: the log has nothing under that name.
            StoreError: the log is damaged.
        """
        return Artifacts(self._events).open(reference, str(self.path))

    def _tables(self, first: int, end: int) -> LogTables:
        memories = [row for row in self._reader.memories if row["from_seq"] < end]
        return LogTables.of(self._rows[first:end], memories, Artifacts(self._events))

    def _notes(self) -> tuple[str, ...]:
        torn = (f"an append in progress or interrupted left {self._torn} bytes, which are not read",)
        return (*(torn if self._torn else ()), *notes_of(self._reader))

    def _events(self) -> Iterator[Mapping[str, Any]]:
        """The events as they came."""
        self._refresh()
        with self._file.open("rb") as file:
            for number, line in enumerate(islice(file, len(self._rows))):
                if _chained(self._chains[number], line.rstrip(b"\n")) != self._chains[number + 1]:
                    raise StoreError(f"Expected the event that was written, got another - at {self._at(number)}", hint=_DAMAGED)  # fmt: skip
                yield parse_json(line, self._at(number))

    def _at(self, number: int) -> str:
        return f"{self._file}:{number + 1}"

    def _forget(self) -> None:
        """Read everything again at the next use."""
        self._reader, self._rows = LogReader(self.session_id, self.checks), list[Row]()
        self._chains, self._size, self._torn = [_START], 0, 0
        self._snapshots = set[str]()
        self._folded, self._since = Folded(), 0
        """The facts of the first rows, before the window of the last view at the end, and how many they are."""

    def _refresh(self) -> None:
        """Read the lines that were appended since.

        Raises:
            StoreError: a line is not an event, or the lines are not those that were written.
        """
        head = _stated(self._head)  # read first: the lines that it counts were written before it
        try:
            with self._file.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._size:
                    self._forget()
                file.seek(self._size)
                data = file.read()
        except OSError as error:
            raise StoreError(f"{error.strerror}: {self._file}") from error
        *lines, torn = data.split(b"\n")
        self._torn = len(torn)
        before = len(self._rows)
        try:
            values = [parse_json(line, self._at(before + number)) for number, line in enumerate(lines)]
            rows = self._reader.rows(values, lambda number: self._at(before + number))
            if again := [number for number in range(len(lines)) if number not in rows]:
                raise InputError.described("every event once", "one again", self._at(before + again[0]))
            self._extend(lines, rows.values())
            if head["events"] >= len(self._chains):
                raise InputError.described(counted(head["events"], "event"), f"{len(self._rows):,}", str(self._file))
            if self._chains[head["events"]] != head["chain"]:
                raise InputError.described("the events that were written", "others", str(self._file))
        except InputError as error:
            self._forget()
            raise StoreError(error.message, hint=_DAMAGED) from error

    def _extend(self, lines: Iterable[bytes], rows: Collection[Row]) -> None:
        self._rows += rows
        self._snapshots.update(name for row in rows for name in row["snapshot_ids"] or ())
        for line in lines:
            self._chains.append(_chained(self._chains[-1], line))
            self._size += len(line) + 1

    # --- writing ----------------------------------------------------------------------------------------------------

    def append(self, values: Iterable[Mapping[str, Any]], at: Callable[[int], str] = "events[{}]".format) -> int:
        """Append events durably; returns how many were new. Events already in the log with the same content are
        skipped. `at` returns the place of an event for messages.

        Raises:
            InputError: an event is malformed, or another event has its id; then nothing is appended.
            BusyError: another process is writing.
            StoreError: the log is damaged, or the events cannot be written; then nothing is appended.
        """
        given = [event_line(value, at(number)) for number, value in enumerate(listed(values, "events", "events"))]
        with _locked(self.path):
            self._refresh()
            if self._torn:
                os.truncate(self._file, self._size)
                self.notes.append(f"{self._torn} bytes of an append that was interrupted were removed")
            try:
                rows = self._reader.rows([event for _, event in given], at)
                self._reader.repeated = 0
                lines = [given[number][0] for number in rows]
                self._write(lines)
            except BaseException:  # the reader has read events that are not in the log
                self._forget()
                raise
            self._extend(lines, rows.values())
            self._torn = 0
            try:
                _write_head(self._head, self.session_id, len(self._rows), self._chains[-1])
            except OSError as error:
                self.notes.append(f"head.json could not be written ({error.strerror}); the events are safe")
        return len(lines)

    def _write(self, lines: Sequence[bytes]) -> None:
        if not lines:
            return
        try:
            with open_new(self._file, append=True) as file:
                file.write(b"".join(line + b"\n" for line in lines))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            os.truncate(self._file, self._size)
            hint = "no event was added: free disk space and append them again"
            raise StoreError(f"{error.strerror}: {self._file}", hint=hint) from error


def read_session(path: str | Path, session_id: str | None = None, checks: Sequence[str] = ()) -> tuple[str, LogView]:
    """The id and all rows of a session, from a log folder or a file of JSON lines; `checks` are commands that count as
    checks.

    Raises:
        InputError: the file has no events, or one that is malformed.
        StoreError: the folder is no log, or it is damaged.
    """
    place = Path(path)
    if place.is_dir():
        log = SessionLog.open(place, checks=checks)
        return log.session_id, log.read()
    file, reader = read_event_file(place), LogReader(session_id or place.stem, checks)
    try:
        tables = reader.read(file.values, file.at)
    except InputError as error:
        raise of_other_file(error, file) from error
    return reader.session_id, LogView(tables, STATE_FACTS.empty(), notes_of(reader, file.skipped), file.skipped)


def open_reference(path: str | Path, reference: str) -> str:
    """The text of a reference in a model input, its secrets masked, from a log folder or a file of JSON lines.

    Raises:
        InputError: the session has nothing under that name.
        StoreError: the folder is no log, or it is damaged.
    """
    place = Path(path)
    if place.is_dir():
        return SessionLog.open(place).open_ref(reference)
    return Artifacts(lambda: read_event_file(place).values).open(reference, str(place))


@dataclass(frozen=True)
class EventFile:
    """The events of a file of JSON lines; `lines` are their numbers, from 1."""

    path: Path
    values: list[dict[str, Any]]
    lines: list[int]
    skipped: int

    def at(self, number: int) -> str:
        """The place of an event."""
        return f"{self.path}:{self.lines[number]}"


def read_event_file(path: Path) -> EventFile:
    """The events of a file of JSON lines.

    Raises:
        InputError: it cannot be read, or none of its lines is a JSON object.
    """
    try:
        data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InputError(f"{error.strerror}: {path}") from error
    found, errors = EventFile(path, [], [], 0), list[InputError]()
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            try:
                found.values.append(parse_json(line, f"{path}:{number}"))
                found.lines.append(number)
            except InputError as error:
                errors.append(error)
    if errors and not found.values:
        raise InputError(errors[0].message, hint="a session file has one event per line, an object each (JSON lines)")
    return EventFile(path, found.values, found.lines, len(errors))


def of_other_file(error: InputError, file: EventFile) -> InputError:
    """The error for a file whose lines are no events, with a hint if it is a transcript."""
    found = kind_of(file.values)
    hint = f"this is a transcript of {found}: `context import {file.path.name} --out LOG` makes a log of it"
    return InputError(error.message, hint=hint if found else error.hint)


def notes_of(reader: LogReader, skipped: int = 0) -> tuple[str, ...]:
    """What a caller should know of the events that were read."""
    found = {
        "could not be read and were left out": skipped,
        "came again and were left out": reader.repeated,
        "have a clock behind that of the event before: the order is that of the log": reader.backwards,
    }
    nouns = ("line", "event", "event")
    return tuple(f"{counted(n, noun)} {what}" for (what, n), noun in zip(found.items(), nouns, strict=True) if n)


def _chained(before: str, line: bytes) -> str:
    """The digest of a chain extended by one line."""
    return hashlib.sha256(before.encode() + line).hexdigest()


def _create(place: Path, session_id: str) -> None:
    """Make the folder of a log; lines that it has already are its events."""
    make_folder(place)
    with _locked(place):
        if not (place / "head.json").exists():
            keep_out(place)
            open_new(place / "events.jsonl", append=True).close()
            _write_head(place / "head.json", session_id, 0, _START)
            sync_path(place.parent)


def _locked(place: Path) -> Any:
    busy = f"The session log is being written by another process - at {place}"
    return held(place / "LOCK", 10.0, busy, "try again when the other writer is done")


def _write_head(path: Path, session_id: str, events: int, chain: str) -> None:
    stated = {"format": FORMAT, "session_id": session_id, "events": events, "chain": chain}
    write_atomic(path, json.dumps(stated).encode())


def _stated(head: Path) -> dict[str, Any]:
    """The head of a log.

    Raises:
        StoreError: it is of another version, or damaged.
    """
    found = read_json(head)
    kinds = {"session_id": str, "events": int, "chain": str}
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        got = repr(found.get("format")) if isinstance(found, dict) else "another file"
        raise StoreError(f"Expected a session log of format {FORMAT}, got {got} - at {head}")
    if not all(isinstance(found.get(name), kind) for name, kind in kinds.items()):
        raise StoreError(f"Expected {', '.join(kinds)}, got others - at {head}", hint=_DAMAGED)
    return found
