"""The score terms computed from a row's own columns: authority, recency and closeness inside the scope.

Reads stored columns of candidates, their contracts and anchors. Gives one value per candidate, a multiple of 2**-30.

Note: age is measured at `as_of` (S0.96), from the event, or from the record where a row has no event time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import floats, gathered, truth
from ..columns.numbers import quantise
from ..frames import MICROS_PER_DAY, OPEN_START, micros
from ..vocabulary import AUTHORITY

_LIFECYCLE_FACTOR = {"verified": 1.0, "candidate": 0.5, "deprecated": 0.3, "expired": 0.2, "revoked": 0.0}
_GENERATED_FACTOR = 0.5
_UNSOURCED_FACTOR = 0.8
_SCOPE_PARTS = {"project": 0.4, "branch": 0.15, "session": 0.15, "test_suite": 0.15, "directory": 0.15}
_SAME = {
    "project": ("owner_project", "project"), "branch": ("branch", "branch"), "session": ("session_id", "session_id"),
    "test_suite": ("test_suite", "test_suite"),
}  # fmt: skip
"""The columns of a row and of its contract that are compared for each part of scope."""

Rows = dict[str, pa.Array]
"""Columns by name, one value per candidate."""
Float = NDArray[np.float64]
Int = NDArray[np.int64]


def lifecycle_factor(state: str | None) -> float:
    """How much of its authority a row has in a state."""
    return _LIFECYCLE_FACTOR.get(state or "candidate", 0.0)


def authority_term(rows: Rows, evidence: pa.Table, row: Int, lifecycle: Float) -> Float:
    """Rank / 3, times the factors of lifecycle, confidence (half of it counts), generated text (S0.32) and memories
    without a source (S0.115); `row` is the row of each in `evidence`, `lifecycle` its `lifecycle_factor`.

    So a decision "do not edit generated files by hand" beats the current generated file, and a verified rule beats a
    hunch.
    """
    rank = floats(pc.fill_null(rows["authority"], 0)) / (len(AUTHORITY.values) - 1)
    confidence = 0.5 + 0.5 * np.clip(floats(pc.fill_null(rows["confidence"], 1.0)), 0.0, 1.0)
    generated = np.where(truth(rows["generated"]), _GENERATED_FACTOR, 1.0)
    memory = np.flatnonzero(truth(pc.equal(rows["evidence_kind"], "memory")))
    unsourced = np.ones(len(row))
    if len(memory):
        sources = gathered(evidence["source_refs"], row[memory]).to_pylist()
        unsourced[memory[[not refs for refs in sources]]] = _UNSOURCED_FACTOR
    return quantise(np.clip(rank, 0.0, 1.0) * lifecycle * confidence * generated * unsourced)


def age_in_days(event: pa.Array, recorded: pa.Array, as_of: pa.Array) -> tuple[Float, NDArray[np.bool_]]:
    """Days at `as_of` since the event, or the record where there is none; and whether neither has a time.

    A source without record times uses 1970-01-01.
    """
    happened = micros(event, OPEN_START)
    happened = np.where(happened == OPEN_START, micros(recorded, OPEN_START), happened)
    return np.maximum(micros(as_of, 0) - happened, 0) / MICROS_PER_DAY, happened <= 0


def recency_term(age: Float, half_life: Float) -> Float:
    """2 ** (-age / half-life); 1 for an infinite half-life."""
    return quantise(np.exp2(-np.divide(age, half_life, out=np.full(len(age), np.inf), where=half_life > 0)))


def scope_term(owner: Int, rows: Rows, asked: Rows, anchors: pa.Table, anchor_owner: Int) -> Float:
    """Closeness within the scope: the sum of the weights of the `_SCOPE_PARTS` that match."""
    closeness = np.zeros(len(owner))
    for name, (ours, theirs) in _SAME.items():
        if rows[ours].null_count < len(owner) and asked[theirs].null_count < len(owner):
            closeness += quantise(np.where(truth(pc.equal(rows[ours], asked[theirs])), _SCOPE_PARTS[name], 0.0))
    anchored = {
        (request, _folder(value))
        for request, kind, value in zip(
            anchor_owner.tolist(), anchors["kind"].to_pylist(), anchors["value"].to_pylist(), strict=True
        )
        if kind == "path"
    }
    if not anchored:
        return closeness
    paths = zip(owner.tolist(), rows["path"].to_pylist(), strict=True)
    beside = [path is not None and (request, _folder(path)) in anchored for request, path in paths]
    return closeness + quantise(np.where(beside, _SCOPE_PARTS["directory"], 0.0))


def _folder(path: str) -> str:
    return path[: path.rfind("/") + 1]
