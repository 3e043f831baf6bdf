"""An interactive snapshot: an Arrow IPC stream in an LZ4 frame, one row, with a list of structs per table.

`live/000001.arrow.lz4` is the first of its run and also contains the tables of the run, with its settings in the
metadata of the schema, where each file names its format; tables without rows are omitted. The file is compressed as a
whole: its 400 columns are small and alike, and compressing each of their buffers takes seven times as long for twice
the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError, StoreError
from ...nodes.tables import TABLES
from ..storage.durable import exists, names_in, read_whole
from ..storage.places import Place
from .files import named, write_bytes
from .formats import FORMAT, adapted, check_format, inline_texts
from .parts import TEXTS, stored_schema
from .timings import LineTimings
from .timings import read_took as took_of

SUFFIX = ".arrow.lz4"
OLDER_SUFFIX = ".arrow"
"""Suffix of the files of versions 1 to 4, which are not compressed as a whole."""
_SETTINGS = "settings"
_TOOK = "took"
_FORMAT = "format"


def live_file(number: int) -> str:
    """The name of a run's interactive file, numbered from 1."""
    return f"{number:06d}{SUFFIX}"


def names_of(number: int) -> tuple[str, str]:
    """The names of a run's interactive file of this number in the current format and in earlier ones."""
    return live_file(number), f"{number:06d}{OLDER_SUFFIX}"


def number_of(file: str) -> int:
    """The number in the name of a run's interactive file."""
    return int(file.partition(".")[0])


def live_files(folder: Place) -> list[str]:
    """Names of a run's interactive files, in order of their numbers, which are longer from the millionth on."""
    names = [name for name in names_in(folder / "live") if name.endswith((SUFFIX, OLDER_SUFFIX))]
    names.sort()
    names.sort(key=len)
    return names


def is_live(folder: Place) -> bool:
    """Whether a folder has an interactive file."""
    return any(name.endswith((SUFFIX, OLDER_SUFFIX)) for name in names_in(folder / "live"))


def unlogged(files: Sequence[str], logged: Collection[str]) -> list[str]:
    """A run's interactive files after the last one with a line in LOG: a crash lost their lines."""
    known = max((number for number, file in enumerate(files, start=1) if file in logged), default=0)
    rest = list(enumerate(files[known:], start=known + 1))
    return [file for number, file in rest if file in names_of(number)]


def write_live(
    path: Place,
    stored: Mapping[str, pa.Table],
    settings: Mapping[str, Any] | None = None,
    took: LineTimings | None = None,
) -> str:
    """Write tables in stored form as one file, and sync it and its name to disk; returns its SHA-256."""
    fields, arrays = [], []
    for name, table in stored.items():
        if not table.num_rows:
            continue
        (rows,) = table.combine_chunks().to_batches()
        struct = rows.to_struct_array()
        arrays.append(pa.ListArray.from_arrays(pa.array([0, table.num_rows], pa.int32()), struct))
        fields.append(pa.field(name, arrays[-1].type, False))
    metadata = {_FORMAT: FORMAT} | ({_SETTINGS: json.dumps(settings, sort_keys=True)} if settings is not None else {})
    metadata |= {_TOOK: json.dumps(took)} if took is not None else {}
    schema = pa.schema(fields, metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return write_bytes(path, memoryview(pa.compress(sink.getvalue(), "lz4")), sync=True)


def read_settings(path: Place) -> dict[str, Any]:
    """The settings of the run from its first interactive file; empty for any other file.

    Raises:
        StoreError: the file is missing or damaged.
    """
    try:
        metadata = _opened(path).schema.metadata or {}
        _check_version(metadata, path)
        return json.loads(metadata.get(_SETTINGS.encode(), b"{}"))
    except ScopedRetrievalError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        raise _damaged(path) from None


def read_took(path: Place) -> LineTimings | None:
    """The timings of the line for the snapshot of an interactive file; None if not measured.

    Raises:
        StoreError: the file is missing or damaged.
    """
    try:
        metadata = _opened(path).schema.metadata or {}
        _check_version(metadata, path)
        return took_of(json.loads(metadata.get(_TOOK.encode(), b"null")))
    except ScopedRetrievalError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError):
        raise _damaged(path) from None


def live_format(folder: Place) -> str | None:
    """The format of a run's interactive files, named in the first one; versions 1 to 5 name none.

    Raises:
        StoreError: the file is missing, damaged, or of a later version.
    """
    path = folder / "live" / live_file(1)
    if not exists(path):
        files = live_files(folder)
        if not files or files[0].endswith(OLDER_SUFFIX):
            return None
        path = folder / "live" / files[0]
    try:
        metadata = _opened(path).schema.metadata
        _check_version(metadata or {}, path)
    except ScopedRetrievalError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        raise _damaged(path) from None
    return _named_format(metadata)


def _named_format(metadata: Mapping[bytes, bytes] | None) -> str | None:
    found = (metadata or {}).get(_FORMAT.encode())
    return None if found is None else found.decode()


def read_live(path: Place, names: Collection[str] | None = None) -> dict[str, pa.Table]:
    """The tables of one interactive file, in stored form; with `names`, only these.

    Raises:
        StoreError: the file is missing or damaged.
    """
    try:
        table = _opened(path).read_all()
        table.validate(full=True)
        _check_version(table.schema.metadata or {}, path)
        found = {name: _raw(table[name]) for name in table.column_names if names is None or name in names}
        if _named_format(table.schema.metadata) != FORMAT:
            return _older(found)
        return {name: _unpacked(name, raw) for name, raw in found.items()}
    except ScopedRetrievalError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, AttributeError):
        raise _damaged(path) from None


def _opened(path: Place) -> Any:
    if path.name.endswith(OLDER_SUFFIX):
        data = pa.py_buffer(read_whole(path))
        return pa.ipc.open_file(data) if data[:6].to_pybytes() == b"ARROW1" else pa.ipc.open_stream(data)
    return pa.ipc.open_stream(_read(path))


def _check_version(metadata: Mapping[bytes, bytes], path: Place) -> None:
    """Refuse a file of a later version; up to version 5 files do not name it, in version 6 only the first of a run."""
    if (found := _named_format(metadata)) is not None:
        check_format({_FORMAT: found}, named(path))


def _older(found: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables of a file of an older version in the current schemas; inline texts are added to the texts."""
    known = {name: table for name, table in found.items() if name in TABLES or name == "texts"}
    texts = [inline_texts(name, table) for name, table in known.items()]
    tables = {name: adapted(name, table) for name, table in known.items()}
    tables["texts"] = pa.concat_tables([tables.get("texts", TEXTS.empty_table()), *texts])
    return tables


def _read(path: Place) -> pa.Buffer:
    with pa.CompressedInputStream(pa.BufferReader(read_whole(path)), "lz4") as stream:
        return stream.read_buffer()


def _damaged(path: Place) -> StoreError:
    return StoreError(f"Expected a whole snapshot, got a damaged one - at {named(path)}")


def _raw(column: pa.ChunkedArray) -> pa.Table:
    struct = column.combine_chunks().flatten()
    return pa.Table.from_arrays(struct.flatten(), schema=pa.schema(list(struct.type)))


def _unpacked(name: str, table: pa.Table) -> pa.Table:
    schema = stored_schema(name, table.column_names)
    return table if table.schema.equals(schema) else table.cast(schema)
