"""The session log on disk: append-only lines of JSON, artifacts beside them, and checkpoints of the state.

    log = SessionLog.open("sessions/s-1", session_id="s-1")
    log.append([{"id": "e1", "kind": "user.goal", ...}])
    view = log.view()                    # the rows and facts that a projection at the end of the log needs

A log is a folder: `events.jsonl`; `parts/*.parquet`, the same lines once they were compacted; `artifacts/`, the texts that were
too long for an event; `checkpoints/`, the facts that held at every 64th event. A file of JSON lines is a log that is only read.

What one would otherwise get wrong: checkpoints and parts are copies. The lines say what happened: folding them all gives the same
state as a checkpoint and the lines behind it, and any of these copies may be removed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.context_sources import HORIZON
from ...nodes.context_state import checkpoint_of
from ...nodes.context_tables import STATE_FACTS
from ...nodes.errors import InputError, StoreError
from ..durable import read_table, store_table, write_atomic
from ..file_access import make_folder
from ..locks import held
from ..own_folders import keep_out
from ..runs.files import read_json, read_parquet_as_is, write_json, write_parquet
from ..sources.jsonl import parse_json
from .events import LogReader, LogTables
from .line import build_context_driver

__all__ = ["LogView", "SessionLog", "read_session"]

EVERY = 64
"""Events between two checkpoints."""
FORMAT = 1
_META = b"checkpoint"
_BUSY = "Expected a session log that nobody else writes, got one that is being written"


@dataclass(frozen=True)
class LogView:
    """Rows of a log from some event on, and the facts that held there."""

    tables: LogTables
    facts: pa.Table
    repeated: int = 0
    backwards: int = 0


def read_session(path: str | Path, session_id: str | None = None) -> tuple[str, LogView]:
    """All of a session from a log folder or a file of JSON lines: its id, its rows.

    Raises:
        InputError: a line is not an event.
        StoreError: the folder is no log.
    """
    place = Path(path)
    if place.is_dir():
        log = SessionLog.open(place)
        return log.session_id, log.read()
    reader = LogReader(session_id or place.stem)
    tables = reader.read(_values(place, _lines(place)), lambda number: f"{place}:{number + 1}")
    return reader.session_id, LogView(tables, STATE_FACTS.empty(), reader.repeated, reader.backwards)


class SessionLog:
    """One session."""

    def __init__(self, path: Path, session_id: str) -> None:
        self.path, self.session_id = path, session_id
        self._ids: dict[str, str] | None = None

    @classmethod
    def open(cls, path: str | Path, *, session_id: str | None = None) -> SessionLog:
        """The log in a folder; with `session_id` a new one where there is none.

        Raises:
            StoreError: there is no log, or it is of another session or version.
        """
        place = Path(path)
        about = place / "session.json"
        if not about.exists():
            if session_id is None:
                raise StoreError(f"Expected the folder of a session log, got none - at {place}")
            for folder in (place, place / "artifacts", place / "checkpoints", place / "parts"):
                make_folder(folder)
            keep_out(place)
            write_json(about, {"format": FORMAT, "session_id": session_id}, sync=True)
        stated = read_json(about)
        if stated.get("format") != FORMAT:
            raise StoreError(f"Expected a session log of format {FORMAT}, got {stated.get('format')!r} - at {about}")
        if session_id is not None and stated["session_id"] != session_id:
            raise StoreError(
                f"Expected the log of session {session_id!r}, got that of {stated['session_id']!r} - at {place}"
            )
        return cls(place, stated["session_id"])

    # --- reading ----------------------------------------------------------------------------------------------------

    def read(self) -> LogView:
        """Every event."""
        return self._from(0, None)

    def view(self, as_of_seq: int | None = None) -> LogView:
        """What a turn at this place of the log needs (default: its end): about a hundred events, however long the log is."""
        marks = self._marks()
        wanted = (as_of_seq if as_of_seq is not None else max(marks, default=0) + HORIZON + EVERY) - HORIZON
        usable = [mark for mark in marks if mark <= wanted]
        if as_of_seq is None and usable:
            found = self._from(max(usable), None)
            if found.tables.events.num_rows >= HORIZON:
                return found
            usable = [mark for mark in usable if mark < max(usable)]
        return self._from(max(usable, default=0), as_of_seq)

    def _marks(self) -> list[int]:
        return sorted(int(file.stem) for file in (self.path / "checkpoints").glob("*.arrow") if file.stem.isdigit())

    def _from(self, seq: int, until: int | None) -> LogView:
        facts, reader, offset = self._checkpoint(seq)
        wanted = None if until is None else until - reader.seq
        values = _values(self.path, self._lines_from(reader.seq, offset, wanted))
        tables = reader.read(values, lambda number: f"{self.path}: event {seq + number}")
        return LogView(tables, facts, reader.repeated, reader.backwards)

    def _checkpoint(self, seq: int) -> tuple[pa.Table, LogReader, int | None]:
        """The facts and the reader at a checkpoint, and where its next line begins."""
        if seq == 0:
            return STATE_FACTS.empty(), LogReader(self.session_id, keep=artifact), None
        table = read_table(self.path / "checkpoints" / f"{seq}.arrow")
        about = json.loads((table.schema.metadata or {}).get(_META, b"{}"))
        last = datetime.fromisoformat(about["last"])
        reader = LogReader(self.session_id, seq, about["turn"], about["turn_id"], keep=artifact, last=last)
        offset = about["offset"] if about["base"] == self._base() else None
        return STATE_FACTS.check(table.replace_schema_metadata(None)), reader, offset

    def _parts(self) -> list[tuple[int, int, Path]]:
        found = []
        for file in (self.path / "parts").glob("*.parquet"):
            first, _, end = file.stem.partition("-")
            if first.isdigit() and end.isdigit():
                found.append((int(first), int(end), file))
        return sorted(found)

    def _base(self) -> int:
        """The events that lie in parts."""
        return max((end for _, end, _ in self._parts()), default=0)

    def _lines_from(self, seq: int, offset: int | None, most: int | None) -> Iterator[bytes]:
        taken = 0
        for first, end, file in self._parts():
            if end <= seq or (most is not None and taken >= most):
                continue
            lines = read_parquet_as_is(file)["line"]
            for line in lines.slice(max(seq - first, 0)).to_pylist():
                if most is not None and taken >= most:
                    return
                taken += 1
                yield line.encode()
        skip = 0 if offset is not None else max(seq - self._base(), 0)
        for line in _lines(self.path / "events.jsonl", offset or 0):
            if skip:
                skip -= 1
                continue
            if most is not None and taken >= most:
                return
            taken += 1
            yield line

    # --- writing ----------------------------------------------------------------------------------------------------

    def append(self, events: Iterable[Mapping[str, Any]]) -> int:
        """Append events, durably; returns how many were new. An event whose id and words are there already is left out.

        Raises:
            InputError: an event is not what was expected, or its id is that of another one; then nothing is appended.
            BusyError: somebody else is writing.
        """
        given = [dict(event) for event in events]
        with held(self.path / "events", 10.0, _BUSY):
            known = self._known_ids()
            reader, facts, tables, offset = self._at_end()
            turn_id = reader.turn_id
            reader.seen = dict(known)
            reader.keep = self.keep
            lines = []
            for number, event in enumerate(given):
                before = reader.seq
                made = reader.read([event], lambda _, number=number: f"events[{number}]")
                if reader.seq > before:
                    lines.append(json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=_plain))
                    tables.append(made)
            if not lines:
                return 0
            data = "".join(f"{line}\n" for line in lines).encode()
            with (self.path / "events.jsonl").open("ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._ids = reader.seen
            self._mark(reader, facts, tables, offset, lines, turn_id)
        return len(lines)

    def keep(self, text: str) -> str:
        """Store a text as an artifact; returns its reference."""
        reference = artifact(text)
        file = self.path / "artifacts" / f"{reference.removeprefix('artifact:')}.txt"
        if not file.exists():
            write_atomic(file, text.encode())
        return reference

    def compact(self) -> int:
        """Turn the lines of `events.jsonl` into Parquet; returns how many. Every line stays what it was, byte for byte."""
        with held(self.path / "events", 10.0, _BUSY):
            base = self._base()
            lines = [line.decode() for line in _lines(self.path / "events.jsonl")]
            if not lines:
                return 0
            table = pa.table({"line": pa.array(lines, pa.large_string())})
            write_parquet(self.path / "parts" / f"{base:012d}-{base + len(lines):012d}.parquet", table, sync=True)
            write_atomic(self.path / "events.jsonl", b"")
        return len(lines)

    def open_ref(self, reference: str) -> str:
        """The text that a reference in a model input leads to: `artifact:…`, `event:…`, `log:0-41`, or a path that an event named.

        Raises:
            InputError: the log has nothing under that name.
        """
        kind, _, name = reference.partition(":")
        if kind == "artifact" and name.isalnum():
            file = self.path / "artifacts" / f"{name}.txt"
            if file.exists():
                return file.read_bytes().decode()
        if kind == "log" and (span := name.split("-")) and all(part.isdigit() for part in span) and len(span) == 2:
            low, high = map(int, span)
            lines = list(self._lines_from(0, None, high + 1))
            return b"\n".join(lines[low:]).decode()
        if kind == "event":
            for line in self._lines_from(0, None, None):
                event = parse_json(line, str(self.path))
                if str(event.get("id", event.get("eventId", event.get("event_id")))) == name:
                    return json.dumps(event, ensure_ascii=False, indent=1)
        raise InputError.expected(
            "a reference of this log: artifact:ID, event:ID or log:FIRST-LAST", reference, str(self.path)
        )

    def _known_ids(self) -> dict[str, str]:
        """Ids and digests of all events: read once, when the first event is appended."""
        if self._ids is None:
            reader = LogReader(self.session_id)
            reader.read(
                _values(self.path, self._lines_from(0, None, None)), lambda number: f"{self.path}: event {number}"
            )
            self._ids = reader.seen
        return self._ids

    def _at_end(self) -> tuple[LogReader, pa.Table, list[LogTables], int]:
        """A reader behind the last event, the facts and rows since the last checkpoint, and the size of the file."""
        mark = max(self._marks(), default=0)
        facts, reader, offset = self._checkpoint(mark)
        lines = self._lines_from(mark, offset, None)
        tables = [reader.read(_values(self.path, lines), lambda number: f"{self.path}: event {mark + number}")]
        file = self.path / "events.jsonl"
        return reader, facts, tables, file.stat().st_size if file.exists() else 0

    def _mark(
        self,
        reader: LogReader,
        facts: pa.Table,
        tables: list[LogTables],
        offset: int,
        lines: list[str],
        turn_id: str | None,
    ) -> None:
        """Write the checkpoints that the new events passed."""
        first = reader.seq - len(lines)
        whole = tables[0]
        for table in tables[1:]:
            whole = whole.then(table)
        start = at = reader.seq - whole.events.num_rows
        for mark in range((first // EVERY + 1) * EVERY, reader.seq + 1, EVERY):
            seen = whole.events.slice(at - start, mark - at).combine_chunks()
            folded = build_context_driver().execute(
                ["state_facts"], inputs={"log_events": seen, "checkpoint_facts": facts}
            )
            facts, at = checkpoint_of(folded["state_facts"], mark).combine_chunks(), mark
            last = seen.slice(seen.num_rows - 1).to_pylist()[0]
            turn_ids = [each for each in seen["turn_id"].to_pylist() if each is not None]
            turn_id = turn_ids[-1] if turn_ids else turn_id
            about = {
                "turn": last["turn"], "turn_id": turn_id, "last": last["created_at"].isoformat(), "base": self._base(),
                "offset": offset + sum(len(line.encode()) + 1 for line in lines[: mark - first]),
            }  # fmt: skip
            file = self.path / "checkpoints" / f"{mark}.arrow"
            if not file.exists():
                store_table(file, facts.replace_schema_metadata({_META: json.dumps(about)}))


def artifact(text: str) -> str:
    """The reference of a text that is an artifact of its log."""
    return f"artifact:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _lines(path: Path, offset: int = 0) -> Iterator[bytes]:
    """The lines of a file that are not blank, from a byte on."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            for line in file:
                if line.strip():
                    yield line.rstrip(b"\n")
    except FileNotFoundError as error:
        if path.name == "events.jsonl":
            return
        raise InputError(f"Expected a readable file, got {error.strerror} - at {path}") from error
    except OSError as error:
        raise InputError(f"Expected a readable file, got {error.strerror} - at {path}") from error


def _values(path: Path, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, start=1):
        yield parse_json(line, f"{path}:{number}")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)
