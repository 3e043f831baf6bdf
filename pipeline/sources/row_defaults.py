"""Defaults of imported rows: the values of empty columns; for trust, the least privileged ones.

Gives: `Filler`, which fills columns and counts that in the report, and one function per group of columns.

Note: order matters. Class and kind are filled before the columns that depend on them, the version after masking.

The defaults are one line per class of source (`DEFAULTS`). `verified` is about the record, not its author; text by
strangers is restricted by authority 0 and standing `untrusted`, and output of programs by standing alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.digests import text_sha256
from ...nodes.schema import TIMESTAMP
from ...nodes.vocabulary import AUTHORITY, ORIGIN_CLASSES
from .column_types import Where, by_word
from .file_kinds import file_kind
from .report import NAMED, SourceReport

__all__ = [
    "DEFAULTS",
    "OWNED_BY_USER",
    "Filler",
    "TrustDefaults",
    "class_of_source",
    "fill_owner",
    "fill_owner_user",
    "fill_times",
    "fill_trust",
    "fill_version",
    "kind_of",
]


class Filler:
    """Fills nulls of the given columns, and counts them in the report with their new values."""

    def __init__(self, columns: dict[str, pa.Array], report: SourceReport) -> None:
        self._columns = columns
        self._report = report

    def constant(self, name: str, value: Any) -> None:
        column = self._columns[name]
        if value is not None and column.null_count:
            self._report.default(name, str(value).lower() if value is False else str(value), column.null_count)
            self._columns[name] = pc.fill_null(column, pa.scalar(value, column.type))

    def values(self, name: str, values: pa.Array, words: pa.Array | None = None) -> None:
        """Fill nulls with the value of the same row and count them. `words` are the values' names in the report."""
        column = self._columns[name]
        filled = pc.coalesce(column, values.cast(column.type))
        became = (values if words is None else words).filter(pc.and_(column.is_null(), filled.is_valid()))
        for entry in became.value_counts().to_pylist():
            self._report.default(name, str(entry["values"]), entry["counts"])
        self._columns[name] = filled


def fill_owner(fill: Filler, columns: dict[str, pa.Array], project: str) -> None:
    columns["owner_project"] = pc.if_else(pc.equal(columns["owner_project"], ""), None, columns["owner_project"])
    fill.constant("owner_project", project)


def fill_owner_user(fill: Filler, columns: dict[str, pa.Array], principal: str) -> None:
    """Null and "" = the whole project, but null in a memory, session event or preference = the importing principal."""
    of_user = pc.is_in(columns["origin_class"], pa.array(sorted(OWNED_BY_USER)))
    fill.values("owner_user", pc.if_else(of_user, pa.scalar(principal), pa.scalar(None, pa.string())))
    columns["owner_user"] = pc.if_else(pc.equal(columns["owner_user"], ""), None, columns["owner_user"])


def fill_trust(fill: Filler, columns: dict[str, pa.Array], report: SourceReport, where: Where) -> None:
    """Fill class and kind first, then the columns that depend on them."""
    if columns["origin_class"].null_count:
        fill.values("origin_class", _mapped(columns["source_id"], class_of_source))
        fill.values("origin_class", _mapped(columns["evidence_kind"], lambda kind: _CLASS_OF_KIND[kind]))
        fill.constant("origin_class", "project-doc")
    if columns["evidence_kind"].null_count:
        fill.values("evidence_kind", _kinds(columns["origin_class"], columns["path"]))
    origin = columns["origin_class"]
    fill.constant("zone", "internal")
    fill.constant("declared_visibility", "model-visible")
    ranks = _mapped(origin, lambda c: DEFAULTS[c].authority, pa.int32())
    fill.values("authority", ranks, pa.array(AUTHORITY.values).take(ranks))
    fill.values("lifecycle", _mapped(origin, lambda c: DEFAULTS[c].lifecycle))
    fill.values("declared_safety", _mapped(origin, lambda c: DEFAULTS[c].declared_safety))
    promoted = pc.fill_null(pc.equal(columns["declared_standing"], "instruction"), False)
    if pc.any(promoted).as_py():
        columns["declared_standing"] = pc.if_else(promoted, "evidence", columns["declared_standing"])
        for row in np.flatnonzero(promoted.to_numpy(zero_copy_only=False))[:NAMED]:
            report.note("a row declared as instruction counts as evidence: content cannot instruct", at=where(row))
    of_memory = _mapped(columns["lifecycle"], lambda state: STANDING_OF_MEMORY.get(state, "evidence"))
    standing = pc.if_else(
        pc.equal(origin, "memory"), of_memory, _mapped(origin, lambda c: DEFAULTS[c].declared_standing)
    )
    printed = pc.is_in(columns["evidence_kind"], pa.array(sorted(UNTRUSTED_KINDS)))
    fill.values("declared_standing", pc.if_else(printed, "untrusted", standing))


