"""Summaries of diffs: how many lines a diff adds and removes, and in which files.

Reads: unified diffs, the patches of Codex CLI, and bare lines that begin with `+` and `-`.
"""

from __future__ import annotations

import re

from ..progress import counted

__all__ = ["diff_summary"]

_HEADER = re.compile(r"^--- \S.*\n\+\+\+ (?:b/)?(?P<path>[^\t\n]+).*$", re.MULTILINE)
"""Two lines that name a file: neither is a changed line."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (?P<path>.+)$", re.MULTILINE)


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
