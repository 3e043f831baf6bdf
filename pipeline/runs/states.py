"""The state of every folder of a run, as lists name it: cheap to find, without reading a table.

ok               finished or interactive, of a version that is read
unfinished       a batch that was staged; `run --resume` or `runs discard` ends it; or a session that writes its first snapshot
crashed          a crash interrupted its first write, its last or its compaction; nothing in it was changed by anybody
unreadable       its manifest is lost or cannot be read
unknown version  a later version wrote it
damaged          what it holds is not what was written; only `verify` and reading find that
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..storage.durable import stands
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
"""Seconds that a second look waits for the process that writes the run."""


@dataclass(frozen=True, slots=True)
class RunState:
    """A folder of a run: its id, its state, the format that it names, and why it is not ok."""

    run_id: str
    state: str
    format: str | None = None
    detail: str = ""


def states(store: RunStore, *, but: Collection[str] = ()) -> list[RunState]:
    """Every folder of a run with its state, oldest first; those that LOG names and that are gone are not among them.

    Args:
        store: the folder of runs.
        but: runs that were read already.
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
    """The state of one folder; `logged` says whether a line of LOG names a run, which is asked where nothing else tells.

    What is not ok is looked at twice: a session or `compact` may have gone on between two steps of the first look.
    """
    found = _looked(store, run_id, logged)
    return found if found.state == OK else _looked(store, run_id, logged)


def _looked(store: RunStore, run_id: str, logged: Callable[[str], bool]) -> RunState:
    folder = store.path / run_id
    manifest = folder / "manifest.json"
    found: str | None = None
    try:
        if stands(manifest):
            said = read_json(manifest)
            found = version_of(said) if isinstance(said, dict) else None
            check_format(said, f"{run_id}/manifest.json")
            return RunState(run_id, OK, found)
        if files := live_files(folder):
            found = live_format(folder)
            if found is None:  # an older one, of which the name alone tells
                read_settings(folder / "live" / files[0])
            return RunState(run_id, OK, found)
    except UnknownVersionError as error:
        return RunState(run_id, UNKNOWN_VERSION, found, error.message)
    except ScopedRetrievalError as error:
        return RunState(run_id, UNREADABLE if _may_stand(manifest) else DAMAGED, found, error.message)
    if stands(folder / STAGE / "run.json"):
        return RunState(run_id, UNFINISHED, FORMAT, "a batch that was not finished")
    if logged(run_id) or any(folder.glob("tables/*/*.parquet")):
        return RunState(run_id, UNREADABLE, None, "its manifest is gone")
    if _written_now(store, run_id):
        return RunState(run_id, UNFINISHED, None, "its first snapshot is being written")
    return RunState(run_id, CRASHED, None, "a crash left it before its first snapshot was whole")


def _may_stand(file: Place) -> bool:
    """Whether a file is there, or in a folder that cannot be read."""
    try:
        return stands(file)
    except StoreError:
        return True


def _written_now(store: RunStore, run_id: str) -> bool:
    """Whether a session holds the run; who may not write into the folder, or reads a store, cannot tell."""
    session = store.session_of(run_id)
    if isinstance(session, ObjectPlace) or not stands(session):
        return False
    with suppress(OSError):
        if (free := hold(session)) is None:
            return True
        free.release()
    return False


def broken_off(store: RunStore, run: Run, logged: Collection[str]) -> bool:
    """Whether a crash came as a run that can be read was ended or compacted; `logged` are the runs with a last line in LOG.

    What looks so is looked at again when no process writes the run.
    """
    if not _left(run.folder, run.run_id in logged):
        return False
    with suppress(OSError), locked(store.lock_of(run.run_id), "a run", timeout=LOOKS_AGAIN_WITHIN):
        return _left(run.folder, run.run_id in store.log.named("run"))
    # Being written for long, or it cannot be locked here.
    return _left(run.folder, run.run_id in store.log.named("run"))


def _left(folder: Place, logged: bool) -> bool:
    if not stands(folder / "manifest.json"):
        return stands(folder / "tables") or stands(folder / "texts")
    return not logged or stands(folder / "live")


def compacted_since(run: Run) -> bool:
    """Whether an interactive run was compacted after it was opened: its files are gone, its parts exist."""
    return run.live and stands(run.folder / "manifest.json")
