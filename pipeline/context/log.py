"""The session log on disk: a folder to which events are only appended.

    log = SessionLog.open("sessions/s-1", session_id="s-1")
    log.append([{"id": "e1", "kind": "user.goal", ...}])
    seen = policy.project(events=log.read())

`EVENTS` is a chain (`storage.chain`), as those of a corpus and of runs: each line has the events of one append and the
hash of the line before. Several objects and processes may append to one folder.

`read_session` reads a session from a folder or from a file of JSON lines, which is a read-only log (a line of it
that is not a JSON object is left out and counted).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError, StoreError
from ..storage.chain import Chain, Line
from ..storage.file_access import keep_out
from .artifacts import Artifacts
from .events import EventFile, LogReader, LogRows, Row, as_read, read_event_file, read_events
from .masking import listed
from .transcripts import kind_of


class SessionLog:
    """The log of one session. An open log keeps its rows in memory and reads only what was appended since."""

    def __init__(self, path: Path, session_id: str) -> None:
        self.path, self.session_id = path, session_id
        self._chain = _chain(path)
        self._forget()

    @classmethod
    def open(cls, path: str | Path, session_id: str | None = None) -> SessionLog:
        """Opens the log in a folder; with `session_id`, creates it if there is none.

        Raises:
            StoreError: there is no log, or it is of another session.
            VerificationError: the log was changed.
        """
        place = Path(path)
        last = _chain(place).last() or (session_id and _begun(place, session_id))
        if not last:
            hint = "`context log LOG --session ID` makes one, `context import` one of a transcript"
            raise StoreError(f"Expected the folder of a session log, got none - at {place}", hint=hint)
        stated = last.body["session_id"]
        if session_id is not None and stated != session_id:
            raise StoreError(f"Expected the log of session {session_id!r}, got that of {stated!r} - at {place}")
        return cls(place, stated)

    # --- reading ----------------------------------------------------------------------------------------------------

    def read(self) -> LogRows:
        """The rows of every event.

        Raises:
            VerificationError: the log was changed.
        """
        self._refresh()
        return LogRows(self.session_id, self._rows.copy(), self._reader.memories.copy(), Artifacts(self._events))

    def _events(self) -> Iterator[Mapping[str, Any]]:
        """The events as they came."""
        for line in self._chain.lines():
            yield from line.body["events"]

    def _forget(self) -> None:
        """Read everything again at the next use."""
        self._reader, self._rows = LogReader(self.session_id), list[Row]()
        self._lines = 0
        """The number of lines that were read."""

    def _refresh(self) -> Line:
        """Read the events that were appended since; returns the last line."""
        lines = self._chain.lines()
        if len(lines) < self._lines:  # an older copy was restored
            self._forget()
        for line in lines[self._lines :]:
            self._rows += self._reader.rows(line.body["events"], "events[{}]".format).values()
        self._lines = len(lines)
        return lines[-1]

    # --- writing ----------------------------------------------------------------------------------------------------

    def append(self, values: Iterable[Mapping[str, Any]], at: Callable[[int], str] = "events[{}]".format) -> int:
        """Append events durably, all or none; returns how many were new. Events already in the log with the same content
        are skipped. `at` returns the place of an event for messages.

        Raises:
            InputError: an event is malformed, or another event has its id.
            BusyError: another process is writing.
            VerificationError: the log was changed.
            StoreError: the events cannot be written.
        """
        given = [as_read(value, at(number)) for number, value in enumerate(listed(values, "events", "events"))]
        with self._chain.writing():
            last = self._refresh()
            try:
                rows = self._reader.rows(given, at)
                if rows:
                    body = {"session_id": self.session_id, "events": [given[number] for number in rows]}
                    self._chain.append(last, body)
            except BaseException:  # the reader has read events that are not in the log
                self._forget()
                raise
            self._rows += rows.values()
            self._lines = last.number + bool(rows)
        return len(rows)


def _chain(folder: Path) -> Chain:
    return Chain(folder / "EVENTS")


def _begun(folder: Path, session_id: str) -> Line:
    """The last line of a log that is made unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    keep_out(folder)
    chain = _chain(folder)
    with chain.writing():
        return chain.last() or chain.append(None, {"session_id": session_id, "events": []})


def read_session(path: str | Path, session_id: str | None = None) -> LogRows:
    """All rows of a session, from a log folder or a file of JSON lines.

    Raises:
        InputError: the file has no events, or one that is malformed.
        StoreError: the folder is no log, or it is damaged.
    """
    place = Path(path)
    if place.is_dir():
        return SessionLog.open(place).read()
    file = read_event_file(place)
    try:
        return replace(read_events(file.values, session_id or place.stem, file.at), skipped=file.skipped)
    except InputError as error:
        raise of_other_file(error, file) from error


def of_other_file(error: InputError, file: EventFile) -> InputError:
    """The error for a file whose lines are no events, with a hint if it is a transcript."""
    found = kind_of(file.values)
    hint = f"this is a transcript of {found}: `context import {file.path.name} --out LOG` makes a log of it"
    return InputError(error.message, hint=hint if found else error.hint)
