"""Sent input: whether an input, as another program sent it, has source text outside its fence; and the lines of a
source.

Gives `unfenced` and `lines_of`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from .projection import Projection
from .row_lookup import EventLog

__all__ = ["lines_of", "unfenced"]

Row = Mapping[str, Any]

_BEHIND = re.compile(r" Prefer verifying it first\.\Z| \((?:its beginning; )?full text: [^)]*\)\Z")
"""Suffixes of the lines of a hint or of an event."""


def unfenced(seen: Projection, rows: Iterable[Row], log: EventLog, sent: str) -> str | None:
    """The first source that may not instruct (untrusted, a hint, or retrieved with any standing) of which the sent
    input has a line without a margin; None if there is none. Lines that the recorded input also has do not count.
    """
    lines = {line.rstrip() for text in _strings(sent) for line in text.splitlines()} - set(seen.text().splitlines())
    for row in rows:
        if row["standing"] not in ("untrusted", "hint") and row["source_kind"] != "retrieval_result":
            continue
        id_ = row["source_id"]
        if any(len(line.strip()) > 8 and line.rstrip() in lines for line in lines_of(seen, id_, log)):
            return id_
    return None


def _strings(sent: str) -> Iterator[str]:
    """The texts of a sent input: itself and, recursively, the texts in it if it is JSON or lines of JSON."""
    waiting: list[Any] = [sent]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (dict, list)):
            waiting += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str):
            yield value
            waiting += _held(value)


def _held(text: str) -> list[Any]:
    """The JSON value of a text, or the values of its lines."""
    for parts in ([text], text.splitlines()):
        found = []
        for part in parts:
            if part.lstrip()[:1] in ("{", "[", '"'):
                with suppress(ValueError, RecursionError):
                    found.append(json.loads(part))
        if found:
            return found
    return []


def lines_of(seen: Projection, id_: str, log: EventLog) -> list[str]:
    """The lines of a source, in an input and in the log."""
    return [*_words(seen.lines.get(id_, "")), *log.all_texts.get(id_, "").splitlines()]


def _words(lines: str) -> list[str]:
    """The words of a source from its lines in an input: quoted lines, else each line with and without its heading."""
    if quoted := [line[2:] for line in lines.splitlines() if line.startswith("| ")]:
        return quoted
    bare = [_BEHIND.sub("", line[2:]) for line in lines.splitlines()] if lines.startswith("- ") else []
    return [*bare, *(line.partition(": ")[2] for line in bare)]
