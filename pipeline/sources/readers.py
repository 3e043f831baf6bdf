"""The readers of records: to add one, write its function in a module beside this one and a line in `READERS`.

Gives: `SourceReader`, a reader with its name; `READERS`, those of this package; `tables_of`, which calls one.

Note: the help of `index` is made from this list, so nothing of the data stack is imported here: a reader's module is imported
when it first reads. Rows of every reader go through `importing.normalize`, which fills missing fields with the least privileged
values, masks secrets and refuses malformed rows. A reader grants no rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...nodes.errors import InputError, ScopedRetrievalError, called, kind_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SourceReader:
    """A reader of records.

    `read(path, project=..., now=..., report=...)` yields tables with a subset of the columns of IMPORT_ROWS, at least
    `source_id` and `text`, and parses everything before it yields the first.
    """

    name: str
    read: Callable[..., Iterator[Any]]
    placed: tuple[str, ...] = ()
    """Suffixes of files that work trees leave to this reader, whose paths are then relative to the tree."""
    of_files: bool = True
    """Whether `path` is that of a file or folder."""


def _reader(name: str, module: str = "records", **how: Any) -> SourceReader:
    """The reader `read_NAME` of a module beside this one, which is imported when it first reads."""

    def read(path: Any, **given: Any) -> Iterator[Any]:
        return getattr(import_module(f".{module}", __package__), f"read_{name}")(path, **given)

    return SourceReader(name, read, **how)


_OF_RECORDS = ("sessions", "memory", "artifacts", "decisions", "preferences", "standards", "external", "evidence")
READERS = (
    *map(_reader, _OF_RECORDS),
    _reader("sot", "structured", placed=(".csv", ".yaml", ".yml")),
    _reader("logs", "structured", placed=(".csv",)),
    _reader("mcp", "mcp_resources", of_files=False),
)
"""Every reader of records of this package, by the KIND of `index --add`."""
_OF_READERS = (ScopedRetrievalError, OSError)
"""Errors that readers may raise about a file."""


def tables_of(reader: SourceReader, path: Any, **given: Any) -> Iterator[pa.Table]:
    """The tables of a reader of records.

    Raises:
        SchemaError: a plugin's reader raised an exception that is neither an OSError nor an error of this package.
        InputError: `path` does not exist, or the reader yielded something other than a table.
    """
    import pyarrow as pa  # not imported to make flags from readers

    if reader.of_files and not Path(path).exists():
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
