"""Discard a run that is not finished: a staged batch, or what a crash left. Finished runs are never removed."""

from __future__ import annotations

from ...nodes.errors import StoreError
from ..storage.durable import remove_tree
from .files import locked
from .states import CRASHED, UNFINISHED, state_of
from .store import RunStore

__all__ = ["discard"]


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
