"""Erasing from an unfinished run, or removing it.

Gives: `drop_shards`: drops the shards that show something of the erased rows, as if they had not run; `discard`, which
removes the run. Finished runs are never removed.

The caller of `drop_shards` holds the run. A receipt is removed before the parts that it names: after a failure in
between, a shard without one is not done, and the next erasure removes its parts.

Note: leftovers of a crash contain texts, too. Parts without a receipt, and files under temporary names, cannot be
distinguished from erased ones and would be rewritten anyway, so every erasure removes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import StoreError
from ..storage.durable import remove_tree, sync_path
from ..storage.locks import confirm
from ..storage.places import Place
from .erasing_texts import texts_showing
from .files import files_below, is_unnamed, locked, read_parquet
from .parts import PER_RUN, stored_schema
from .receipts import RECEIPTS_STAGED, receipt_name, receipt_of
from .states import CRASHED, UNFINISHED, state_of
from .store import RunStore
from .writing import part_path

__all__ = ["discard", "drop_shards"]


def drop_shards(store: RunStore, run_id: str, evidence_ids: pa.Array, *, dry_run: bool) -> dict[int, int]:
    """Remove the shards of an unfinished run that show these rows; returns how many requests each answered.

    Raises:
        StoreError: a file of the run cannot be read now; nothing was removed.
    """
    folder = store.path / run_id
    names = list(files_below(folder))
    listed = frozenset(names)
    per_run = {table: part_path(table, 0) for table in PER_RUN}
    per_run = {table: path for table, path in per_run.items() if path in listed}
    kept, dropped = set(per_run.values()), dict[int, int]()
    for shard in _with_receipt(names):
        receipt = receipt_of(folder, shard, listed)
        if receipt is None:
            continue
        if texts_showing(_Shard(folder, receipt, per_run), evidence_ids):
            dropped[shard] = sum(receipt["statuses"].values())
        else:
            kept |= {part["path"] for part in receipt["parts"]}
    if not dry_run:
        confirm(store.lock_of(run_id))
        _remove(folder, [receipt_name(shard) for shard in dropped])
        _remove(folder, [name for name in names if is_unnamed(name, kept)])
    return dropped


class _Shard:
    """The tables of one finished shard, with those of its run."""

    def __init__(self, folder: Place, receipt: Mapping[str, Any], per_run: Mapping[str, str]) -> None:
        self._folder = folder
        self._paths = {**per_run, **{part["table"]: part["path"] for part in receipt["parts"]}}

    @property
    def texts(self) -> pa.Table:
        return self.stored("texts")

    def stored(self, name: str) -> pa.Table:
        path = self._paths.get(name)
        if path is None:
            return stored_schema(name).empty_table()
        return read_parquet(self._folder / path, partial(stored_schema, name))


def _with_receipt(names: list[str]) -> list[int]:
    """The shards that have a receipt, valid or not."""
    found = (Path(name).stem for name in names if name.startswith(f"{RECEIPTS_STAGED}/"))
    return [int(stem) for stem in found if stem.isdecimal()]


def _remove(folder: Place, names: list[str]) -> None:
    """Remove files of a run durably."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    for parent in sorted({(folder / name).parent for name in names}, key=str):
        sync_path(parent)


def discard(store: RunStore, run_id: str) -> None:
    """Remove the folder of an unfinished run.

    Raises:
        BusyError: another process is writing it.
        StoreError: the run is finished, or LOG names it.
    """
    folder = store.folder(run_id)
    with locked(store.lock_of(run_id), "a run", timeout=0.1):
        logged = any(line.run_id == run_id for line in store.log.lines())
        state = state_of(store, run_id, logged=lambda _: logged).state
        if logged or state not in (UNFINISHED, CRASHED):
            got = "a logged one" if logged else f"one that is {state}"
            raise StoreError(f"Expected an unfinished run, got {got} - at {run_id}", hint="`runs` lists the states.")
        remove_tree(folder)
        (store.opened / run_id).unlink(missing_ok=True)
