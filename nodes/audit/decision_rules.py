"""Determines each candidate's outcome from the tables of the line: stage by stage, the earliest removal decides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import (
    codes_of,
    distinct_rows,
    expect_same_rows,
    flags_at,
    flat,
    pair_codes,
    pair_positions,
    positions,
    take_or,
    truth,
)
from ..columns.list_columns import flattened
from ..vocabulary import OUTCOMES, PLAIN_REASONS, STAGES, Vocabulary
from ..walls.gates import GATES, HIDING
from ..walls.gates.gate import PLUGIN_REASON

Bool = NDArray[np.bool_]

PACK_RULES = {
    "unverified_cap": "max_unverified_items",
    "source_cap": "max_items_per_source",
    "citation_unresolved": "require_citation",
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
}
"""Stage of a row that packing dropped, by reason; every other reason is stage `pack`."""

WORDS = {
    "merged": "shown as part of the item it was merged into",
    "low_score": "ranked below the items that were chosen",
    "duplicate": "another item has the same text",
    "near_duplicate": "another item has nearly the same text",
    "unverified_cap": "the cap on unverified items was reached",
    "source_cap": "the cap on items of one source was reached",
    "budget_items": "the limit on items was reached",
    "budget_tokens": "the limit on the block's size was reached",
    "budget_part": "the limit on one item's size left nothing of it",
    "conflict_downrank": "a competing claim has no room beside it, and neither is shown alone",
    "citation_unresolved": "its citation does not resolve",
    "wall_disagreement": "the two walls disagree, so nothing of this request is shown",
    PLUGIN_REASON: "a gate of a plugin stops it, the one that decided",
}
REASON_CODES = Vocabulary("reason_code", (*dict.fromkeys(gate.reason_code for gate in GATES), *PLAIN_REASONS))
"""Every reason that a decision may have: a gate declares its own."""
REASON_WORDS = {gate.reason_code: f"required: {gate.doc}" for gate in GATES} | WORDS
"""Reasons in words: the rule that a row did not meet."""


def decision_columns(
    candidates: pa.Table,
    verdicts: pa.Table,
    bounded: pa.Table,
    ranked: pa.Table,
    packs: pa.Table,
    trimmed: pa.Table,
    trims: pa.Table,
    citations: pa.Table,
    contracts: pa.Table,
) -> dict[str, Any]:
    """The columns of DECISIONS that come from the line's tables, in the order of `candidates`."""
    parents = pc.list_parent_indices(flat(trimmed["merged_rows"]))
    members = flat(trimmed["request_id"]).take(parents), pc.list_flatten(flat(trimmed["merged_rows"]))
    merged_into = pc.fill_null(flat(packs["merged_into"]), "")
    keys, *others = pair_codes(
        *((table["request_id"], table["evidence_id"]) for table in (candidates, ranked, packs)),
        (packs["request_id"], merged_into), members,
        *((table["request_id"], table["evidence_id"]) for table in (trimmed, trims, citations)),
    )  # fmt: skip
    of_ranked, of_packs, of_leads, of_members, of_trimmed, of_trims, of_citations = others
    rank, pack = (positions(keys, codes) for codes in (of_ranked, of_packs))
    admitted, bounded_too = _admitted(candidates, verdicts, bounded)
    # A merged row shares its item's outcome, including the item's own reason; a duplicate has its own outcome.
    merged = np.asarray(pc.equal(flat(packs["reason_code"]), "merged").fill_null(False))
    leading = np.where(merged, positions(of_leads, of_packs), np.arange(packs.num_rows))
    lead = np.where(pack >= 0, leading[pack], -1) if packs.num_rows else pack
    kept = flags_at(packs["kept"], lead)
    lead_keys = take_or(of_packs, lead)
    item, cut, citation = (positions(lead_keys, codes) for codes in (of_trimmed, of_trims, of_citations))
    shown = positions(keys, of_members) >= 0
    cited = flags_at(citations["resolves"], citation) | ~_required(candidates, contracts)

    # The first step that holds decides, see `_STEPS`; the last one, for rows that pass every step, always holds.
    steps = [
        ~admitted, ~bounded_too, rank < 0, pack < 0, ~kept, item < 0,
        ~cited, (lead != pack) & ~shown, lead != pack, np.ones(len(pack), dtype=bool),
    ]  # fmt: skip
    step = np.stack(steps).argmax(axis=0)
    codes = [
        flat(verdicts["decided_by"]), flat(verdicts["reason_code"]),
        take_or(packs["reason_code"], lead), take_or(trims["bound_by"], cut),
    ]  # fmt: skip
    # Candidates share a few dozen outcomes: each is computed once, in Python, and used for all its rows.
    first, of = distinct_rows(codes_of([pa.array(step), *codes]))
    words = (column.take(pa.array(first)).to_pylist() for column in codes)
    fates = [_fate(*one) for one in zip((_STEPS[one] for one in step[first].tolist()), *words, strict=True)]
    chosen = np.array([fate.outcome == "selected" for fate in fates], dtype=bool)[of]
    reasons = [fate.reason for fate in fates]
    texts = pa.array(
        [None if reason == "selected" else REASON_WORDS.get(reason, reason) for reason in reasons], pa.string()
    )
    at = pa.array(of)
    return {
        "request_id": candidates["request_id"],
        "evidence_id": candidates["evidence_id"],
        "outcome": OUTCOMES.column([fate.outcome for fate in fates]).take(at),
        "stage": STAGES.column([fate.stage for fate in fates]).take(at),
        "form": pc.if_else(pa.array(chosen), take_or(trimmed["form"], item, "none"), "none"),
        "decided_by": pa.array([fate.decided_by for fate in fates], pa.string()).take(at),
        "would_reject_by": verdicts["would_reject_by"],
        "admitted_by": flat(verdicts["admitted_by"]).fill_null(""),
        "reason_code": REASON_CODES.column(reasons).take(at),
        "reason_text": pc.coalesce(texts.take(at), take_or(ranked["selected_reason"], rank, "selected")),
        "rank": take_or(ranked["rank"], rank),
        "final": take_or(ranked["final"], rank),
    }


