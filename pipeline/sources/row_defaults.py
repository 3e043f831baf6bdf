"""Defaults of imported rows: what is in a column where a row has no value, the least privileged where it is about trust.

Gives: `Filler`, which counts in the report what it fills, and one function per group of columns.

Note: order matters. Class and kind are filled before what they imply, the version after masking.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.digests import text_sha256
from ...nodes.schema import TIMESTAMP
from ...nodes.vocabulary import AUTHORITY
from .column_types import Where
from .report import NAMED, SourceReport
from .trust_defaults import (
    DEFAULTS,
    OWNED_BY_USER,
    STANDING_OF_MEMORY,
    UNTRUSTED_KINDS,
    class_of_kind,
    class_of_source,
    kind_of,
)

__all__ = ["Filler", "fill_owner", "fill_owner_user", "fill_times", "fill_trust", "fill_version"]


class Filler:
    """Fills nulls of the columns it is given, and counts them in the report with what they became."""

    def __init__(self, columns: dict[str, pa.Array], report: SourceReport) -> None:
        self._columns = columns
        self._report = report

    def constant(self, name: str, value: Any) -> None:
        column = self._columns[name]
        if value is not None and column.null_count:
            self._report.default(name, column.null_count, str(value).lower() if value is False else str(value))
            self._columns[name] = pc.fill_null(column, pa.scalar(value, column.type))

    def values(self, name: str, values: pa.Array, words: pa.Array | None = None) -> None:
        """Where null, the value of the same row; only what is filled counts. `words` are what the report calls it."""
        column = self._columns[name]
        filled = pc.coalesce(column, values.cast(column.type))
        became = (values if words is None else words).filter(pc.and_(column.is_null(), filled.is_valid()))
        for entry in became.value_counts().to_pylist():
            self._report.default(name, entry["counts"], str(entry["values"]))
        self._columns[name] = filled


def fill_owner(fill: Filler, columns: dict[str, pa.Array], project: str) -> None:
    columns["owner_project"] = pc.if_else(pc.equal(columns["owner_project"], ""), None, columns["owner_project"])
    fill.constant("owner_project", project)


def fill_owner_user(fill: Filler, columns: dict[str, pa.Array], principal: str) -> None:
    """Null = the whole project, but a memory, session event or preference is the importing principal's; "" = the project."""
    of_user = pc.is_in(columns["origin_class"], pa.array(sorted(OWNED_BY_USER)))
    fill.values("owner_user", pc.if_else(of_user, pa.scalar(principal), pa.scalar(None, pa.string())))
    columns["owner_user"] = pc.if_else(pc.equal(columns["owner_user"], ""), None, columns["owner_user"])


def fill_trust(fill: Filler, columns: dict[str, pa.Array], report: SourceReport, where: Where) -> None:
    """Class and kind first, then what they imply."""
    if columns["origin_class"].null_count:
        fill.values("origin_class", _mapped(columns["source_id"], class_of_source))
        fill.values("origin_class", _mapped(columns["evidence_kind"], class_of_kind, null=class_of_kind(None)))
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
    """`recorded_time` is the event's own time where the class of source says so, else now; never in the future."""
    instant = pa.scalar(now.astimezone(UTC), TIMESTAMP)
    own = pc.and_kleene(
        _mapped(columns["origin_class"], lambda c: DEFAULTS[c].own_time, pa.bool_()),
        pc.less_equal(columns["event_time"], instant),
    )
    own = pc.fill_null(own, False)
    words = pc.if_else(own, "the time of the event", "the time of this import")
    fill.values("recorded_time", pc.if_else(own, columns["event_time"], instant), words)


def fill_version(fill: Filler, columns: dict[str, pa.Array]) -> None:
    """A text of which neither version nor place is known is its own version, so that a citation leads back to it."""
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


def _mapped(
    column: pa.Array, function: Callable[[str], Any], type_: pa.DataType | None = None, null: Any = None
) -> pa.Array:
    """`function` of every distinct value; `null` for nulls."""
    encoded = column.dictionary_encode()
    values = pa.array([function(value) for value in encoded.dictionary.to_pylist()], type=type_ or pa.string())
    mapped = values.take(encoded.indices)
    return mapped if null is None else pc.fill_null(mapped, null)
