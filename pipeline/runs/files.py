"""The files of a run: JSON, Parquet and bytes, each whole or absent."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..storage.durable import write_atomic
from ..storage.file_access import system_errors
from ..storage.places import ObjectPlace, Place
from .ids import RUN_ID

_IN_RUN = re.compile(rf"{RUN_ID.pattern}/.+")


def json_bytes(value: Any) -> bytes:
    """JSON as a run stores it: one line of ASCII, keys sorted. Indenting takes ten times as long for long sessions."""
    return f"{json.dumps(value, sort_keys=True)}\n".encode()


def write_parquet(path: Place, table: pa.Table, *, sync: bool = False) -> None:
    """Write a table as Parquet, whole or not at all."""
    with system_errors(path):
        write_atomic(path, parquet_bytes(table), sync=sync)


def parquet_bytes(table: pa.Table) -> memoryview:
    """A table as Parquet."""
    import pyarrow.parquet as pq  # imported here: an answer needs no Parquet and should not load its file systems

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", compression_level=1, write_statistics=False)
    return memoryview(sink.getvalue())


def read_parquet(
    path: Place,
    schema: pa.Schema | Callable[[Sequence[str]], pa.Schema],
    columns: Collection[str] | None = None,
) -> pa.Table:
    """A Parquet part with the given schema, which may depend on its columns; of `columns`, or of values in them by their paths,
    only these are read, and types are those of the part.

    Raises:
        StoreError: the file is missing, damaged or of another schema.
    """
    table, stored = _read_parquet(path, columns)
    known = schema(stored) if callable(schema) else schema
    if stored != known.names:
        raise StoreError(f"Expected columns {', '.join(known.names)}, got others - at {named(path)}")
    return table.cast(known) if columns is None else table


def _read_parquet(path: Place, columns: Collection[str] | None) -> tuple[pa.Table, list[str]]:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path.open() if isinstance(path, ObjectPlace) else path) as file:
            return file.read(
                columns=None if columns is None else [*columns], use_threads=False
            ), file.schema_arrow.names
    except FileNotFoundError:
        raise StoreError(f"Expected a part, got none - at {named(path)}") from None
    except ScopedRetrievalError:
        raise
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # a system error; Arrow's own have no errno
            raise _unread(path, error) from error
        raise StoreError(f"Expected a whole part, got a damaged one - at {named(path)}") from None


def named(path: Place) -> str:
    """The name of a file in messages: from its run on, or with its folder."""
    found = _IN_RUN.search(path.as_posix() if isinstance(path, Path) else str(path))
    return found[0] if found else f"{path.parent.name}/{path.name}"


def _unread(path: Place, error: OSError) -> StoreError:
    return StoreError(f"{error.strerror or error}: {named(path)}")


def sha256_of(path: Place) -> str:
    """SHA-256 of a file's bytes, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_below(folder: Place) -> Iterator[str]:
    """Paths of all files below a folder, relative, separated by `/`, sorted.

    Raises:
        StoreError: a folder cannot be listed now.
    """
    if isinstance(folder, ObjectPlace):
        yield from folder.files()
        return
    found = (Path(root, name) for root, _, names in os.walk(folder, onerror=_unlisted) for name in names)
    yield from sorted(path.relative_to(folder).as_posix() for path in found)


def _unlisted(error: OSError) -> None:
    """Stop a walk, which would otherwise skip the folder."""
    if not isinstance(error, FileNotFoundError):
        raise _unread(Path(error.filename), error) from error
