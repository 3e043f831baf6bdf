"""A reader of a kind of source: an object with its name, its documentation and the function that reads.

Gives: `SourceReader`; `languages`, which lets readers of plugins cut files of their languages during an import, and
`outlined`, which calls them; `tables_of`, which calls a reader of records.

Note: rows of every reader go through `importing.normalize`, which fills missing fields with the least privileged
values, masks secrets and refuses malformed rows. A reader grants no rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...nodes.errors import InputError, ScopedRetrievalError, called, kind_of
from .lines import Chunk, Lines, Outline

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SourceReader", "language_of", "languages", "outlined", "tables_of"]


@dataclass(frozen=True)
class SourceReader:
    """A reader of records (`read`) or of the files of a language (`extensions` and `outline`).

    `read(path, project=..., now=..., report=...)` yields tables with a subset of the columns of IMPORT_ROWS, at least
    `source_id` and `text`. `outline(lines)` returns the `Outline` of the `Lines` of one file: chunks, and names by
    line.
    """

    name: str
    doc: str
    read: Callable[..., Iterator[Any]] | None = None
    extensions: tuple[str, ...] = ()
    outline: Callable[[Any], Any] | None = None
    placed: tuple[str, ...] = ()
    """Suffixes of files that work trees leave to this reader, whose paths are then relative to the tree."""

    def __post_init__(self) -> None:
        if (self.read is None) == (self.outline is None):
            raise InputError.described("either `read` or `outline`", "both or neither", self.name)
        if (self.outline is None) != (not self.extensions):
            raise InputError.described("`extensions` with `outline`", "one without the other", self.name)
        if not isinstance(self.extensions, tuple):
            raise InputError.of_kind("a tuple", self.extensions, f"{self.name}.extensions")
        for extension in self.extensions:
            if extension != extension.lower().strip("."):
                raise InputError.expected(
                    "an extension in lower case, without a dot", extension, f"{self.name}.extensions"
                )

    @property
    def language(self) -> str:
        """The language of its files."""
        return self.name.rpartition(".")[2]


_OF_READERS = (ScopedRetrievalError, OSError)
"""Errors that readers may raise about a file."""
_LANGUAGES: ContextVar[dict[str, SourceReader] | None] = ContextVar("languages", default=None)


@contextmanager
def languages(readers: Iterable[SourceReader]) -> Iterator[None]:
    """Files with these readers' extensions are cut by them inside this context."""
    token = _LANGUAGES.set({extension: one for one in readers for extension in one.extensions} or None)
    try:
        yield
    finally:
        _LANGUAGES.reset(token)


def language_of(extension: str) -> SourceReader | None:
    """The plugin's reader that currently cuts files with an extension."""
    known = _LANGUAGES.get()
    return known.get(extension) if known else None


def outlined(name: str, lines: Lines) -> Outline | None:
    """The outline of a file by the reader of this name; None if there is none now.

    Raises:
        SchemaError: the reader raised an error.
        InputError: the reader did not return an outline.
    """
    known = _LANGUAGES.get() or {}
    reader = next((one for one in known.values() if one.name == name), None)
    if reader is None or reader.outline is None:
        return None
    at = f"{name}.outline"
    found = called(name, "outline", reader.outline, lines)
    if not isinstance(found, Outline):
        raise InputError.of_kind("an Outline", found, at)
    for what in ("chunks", "symbols", "calls", "links"):
        if not isinstance(getattr(found, what), list | tuple):
            raise InputError.of_kind("a list", getattr(found, what), f"{at}.{what}")
    if not all(isinstance(one, Chunk) for one in found.chunks):
        raise InputError.described("a Chunk each", "others", f"{at}.chunks")
    for one in found.chunks:
        if not (isinstance(one.start, Integral) and isinstance(one.end, Integral) and one.start >= 0):
            raise InputError.described("a first line, from 0, and the line after the last", "others", f"{at}.chunks")
    if (levels := found.statements) is not None and not (
        isinstance(levels, list | tuple)
        and len(levels) == lines.count
        and all(isinstance(one, Integral) and abs(one) < 128 for one in levels)
    ):
        raise InputError.described("a level per line, -127 to 127", "others", f"{at}.statements")
    for what in ("symbols", "calls", "links"):
        if not all(_is_named_line(pair) for pair in getattr(found, what)):
            raise InputError.described("pairs of a line, from 0, and a name", "others", f"{at}.{what}")
    return found


def _is_named_line(pair: Any) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], Integral) and isinstance(pair[1], str)


def tables_of(reader: SourceReader, path: Any, **given: Any) -> Iterator[pa.Table]:
    """The tables of a reader of records.

    Raises:
        SchemaError: a plugin's reader raised an exception that is neither an OSError nor an error of this package.
        InputError: `path` does not exist, or the reader yielded something other than a table.
    """
    import pyarrow as pa  # not imported to make flags from readers

    assert reader.read is not None
    if not Path(path).exists():
        raise InputError.expected("a file or a folder", None, str(path))
    name, at = reader.name, f"{reader.name}.read"
    found = called(name, "read", partial(reader.read, path, **given), through=_OF_READERS)
    if not isinstance(found, Iterable):
        raise InputError.of_kind("tables", found, at)
    tables = called(name, "read", iter, found, through=_OF_READERS)
    while (table := called(name, "read", next, tables, None, through=_OF_READERS)) is not None:
        if not isinstance(table, pa.Table):
            raise InputError.described("a table", kind_of(table), at)
        if table.num_rows:  # one without rows may lack columns
            yield table
