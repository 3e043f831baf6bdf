"""Rows for lists of snapshots: which there are, whose they are, how they ended, and what was asked.

Of an interactive snapshot, compacted or not, its line in LOG says all but the question: it is found without reading a file.
Questions are free text, which no line has, as a line cannot be erased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.schema import TIMESTAMP
from ...nodes.tables import CONTRACT_BOUNDS, FAILURES, REQUESTS, SNAPSHOTS, TABLES
from .live import OF_SNAPSHOT, WHOSE, asked_by
from .parts import with_texts
from .run import Run

_REACHED = pa.field("reached", pa.list_(pa.string()))
_ASKED = (*WHOSE, "purpose", "as_of", "question")
"""The columns of a list from the request of each snapshot."""
_DESCRIBED = pa.schema(
    [*(pa.field(name, pa.string()) for name in (*OF_SNAPSHOT, *WHOSE)), pa.field("created_at", TIMESTAMP), _REACHED]
)
_SOURCES = {
    FAILURES.name: ("request_id", *WHOSE),
    REQUESTS.name: ("request_id", *WHOSE),
    CONTRACT_BOUNDS.name: ("request_id", "project"),
    SNAPSHOTS.name: (*OF_SNAPSHOT, "created_at"),
}
"""What `whose` reads of a batch: no free text."""


def whose(run: Run, snapshots: list[str] | None = None) -> pa.Table:
    """Of each snapshot of a run, or of some, in order: ids, status and time, who asked, and the projects that its answer
    `reached`.

    Raises:
        StoreError: the run is damaged.
    """
    if run.batch:
        return _described(run, run.tables(_SOURCES, snapshots), WHOSE, snapshots).select(_DESCRIBED.names)
    some = run.kept.keys() if snapshots is None else {*snapshots}
    chosen = [name for name in run.kept if name in some]
    rows = [run.kept[name] | {"principal": run.kept[name]["principal"] or run.started_by} for name in chosen]
    times = pa.array([one["created_at"] for one in rows], pa.string()).cast(TIMESTAMP)
    return pa.table(
        [times if name == "created_at" else [one[name] for one in rows] for name in _DESCRIBED.names], _DESCRIBED
    )


def listed(run: Run, snapshots: list[str]) -> pa.Table:
    """SNAPSHOTS of some snapshots of a run, with the columns of `whose` and what was asked.

    Raises:
        StoreError: the run is damaged.
    """
    stored = run.tables(dict.fromkeys([*_SOURCES, "texts"]), snapshots)
    tables = {name: with_texts(stored[name], TABLES[name], stored["texts"]) for name in _SOURCES}
    return _described(run, tables, _ASKED, snapshots)


def _described(run: Run, tables: Mapping[str, pa.Table], names: Sequence[str], snapshots: list[str] | None) -> pa.Table:
    """SNAPSHOTS, all or some, with these columns of their requests and the projects that these reached."""
    rows, asked = tables[SNAPSHOTS.name], asked_by(tables, names)
    if snapshots is not None:
        rows = rows.filter(pc.is_in(rows["snapshot_id"], pa.array(snapshots, pa.string())))
    of_rows = [asked[id_] for id_ in rows["request_id"].to_pylist()]
    for name in names:
        values = [one[name] or (run.started_by if name == "principal" else None) for one in of_rows]
        rows = rows.append_column(name, pa.array(values, REQUESTS.columns[name].type))
    return rows.append_column(_REACHED, pa.array([one["reached"] for one in of_rows], _REACHED.type))
