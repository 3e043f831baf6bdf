"""The state of every run's folder, as shown in lists: cheap to determine, without reading a table.

ok               finished or interactive, of a version that is read
unfinished       a staged batch; `run --resume` or `runs discard` ends it; or a session writing its first snapshot
crashed          a crash interrupted its first write, its last or its compaction; it was not tampered with
unreadable       its manifest is missing or cannot be read
unknown version  a later version wrote it
damaged          its content changed since it was written; only `verify` and reading detect that
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..storage.durable import exists
from ..storage.locks import hold
from ..storage.places import ObjectPlace, Place
from .files import locked, read_json
from .formats import FORMAT, UnknownVersionError, check_format, version_of
from .live_files import live_files, live_format, read_settings
from .run import STAGE, Run
from .store import RunStore

__all__ = ["CRASHED", "OK", "RunState", "broken_off", "compacted_since", "state_of", "states"]

OK, UNFINISHED, CRASHED, UNREADABLE = "ok", "unfinished", "crashed", "unreadable"
UNKNOWN_VERSION, DAMAGED = "unknown version", "damaged"
LOOKS_AGAIN_WITHIN = 10.0
"""Seconds that a second look waits for the process that is writing the run."""


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run's folder: its id, its state, the format that it names, and why it is not ok."""

    run_id: str
    state: str
    format: str | None = None
    detail: str = ""


def states(store: RunStore, *, but: Collection[str] = ()) -> list[RunState]:
    """The state of every run's folder, oldest first, without those that LOG names and that are gone.

    Args:
        store: the folder of runs.
        but: runs to skip, which were read already.
    """

    @cache
    def logged() -> Collection[str]:
        with suppress(ScopedRetrievalError):
            return {line.run_id for line in store.log.lines()}
        return ()

    return [
        state_of(store, run_id, logged=lambda id_: id_ in logged()) for run_id in store.folders() if run_id not in but
    ]


def state_of(store: RunStore, run_id: str, *, logged: Callable[[str], bool]) -> RunState:
    """The state of one folder; `logged` returns whether LOG names a run, and is only called if needed.

    A state other than ok is confirmed by a second look, as a session or `compact` may have interfered with the first.
    """
    found = _looked(store, run_id, logged)
    return found if found.state == OK else _looked(store, run_id, logged)


def _looked(store: RunStore, run_id: str, logged: Callable[[str], bool]) -> RunState:
    folder = store.path / run_id
    manifest = folder / "manifest.json"
    found: str | None = None
    try:
        if exists(manifest):
            content = read_json(manifest)
            found = version_of(content) if isinstance(content, dict) else None
            check_format(content, f"{run_id}/manifest.json")
            return RunState(run_id, OK, found)
        if files := live_files(folder):
            found = live_format(folder)
            if found is None:  # an older version, recognized by its name
                read_settings(folder / "live" / files[0])
            return RunState(run_id, OK, found)
    except UnknownVersionError as error:
        return RunState(run_id, UNKNOWN_VERSION, found, error.message)
    except ScopedRetrievalError as error:
        return RunState(run_id, UNREADABLE if _may_stand(manifest) else DAMAGED, found, error.message)
    if exists(folder / STAGE / "run.json"):
        return RunState(run_id, UNFINISHED, FORMAT, "a batch that was not finished")
    if logged(run_id) or any(folder.glob("tables/*/*.parquet")):
        return RunState(run_id, UNREADABLE, None, "its manifest is gone")
    if _written_now(store, run_id):
        return RunState(run_id, UNFINISHED, None, "its first snapshot is being written")
    return RunState(run_id, CRASHED, None, "a crash interrupted its first snapshot")


def _may_stand(file: Place) -> bool:
    """Whether a file exists, or is in a folder that cannot be read."""
    try:
        return exists(file)
    except StoreError:
        return True


def _written_now(store: RunStore, run_id: str) -> bool:
    """Whether a session holds the run; False without write access and on object stores, where this is unknown."""
    session = store.session_of(run_id)
    if isinstance(session, ObjectPlace) or not exists(session):
        return False
    with suppress(OSError):
        if (free := hold(session)) is None:
            return True
        free.release()
    return False


def broken_off(store: RunStore, run: Run, logged: Collection[str]) -> bool:
    """Whether a crash interrupted finishing or compacting a readable run; `logged` are runs with a final line in LOG.

    A positive result is confirmed when no process is writing the run.
    """
    if not _left(run.folder, run.run_id in logged):
        return False
    with suppress(OSError), locked(store.lock_of(run.run_id), "a run", timeout=LOOKS_AGAIN_WITHIN):
        return _left(run.folder, run.run_id in store.log.named("run"))
    # It is being written for long, or cannot be locked here.
    return _left(run.folder, run.run_id in store.log.named("run"))


def _left(folder: Place, logged: bool) -> bool:
    if not exists(folder / "manifest.json"):
        return exists(folder / "tables") or exists(folder / "texts")
    return not logged or exists(folder / "live")


def compacted_since(run: Run) -> bool:
    """Whether an interactive run was compacted after it was opened: its files are gone, its parts exist."""
    return run.live and exists(run.folder / "manifest.json")
