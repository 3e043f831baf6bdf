"""Normalizes paths of rows, so that a rule about a path cannot be evaded by another spelling.

Reads: the `path` column of an import. Gives: the column relative to the root of its source: `/` between parts, Unicode
NFC, and no part that is empty, `.` or `..`. Case is kept: `Docs/a.md` and `docs/a.md` are two paths, also to globs.

Note: a backslash is a separator, as on Windows. On POSIX it may be part of a file name; it is then stored as `/`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError

__all__ = ["normalized", "normalized_path"]

_SUSPECT = r"\\|//|^/|/$|(^|/)\.\.?(/|$)|[^\x01-\x7f]"
"""Matches every path that may not be in normal form, and few others: these are normalized one by one."""


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


def normalized(paths: pa.Array, where: Callable[[int], str]) -> pa.Array:
    """The column `path` in normal form; an empty string becomes null.

    Args:
        paths: string[rows].
        where: names a row in messages.

    Raises:
        InputError: a path leaves the root of its source, is empty, or contains NUL.
    """
    paths = pc.if_else(pc.equal(paths, ""), pa.scalar(None, paths.type), paths)
    if not pc.any(pc.match_substring_regex(paths, _SUSPECT)).as_py():
        return paths
    encoded = paths.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    found = [normalized_path(word) for word in words]
    if None in found:
        wrong = found.index(None)
        row = int(np.flatnonzero(pc.equal(encoded.indices, wrong).fill_null(False))[0])
        hint = "write it relative to the root of its source, such as src/app.py."
        raise InputError.described(
            "a path inside its source", "one that leaves it or names nothing", f"{where(row)}.path", hint=hint
        )
    return pa.array(found, paths.type).take(encoded.indices)
