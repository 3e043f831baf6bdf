"""Replays a stored snapshot for a principal: `replayed`, its rows and its bundle.

Reads: settings, the run of a snapshot. Gives: `readable_replay`, `replayed`, `bundle_of`, `rows_for`, and `snapshot_rows` of a run that is
open already.

Note: what a user reads of an earlier answer is what the present grants admit; see `present_rights`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from ..config.settings import Settings
from ..views.xray import TABLES_READ
from .access import audience_of, open_run
from .grants import Audience, grants_for, grants_or_none
from .present_rights import within_rights

if TYPE_CHECKING:
    from ..runs import Replay, Run

__all__ = ["bundle_of", "readable_replay", "replayed", "rows_for", "snapshot_rows"]

Row = dict[str, Any]
"""A row of a declared table by column: `nodes/tables/` has the types of its values."""


def replayed(settings: Settings, snapshot_id: str) -> Replay:
    """The replay of a snapshot that the principal may read, unless they audit it reduced to a caller's part and to the
    items that the present grants admit.

    Raises:
        AccessError: the snapshot does not exist or belongs to another principal.
        StoreError: its run is damaged.
        VerificationError: stored data does not match its hashes.
    """
    _, found, audience = readable_replay(settings, snapshot_id)
    return found if audience == "audit" else found.for_caller()


def readable_replay(settings: Settings, snapshot_id: str) -> tuple[Run, Replay, Audience]:
    """The run of a snapshot that the principal may read, its replay and the principal's audience; see `replayed`."""
    from ..runs import replay

    run = open_run(settings, snapshot_id)
    audience = audience_of(settings, run, snapshot_id)
    found = replay(run, snapshot_id)
    if audience == "caller":
        found = within_rights(found, grants_for(run, grants_or_none(settings)))
    return run, found, audience


def rows_for(settings: Settings, snapshot_id: str, also: Collection[str] = ()) -> tuple[dict[str, list[Row]], bool]:
    """The rows of a snapshot by table name, as `snapshot_rows`, and whether the principal audits it; see `replayed`."""
    _, found, audience = readable_replay(settings, snapshot_id)
    return _listed(found, also), audience == "audit"


def bundle_of(settings: Settings, snapshot_id: str) -> dict[str, Any]:
    """The `RetrievalBundle` of a stored snapshot, as far as the principal may see it.

    Raises:
        AccessError: the snapshot does not exist or belongs to another principal.
        StoreError: its run is damaged.
        VerificationError: stored data does not match its hashes.
    """
    from ..config.policies.roles import max_age_days
    from ..views.bundle import TABLES_READ as BUNDLE_TABLES
    from ..views.bundle import bundle

    run, found, audience = readable_replay(settings, snapshot_id)
    rows = {name: found.tables[name].to_pylist() for name in BUNDLE_TABLES}
    role = rows["requests"][0]["role"] if rows["requests"] else None
    limit = max_age_days(run.stored("role_policies"), role)
    return bundle(rows, audit=audience == "audit", max_age_days=limit)


def snapshot_rows(run: Run, snapshot_id: str, also: Collection[str] = ()) -> dict[str, list[Row]]:
    """The rows of one snapshot by table name, free text in place: the tables of an x-ray, and others.

    Raises:
        VerificationError: stored data does not match its hashes.
    """
    from ..runs import replay

    return _listed(replay(run, snapshot_id), also)


def _listed(found: Replay, also: Collection[str]) -> dict[str, list[Row]]:
    return {name: found.tables[name].to_pylist() for name in (*TABLES_READ, *also)}
