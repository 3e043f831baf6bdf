"""Which snapshots of a run a principal may read, and how much of each.

Reads: settings, an open run. Gives: `readable_snapshots`, `audits_whole`, `audited_projects`,
`summaries_for` lists of runs, and `as_damage`, under which stored rows are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import codes_of, distinct_rows, flat
from ...nodes.errors import ScopedRetrievalError, StoreError
from ...nodes.tables import SNAPSHOTS
from ..config.settings import Settings
from .grants import Audience, Viewer, grants_for, grants_or_none

if TYPE_CHECKING:
    from ..runs import Run

__all__ = [
    "StoredRunSummary",
    "as_damage",
    "audited_projects",
    "audits_whole",
    "readable_snapshots",
    "readable_under",
    "summaries_for",
]

_AUDIT_ONLY = frozenset(SNAPSHOTS.names(audience="audit"))


@contextmanager
def as_damage(run_id: str) -> Iterator[None]:
    """Report errors from malformed stored rows as damage of that run: another program may have written it.

    Raises:
        StoreError: some part of the run could not be read.
    """
    try:
        yield
    except ScopedRetrievalError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OSError, pa.ArrowException) as error:
        got = type(error).__name__
        raise StoreError(f"Expected a run as this version writes it, got {got}", at=run_id) from error


def audited_projects(settings: Settings, run: Run) -> frozenset[str]:
    """Projects whose snapshots the principal may see completely: those of its unexpired grants with `audit`.

    The current grants file decides; if it is gone, the grants stored with the run.
    """
    return Viewer(settings.principal, grants_for(run, grants_or_none(settings))).audited


def audits_whole(settings: Settings, run: Run) -> bool:
    """Whether the principal audits every snapshot of a run: then its whole tables and their counts may be shown."""
    mine = readable_snapshots(settings, run)
    return len(mine) == run.snapshots.num_rows and all("recalled" in row for row in mine)


def readable_snapshots(
    settings: Settings, run: Any, *, status: str | None = None, session: str | None = None, last: int | None = None
) -> list[dict[str, Any]]:
    """The snapshots of a run that the principal may read, with question, project, purpose and `as_of` of their requests.

    For a row refused on arrival, the fields that could be read. `status` and `session` filter, `last` limits to the
    latest.

    Raises:
        StoreError: the run is damaged.
    """
    return readable_under(settings, run, grants_or_none(settings), {"status": status, "session_id": session}, last)


def readable_under(
    settings: Settings,
    run: Any,
    grants: pa.Table | None,
    wanted: Mapping[str, str | None] | None = None,
    last: int | None = None,
) -> list[dict[str, Any]]:
    """`readable_snapshots` under these grants, None without a grants file; `wanted` are values by column, `asker` that of who asked."""
    with as_damage(run.run_id):
        table, audiences, of = _judged(run, Viewer(settings.principal, grants_for(run, grants)))
        mask = np.array([audience is not None for audience in audiences], dtype=bool)[of]
        table = table.append_column("asker", pc.coalesce(table["asked_by"], table["principal"]))
        for column, value in (wanted or {}).items():
            if value is not None:
                mask &= np.asarray(pc.fill_null(pc.equal(table[column], value), False))
        kept = mask.nonzero()[0]
        kept = kept if last is None else kept[max(0, len(kept) - last) :]
        listed = table.drop_columns(["principal", "asked_by", "asker", "reached"]).take(pa.array(kept)).to_pylist()
    return [
        row if audiences[code] == "audit" else {name: value for name, value in row.items() if name not in _AUDIT_ONLY}
        for row, code in zip(listed, of[kept].tolist(), strict=True)
    ]


class StoredRunSummary(NamedTuple):
    """The entry of a run in a list: its time, the number of readable snapshots by status."""

    created_at: str | None
    statuses: dict[str, int]


def summaries_for(settings: Settings) -> Callable[[Any], StoredRunSummary]:
    """A function that returns the list entry of a run for the principal; grants are read once for all runs.

    Raises:
        StoreError: raised by the function: the run is damaged.
    """
    grants = grants_or_none(settings)
    viewer = None if grants is None else Viewer(settings.principal, grants)
    return lambda run: _summary(run, viewer or Viewer(settings.principal, run.stored("grants")))


def _summary(run: Any, viewer: Viewer) -> StoredRunSummary:
    with as_damage(run.run_id):
        table, audiences, of = _judged(run, viewer)
        kept = np.array([audience is not None for audience in audiences], dtype=bool)[of]
        counted = table["status"].filter(pa.array(kept)).value_counts().to_pylist()
        statuses = {one["values"]: one["counts"] for one in sorted(counted, key=lambda one: one["values"])}
        if run.live:
            first = table["created_at"][0].as_py().isoformat() if table.num_rows else None
            return StoredRunSummary(first, statuses)
        return StoredRunSummary(run.manifest.get("created_at"), statuses)


def _judged(run: Any, viewer: Viewer) -> tuple[pa.Table, list[Audience | None], NDArray[np.int64]]:
    """The snapshots of a run, the audience of each distinct asker and reach, and which of these each snapshot has."""
    from ..runs.listing import listed

    table = listed(run)
    whose = table.select(["project", "principal", "asked_by", "reached"])
    names = [whose[name] for name in ("project", "principal", "asked_by")]
    first, alike = distinct_rows(codes_of([*names, _spelled(whose["reached"])]))
    return table, [viewer.audience(one, one["reached"]) for one in whose.take(pa.array(first)).to_pylist()], alike


def _spelled(lists: pa.ChunkedArray) -> pa.Array:
    """Each list of names joined into one text."""
    return pc.binary_join(flat(lists), "\n")