def _admitted(candidates: pa.Table, verdicts: pa.Table, bounded: pa.Table) -> tuple[Bool, Bool]:
    """Which candidates the second wall admitted, and which of them both walls admitted."""
    expect_same_rows(candidates, verdicts)
    admitted = truth(verdicts["admitted"])
    if bounded.num_rows == np.count_nonzero(admitted):  # nearly always: the walls disagree about none
        return admitted, admitted
    pairs = ((table["request_id"], table["evidence_id"]) for table in (candidates, bounded))
    return admitted, pair_positions(*pairs) >= 0


_STEPS = ("gate", "walls", "rank", "select", "pack", "trim", "cite", "cut", "merged", "shown")
"""What decides a candidate, in order; `cut` is a row of a shown item of which nothing is left."""


class _Fate(NamedTuple):
    outcome: str
    stage: str
    decided_by: str | None
    reason: str


def _fate(step: str, gate: str | None, gate_reason: str | None, pack_reason: str | None, bound_by: str | None) -> _Fate:
    """The outcome of a candidate at the step that decides it; many candidates share one."""
    match step:
        case "gate":
            return _Fate("hidden" if gate in HIDING else "rejected", "gate", gate, gate_reason or "")
        case "walls":
            return _Fate("rejected", "gate", "walls", "wall_disagreement")
        case "rank":
            return _Fate("rejected", "rank", None, "low_score")
        case "select" | "pack":
            reason = pack_reason or "low_score"
            return _Fate("rejected", PACK_STAGES.get(reason, "pack"), PACK_RULES.get(reason), reason)
        case "cite":
            return _Fate("rejected", "cite", "require_citation", "citation_unresolved")
        case "merged":
            return _Fate("selected", "pack", None, "merged")
        case "shown":
            return _Fate("selected", "project", None, "selected")
        case _:
            return _Fate("rejected", "trim", bound_by, BUDGET_REASONS.get(bound_by or "", "budget_tokens"))


def _required(candidates: pa.Table, contracts: pa.Table) -> NDArray[np.bool_]:
    """Whether the candidate's request requires a citation that resolves."""
    return flags_at(contracts["require_citation"], positions(candidates["request_id"], contracts["request_id"]))


def masked_rows(candidates: pa.Table, trimmed: pa.Table) -> NDArray[np.bool_]:
    """Which candidates are in an item with text masked by policy."""
    items = trimmed.filter(pc.is_valid(trimmed["masked_by"]))
    item, member = flattened(items["merged_rows"])
    owner = flat(items["request_id"]).take(pa.array(item))
    return pair_positions((candidates["request_id"], candidates["evidence_id"]), (owner, member)) >= 0
