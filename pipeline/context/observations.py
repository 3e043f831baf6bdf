"""Observations: the summary and the excerpt of what a tool printed, for inputs that cannot show all of it (S3.50).

Gives: `summary_and_excerpt`; `cut`, the beginning and the end of a long text; `diff_summary`, which reads unified diffs,
the patches of Codex CLI, and bare lines that begin with `+` and `-`.

Note: nothing here decides what a model sees, and no word decides whether something failed: that is a fact of the event.
The whole text stays behind a reference.
"""

from __future__ import annotations

import re

from ...nodes.context_state import PLACE
from ..progress import counted

__all__ = ["cut", "diff_summary", "summary_and_excerpt"]

SUMMARY = 300
"""Most characters of a summary."""
EXCERPT = 1_000
"""A text of more characters has an excerpt."""
_HEADER = re.compile(r"^--- \S.*\n\+\+\+ (?:b/)?(?P<path>[^\t\n]+).*$", re.MULTILINE)
"""Two lines that name a file: neither is a changed line."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (?P<path>.+)$", re.MULTILINE)
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


def diff_summary(text: str, path: str | None = None) -> str | None:
    """`+3 -1 lines in src/a.ts`; None if no line is added or removed. `path` is the file that the event names."""
    plain = text.replace("\r\n", "\n")
    lines = _HEADER.sub("", plain).splitlines()
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    if not added + removed:
        return None
    named = [match["path"].strip() for pattern in (_HEADER, _PATCHED) for match in pattern.finditer(plain)]
    paths = [path] if path else list(dict.fromkeys(named))
    where = f" in {paths[0]}" if len(paths) == 1 else f" in {counted(len(paths), 'file')}" if paths else ""
    return f"+{added} -{removed} lines{where}"
