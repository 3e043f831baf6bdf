"""One interactive snapshot as one Arrow IPC stream in an LZ4 frame: one row, one column per table, each a list of structs.

`live/000001.arrow.lz4` is the first of its run and also holds the tables of the run, and its settings in the metadata of the
schema; tables without rows are left out. The file is compressed as a whole: its 400 columns are small and alike, and
compressing each of their buffers takes seven times as long for twice the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..durable import entries, read_whole
from ..places import Place
from .files import named, write_bytes
from .parts import stored_schema

SUFFIX = ".arrow.lz4"
_SETTINGS = "settings"


def live_file(number: int) -> str:
    """The name of a run's interactive file, counted from 1."""
    return f"{number:06d}{SUFFIX}"


def live_files(folder: Place) -> list[str]:
    """Names of a run's interactive files, in order: from the millionth on, a number is longer than those before."""
    names = (entry.name for entry in entries(folder / "live") if entry.name.endswith(SUFFIX))
    return sorted(names, key=lambda name: (len(name), name))


def write_live(path: Place, stored: Mapping[str, pa.Table], settings: Mapping[str, Any] | None = None) -> str:
    """Write tables in stored form as one file, and bring it and its name to disk; returns its SHA-256."""
    fields, arrays = [], []
    for name, table in stored.items():
        if not table.num_rows:
            continue
        (rows,) = table.combine_chunks().to_batches()
        struct = rows.to_struct_array()
        arrays.append(pa.ListArray.from_arrays(pa.array([0, table.num_rows], pa.int32()), struct))
        fields.append(pa.field(name, arrays[-1].type, False))
    schema = pa.schema(fields, {_SETTINGS: json.dumps(settings, sort_keys=True)} if settings is not None else None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return write_bytes(path, memoryview(pa.compress(sink.getvalue(), "lz4")), sync=True)


def read_settings(path: Place) -> dict[str, Any]:
    """The settings of the run whose first interactive file this is; of any other one, nothing.

    Raises:
        StoreError: the file is missing or damaged.
    """
    try:
        metadata = pa.ipc.open_stream(_read(path)).schema.metadata or {}
        return json.loads(metadata.get(_SETTINGS.encode(), b"{}"))
    except ScopedRetrievalError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        raise _damaged(path) from None


def read_live(path: Place) -> dict[str, pa.Table]:
    """The tables of one interactive file, in stored form.

    Raises:
        StoreError: the file is missing or damaged.
    """
    try:
        table = pa.ipc.open_stream(_read(path)).read_all()
        table.validate(full=True)
        return {name: _unpacked(name, table[name]) for name in table.column_names}
    except ScopedRetrievalError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, AttributeError):
        raise _damaged(path) from None


def _read(path: Place) -> pa.Buffer:
    with pa.CompressedInputStream(pa.BufferReader(read_whole(path)), "lz4") as stream:
        return stream.read_buffer()


def _damaged(path: Place) -> StoreError:
    return StoreError(f"Expected a whole snapshot, got a damaged one - at {named(path)}")


def _unpacked(name: str, column: pa.ChunkedArray) -> pa.Table:
    struct, schema = column.combine_chunks().flatten(), stored_schema(name)
    table = pa.Table.from_arrays(struct.flatten(), schema=pa.schema(list(struct.type)))
    return table if table.schema.equals(schema) else table.cast(schema)
