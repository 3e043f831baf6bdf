"""The session log on disk: append-only lines of JSON, artifacts beside them, and checkpoints of the state.

    log = SessionLog.open("sessions/s-1", session_id="s-1")
    log.append([{"id": "e1", "kind": "user.goal", ...}])
    view = log.view()                    # the rows and facts for a projection at the end of the log

A log is a folder: the lines (`log_lines`); `artifacts/`, texts that are too long for an event; `checkpoints/`, the
state at every 64th event. Several objects and processes may append to one folder.

Note: the lines are authoritative. Folding all of them gives the same state as a checkpoint and the lines after it, so
checkpoints and `head.json` may be removed. `notes` lists repaired damage: an interrupted append, a damaged checkpoint.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.context_tables import LOG_EVENTS
from ...nodes.errors import InputError, StoreError
from ...nodes.turns.as_of import HORIZON
from ..runs.files import read_json, write_json
from ..storage.durable import remove_leftovers, write_atomic
from ..storage.file_access import keep_out, make_folder
from ..storage.locks import held
from .artifacts import artifact
from .checkpoints import BEGINNING, Checkpoint, Checkpoints, continued, joined_facts
from .events import LogReader, LogTables
from .log_files import DAMAGED, LogView, event_line, ids_of, once_more, take_up, text_behind, values_of
from .log_lines import EVERY, Checked, Lines, LogLines, chained, unfinished
from .masking import masked_reference

__all__ = ["SessionLog"]

FORMAT = 2
CHUNK = 4096
"""Number of lines folded at a time."""
_PLAIN_ID = re.compile(r"[A-Za-z0-9._:/-]+")
"""Ids that a stored line has verbatim; others may be escaped there, or masked here."""
NAMING = b"napshot"
"""Part of the name of every field that names a snapshot."""
_BUSY = "The session log is being written by another process"
_LATER = "try again when the other writer is done"


@dataclass(frozen=True)
class _End:
    """The state that an append needs of the events before it."""

    checked: Checked
    stats: Mapping[str, list[int]]
    ids: dict[str, str]
    reader: LogReader
    stack: tuple[Checkpoint, ...]
    events: pa.Table
    """The rows after the last checkpoint."""
    lines: list[bytes]
    """Their lines."""
    starts: list[int]
    """The offset of each in the file; -1 in a part."""


class SessionLog:
    """The log of one session."""

    def __init__(self, path: Path, session_id: str) -> None:
        self.path, self.session_id = path, session_id
        self.notes: list[str] = []
        """Repaired damage, in sentences."""
        self._lines, self._checkpoints = LogLines(path), Checkpoints(path / "checkpoints", session_id)
        self._end: _End | None = None

    @classmethod
    def open(cls, path: str | Path, *, session_id: str | None = None) -> SessionLog:
        """Opens the log in a folder; with `session_id`, creates it if there is none.

        Raises:
            StoreError: there is no log, or it is of another session or version.
        """
        place = Path(path)
        about = place / "session.json"
        if not about.exists():
            if session_id is None:
                hint = "`context log LOG --session ID` makes one, `context import` one of a transcript"
                raise StoreError(f"Expected the folder of a session log, got none - at {place}", hint=hint)
            for folder in (place, place / "artifacts", place / "checkpoints", place / "parts"):
                make_folder(folder)
            keep_out(place)
            write_json(about, {"format": FORMAT, "session_id": session_id}, sync=True)
        stated = read_json(about)
        if (
            not isinstance(stated, dict)
            or stated.get("format") != FORMAT
            or not isinstance(stated.get("session_id"), str)
        ):
            got = repr(stated.get("format")) if isinstance(stated, dict) else "another file"
            hint = "append the lines of its events.jsonl to a new log: `context log NEW --session ID --append FILE`"
            raise StoreError(f"Expected a session log of format {FORMAT}, got {got} - at {about}", hint=hint)
        if session_id is not None and stated["session_id"] != session_id:
            raise StoreError(
                f"Expected the log of session {session_id!r}, got that of {stated['session_id']!r} - at {place}"
            )
        return cls(place, stated["session_id"])

    # --- reading ----------------------------------------------------------------------------------------------------

    def read(self, keep: Callable[[str], str] = artifact) -> LogView:
        """Every event. `keep` stores a long text and returns its reference.

        Raises:
            StoreError: the log is damaged; the message names the file and the line.
        """
        with self._lines.opened() as lines:
            checked = self._lines.checked(lines, known=self._checkpoints.chains)
            return self._view(lines, checked, (BEGINNING,), checked.events, keep=keep)

    def view(self, as_of_seq: int | None = None) -> LogView:
        """The rows and facts for a turn at this place of the log (default: its end), always about a hundred events.

        Raises:
            InputError: the log has no such place.
            StoreError: the log is damaged; the message names the file and the line.
        """
        with self._lines.opened() as lines:
            checked = self._lines.checked(lines, known=self._checkpoints.chains)
            until = checked.events if as_of_seq is None else as_of_seq
            if not 0 <= until <= checked.events:
                raise InputError.expected(f"a place in the log from 0 to {checked.events}", until, str(self.path))
            stack, passed = self._checkpoints.nearest(until - HORIZON, lines, checked.marks)
            view = self._view(lines, checked, stack, until, passed)
        if passed or not checked.trusted:
            self._mend()
        return view

    def count(self) -> int:
        """The number of events; an unfinished append at the end is reported in `notes`."""
        with self._lines.opened() as lines:
            checked = self._lines.checked(lines, known=self._checkpoints.chains)
            self.notes += unfinished(lines)
            return checked.events

    def ids(self) -> dict[str, str]:
        """The id of every event, with a digest of its content."""
        with self._lines.opened() as lines:
            return ids_of(lines.read())

    def open_ref(self, reference: str) -> str:
        """The text of a reference in a model input (`artifact:…`, `event:…`, `log:0-41`), with its secrets masked,
        since a tool may show it to a model. The folder has the original.

        Raises:
            InputError: the log has nothing under that name.
            StoreError: the text, or the log, is not what was written.
        """
        kind, _, name = reference.partition(":")
        if kind == "artifact" and name.isalnum():
            file = self.path / "artifacts" / f"{name}.txt"
            if file.exists():
                text = file.read_bytes().decode(errors="replace")
                if artifact(text) != reference:
                    raise StoreError(
                        f"Expected the text of {reference}, got another - at {file}",
                        hint="restore the file from a backup",
                    )
                return masked_reference(reference, text)
        with self._lines.opened() as lines:
            checked = self._lines.checked(lines, known=self._checkpoints.chains)
            text = masked_reference(reference, text_behind(reference, lines.read, str(self.path)))
        if not checked.trusted:
            self._mend()
        return text

    def _view(
        self,
        lines: Lines,
        checked: Checked,
        stack: tuple[Checkpoint, ...],
        until: int,
        passed: Iterable[str] = (),
        keep: Callable[[str], str] = artifact,
    ) -> LogView:
        mark = stack[-1]
        reader = replace(self._reader(mark), keep=keep)
        tables = self._rows(reader, lines.read(mark.seq, until, offset=_offset(mark, lines)))
        if mark.seq:
            tables = replace(tables, before=partial(self._before, mark.seq))
        if until < checked.events:
            tables = replace(tables, later=partial(self._later, until, checked.events))
        notes = [*unfinished(lines), *passed]
        return LogView(tables, joined_facts(stack), reader.repeated, reader.backwards, tuple(notes))

    def _before(self, seq: int) -> LogTables:
        """The rows of the events before `seq`."""
        with self._lines.opened() as lines:
            return self._rows(self._reader(BEGINNING), lines.read(0, seq))

    def _later(self, seq: int, end: int, given: Collection[str]) -> set[str]:
        """Which of the given snapshots a range of events names; lines without such an id are not parsed."""
        either = b"|".join(re.escape(name.encode()) for name in given)
        plain = all(map(_PLAIN_ID.fullmatch, given))
        named = re.compile(rb"(?<![\w.:/-])(?:%b)(?![\w.:/-])" % either if plain else NAMING).search
        with self._lines.opened() as lines:
            naming = (each for each in lines.read(seq, end) if NAMING in each[1] and named(each[1]))
            return self._rows(self._reader(BEGINNING), naming).snapshots(())

    def _reader(self, mark: Checkpoint) -> LogReader:
        return LogReader(
            self.session_id, mark.seq, mark.turn, mark.turn_id, keep=artifact, last=mark.last, place=mark.place
        )

    def _rows(self, reader: LogReader, lines: Iterable[tuple[str, bytes]]) -> LogTables:
        """The rows of stored lines.

        Raises:
            StoreError: a line is not an event.
        """
        places = list[str]()
        try:
            found = reader.read(values_of(lines, places), lambda number: places[number])
        except InputError as error:
            raise StoreError(error.message, hint=DAMAGED) from error
        if reader.repeated:
            again = next(number for number in range(len(places)) if number not in set(reader.taken))
            raise once_more(places[again])
        return found

    # --- writing ----------------------------------------------------------------------------------------------------

    def append(
        self, events: Iterable[Mapping[str, Any]], at: Callable[[int], str] = lambda number: f"events[{number}]"
    ) -> int:
        """Append events durably; returns how many were new. Events already in the log with the same content are
        skipped.

        `at` returns the place of an event for messages.

        Raises:
            InputError: an event is malformed, or another event has its id; then nothing is appended.
            BusyError: another process is writing.
            StoreError: the log is damaged, or the events cannot be written; then nothing is appended.
        """
        given = [event_line(event, at(number)) for number, event in enumerate(events)]
        with held(self.path / "events", 10.0, f"{_BUSY} - at {self.path}", _LATER):
            end = self._at_end()
            fresh: dict[str, str] = {}
            reader = replace(end.reader, seen=ChainMap(fresh, end.ids), keep=self.keep, places={})
            made = reader.read((event for _, event in given), at)
            new = [given[number][0] for number in reader.taken]
            if not new:
                return 0
            self._lines.append(b"".join(line + b"\n" for line in new), end.checked)
            end.ids.update(fresh)
            self._end = None
            self._publish(end, replace(reader, seen=end.ids), made.events, new)
        return len(new)

    def keep(self, text: str) -> str:
        """Store a text as an artifact; returns its reference."""
        reference = artifact(text)
        file = self.path / "artifacts" / f"{reference.removeprefix('artifact:')}.txt"
        if not file.exists():
            try:
                write_atomic(file, text.encode())
            except OSError as error:
                raise StoreError(f"{error.strerror}: {file}") from error
        return reference

    def compact(self) -> int:
        """Convert the lines of the file to Parquet; returns how many. Every line is preserved byte for byte.

        Raises:
            BusyError: another process is writing.
            StoreError: the log is damaged, or the part cannot be written; then the log is unchanged.
        """
        with held(self.path / "events", 10.0, f"{_BUSY} - at {self.path}", _LATER):
            end = self._at_end()
            count = self._lines.compact(self._checkpoints.chains)
            self._end = None
            for folder in (self.path, self.path / "artifacts", self.path / "checkpoints", self.path / "parts"):
                remove_leftovers(folder)
            with suppress(OSError):  # without it every line is read again
                self._lines.record(end.checked)
        return count

    def _at_end(self) -> _End:
        """The state for the next append, cached unless another process has written since; the caller holds the lock."""
        with self._lines.opened() as lines:
            if lines.torn:  # the complete lines are read before the torn one is removed
                with suppress(OSError):
                    self._lines.record(self._lines.checked(lines, known=self._checkpoints.chains))
        if torn := self._lines.heal():
            self.notes.append(f"{torn} bytes of an append that was interrupted were removed")
        with self._lines.opened() as lines:
            if self._end is not None and self._end.stats == lines.stats():
                return self._end
            checked = self._lines.checked(lines, known=self._checkpoints.chains)
            if not checked.trusted:
                self.notes += self._checkpoints.drop(checked.marks)
            return self._folded(lines, checked, self._ids(lines, checked))

    def _ids(self, lines: Lines, checked: Checked) -> dict[str, str]:
        """Ids and digests of all events; only events that another writer appended are read if the others are cached."""
        known = self._end
        if known is not None and known.checked.events <= checked.events and known.checked.base == lines.base:
            chain, found = known.checked.chain, dict(known.ids)
            for where, line in lines.read(known.checked.events, offset=known.checked.size):
                chain = chained(chain, line)
                take_up(found, where, line)
            if chain == checked.chain:
                return found
        return ids_of(lines.read())

    def _folded(self, lines: Lines, checked: Checked, ids: dict[str, str]) -> _End:
        """The end of the log; writes missing checkpoints on the way."""
        stated = set(self._checkpoints.marks())
        last = checked.events // EVERY * EVERY
        missing = next((mark for mark in range(EVERY, last + 1, EVERY) if mark not in stated), last + EVERY)
        stack, passed = self._checkpoints.nearest(missing - EVERY, lines, checked.marks)
        self.notes += passed
        reader, at, offset = self._reader(stack[-1]), stack[-1].seq, _offset(stack[-1], lines)
        end = _End(checked, {}, ids, reader, stack, LOG_EVENTS.empty(), [], [])
        while at < checked.events:
            found = list(lines.read(at, min(at + CHUNK, checked.events), offset=offset))
            starts, place = list[int](), offset or 0
            for number, (_, line) in enumerate(found, start=at):
                starts.append(place if number >= lines.base else -1)
                place += len(line) + 1 if number >= lines.base else 0
            end = self._fold(end, self._rows(reader, found).events, [line for _, line in found], starts)
            at += len(found)
            offset = place if at > lines.base else None
        return replace(end, reader=replace(reader, seen=ids), stats=lines.stats())

    def _fold(self, end: _End, events: pa.Table, lines: list[bytes], starts: list[int]) -> _End:
        """The end of a log after more events; writes a checkpoint for every block of them."""
        events = pa.concat_tables([end.events, events]).combine_chunks()
        lines, starts, stack, done = [*end.lines, *lines], [*end.starts, *starts], end.stack, 0
        while len(lines) - done >= EVERY:
            chain, last = stack[-1].chain, done + EVERY - 1
            for line in lines[done : done + EVERY]:
                chain = chained(chain, line)
            offset = starts[last] + len(lines[last]) + 1 if starts[last] >= 0 else 0
            block = events.slice(done, EVERY).combine_chunks()
            stack = continued(
                stack, block, place=end.reader.places[stack[-1].seq + EVERY], chain=chain, base=end.checked.base, start=starts[done], offset=offset,
            )  # fmt: skip
            self._write(stack[-1])
            done += EVERY
        return replace(end, stack=stack, events=events.slice(done), lines=lines[done:], starts=starts[done:])

    def _publish(self, end: _End, reader: LogReader, events: pa.Table, lines: list[bytes]) -> None:
        """Write the checkpoints for new events, and the head of the log. The events are already durable."""
        before, chain, size, starts = end.checked.before, end.checked.chain, end.checked.size, list[int]()
        for line in lines:
            starts.append(size)
            before, chain, size = chain, chained(chain, line), size + len(line) + 1
        count = end.checked.events + len(lines)
        checked = replace(end.checked, events=count, chain=chain, size=size, marks={}, trusted=True, before=before)
        end = self._fold(replace(end, checked=checked, reader=reader), events, lines, starts)
        try:
            self._lines.record(checked)
        except OSError as error:
            self.notes.append(f"head.json could not be written ({error.strerror}); the events are safe")
        with self._lines.opened() as now:
            self._end = replace(end, stats=now.stats())

    def _write(self, checkpoint: Checkpoint) -> None:
        try:
            self._checkpoints.write(checkpoint)
        except OSError as error:
            self.notes.append(
                f"the checkpoint at event {checkpoint.seq} could not be written ({error.strerror}); the events are safe"
            )

    def _mend(self) -> None:
        """Recreate missing and skipped checkpoints, if no process is writing and the folder is writable."""
        with suppress(OSError), held(self.path / "events", 0.0, _BUSY), self._lines.opened() as lines:
            if not lines.torn:  # else the next append does
                checked = self._lines.checked(lines, whole=True)
                self._checkpoints.drop(checked.marks)
                self._folded(lines, checked, {})
                self._lines.record(checked)


def _offset(mark: Checkpoint, lines: Lines) -> int | None:
    """Offset of the line of the event at a checkpoint, if it is in the file and its offset is known."""
    return mark.offset if mark.base == lines.base and mark.seq >= lines.base else None
