"""CSV logs in a work tree (S1.22, S1.36): a segment per day, dated by its rows and not by the file.

Gives: `outline_csv_log`, `Lines -> Outline`. A log without a column of times is one segment without a time of its own.
`structured.read_logs` (`index --logs`) reads the same files strictly, a row each.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from .column_types import instant
from .lines import Lines, Outline, Segment

__all__ = ["TIME_COLUMNS", "outline_csv_log"]

TIME_COLUMNS = ("timestamp", "time", "happened_at", "created_at", "date")
"""Columns that say when a line of a log happened; the first that is there counts."""


def outline_csv_log(lines: Lines) -> Outline:
    """The days of a log in the order of its lines; a line without a readable time belongs to the day before it."""
    segments: list[Segment] = []
    for start, moment in _rows(lines):
        day = moment.date().isoformat() if moment else None
        if segments and (day is None or day == segments[-1].section):
            last = segments[-1]
            last.happened = max(filter(None, (last.happened, moment)), default=None)
        else:
            if segments:
                segments[-1].end = start
            segments.append(Segment(start if segments else 0, lines.count, day, happened=moment))
    return Outline(segments or [Segment(0, lines.count)])


def _rows(lines: Lines) -> Iterator[tuple[int, datetime | None]]:
    """The first line and the time of every row under the header; nothing if no column has times."""
    reader = csv.reader(iter(lines.strings))
    try:
        columns = [name.strip().lower().removeprefix("\ufeff") for name in next(reader, [])]
        at = next((columns.index(name) for name in TIME_COLUMNS if name in columns), None)
        if at is None:
            return
        start = reader.line_num
        for values in reader:
            yield start, _moment(values[at]) if at < len(values) else None
            start = reader.line_num
    except csv.Error:
        return


def _moment(value: str) -> datetime | None:
    """When a row happened: as other readers read it, and a time without a zone as UTC. A short number is no time."""
    value = value.strip()
    try:
        return instant(int(value) if re.fullmatch(r"[0-9]{12,14}", value) else value, "time", dates=True)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    except ValueError:
        return None
