"""What lists say of the snapshots of a run, kept beside the runs: a hundred thousand are listed without reading each.

runs/.index/<run_id>.arrow        LISTED of one run, and a digest of the names, sizes and times of its files

It is derived: it may be removed at any time, is made again when a file of the run changes, and is no evidence of anything.
It holds questions, so an erasure removes it first. Runs on an object store have none.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError
from ...nodes.tables import CONTRACT_BOUNDS, FAILURES, REQUESTS, SNAPSHOTS
from ..durable import make_folders, remove_tree, stands, write_atomic
from ..places import Place
from .formats import FORMAT
from .run import Run

__all__ = ["ASKED", "forget_listings", "listed"]

FOLDER = ".index"
ASKED = ("principal", "asked_by", "project", "purpose", "as_of", "question")
"""What a list says of the request of each snapshot."""
_STAMP = b"stamp"
_REACHED = pa.field("reached", pa.list_(pa.string()))


def listed(run: Run, *, questions: bool) -> pa.Table:
    """SNAPSHOTS of a run with what was asked, and the projects that each answer `reached`; in the order of the run.

    Without `questions` no text is read, unless it was before.

    Raises:
        StoreError: the run is damaged.
    """
    if not isinstance(run.folder, Path):
        return _read(run, questions=questions)
    file, stamp = run.folder.parent / FOLDER / f"{run.run_id}.arrow", _stamp(run.folder)
    if (known := _known(file, stamp)) is not None:
        return known
    found = _read(run, questions=questions)
    if questions:
        with suppress(OSError, ScopedRetrievalError):  # a folder that cannot be written to is listed more slowly
            _keep(file, found.replace_schema_metadata({_STAMP: stamp}))
    return found


def forget_listings(folder: Place) -> None:
    """Remove what was kept of all runs of a folder."""
    if isinstance(folder, Path) and stands(folder / FOLDER):
        remove_tree(folder / FOLDER)


def _known(file: Path, stamp: bytes) -> pa.Table | None:
    with suppress(OSError, pa.ArrowException):
        table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
        if (table.schema.metadata or {}).get(_STAMP) == stamp:
            return table
    return None


def _keep(file: Path, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    make_folders(file.parent)
    write_atomic(file, memoryview(sink.getvalue()), sync=False)


def _stamp(folder: Path) -> bytes:
    """A digest of the format and of the names, sizes and times of all files of a run."""
    digest = hashlib.sha256(FORMAT.encode())
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            status = os.stat(f"{root}/{name}")  # noqa: PTH116 (a path object costs as much as the call)
            digest.update(f"{root}/{name} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n".encode())
    return digest.hexdigest().encode()


def _read(run: Run, *, questions: bool) -> pa.Table:
    asked: dict[str, dict[str, Any]] = {}
    starter = run.settings.get("principal")
    for table in (FAILURES, REQUESTS):
        names = [name for name in ("request_id", *ASKED) if name in table.columns]
        for row in run.table(table.name, texts=questions).select(names).to_pylist():
            asked[row["request_id"]] = row if table is REQUESTS else row | {"principal": starter}
    reached: dict[str, set[str]] = {}
    for bound in run.stored(CONTRACT_BOUNDS.name).select(["request_id", "project"]).to_pylist():
        reached.setdefault(bound["request_id"], set()).add(bound["project"])
    snapshots = run.table(SNAPSHOTS.name, texts=questions)
    ids = snapshots["request_id"].to_pylist()
    nobodys = {"principal": starter}
    for name in ASKED:
        values = pa.array([asked.get(id_, nobodys).get(name) for id_ in ids], REQUESTS.columns[name].type)
        snapshots = snapshots.append_column(name, values)
    return snapshots.append_column(_REACHED, pa.array([sorted(reached.get(id_, ())) for id_ in ids], _REACHED.type))
