"""Reads across several runs that the principal may know of, with damaged ones reported separately.

Reads: settings, runs. Gives: `read_each`, the `latest` answers, `other_runs` that cannot be read, `snapshot_named`, `last_of_session`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ...nodes.vocabulary import STATUSES
from ..config.opening import runs_of
from ..config.settings import Settings
from ..deadline import expect_time
from .access import expect_reader, hears_of_damage, known_runs, open_run, unknown
from .grants import grants_or_none
from .snapshots import Readable, readable_snapshots

if TYPE_CHECKING:
    from ..runs import Run
    from ..runs.store import RunState

__all__ = ["Latest", "last_of_session", "latest", "other_runs", "read_each", "snapshot_named"]

T = TypeVar("T")
_BLOCK_REF = re.compile("[0-9a-f]{16}")
"""The form of the id in the first line of a block."""
_LATE = re.compile("@(?P<back>[1-9][0-9]{0,3})?|@session:(?P<session>.+)")
"""The forms of the name of an answer that was given lately."""


def read_each(
    settings: Settings, runs: Iterable[Run], read: Callable[[Run], T]
) -> tuple[list[tuple[Run, T]], dict[str, str]]:
    """Each run with the result of `read`, and the damaged runs with the reason.

    Damaged runs that the principal may not learn of are omitted silently.
    """
    from ...nodes.errors import StoreError, VerificationError

    found: list[tuple[Run, T]] = []
    damaged: dict[str, str] = {}
    for run in runs:
        expect_time()
        try:
            found.append((run, read(run)))
        except (StoreError, VerificationError) as error:
            if hears_of_damage(settings, run.run_id):
                damaged[run.run_id] = error.message
    return found, damaged


@dataclass(frozen=True)
class Latest:
    """Answers, newest first, each with what was made of it; whether there are older ones than in the run `since`, else "";
    damaged runs with the reason.
    """

    entries: list[tuple[dict[str, Any], Any]]
    older: bool
    damaged: Mapping[str, str]
    since: str = ""


def latest(
    settings: Settings,
    name: str | None = None,
    *,
    status: str | None = None,
    last: int = 0,
    make: Callable[[Run, list[dict[str, Any]]], Iterable[Any]] = lambda _, rows: rows,
) -> Latest:
    """The answers that the principal may read, of a run or of all: those of a status, the last ones (0: all).

    Raises:
        AccessError: there is no such run that they may read.
        InputError: no such status.
    """
    if status is not None:
        STATUSES.canonical(status, "status")
    wanted = limit = last + 1 if last else sys.maxsize  # one more shows whether there are older ones

    def read(one: Run) -> list[tuple[dict[str, Any], Any]]:
        nonlocal wanted
        rows = readable_snapshots(settings, one, status=status, last=limit if one.live else max(wanted, 0))
        wanted -= len(rows)
        return list(zip(rows, make(one, rows), strict=True))

    if name:
        named, damaged, oldest = open_run(settings, name), {}, ""
        expect_reader(settings, named)
        found = read(named)
    else:
        # A session that began earlier may have answered last.
        newest = (each for each in runs_of(settings).newest() if wanted > 0 or each.live)
        of_runs, damaged = read_each(settings, newest, read)
        found = [entry for _, entries in of_runs for entry in entries]
        oldest = min((run.run_id for run, _ in of_runs), default="")
    found.sort(key=lambda entry: (entry[0]["created_at"], entry[0]["snapshot_id"]), reverse=True)
    return Latest(found[: last or None], wanted <= 0, damaged, oldest if wanted <= 0 else "")


def other_runs(settings: Settings, *, but: Collection[str] = (), since: str = "") -> list[RunState]:
    """The runs from the id `since` on that are not ok and that the principal may know of, except those in `but`."""
    from ..runs import Runs

    store = Runs(settings["runs"], create=False)
    known = known_runs(settings, store)
    return [state for state in store.not_ok(but=but, since=since) if known(state.run_id)]


def snapshot_named(settings: Settings, name: str) -> str:
    """The snapshot id of a name: the name itself, or of the latest snapshot that the principal may read with the block
    reference, of the session (`@session:S`), or of their own requests (`@`; `@2` is the one before).

    Raises:
        AccessError: there is no such snapshot that the principal may read.
    """

    if late := _LATE.fullmatch(name):
        whose = {"session_id": late["session"]} if late["session"] else {"asker": settings.principal}
        found = _latest(settings, whose, int(late["back"] or 1))
        if found is None:
            raise unknown(name, "snapshot")
        return found
    if not _BLOCK_REF.fullmatch(name):
        return name
    found = _latest(settings, {"block_ref": name}, 1)
    if found is None:
        raise unknown(f"retr-snap-{name}")
    return found


def last_of_session(settings: Settings, session: str | None) -> str | None:
    """The last snapshot that the principal may read, of one or all sessions; None if there is none."""
    return _latest(settings, {"session_id": session}, 1)


def _latest(settings: Settings, wanted: Mapping[str, str | None], back: int) -> str | None:
    """The snapshot captured last with these values, or the one so many back; None if there is none.

    It may be in any run: a run that began earlier may still be written to. Damaged runs are ignored.
    """
    grants = grants_or_none(settings)

    def times(run: Run) -> list[tuple[Any, str]]:
        rows = Readable.of(settings, run, grants).where(wanted).rows
        return list(zip(rows["created_at"].to_pylist(), rows["snapshot_id"].to_pylist(), strict=True))

    read, _ = read_each(settings, runs_of(settings).newest(), times)
    found = sorted(each for _, of_run in read for each in of_run)
    return found[-back][1] if len(found) >= back else None
