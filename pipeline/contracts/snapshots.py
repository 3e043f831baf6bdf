"""The request of a snapshot, as fields that can be asked, narrowed and compared again."""

from __future__ import annotations

from typing import Any

from ...nodes.errors import InputError
from ...nodes.tables import REQUESTS
from ..config.settings import Settings
from ..reading.access import audience_of, open_run
from ..requests.fields import FIELDS
from ..requests.narrowing import Fields

__all__ = ["fields_of_snapshot"]

_ENVELOPE = ("request_id", "intent_id", "model_request_id", "trace_id", "turn_id", "task_id")


def fields_of_snapshot(settings: Settings, snapshot_id: str) -> Fields:
    """What a snapshot was asked with, `as_of` included; without its free text.

    Raises:
        AccessError: the principal may not read the snapshot.
        InputError: its row was refused on arrival and asks nothing.
    """
    run = open_run(settings, snapshot_id)
    audience_of(settings, run, snapshot_id)
    rows = run.table(REQUESTS.name, snapshot_id=snapshot_id).to_pylist()
    if not rows:
        raise InputError(f"Expected a snapshot of a request, got one of a row that was refused - at {snapshot_id}")
    asked: dict[str, Any] = rows[0]
    kept = [name for name in FIELDS if name not in _ENVELOPE and not REQUESTS.columns[name].free_text]
    return Fields({name: asked[name] for name in kept if asked[name] is not None})
