"""The state of every run, as shown in lists: cheap to determine, without reading a table.

ok           finished or interactive
unfinished   a staged batch; `run --resume` or `gc --discard` ends it
unreadable   LOG names it, and its manifest is missing or cannot be read
damaged      its content changed since it was written; only `verify` and reading detect that
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ...nodes.errors import ScopedRetrievalError, VerificationError
from .log import Line
from .run import Run
from .store import Runs

__all__ = ["DAMAGED", "OK", "UNFINISHED", "UNREADABLE", "RunState", "states"]

OK, UNFINISHED, UNREADABLE, DAMAGED = "ok", "unfinished", "unreadable", "damaged"


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run: its id, its state, and why it is not ok."""

    run_id: str
    state: str
    detail: str = ""


def states(store: Runs, *, but: Collection[str] = ()) -> list[RunState]:
    """The state of every run, oldest first.

    Args:
        store: the folder of runs.
        but: runs to skip, which were read already.
    """
    lines = store.log.by_run()
    found = [_state_of(store, run_id, lines) for run_id in lines if run_id not in but]
    found += [
        RunState(id_, UNFINISHED, "a batch that was not finished") for id_ in store.unfinished() if id_ not in but
    ]
    return sorted(found, key=lambda state: state.run_id)


def _state_of(store: Runs, run_id: str, lines: Mapping[str, list[Line]]) -> RunState:
    try:
        Run(store, run_id, lines[run_id]).settings  # noqa: B018 (it reads the file that every reader needs)
    except VerificationError as error:
        return RunState(run_id, DAMAGED, error.message)
    except ScopedRetrievalError as error:
        return RunState(run_id, UNREADABLE, error.message)
    return RunState(run_id, OK)
