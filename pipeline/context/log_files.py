"""A recorded session as read, and files of JSON lines, which are read-only logs.

Gives: `LogView`; `read_event_file`, the events of a file, and `of_other_file`, the error for a file of another kind.

Note: a line that is not a JSON object in Unicode (torn, damaged, half a character) is left out and counted. A file in
which no line is one is no log.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from ..progress import counted
from ..sources.jsonl import parse_json
from .events import LogReader, LogTables
from .transcripts import kind_of

__all__ = ["EventFile", "LogView", "notes_of", "of_other_file", "read_event_file"]


@dataclass(frozen=True)
class LogView:
    """Rows of a session from some event on, the facts that held there, and notes about the session."""

    tables: LogTables
    facts: pa.Table
    notes: tuple[str, ...] = ()
    skipped: int = 0
    """Lines that could not be read."""
    snapshots: AbstractSet[str] = frozenset()
    """Retrieval snapshots that the events of the whole session name."""


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
