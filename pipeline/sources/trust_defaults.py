"""What an importer assumes about a row that does not say: one line per class of source.

Gives: `DEFAULTS` and how a missing class or kind is derived from the source id, the kind, or the path. A reader that knows
more writes its own values; these fill what is still null.

Note: `verified` speaks of the record, not of its author; what strangers wrote is held back
by authority 0 and standing `untrusted`, and what programs printed by standing alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...nodes.vocabulary import ORIGIN_CLASSES
from .file_kinds import file_kind

__all__ = ["DEFAULTS", "OWNED_BY_USER", "TrustDefaults", "class_of_kind", "class_of_source", "kind_of"]


@dataclass(frozen=True, slots=True)
class TrustDefaults:
    """The values of one class of source. `own_time`: its event time says when it was recorded."""

    evidence_kind: str
    authority: int
    lifecycle: str
    declared_standing: str
    declared_safety: str = "safe"
    own_time: bool = True


DEFAULTS = {
    "workspace": TrustDefaults("code", 1, "verified", "evidence", own_time=False),
    "project-doc": TrustDefaults("doc", 1, "verified", "evidence", own_time=False),
    "team-standard": TrustDefaults("rule", 1, "verified", "evidence", own_time=False),
    "user-preference": TrustDefaults("rule", 1, "verified", "hint"),
    "session-event": TrustDefaults("session-event", 1, "verified", "untrusted"),
    "artifact": TrustDefaults("tool-output", 1, "verified", "untrusted"),
    "memory": TrustDefaults("memory", 1, "candidate", "evidence"),
    "decision-record": TrustDefaults("decision-record", 1, "verified", "evidence"),
    "structured-sot": TrustDefaults("structured-fact", 1, "verified", "evidence", own_time=False),
    "external": TrustDefaults("doc", 0, "verified", "untrusted", "requires-review", own_time=False),
    "mcp-resource": TrustDefaults("tool-output", 0, "verified", "untrusted", "requires-review", own_time=False),
}
"""By `origin_class`. Zone (internal) and visibility (model-visible) are the same for all."""

STANDING_OF_MEMORY = {"candidate": "hint", "deprecated": "history", "expired": "history", "revoked": "untrusted"}
"""How a memory may speak in states other than verified (S0.109, S0.110)."""

UNTRUSTED_KINDS = frozenset({"test-log", "tool-output"})
"""Kinds that quote what a program printed, whatever class of source they come from."""

OWNED_BY_USER = frozenset({"memory", "session-event", "user-preference"})
"""Classes whose rows belong to one user: the importing principal, unless the row names another."""

_CLASS_OF_KIND = {
    "code": "workspace",
    "doc": "project-doc",
    "test-log": "artifact",
    "memory": "memory",
    "session-event": "session-event",
    "decision-record": "decision-record",
    "rule": "project-doc",
    "structured-fact": "structured-sot",
    "tool-output": "artifact",
}
_PREFIXES = {
    "standard": "team-standard",
    "preference": "user-preference",
    "log": "artifact",
    "sessions": "session-event",
}


def class_of_source(source_id: str) -> str | None:
    """The class that the `<kind>:` of a source id names, if it names one."""
    prefix, colon, _ = source_id.partition(":")
    if not colon:
        return None
    prefix = _PREFIXES.get(prefix, ORIGIN_CLASSES.aliases.get(prefix, prefix))
    return prefix if prefix in ORIGIN_CLASSES else None


def class_of_kind(evidence_kind: str | None) -> str:
    """The class of a row that names none and whose source does not: by its kind, else a document of the project."""
    return _CLASS_OF_KIND.get(evidence_kind or "doc", "project-doc")


def kind_of(origin_class: str, path: str | None) -> str:
    """The kind of a row that names none: by its path where files are read, else its class's."""
    if path and origin_class in ("workspace", "project-doc", "artifact"):
        kind = file_kind(path).evidence_kind
        if origin_class != "artifact" or kind == "test-log":
            return kind
    return DEFAULTS[origin_class].evidence_kind
