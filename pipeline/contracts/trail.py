"""Follows an `auditEntryId` of an x-ray to the decision that it names, its line in the log, and the stored row (S2.40).

Reads: a snapshot, the log of its folder. Gives: `audit_trail`. A caller who does not audit the snapshot gets only the
decision, as `why` reports it: log positions disclose how many requests others made.
"""

from __future__ import annotations

from typing import Any

from ...nodes.errors import InputError
from ..config.settings import Settings
from ..reading.access import audience_of, open_run
from ..reading.auditing.export import own_line
from ..runs import replay
from ..runs.ids import is_snapshot
from .why import why_not

__all__ = ["audit_trail", "is_audit_entry"]

_STORED = (
    "source_id",
    "version",
    "captured_time",
    "path",
    "line_start",
    "line_end",
    "byte_start",
    "byte_end",
    "text_sha256",
)


def is_audit_entry(name: str) -> bool:
    """Whether a name has the form of an audit entry, `SNAPSHOT/EVIDENCE`."""
    return is_snapshot(name) and "/" in name


def audit_trail(settings: Settings, entry: str) -> dict[str, Any]:
    """The `decision` of an audit entry, and for auditors `log` and `stored`, the row as it was imported.

    Raises:
        AccessError: the principal may not read the snapshot or ask about the row.
        InputError: it is not an audit entry.
    """
    if not is_audit_entry(entry):
        raise InputError.expected("an audit entry, SNAPSHOT/EVIDENCE", entry, "AUDIT_ENTRY")
    snapshot_id, _, evidence = entry.partition("/")
    (decision,) = why_not(settings, snapshot_id, evidence)
    run = open_run(settings, snapshot_id)
    found: dict[str, Any] = {"audit_entry": entry, "decision": decision}
    if audience_of(settings, run, snapshot_id) != "audit":
        return found
    kept = replay(run, snapshot_id)
    line = own_line(run, snapshot_id)
    log = {"sequence": line.number, "kind": line.body["kind"], "hash": line.hash} if line else None
    cited = next((row for row in kept.citations.to_pylist() if row["evidence_id"] == evidence), None)
    stored = cited and {name: cited[name] for name in _STORED} | {"generation": run.settings.get("generation")}
    return found | {"log": log, "stored": stored}