def fill_times(fill: Filler, columns: dict[str, pa.Array], now: datetime) -> None:
    """`recorded_time` is the event time for classes with `own_time`, else now; never in the future."""
    instant = pa.scalar(now.astimezone(UTC), TIMESTAMP)
    own = pc.and_kleene(
        _mapped(columns["origin_class"], lambda c: DEFAULTS[c].own_time, pa.bool_()),
        pc.less_equal(columns["event_time"], instant),
    )
    own = pc.fill_null(own, False)
    words = pc.if_else(own, "the time of the event", "the time of this import")
    fill.values("recorded_time", pc.if_else(own, columns["event_time"], instant), words)


def fill_version(fill: Filler, columns: dict[str, pa.Array]) -> None:
    """A text without version and place gets its digest as version, so that a citation can be traced to it."""
    known = [pc.is_valid(columns[name]) for name in ("version", "line_start", "byte_start")]
    lost = pc.invert(pc.or_(pc.or_(known[0], known[1]), known[2]))
    if pc.any(lost).as_py():
        digest = pc.utf8_slice_codeunits(text_sha256(columns["text"].filter(lost)), 0, 16)
        versions = pc.binary_join_element_wise("sha256", digest, ":")
        values = pc.replace_with_mask(pa.nulls(len(lost), pa.string()), lost, versions.cast(pa.string()))
        fill.values("version", values, pa.repeat("a digest of the text", len(lost)))


def _kinds(origin: pa.Array, path: pa.Array) -> pa.Array:
    """`kind_of` of every distinct pair of class and path."""
    pairs = pc.binary_join_element_wise(origin, pc.fill_null(path, ""), "\0")
    return _mapped(pairs, lambda pair: kind_of(*pair.split("\0", 1)))


def _mapped(column: pa.Array, function: Callable[[str], Any], type_: pa.DataType | None = None) -> pa.Array:
    """`function` of every distinct value."""
    return by_word(column, type_ or pa.string(), lambda word, _: function(word))


@dataclass(frozen=True, slots=True)
class TrustDefaults:
    """The defaults of one class of source. `own_time`: the event time is also the recorded time."""

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
"""The standing of a memory in states other than verified (S0.109, S0.110)."""

UNTRUSTED_KINDS = frozenset({"test-log", "tool-output"})
"""Kinds that quote the output of a program, in any class of source."""

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
"""The class of a row that states neither a class nor a source of one."""
_PREFIXES = {
    "standard": "team-standard",
    "preference": "user-preference",
    "log": "artifact",
    "sessions": "session-event",
}


def class_of_source(source_id: str) -> str | None:
    """The class in the prefix `<kind>:` of a source id, if there is one."""
    prefix, colon, _ = source_id.partition(":")
    if not colon:
        return None
    prefix = _PREFIXES.get(prefix, ORIGIN_CLASSES.aliases.get(prefix, prefix))
    return prefix if prefix in ORIGIN_CLASSES else None


def kind_of(origin_class: str, path: str | None) -> str:
    """The kind of a row that has none: by its path for files, else that of its class."""
    if path and origin_class in ("workspace", "project-doc", "artifact"):
        kind = file_kind(path).evidence_kind
        if origin_class != "artifact" or kind == "test-log":
            return kind
    return DEFAULTS[origin_class].evidence_kind
