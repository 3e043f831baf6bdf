"""A fixed view of the lines of a session log: the compacted parts, and the growing file.

Gives `LogPart` and `Lines`, which reads lines from any event on, each with its place, and the errors of damaged lines (`damaged`)
and of parts that do not follow each other (`misplaced`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ...nodes.errors import InputError, StoreError
from ..sources.jsonl import parse_json

__all__ = ["RESTORE", "ROWS", "Lines", "LogPart", "damaged", "misplaced"]

ROWS = 1024
"""Number of lines of a part read together."""
RESTORE = "restore the file from a backup"


@dataclass(frozen=True)
class LogPart:
    """Compacted lines: events `first` to `end - 1`."""

    first: int
    end: int
    path: Path


@dataclass(frozen=True)
class Lines:
    """A fixed view of a log: its parts, and `size` bytes of the file at `path`; then `torn` unfinished bytes."""

    parts: Sequence[LogPart]
    base: int
    path: Path
    file: BinaryIO | None
    size: int
    torn: int

    def stats(self) -> dict[str, list[int]]:
        """Size, inode and times of each file by name, to detect changes."""
        found = {part.path.name: part.path.stat() for part in self.parts}
        if self.file is not None:
            found[self.path.name] = os.fstat(self.file.fileno())
        return {name: [s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns] for name, s in found.items()}

    def ends(self) -> list[int]:
        """The events at which parts end."""
        return [part.end for part in self.parts]

    def where(self, event: int) -> str:
        """The file and line of an event, for messages."""
        part = next((part for part in self.parts if event < part.end), None)
        return f"{self.path}:{event - self.base + 1}" if part is None else f"{part.path}: row {event - part.first + 1}"

    def span(self, first: int, last: int) -> str:
        """The files and lines of a range of events, for messages."""
        low, high = self.where(first), self.where(last)
        if first == last:
            return low
        file, _, line = high.rpartition(":")
        return f"{low} to {line.removeprefix(' row ')}" if low.rpartition(":")[0] == file else f"{low} to {high}"

    def read(
        self, first: int = 0, until: int | None = None, *, offset: int | None = None
    ) -> Iterator[tuple[str, bytes]]:
        """Lines from event `first` on, each with its place. `offset` is the offset of its line in the file, if known.

        Raises:
            StoreError: a line is blank, or a part is damaged.
        """
        at = first
        for part in self.parts:
            if part.end <= at or (until is not None and until <= at):
                continue
            for line in _rows(part, at - part.first):
                if until is not None and at >= until:
                    return
                yield f"{part.path}: row {at - part.first + 1}", line
                at += 1
        if self.file is None or (until is not None and at >= until):
            return
        number = at - self.base
        if number and offset is None:
            offset, skipped = 0, number
        else:
            offset, skipped = offset or 0, 0
        number -= skipped
        self.file.seek(offset)
        while offset < self.size and (until is None or self.base + number < until):
            line = self.file.readline()
            offset, number = offset + len(line), number + 1
            if not line.strip():
                raise StoreError(f"Expected a JSON object, got a blank line - at {self.path}:{number}", hint=f"{RESTORE}, or remove the line")  # fmt: skip
            if skipped:
                skipped -= 1
                continue
            yield f"{self.path}:{number}", line[:-1]


def _rows(part: LogPart, first: int) -> Iterator[bytes]:
    """The lines of a part from a row on, read in groups."""
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(part.path) as file:
            if file.metadata.num_rows != part.end - part.first:
                raise pa.ArrowInvalid("rows")
            for group in range(first // ROWS, file.num_row_groups):
                lines = file.read_row_group(group, columns=["line"], use_threads=False)["line"].to_pylist()
                yield from lines[max(first - group * ROWS, 0) :]
    except FileNotFoundError:
        raise StoreError(f"Expected a part of the log, got none - at {part.path}", hint=RESTORE) from None
    except (pa.ArrowException, OSError, KeyError) as error:
        raise StoreError(
            f"Expected a whole part of the log, got a damaged one - at {part.path}", hint=RESTORE
        ) from error


def misplaced(part: LogPart, start: int) -> StoreError:
    """The error for a part that does not continue the previous one."""
    missing = (
        "a part before it is missing"
        if part.first > start
        else "the part before it has the same events: move the one away that is not of this log"
    )
    hint = "its name is wrong" if part.end <= part.first else missing
    found = (
        f"Expected a part that begins with event {start}, got events {part.first} to {part.end - 1} - at {part.path}"
    )
    return StoreError(found, hint=f"{hint}: {RESTORE}" if part.first > start else f"{hint}, or {RESTORE}")


def damaged(lines: Lines) -> StoreError | None:
    """The error for the first line that is not a JSON object."""
    for where, line in lines.read():
        try:
            parse_json(line, where)
        except InputError as error:
            return StoreError(error.message, hint=f"{RESTORE}, or remove the line and head.json to continue without it")
    return None
