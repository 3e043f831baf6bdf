"""Replays a stored snapshot for a principal.

Reads: settings, the run of a snapshot. Gives: `readable_replay`, and `replayed`, its reader's part.

Note: what a user reads of an earlier answer is what the present grants admit; see `present_rights`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..config.settings import Settings
from .access import audience_of, open_run
from .grants import Audience, grants_for, grants_or_none
from .present_rights import within_rights

if TYPE_CHECKING:
    from ..runs import Replay, Run

__all__ = ["readable_replay", "replayed"]


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
