"""Effects of tools of Claude Code from the record or the call: the lines of a read, the texts of a change.

Gives `lines_of`, `edits_of` and `marked`, and the names of the `EDITS` and `SHELLS` among the tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .writing import line_span

__all__ = ["EDITS", "SHELLS", "edits_of", "lines_of", "marked"]

EDITS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
SHELLS = ("Bash", "PowerShell")


def lines_of(file: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, int]:
    """The lines that a partial read of a file returned."""
    first, count, total = (file.get(name) for name in ("startLine", "numLines", "totalLines"))
    if not isinstance(first, int) or not isinstance(count, int):
        first, count, total = given.get("offset"), given.get("limit"), None
        first = 1 if first is None else first
    if not isinstance(first, int) or not isinstance(count, int) or (first == 1 and count == total):
        return {}
    return line_span(first, first + count - 1)


def edits_of(beside: Mapping[str, Any], given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Old and new text of each change of a file, as far as the record or the call has them."""
    several = given.get("edits")
    changes = (
        [each for each in several if isinstance(each, Mapping)] if isinstance(several, list) else [{**given, **beside}]
    )
    return [
        (
            _first_text(each, "oldString", "old_string"),
            _first_text(each, "newString", "new_string", "content", "new_source"),
        )
        for each in changes
    ]


def _first_text(record: Mapping[str, Any], *names: str) -> str:
    return next((record[name] for name in names if isinstance(record.get(name), str)), "")


def marked(mark: str, text: str) -> list[str]:
    """The lines of a text with a mark in front, as in a diff."""
    return [f"{mark}{line}" for line in text.splitlines()]
