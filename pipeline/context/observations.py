"""Observations: the summary and the excerpt of what a tool printed, for inputs that cannot show all of it (S3.50).

Gives: `summary_and_excerpt` and `cut`, the beginning and the end of a long text.

Note: nothing here decides what a model sees, and no word decides whether something failed: that is a fact of the event.
The lexicon only chooses which lines of a failed output to show first; the whole text stays behind a reference.
"""

from __future__ import annotations

import re

__all__ = ["EXCERPT", "SUMMARY", "cut", "summary_and_excerpt"]

SUMMARY = 300
"""Most characters of a summary."""
EXCERPT = 1_000
"""A text of more characters has an excerpt."""
LINES = 24
"""Most lines of an excerpt around errors."""
AROUND = 3
"""Lines that are shown before and after a line that reads as an error."""
_LONGEST_LINE = 240
_ERROR = re.compile(r"(?i)error|fail|exception|traceback|panic|expected|assert")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""Colors and movements of a terminal."""
_RULE = "=-_*#~ \t"


def summary_and_excerpt(text: str, *, failed: bool) -> tuple[str | None, str | None]:
    """A line that says most, and the part of a long text that says most.

    Of a failed output these are its first error and the lines around errors; else its first line, and both ends.
    """
    lines = _ESCAPE.sub("", text).splitlines()
    errors = [number for number, line in enumerate(lines) if _ERROR.search(line)] if failed else []
    telling = next((lines[number] for number in errors if _tells(lines[number])), None)
    summary = telling or next((line for line in lines if line.strip()), None)
    excerpt = None
    if len(text) > EXCERPT:
        excerpt = _around(lines, errors) if errors else cut("\n".join(lines), EXCERPT)
    return _one_line(summary), excerpt


def _tells(line: str) -> bool:
    """Whether a line is more than a heading: several words that do not end with a colon."""
    words = line.strip(_RULE)
    return " " in words and not words.endswith(":")


def _around(lines: list[str], errors: list[int]) -> str:
    """The first lines around errors, with an ellipsis for every gap."""
    near = dict.fromkeys(
        number for error in errors for number in range(max(error - AROUND, 0), min(error + AROUND + 1, len(lines)))
    )
    kept = sorted(near)[:LINES]
    shown = []
    for before, number in zip([-1, *kept], kept, strict=False):
        shown += ["..."] if number > before + 1 else []
        shown.append(lines[number][:_LONGEST_LINE])
    return "\n".join([*shown, "..."] if kept[-1] < len(lines) - 1 else shown)


def _one_line(text: str | None) -> str | None:
    if text is None:
        return None
    words = " ".join(text.split())
    return words if len(words) <= SUMMARY else f"{words[: SUMMARY - 3]}..."


def cut(text: str, most: int) -> str:
    """The beginning and the end of a long text, and the number of characters between."""
    half = most // 2
    head, tail = text[:half].rsplit("\n", 1)[0], text[-half:].split("\n", 1)[-1]
    return f"{head}\n[... {len(text) - len(head) - len(tail)} characters ...]\n{tail}"
