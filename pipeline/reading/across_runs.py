"""Reads across several runs that the principal may know of, with damaged ones reported separately.

Reads: settings, runs. Gives: `read_each`, the `latest` answers, `snapshot_named`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ...nodes.errors import InputError, StoreError, VerificationError
from ...nodes.vocabulary import STATUSES
from ..config.opening import runs_of
from ..config.settings import Settings
from ..deadline import expect_time
from .access import known_runs, opened, unknown
from .grants import grants_or_none
from .snapshots import Readable, readable

if TYPE_CHECKING:
    from ..runs import Run, Runs

T = TypeVar("T")
_BLOCK_REF = re.compile("[0-9a-f]{16}")
"""The form of the id in the first line of a block."""
_LATE = re.compile("@(?P<back>[1-9][0-9]{0,3})?|@session:(?P<session>.+)")
"""The forms of the name of an answer that was given lately."""


def read_each(
    settings: Settings, store: Runs, read: Callable[[Run], T], damaged: dict[str, str]
) -> Iterator[tuple[Run, T]]:
    """Each run, newest first, with the result of `read`. Damaged runs that the principal may learn of are added to
    `damaged` with the reason, and all others are omitted silently.
    """
    from ..runs import Run
    from ..runs.log import is_unfinished

    for run_id, lines in reversed(store.log.by_run().items()):
        expect_time()
        if is_unfinished(lines):
            continue
        try:
            run = Run(store, run_id, lines)
            yield run, read(run)
        except (StoreError, VerificationError) as error:
            if known_runs(settings, store)(run_id):
                damaged[run_id] = error.message


@dataclass(frozen=True)
class Latest:
    """Answers, newest first, each with what was made of it; whether there are older ones; damaged runs with the reason."""

    entries: list[tuple[dict[str, Any], Any]]
    older: bool
    damaged: Mapping[str, str]


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

    def read(one: Run, seen: Readable | None = None) -> list[tuple[dict[str, Any], Any]]:
        nonlocal wanted
        if wanted <= 0 and not one.files:  # a session that began earlier may have answered last
            return []
        seen = seen or readable(settings, one)
        rows = seen.where({"status": status}, limit if one.files else max(wanted, 0)).listed()
        wanted -= len(rows)
        return list(zip(rows, make(one, rows), strict=True))

    damaged = dict[str, str]()
    if name:
        named = opened(settings, name)
        found = read(named.run, named)
    else:
        found = [entry for _, entries in read_each(settings, runs_of(settings), read, damaged) for entry in entries]
    found.sort(key=lambda entry: (entry[0]["created_at"], entry[0]["snapshot_id"]), reverse=True)
    return Latest(found[: last or None], wanted <= 0, damaged)


def snapshot_named(settings: Settings, name: str) -> str:
    """The snapshot id of a name: the name itself, or of the latest snapshot that the principal may read with the block
    reference, of the session (`@session:S`), or of their own requests (`@`; `@2` is the one before).

    Raises:
        AccessError: there is no such snapshot that the principal may read.
        InputError: it begins like the name of a late answer and is none.
    """
    if late := _LATE.fullmatch(name):
        whose = {"session_id": late["session"]} if late["session"] else {"asker": settings.principal}
        found = _latest(settings, whose, int(late["back"] or 1))
        if found is None:
            raise unknown(name, "snapshot")
        return found
    if name.startswith("@"):
        raise InputError.one_of(("@", "@2", "@session:S"), name, "answer")
    if not _BLOCK_REF.fullmatch(name):
        return name
    found = _latest(settings, {"block_ref": name}, 1)
    if found is None:
        raise unknown(f"retr-snap-{name}")
    return found


def _latest(settings: Settings, wanted: Mapping[str, str | None], back: int) -> str | None:
    """The snapshot captured last with these values, or the one so many back; None if there is none.

    It may be in any run: a run that began earlier may still be written to. Damaged runs are ignored.
    """
    grants = grants_or_none(settings)

    def times(run: Run) -> list[tuple[Any, str]]:
        rows = Readable.of(settings, run, grants).where(wanted).rows
        return list(zip(rows["created_at"].to_pylist(), rows["snapshot_id"].to_pylist(), strict=True))

    found = sorted(each for _, of_run in read_each(settings, runs_of(settings), times, {}) for each in of_run)
    return found[-back][1] if len(found) >= back else None
