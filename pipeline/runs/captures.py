"""The auditors' captures of a run, stored in files of their own.

Gives: OUT_OF_SCOPE below `audit/` of the runs' folder, which no manifest, digest, snapshot or block refers to; see
`engines/out_of_scope.py`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import StoreError
from ...nodes.tables import OUT_OF_SCOPE
from ..storage.durable import make_folders
from ..storage.places import Place
from .files import read_parquet, write_parquet

__all__ = ["keep_captured", "read_captured"]

FOLDER = "audit"


def keep_captured(runs: Place, run_id: str, part: str, table: pa.Table) -> None:
    """Write the capture of one part of a run, durably; only the owner has access to the folder."""
    folder = runs / FOLDER / run_id
    make_folders(folder, runs, private=True)
    write_parquet(folder / f"{part}.parquet", table, sync=True)


def read_captured(runs: Place, run_id: str, request_id: str) -> list[dict[str, Any]]:
    """The captured matches of one request, best first.

    Raises:
        StoreError: nothing was captured for the run.
    """
    files = sorted((runs / FOLDER / run_id).glob("*.parquet"))
    if not files:
        hint = "`ask` and `run` keep matches out of scope with --capture-withheld"
        raise StoreError(f"Expected a capture of this run, got none - at {run_id}", hint=hint)
    table = pa.concat_tables([read_parquet(file, OUT_OF_SCOPE.schema) for file in files])
    return table.filter(pc.equal(table["request_id"], request_id)).drop_columns(["request_id"]).to_pylist()
