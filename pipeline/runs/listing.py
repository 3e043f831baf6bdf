"""Cached rows for lists of snapshots, kept beside the runs: a hundred thousand are listed without reading each.

runs/.index/<run_id>.arrow        the rows of one run, and a digest of the names, sizes and times of its files

A session writes the rows of its snapshots as it ends. They are derived: they may be removed at any time, are rebuilt
when a file of the run changes, and are not evidence. They contain questions, so an erasure removes them first. Runs on
an object store have none.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError
from ...nodes.tables import CONTRACT_BOUNDS, FAILURES, REQUESTS, SNAPSHOTS, TABLES
from ..storage.durable import exists, make_folders, remove_tree, write_atomic
from ..storage.places import Place
from .formats import FORMAT
from .live_files import live_files, read_live
from .parts import with_texts
from .run import JOINED, Run, joined

__all__ = ["ASKED", "forget_listings", "format_of", "listed"]

FOLDER = ".index"
ASKED = ("principal", "asked_by", "project", "purpose", "session_id", "as_of", "question")
"""The columns of a list from the request of each snapshot."""
_STAMP = b"stamp"
_OWN = b"format"
"""Schema metadata: the format that the run names."""
_SOURCES = (FAILURES.name, REQUESTS.name, CONTRACT_BOUNDS.name, SNAPSHOTS.name)
_REACHED = pa.field("reached", pa.list_(pa.string()))


def listed(run: Run) -> pa.Table:
    """SNAPSHOTS of a run in order, with columns of their requests and the projects that each answer `reached`.

    If the session of an interactive run continued since, only the new files are read.

    Raises:
        StoreError: the run is damaged.
    """
    if not isinstance(run.folder, Path):
        return _read(run)
    file, files = _file_of(run.folder), live_files(run.folder) if run.live else []
    known = _cached(file, run.folder, files)
    if known is not None and (not run.live or known.num_rows == len(files)):
        return known
    stamp = _stamp(run.folder, files)
    if run.live:
        rest = files[known.num_rows if known else 0 :]
        read = [_read_files(run, rest[at : at + JOINED]) for at in range(0, len(rest), JOINED)]
        found = pa.concat_tables([known, *read] if known else read)
    else:
        found = _read(run)
    found = found.replace_schema_metadata({_OWN: run.format or ""})
    with suppress(OSError, ScopedRetrievalError):  # an unwritable folder is only listed more slowly
        _keep(file, found, stamp)
        if _stamp(run.folder, files) != stamp:  # an erasure ran in the meantime: rows read must not be cached
            file.unlink(missing_ok=True)
    return found


def forget_listings(folder: Place) -> None:
    """Remove the cached rows of all runs of a folder."""
    if isinstance(folder, Path) and exists(folder / FOLDER):
        remove_tree(folder / FOLDER)


def _file_of(folder: Path) -> Path:
    return folder.parent / FOLDER / f"{folder.name}.arrow"


def _cached(file: Path, folder: Path, files: Sequence[str]) -> pa.Table | None:
    """The cached rows of a run if the files they came from are unchanged: for an interactive run, the first ones."""
    with suppress(OSError, pa.ArrowException):
        table = pa.ipc.open_file(pa.py_buffer(file.read_bytes())).read_all()
        if (table.schema.metadata or {}).get(_STAMP) == _stamp(folder, files[: table.num_rows]):
            return table.replace_schema_metadata(
                {name: value for name, value in table.schema.metadata.items() if name == _OWN}
            )
    return None


def format_of(run: Run, table: pa.Table) -> str | None:
    """The format that a run names, from its cached rows."""
    kept = (table.schema.metadata or {}).get(_OWN)
    return run.format if kept is None else kept.decode() or None


def _keep(file: Path, table: pa.Table, stamp: bytes) -> None:
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _STAMP: stamp})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    make_folders(file.parent)
    write_atomic(file, memoryview(sink.getvalue()), sync=False)


def _stamp(folder: Path, files: Sequence[str]) -> bytes:
    """A digest of the format and of the names, sizes and times of interactive files, or of all files of a run."""
    digest = hashlib.sha256(" ".join((FORMAT, *ASKED)).encode())
    for name in [f"{folder}/live/{file}" for file in files] or _below(folder):
        status = os.stat(name)  # noqa: PTH116 (a path object costs as much as the call)
        digest.update(f"{name} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n".encode())
    return digest.hexdigest().encode()


def _below(folder: Path) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders.sort()
        yield from (f"{root}/{name}" for name in sorted(files))


def _read_files(run: Run, files: Sequence[str]) -> pa.Table:
    """The rows of some interactive files."""
    read = [read_live(run.folder / "live" / file, [*_SOURCES, "texts"]) for file in files]
    stored = {name: joined(name, [tables.get(name) for tables in read]) for name in [*_SOURCES, "texts"]}
    tables = {name: with_texts(stored[name], TABLES[name], stored["texts"]) for name in _SOURCES}
    return _rows(tables, run.settings.get("principal"))


def _read(run: Run) -> pa.Table:
    """The rows of a run that was finished or compacted, or is on an object store."""
    tables = {name: run.table(name, texts=True) for name in _SOURCES}
    return _rows(tables, run.settings.get("principal"))


def _rows(tables: Mapping[str, pa.Table], starter: str | None) -> pa.Table:
    asked: dict[str, dict[str, Any]] = {}
    for table in (FAILURES, REQUESTS):
        found = tables[table.name]
        names = [name for name in ("request_id", *ASKED) if name in found.column_names]
        for row in found.select(names).to_pylist():
            asked[row["request_id"]] = row if table is REQUESTS else row | {"principal": starter}
    reached: dict[str, set[str]] = {}
    for bound in tables[CONTRACT_BOUNDS.name].select(["request_id", "project"]).to_pylist():
        reached.setdefault(bound["request_id"], set()).add(bound["project"])
    snapshots = tables[SNAPSHOTS.name]
    ids = snapshots["request_id"].to_pylist()
    nobodys = {"principal": starter}
    for name in ASKED:
        values = pa.array([asked.get(id_, nobodys).get(name) for id_ in ids], REQUESTS.columns[name].type)
        snapshots = snapshots.append_column(name, values)
    return snapshots.append_column(_REACHED, pa.array([sorted(reached.get(id_, ())) for id_ in ids], _REACHED.type))
