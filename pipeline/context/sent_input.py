"""Sent input: whether an input, as another program sent it, has the text of a source outside of its fence; and what a source says, line by line.

Gives `unfenced` and `lines_of`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from .projection import Projection
from .row_lookup import Log

__all__ = ["lines_of", "unfenced"]

Row = Mapping[str, Any]

_BEHIND = re.compile(r" Prefer verifying it first\.\Z| \((?:its beginning; )?full text: [^)]*\)\Z")
"""What the lines of a hint or of an event say behind their words."""


def unfenced(seen: Projection, rows: Iterable[Row], log: Log, sent: str) -> str | None:
    """Whether the input that was sent has lines without a margin of a source that may not instruct: of an untrusted one or a hint,
    and of what was retrieved whatever its standing. Lines that the recorded input has too are its own.
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
    """The texts of an input as it was sent: itself, and those of the JSON or the lines of JSON that any of them is."""
    waiting: list[Any] = [sent]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (dict, list)):
            waiting += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str):
            yield value
            waiting += _held(value)


def _held(text: str) -> list[Any]:
    """The value that a text is as JSON, or those that its lines are."""
    for parts in ([text], text.splitlines()):
        found = []
        for part in parts:
            if part.lstrip()[:1] in ("{", "[", '"'):
                with suppress(ValueError, RecursionError):
                    found.append(json.loads(part))
        if found:
            return found
    return []


def lines_of(seen: Projection, id_: str, log: Log) -> list[str]:
    """The lines that a source says, in an input and in the log."""
    return [*_words(seen.lines.get(id_, "")), *log.said.get(id_, "").splitlines()]


def _words(lines: str) -> list[str]:
    """The words of a source from its lines in an input: what it quotes, else each line with and without its heading."""
    if quoted := [line[2:] for line in lines.splitlines() if line.startswith("| ")]:
        return quoted
    bare = [_BEHIND.sub("", line[2:]) for line in lines.splitlines()] if lines.startswith("- ") else []
    return [*bare, *(line.partition(": ")[2] for line in bare)]
