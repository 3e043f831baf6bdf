"""Cached rows for lists of snapshots, kept beside the runs: a hundred thousand are listed without reading each.

runs/.index/<run_id>.arrow        the rows of one run, after their SHA-256 and that of the lines of LOG they follow from

They are derived: they may be removed at any time, and decide nothing, as a file that does not match its SHA-256 is not
read. They contain questions, so an erasure removes them first. Runs on an object store have none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError
from ...nodes.tables import CONTRACT_BOUNDS, FAILURES, REQUESTS, SNAPSHOTS, TABLES
from ..storage.durable import exists, make_folders, remove_tree, write_atomic
from ..storage.places import Place
from .parts import FORMAT, with_texts
from .run import Run

__all__ = ["ASKED", "forget_listings", "listed"]

FOLDER = ".index"
ASKED = ("principal", "asked_by", "project", "purpose", "session_id", "as_of", "question")
"""The columns of a list from the request of each snapshot."""
_SOURCES = (FAILURES.name, REQUESTS.name, CONTRACT_BOUNDS.name, SNAPSHOTS.name)
_REACHED = pa.field("reached", pa.list_(pa.string()))


def listed(run: Run) -> pa.Table:
    """SNAPSHOTS of a run in order, with columns of their requests and the projects that each answer `reached`.

    If the session of an interactive run continued since, only the new files are read.

    Raises:
        StoreError: the run is damaged.
    """
    if not isinstance(run.store.path, Path):
        return _read(run, None)
    file = run.store.path / FOLDER / f"{run.run_id}.arrow"
    names = [*run.kept] if run.live else []
    known = _cached(file, _stamp(run))
    if known is not None and (not run.live or known.num_rows == len(names)):
        return known
    found = _read(run, names[known.num_rows if known else 0 :] if run.live else None)
    found = pa.concat_tables([known, found]) if known else found
    with suppress(OSError, ScopedRetrievalError):  # an unwritable folder is only listed more slowly
        _keep(file, found, _stamp(run))
        if [line.number for line in run.lines] != [line.number for line in run.store.log.of(run.run_id)]:
            file.unlink(missing_ok=True)  # an erasure ran in the meantime: rows read must not be cached
    return found


def forget_listings(folder: Place) -> None:
    """Remove the cached rows of all runs of a folder."""
    if isinstance(folder, Path) and exists(folder / FOLDER):
        remove_tree(folder / FOLDER)


def _stamp(run: Run) -> str:
    """What the rows of a run follow from besides its snapshots: its manifest, and its erasures."""
    return " ".join([FORMAT, str(ASKED), *(line.hash for line in run.lines if line.body["kind"] in ("run", "erase"))])


def _cached(file: Path, stamp: str) -> pa.Table | None:
    """The cached rows of a run if they follow from the same lines."""
    with suppress(OSError, pa.ArrowException, ValueError):
        digest, _, data = file.read_bytes().partition(b" ")
        if hashlib.sha256(stamp.encode() + data).hexdigest().encode() == digest:
            return pa.ipc.open_file(pa.py_buffer(data)).read_all()
    return None


def _keep(file: Path, table: pa.Table, stamp: str) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    data = sink.getvalue().to_pybytes()
    make_folders(file.parent)
    write_atomic(file, hashlib.sha256(stamp.encode() + data).hexdigest().encode() + b" " + data, sync=False)


def _read(run: Run, snapshots: list[str] | None) -> pa.Table:
    """The rows of a run, or of some of its interactive snapshots."""
    names = [*_SOURCES, "texts"]
    stored = run.tables(dict.fromkeys(names), snapshots)
    return _rows({name: with_texts(stored[name], TABLES[name], stored["texts"]) for name in _SOURCES}, run.started_by)


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
