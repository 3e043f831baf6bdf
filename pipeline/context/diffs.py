"""Summaries of diffs: how many lines were added and removed, and which, without context lines.

Reads unified diffs, the patches of Codex CLI, and bare lines that begin with `+` and `-`. Gives `in_short`: a one-line
summary and, of a long diff, an excerpt. Each states how many of the changed lines it leaves out.

Note: the first lines of a diff name files and places, and do not describe the change.
"""

from __future__ import annotations

import re

__all__ = ["in_short"]

_MARK = re.compile(
    r"\*\*\* (?:Begin|End|Add|Update|Delete|Move)\b|@@|diff --git |index [0-9a-f]+\.\.|(?:new|deleted) file mode |similarity index |rename "
)
"""Lines of a diff that name files and places."""
_HEADER = re.compile(r"--- \S.*\n\+\+\+ \S.*\n@@.*")
LINE_CHARACTERS = 100
"""Most characters of a changed line in a summary."""


def in_short(text: str, *, summary: int, excerpt: int, marked: bool = True) -> tuple[str, str | None] | None:
    """A summary of at most `summary` characters, and an excerpt of a diff of more than `excerpt` characters; None if
    the text is not a diff. With `marked`, a diff must have lines that name a file or a place.
    """
    lines = text.splitlines()
    if not any(line.startswith(("+", "-")) for line in lines):
        return None
    begun = [number for number, line in enumerate(lines) if line.startswith("--- ")]
    headers = {number for number in begun if _HEADER.fullmatch("\n".join(lines[number : number + 3]))}
    headers |= {number + 1 for number in headers}
    marks = [number for number, line in enumerate(lines) if number in headers or _MARK.match(line)]
    changed = [n for n, line in enumerate(lines) if line.startswith(("+", "-")) and n not in headers]
    added = sum(lines[number].startswith("+") for number in changed)
    if not changed or (not marks and (marked or not added)):
        return None
    counts = f"{_count(added)} added, {_count(len(changed) - added)} removed: "
    words = [_one_line(lines[number]) for number in changed]
    room = summary - len(counts) - len(_left(len(changed)))
    shown = _fitting([f"{each} | " for each in words], room)
    summary_line = counts + " | ".join(words[:shown]) + _left(len(words) - shown) if shown else counts.rstrip(": ")
    return summary_line, _excerpt(lines, sorted({*marks, *changed}), set(changed), excerpt) if len(
        text
    ) > excerpt else None


def _excerpt(lines: list[str], kept: list[int], changed: set[int], most: int) -> str:
    """The first changed lines, with the lines that name files and places."""
    shown = _fitting([f"{lines[number]}\n" for number in kept], most)
    left = sum(number in changed for number in kept[shown:])
    return "\n".join(lines[number] for number in kept[:shown]) + (f"\n[{_count(left)} more changed]" if left else "")


def _fitting(texts: list[str], most: int) -> int:
    """How many of the first texts fit into this many characters together."""
    used = 0
    for number, text in enumerate(texts):
        used += len(text)
        if used > most:
            return number
    return len(texts)


def _one_line(line: str) -> str:
    """A changed line without its indentation."""
    text = f"{line[0]}{line[1:].strip()}"
    return text if len(text) <= LINE_CHARACTERS else f"{text[: LINE_CHARACTERS - 3]}..."


def _left(count: int) -> str:
    return f" | and {count} more" if count else ""


def _count(lines: int) -> str:
    return f"{lines} line{'' if lines == 1 else 's'}"
