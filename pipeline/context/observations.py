"""Observations: the summary and the excerpt of what a tool printed, for inputs that cannot show all of it (S3.50).

Gives: `summary_and_excerpt` and `cut`, the beginning and the end of a long text.

Note: nothing here decides what a model sees, and no word decides whether something failed: that is a fact of the event.
The whole text stays behind a reference.
"""

from __future__ import annotations

import re

from ...nodes.context_state import PLACE

__all__ = ["cut", "summary_and_excerpt"]

SUMMARY = 300
"""Most characters of a summary."""
EXCERPT = 1_000
"""A text of more characters has an excerpt."""
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""Colors and movements of a terminal."""


def summary_and_excerpt(text: str, *, failed: bool) -> tuple[str | None, str | None]:
    """One line of a text, and both ends of a long text.

    Of a failed output it is the first line that names a place, after the line before it, which often says what is wrong
    there; without a place it is the last line. Of another text it is the first line.
    """
    plain = _ESCAPE.sub("", text)
    lines = [line for line in plain.splitlines() if any(map(str.isalnum, line))]
    telling = lines[:1]
    if failed:
        first = next((number for number, line in enumerate(lines) if PLACE.search(line)), None)
        telling = lines[-1:] if first is None else lines[max(first - 1, 0) : first + 1]
    summary = " ".join(" ".join(telling).split())
    summary = summary if len(summary) <= SUMMARY else f"{summary[: SUMMARY - 3]}..."
    return summary or None, cut(plain, EXCERPT) if len(text) > EXCERPT else None


def cut(text: str, most: int) -> str:
    """The beginning and the end of a long text, and the number of characters between."""
    half = most // 2
    head, tail = text[:half].rsplit("\n", 1)[0], text[-half:].split("\n", 1)[-1]
    return f"{head}\n[... {len(text) - len(head) - len(tail)} characters ...]\n{tail}"
