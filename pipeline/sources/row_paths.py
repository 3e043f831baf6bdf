"""Normalizes paths of rows, so that a rule about a path cannot be evaded by another spelling.

Reads: the `path` column of an import. Gives: the column relative to the root of its source: `/` between parts, Unicode
NFC, and no part that is empty, `.` or `..`. Case is kept: `Docs/a.md` and `docs/a.md` are two paths, also to globs.

Note: a backslash is a separator, as on Windows. On POSIX it may be part of a file name; it is then stored as `/`.
"""

from __future__ import annotations

import unicodedata

import pyarrow as pa

from ...nodes.errors import InputError
from .column_types import Where, by_word

__all__ = ["normalized", "normalized_path"]


def normalized_path(path: str) -> str | None:
    """One path in normal form; None if it leaves its root, is empty or contains NUL."""
    parts: list[str] = []
    for part in unicodedata.normalize("NFC", path).replace("\\", "/").split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) if parts and "\0" not in path else None


def normalized(paths: pa.Array, where: Where) -> pa.Array:
    """The column `path` in normal form; an empty string becomes null.

    Args:
        paths: string[rows].
        where: names a row in messages.

    Raises:
        InputError: a path leaves the root of its source, is empty, or contains NUL.
    """

    def read(path: str, row: int) -> str | None:
        if (found := normalized_path(path)) is None and path:
            hint = "write it relative to the root of its source, such as src/app.py."
            expected, got = "a path inside its source", "one that leaves it or names nothing"
            raise InputError.described(expected, got, f"{where(row)}.path", hint=hint)
        return found

    return by_word(paths, paths.type, read)
