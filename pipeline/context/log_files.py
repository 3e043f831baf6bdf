"""Events as lines of JSON: those of a read-only file, those appended to a log, and the targets of references.

Gives `file_lines`, the lines of a file with their places, `event_line`, an event as the line that a log stores,
`values_of`, lines as objects, `text_behind`, the target of a reference, and `of_other_file`, the error for a file that
is a transcript, or JSON of another kind.

Note: a file of lines may be growing. A last line without a newline that begins an object but is not valid JSON is
unfinished: it is left out and reported. Any other invalid line is an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError, StoreError
from ..parsing.strict_json import json_text
from ..progress import counted
from ..sources.jsonl import parse_json
from .artifacts import artifact
from .event_rows import long_text
from .events import LogTables, identity_of
from .transcripts import kind_of

__all__ = [
    "DAMAGED",
    "LogView",
    "artifact",
    "event_line",
    "file_lines",
    "is_json",
    "of_other_file",
    "once_more",
    "take_up",
    "text_behind",
    "values_of",
]

DAMAGED = "restore the file from a backup, or remove what begins with this line"
"""Hint for a stored line that is not an event."""


@dataclass(frozen=True)
class LogView:
    """Rows of a log from some event on, the facts that held there, and notes about the log."""

    tables: LogTables
    facts: pa.Table
    repeated: int = 0
    backwards: int = 0
    damage: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Notes for the caller."""
        found = list(self.damage)
        if self.backwards:
            found.append(
                f"the clock went back before {counted(self.backwards, 'event')}: events keep the order of the log"
            )
        if self.repeated:
            found.append(
                f"{counted(self.repeated, 'event')} came again and {'was' if self.repeated == 1 else 'were'} left out"
            )
        return found


def file_lines(path: Path, notes: list[str]) -> Iterator[tuple[str, bytes]]:
    """The nonblank lines of a file, each with its place; an unfinished one is reported in `notes`.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if not text.strip():
                    continue
                where = f"{path}:{number}"
                if not text.endswith(b"\n") and text.lstrip().startswith(b"{") and not is_json(text):
                    notes.append(f"line {number} is unfinished ({len(text)} bytes) and was left out")
                    return
                yield where, text.rstrip(b"\n")
    except OSError as error:
        raise InputError(f"{error.strerror}: {path}") from error


def of_other_file(error: InputError, file: Path) -> InputError:
    """The error for a file that is not a log, with a hint if it is a transcript, or one JSON value over many lines."""
    head = [line for line, _ in zip(file_lines(file, []), range(50), strict=False)]
    found = kind_of([value for _, line in head if is_json(line) and isinstance(value := json.loads(line), dict)])
    hint = f"this is a transcript of {found}: `context import {file.name} --out LOG` makes a log of it"
    if found is None:
        first = head[0][1].strip() if head else b""
        if not first.startswith(b"[") and (first != b"{"):
            return error
        what = "a list" if first.startswith(b"[") else "one object"
        hint = f"this is {what} in JSON: a log has one event per line, an object each (JSON lines)"
    return InputError(error.message, hint=hint)


def event_line(event: Any, at: str) -> tuple[bytes, dict[str, Any]]:
    """An event as the line that a log stores, and as it is read back.

    Raises:
        InputError: it is not an object, or contains values that JSON lacks.
    """
    if not isinstance(event, Mapping):
        raise InputError.of_kind("a JSON object", event, at)
    value = parse_json(json_text(dict(event), at, _plain).encode(), at)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), value


def values_of(lines: Iterable[tuple[str, bytes]], places: list[str]) -> Iterator[dict[str, Any]]:
    """Lines as objects; the place of each is appended to `places`."""
    for where, line in lines:
        places.append(where)
        yield parse_json(line, where)


def take_up(found: dict[str, str], where: str, line: bytes) -> None:
    """Add the id and digest of a stored event to `found`.

    Raises:
        StoreError: it is not an event, or its id is a duplicate.
    """
    try:
        id_, digest = identity_of(parse_json(line, where))
    except InputError as error:
        raise StoreError(error.message, hint=DAMAGED) from error
    if id_ is None or id_ in found:
        raise (
            once_more(where) if id_ else StoreError(f"Expected the event's id, got nothing - at {where}", hint=DAMAGED)
        )
    found[id_] = digest


def ids_of(lines: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    """The ids and digests of stored events; raises like `take_up`."""
    found = dict[str, str]()
    for where, line in lines:
        take_up(found, where, line)
    return found


def once_more(where: str) -> StoreError:
    """The error for an event that is in a log twice, which no append writes."""
    hint = "remove the line and head.json to continue without it"
    return StoreError(f"Expected every event once, got one again - at {where}", hint=hint)


def text_behind(reference: str, lines: Callable[[int, int | None], Iterable[tuple[str, bytes]]], at: str) -> str:
    """The text of `event:…`, `log:…` or `artifact:…`; `lines` returns the lines of a range of events.

    Raises:
        InputError: there is no such event or text.
    """
    kind, _, name = reference.partition(":")
    span = name.split("-")
    if kind == "log" and len(span) == 2 and all(part.isdecimal() for part in span):
        low, high = map(int, span)
        found = [line for number, (_, line) in enumerate(lines(0, high + 1)) if low <= number <= high]
        if found:
            return b"\n".join(found).decode()
    if kind == "artifact":
        for where, line in lines(0, None):
            text = long_text(parse_json(line, where))
            if text is not None and artifact(text) == reference:
                return text
    if kind == "event":
        for where, line in lines(0, None):
            event = parse_json(line, where)
            if identity_of(event)[0] == name:
                return json.dumps(event, ensure_ascii=False, indent=1)
    raise InputError.expected("a reference of this log: artifact:ID, event:ID or log:FIRST-LAST", reference, at)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


def is_json(line: bytes) -> bool:
    """Whether a line is valid JSON of any kind."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
