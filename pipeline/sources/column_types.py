"""Converts columns of import rows to their declared types and forms: without loss, or with an error that names the row.

Gives: `as_declared`, `authority_ranks`, `by_word`, and `normalized`, paths in the one form that rules about paths compare:
relative to the root of the source, `/` between parts, Unicode NFC, and no part that is empty, `.` or `..`. Case is kept.

Note: instants must have a time zone: text like `2026-05-20T08:00:00Z`, or a timestamp type with a zone. The meaning of a
naive instant would depend on the machine that reads it. A backslash in a path is a separator, as on Windows; on POSIX it
may be part of a file name, and is then stored as `/`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ...nodes.errors import InputError
from ..parsing.values import TIME, YEARS, authority_rank, instant

__all__ = ["PLACE", "Where", "as_declared", "authority_ranks", "by_word", "normalized", "normalized_path"]

Where = Callable[[int], str]
"""Names a row by its position, for messages."""
PLACE = "read_at"
"""An optional column of readers' tables: file and line of each row, for messages; the corpus does not store it."""


def as_declared(column: pa.Array, type_: pa.DataType, name: str, where: Where) -> pa.Array:
    """The column in its declared type; a text of an instant is read, a timestamp without a zone is not.

    Raises:
        InputError: naming the first row that does not convert.
    """
    if column.type == type_:
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    given = column.type
    if pa.types.is_null(given):
        return pa.nulls(len(column), type_)
    if pa.types.is_timestamp(type_) and _kind(given) == "text":
        return by_word(column, type_, lambda word, row: instant(word, f"{where(row)}.{name}"))
    if _kind(given) != _kind(type_):
        raise _wrong(column, type_, name, where)
    if pa.types.is_timestamp(given) and given.tz is None and len(column) > column.null_count:
        at, hint = f"{where(_first(column))}.{name}", "store the column as a timestamp in UTC"
        raise InputError.described(TIME, "one without an offset", at, hint=hint)
    try:
        finer = pa.types.is_timestamp(given) and given.unit == "ns"  # than the corpus stores
        return column.cast(type_, safe=not finer)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if pa.types.is_timestamp(given):
            raise InputError.described(YEARS, "another", f"{where(_first(column))}.{name}") from error
        raise _wrong(column, type_, name, where) from error


def by_word(column: pa.Array, type_: pa.DataType, value: Callable[[str, int], Any]) -> pa.Array:
    """`value(word, row)` of each distinct word of a column, called once, with the first row that has it."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes, rows = np.unique(encoded.indices.fill_null(-1).to_numpy(), return_index=True)
    first = dict(zip(codes.tolist(), rows.tolist(), strict=True))
    words = encoded.dictionary.to_pylist()
    return pa.array([value(word, first[code]) for code, word in enumerate(words)], type_).take(encoded.indices)


def authority_ranks(column: pa.Array, where: Where) -> pa.Array:
    """`authority` as ranks 0 to 3, from ranks or from the words of its vocabulary."""
    return by_word(column, pa.int32(), lambda word, row: authority_rank(word, f"{where(row)}.authority"))


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


def _wrong(column: pa.Array, type_: pa.DataType, name: str, where: Where) -> InputError:
    return InputError.described(_type_name(type_), _type_name(column.type), f"{where(_first(column))}.{name}")


def _type_name(type_: pa.DataType) -> str:
    """A type without the names of its fields, which are untrusted like values."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"list of {_type_name(type_.value_type)}"
    return str(type_).partition("<")[0]


def _first(column: pa.Array) -> int:
    """The first row with a value."""
    present = np.flatnonzero(np.asarray(column.is_valid()))
    return int(present[0]) if len(present) else 0


def _kind(type_: pa.DataType) -> str:
    """What values of a type are; only those of one kind convert."""
    kinds = pa.types
    if kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_):
        return "text"
    if kinds.is_list(type_) or kinds.is_large_list(type_):
        return "list"
    if kinds.is_timestamp(type_):
        return "time"
    return "number" if kinds.is_integer(type_) or kinds.is_floating(type_) else str(type_)
