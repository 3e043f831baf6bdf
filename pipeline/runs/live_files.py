"""One interactive snapshot as one Arrow IPC file: one row, one column per table, each a list of structs.

`live/000001.arrow` is the first of its run and also holds the tables of the run, and its settings in the metadata of the
schema; tables without rows are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..durable import arrow_source
from ..places import ObjectPlace, Place
from .files import write_bytes

_SETTINGS = "settings"


def live_files(folder: Place) -> list[str]:
    """Names of a run's interactive files, in order."""
    live = folder / "live"
    return sorted(entry.name for entry in live.iterdir() if entry.suffix == ".arrow") if live.is_dir() else []


def write_live(path: Place, stored: Mapping[str, pa.Table], settings: Mapping[str, Any] | None = None) -> str:
    """Write tables in stored form as one file, and bring it and its name to disk; returns its SHA-256."""
    fields, arrays = [], []
    for name, table in stored.items():
        if not table.num_rows:
            continue
        struct = pa.StructArray.from_arrays([c.combine_chunks() for c in table.columns], fields=list(table.schema))
        arrays.append(pa.ListArray.from_arrays(pa.array([0, table.num_rows], pa.int32()), struct))
        fields.append(pa.field(name, arrays[-1].type, False))
    schema = pa.schema(fields, {_SETTINGS: json.dumps(settings, sort_keys=True)} if settings is not None else None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return write_bytes(path, memoryview(sink.getvalue()), sync=True)


def read_settings(path: Place) -> dict[str, Any]:
    """The settings of the run whose first interactive file this is; of any other one, nothing.

    Raises:
        StoreError: the file is missing or damaged.
    """
    try:
        with _source(path) as source:
            metadata = pa.ipc.open_file(source).schema.metadata or {}
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
        with _source(path) as source:
            table = pa.ipc.open_file(source).read_all()
        return {name: _unpacked(table[name]) for name in table.column_names}
    except ScopedRetrievalError:
        raise
    except (pa.ArrowException, OSError):
        raise _damaged(path) from None


def _source(path: Place) -> Any:
    return arrow_source(path) if isinstance(path, ObjectPlace) else pa.OSFile(str(path))


def _damaged(path: Place) -> StoreError:
    return StoreError(f"Expected a whole snapshot, got a damaged one - at live/{path.name}")


def _unpacked(column: pa.ChunkedArray) -> pa.Table:
    struct = column.combine_chunks().flatten()
    return pa.Table.from_arrays(struct.flatten(), schema=pa.schema(list(struct.type)))
