"""Determines each candidate's outcome from the tables of the line: stage by stage, the earliest removal decides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import distinct_values, integers, present, take_or, truth
from ..walls.gate import PLUGIN_REASON
from ..walls.gates import GATES, HIDING

Bool = NDArray[np.bool_]
Int = NDArray[np.int64]

PACK_RULES = {
    "unverified_cap": "max_unverified_items",
    "source_cap": "max_items_per_source",
    "citation_unresolved": "require_citation",
    "budget_items": "max_items",
}
"""The contract field that decided, for packing reasons that depend on one."""

BUDGET_REASONS = {
    "max_items": "budget_items",
    "max_tokens": "budget_tokens",
    "max_chars": "budget_tokens",
    "max_chunk_tokens": "budget_part",
    "conflict_set": "conflict_downrank",
}
"""Reason code of a row that trimming dropped, by the limit that bound."""

PACK_STAGES = {
    "low_score": "select",
    "unverified_cap": "select",
    "citation_unresolved": "cite",
    "budget_items": "trim",
}
"""Stage of a row that packing dropped, by reason; every other reason is stage `pack`."""

WORDS = {
    "low_score": "ranked below the items that were chosen",
    "duplicate": "another item has the same text",
    "near_duplicate": "another item has a text that differs only in spacing",
    "unverified_cap": "the cap on unverified items was reached",
    "source_cap": "the cap on items of one source was reached",
    "budget_items": "the limit on items was reached",
    "budget_tokens": "the limit on the block's size was reached",
    "budget_part": "the limit on one item's size left nothing of it",
    "conflict_downrank": "a competing claim has no room beside it, and neither is shown alone",
    "citation_unresolved": "its citation does not resolve",
    "replaced": "another row that is current has taken its place",
    "wall_disagreement": "the two walls disagree, so nothing of this request is shown",
    PLUGIN_REASON: "a gate of a plugin stops it, the one that decided",
}
REASON_WORDS = {gate.reason_code: f"required: {gate.doc}" for gate in GATES} | WORDS
"""Reasons in words: the rule that a row did not meet."""


def decision_columns(
    candidates: pa.Table,
    verdicts: pa.Table,
    pool: pa.Table,
    ranked: pa.Table,
    packs: pa.Table,
    trims: pa.Table,
    trimmed: pa.Table,
) -> dict[str, Any]:
    """The columns of DECISIONS that come from the line's tables, in the order of `candidates`."""
    rows = pool.num_rows
    place = _rows_at(pool["candidate"], candidates.num_rows)[:-1]
    rank = _rows_at(ranked["place"], rows)[place]
    pack = _rows_at(packs["place"], rows)[place]
    cut, item = (_rows_at(table["place"], rows)[place] for table in (trims, trimmed))
    # The first step that holds decides, see `_STEPS`; the last one, for rows that pass every step, always holds.
    steps = [
        ~truth(verdicts["admitted"]), (place < 0) & present(candidates["replaced_by"]), place < 0, rank < 0, pack < 0,
        np.append(integers(packs["position"]), 0)[pack] == 0, item < 0, np.ones(len(pack), dtype=bool),
    ]  # fmt: skip
    # Candidates share a few dozen outcomes: each is computed once, and used for all its rows.
    pack_reason, bound_by = take_or(packs["reason_code"], pack), take_or(trims["bound_by"], cut)
    step = pa.array(np.stack(steps).argmax(axis=0))
    reasons = dict(zip(verdicts["decided_by"].to_pylist(), verdicts["reason_code"].to_pylist(), strict=True))
    keys, of = distinct_values([step, verdicts["decided_by"], pack_reason, bound_by])
    fates = [_fate(step, gate, reasons[gate], *beside) for step, gate, *beside in keys]
    at = pa.array(of)
    chosen = np.array([fate.outcome == "selected" for fate in fates], dtype=bool)[of]
    # Of a shown row the words are why it was selected.
    words = [None if fate.reason == "selected" else REASON_WORDS.get(fate.reason, fate.reason) for fate in fates]
    outcome, stage, decided_by, reason, text = (
        (pa.array(values, pa.string()).take(at) for values in (*zip(*fates, strict=True), words))
        if fates
        else (pa.nulls(0, pa.string()),) * 5
    )
    return {
        **{name: candidates[name] for name in ("request_id", "evidence_id", "pool_rank")},
        "outcome": outcome,
        "stage": stage,
        "form": pc.if_else(pa.array(chosen), take_or(trimmed["form"], item, "none"), "none"),
        "decided_by": decided_by,
        "would_reject_by": verdicts["would_reject_by"],
        "reason_code": reason,
        "reason_text": pc.coalesce(text, take_or(ranked["selected_reason"], rank, "selected")),
        "rank": take_or(ranked["rank"], rank),
        "final": take_or(ranked["final"], rank),
    }


def _rows_at(places: pa.ChunkedArray, count: int) -> Int:
    """The row of a table at each of `count` places, by the place of each row; -1 where there is none, and at place -1."""
    rows = np.full(count + 1, -1)
    rows[integers(places)] = np.arange(len(places))
    return rows


_STEPS = ("gate", "replaced", "walls", "rank", "select", "pack", "trim", "shown")
"""What decides a candidate, in order."""


class _Fate(NamedTuple):
    outcome: str
    stage: str
    decided_by: str | None
    reason: str


_FATES = {
    "replaced": _Fate("rejected", "merge", None, "replaced"),
    "walls": _Fate("rejected", "gate", "walls", "wall_disagreement"),
    "rank": _Fate("rejected", "rank", None, "low_score"),
    "shown": _Fate("selected", "project", None, "selected"),
}
"""The outcomes that follow from the step alone."""


def _fate(step: int, gate: str | None, gate_reason: str | None, pack_reason: str | None, bound_by: str | None) -> _Fate:
    """The outcome of a candidate at the step that decides it; many candidates share one."""
    match _STEPS[step]:
        case "gate":
            return _Fate("hidden" if gate in HIDING else "rejected", "gate", gate, gate_reason or "")
        case "select" | "pack":
            reason = pack_reason or "low_score"
            return _Fate("rejected", PACK_STAGES.get(reason, "pack"), PACK_RULES.get(reason), reason)
        case "trim":
            return _Fate("rejected", "trim", bound_by, BUDGET_REASONS.get(bound_by or "", "budget_tokens"))
        case name:
            return _FATES[name]


def masked_rows(pool: pa.Table, candidates: int, trimmed: pa.Table) -> Bool:
    """Which candidates are in an item with text masked by policy."""
    masked = np.zeros(candidates, dtype=bool)
    items = trimmed.filter(trimmed["masked_by"].is_valid())
    masked[integers(pool["candidate"])[integers(items["place"])]] = True
    return masked
