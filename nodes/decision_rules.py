"""How one candidate's fate is read off the tables of the line: stage by stage, the earliest removal decides."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .gates import GATES, HIDING
from .keys import distinct_rows, flags_at, flat, objects, pair_codes, pair_positions, positions, take_or
from .list_columns import flattened
from .recall_scope import codes_of
from .vocabulary import OUTCOMES, REASON_CODES, STAGES

Words: TypeAlias = NDArray[np.object_]

PACK_RULES = {
    "unverified_cap": "max_unverified_items",
    "source_cap": "max_items_per_source",
    "citation_unresolved": "require_citation",
}
"""What decided, for reasons of packing that a field of the contract gives."""

BUDGET_REASONS = {
    "max_items": "budget_items",
    "max_tokens": "budget_tokens",
    "max_chars": "budget_tokens",
    "max_chunk_tokens": "budget_part",
}
"""Reason code of a row that trimming dropped, by the limit that bound."""

PACK_STAGES = {
    "low_score": "select",
    "unverified_cap": "select",
    "citation_unresolved": "cite",
}
"""Stage of a row that packing dropped, by reason; every other reason builds items and is stage `pack`."""

WORDS = {
    "merged": "shown as part of the item it was merged into",
    "low_score": "ranked below the items that were chosen",
    "duplicate": "the same text stands in another item",
    "near_duplicate": "nearly the same text stands in another item",
    "unverified_cap": "the cap on unverified items was reached",
    "source_cap": "the cap on items of one source was reached",
    "budget_items": "the limit on items was reached",
    "budget_tokens": "the limit on the block's size was reached",
    "budget_part": "the limit on one item's size left nothing of it",
    "conflict_downrank": "a competing claim ranks higher, and the limits leave no room for both",
    "citation_unresolved": "its citation does not resolve",
    "wall_disagreement": "the two walls disagree, so nothing of this request is shown",
}
GATE_WORDS = {gate.reason_code: f"not so: {gate.doc}" for gate in GATES}


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
    conflict_sets: pa.Array,
) -> dict[str, Any]:
    """The columns of DECISIONS that the line's tables give, in the order of `candidates`; so are `conflict_sets`."""
    parents = pc.list_parent_indices(flat(trimmed["merged_rows"]))
    members = flat(trimmed["request_id"]).take(parents), pc.list_flatten(flat(trimmed["merged_rows"]))
    merged_into = pc.fill_null(flat(packs["merged_into"]), "")
    keys, *others = pair_codes(
        *((table["request_id"], table["evidence_id"]) for table in (candidates, verdicts, ranked, packs, bounded)),
        (packs["request_id"], merged_into), members,
        *((table["request_id"], table["evidence_id"]) for table in (trimmed, trims, citations)),
    )  # fmt: skip
    of_verdicts, of_ranked, of_packs, of_bounded, of_leads, of_members, of_trimmed, of_trims, of_citations = others
    verdict, rank, pack = (positions(keys, codes) for codes in (of_verdicts, of_ranked, of_packs))
    # A merged row shares its item's fate, the item's own reason included; a duplicate has a fate of its own.
    merged = np.asarray(pc.equal(flat(packs["reason_code"]), "merged").fill_null(False))
    leading = np.where(merged, positions(of_leads, of_packs), np.arange(packs.num_rows))
    lead = np.where(pack >= 0, leading[pack], -1) if packs.num_rows else pack
    kept = flags_at(packs["kept"], lead)
    lead_keys = take_or(of_packs, lead)
    item, cut, citation = (positions(lead_keys, codes) for codes in (of_trimmed, of_trims, of_citations))
    shown = positions(keys, of_members) >= 0
    cited = flags_at(citations["resolves"], citation) | ~_required(candidates, contracts)

    steps = np.stack(
        [
            ~flags_at(verdicts["admitted"], verdict), positions(keys, of_bounded) < 0, rank < 0, pack < 0, ~kept, item < 0,
            ~cited, (lead != pack) & ~shown, lead != pack,
        ]
    )  # fmt: skip
    said = [
        take_or(verdicts["decided_by"], verdict), take_or(verdicts["reason_code"], verdict),
        take_or(packs["reason_code"], lead), take_or(trims["bound_by"], cut),
    ]  # fmt: skip
    first, fate = distinct_rows(codes_of([pa.array((1 << np.arange(len(steps))) @ steps), *said]))
    fates = _fates(steps[:, first], *(objects(words.take(pa.array(first))) for words in said))
    chosen, cut_off = ((fates[name] == word)[fate] for name, word in (("outcome", "selected"), ("stage", "trim")))
    beaten = cut_off & _rival_shown(candidates["request_id"], conflict_sets, chosen)
    fates["reason_code"] = np.concatenate(
        (fates["reason_code"], np.full(len(first), "conflict_downrank", dtype=object))
    )
    at, of_reason = pa.array(fate), pa.array(np.where(beaten, fate + len(first), fate))
    selected = take_or(ranked["selected_reason"], rank, "selected")
    return {
        "request_id": candidates["request_id"],
        "evidence_id": candidates["evidence_id"],
        "outcome": OUTCOMES.column(fates["outcome"]).take(at),
        "stage": STAGES.column(fates["stage"]).take(at),
        "form": pc.if_else(pa.array(chosen), take_or(trimmed["form"], item, "none"), "none"),
        "decided_by": pa.array(fates["decided_by"], pa.string()).take(at),
        "would_reject_by": take_or(verdicts["would_reject_by"], verdict),
        "admitted_by": take_or(verdicts["admitted_by"], verdict, ""),
        "reason_code": REASON_CODES.column(fates["reason_code"]).take(of_reason),
        "reason_text": pc.coalesce(pa.array(_words(fates["reason_code"]), pa.string()).take(of_reason), selected),
        "rank": take_or(ranked["rank"], rank),
        "final": take_or(ranked["final"], rank),
    }


def _fates(
    steps: NDArray[np.bool_], gate: Words, gate_reason: Words, pack_reason: Words, bound_by: Words
) -> dict[str, Words]:
    """What becomes of candidates: outcome, stage, what decided and the reason.

    `steps` is bool[steps, candidates], true where a candidate does not pass a step; the first such step decides.
    """
    pack_reason = np.where(pack_reason == None, "low_score", pack_reason)  # noqa: E711 - element-wise
    trim_reason = _mapped(bound_by, BUDGET_REASONS, "budget_tokens")
    ends: list[tuple[Any, Any, Any, Any]] = [
        (np.where(np.isin(gate, list(HIDING)), "hidden", "rejected"), "gate", gate, gate_reason),
        ("rejected", "gate", "walls", "wall_disagreement"),
        ("rejected", "rank", None, "low_score"),
        ("rejected", "select", None, "low_score"),
        ("rejected", _mapped(pack_reason, PACK_STAGES, "pack"), _mapped(pack_reason, PACK_RULES, None), pack_reason),
        ("rejected", "trim", bound_by, trim_reason),
        ("rejected", "cite", "require_citation", "citation_unresolved"),
        ("rejected", "trim", bound_by, trim_reason),
        ("selected", "pack", None, "merged"),
        ("selected", "project", None, "selected"),
    ]
    step = np.where(steps.any(axis=0), steps.argmax(axis=0), len(steps))
    columns = (np.stack([np.broadcast_to(one, len(step)) for one in column]) for column in zip(*ends, strict=True))
    chosen = (column[step, np.arange(len(step))].astype(object) for column in columns)
    return dict(zip(("outcome", "stage", "decided_by", "reason_code"), chosen, strict=True))


def _required(candidates: pa.Table, contracts: pa.Table) -> NDArray[np.bool_]:
    """Whether the candidate's request shows nothing without a citation that resolves."""
    return flags_at(contracts["require_citation"], positions(candidates["request_id"], contracts["request_id"]))


def _rival_shown(request_ids: pa.ChunkedArray, conflict_sets: pa.Array, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether another member of the row's conflict set is shown: what had no room stands behind its rival."""
    code = codes_of([request_ids, conflict_sets])
    return np.isin(code, code[chosen]) & np.asarray(conflict_sets.is_valid())


def _mapped(values: Words, mapping: dict[str, str], default: str | None) -> Words:
    result = np.full(len(values), default, dtype=object)
    for value, mapped in mapping.items():
        result[values == value] = mapped
    return result


def _words(reason: Words) -> Words:
    """Reasons of rows that were not chosen, in words: the rule that they did not meet; None where a row was."""
    text = _mapped(reason, GATE_WORDS | WORDS, None)
    return np.where((text == None) & (reason != "selected"), reason, text)  # noqa: E711 - element-wise


def masked_rows(candidates: pa.Table, trimmed: pa.Table) -> NDArray[np.bool_]:
    """Which candidates are in an item of which policy masked something."""
    items = trimmed.filter(pc.is_valid(trimmed["masked_by"]))
    item, member = flattened(items["merged_rows"])
    owner = flat(items["request_id"]).take(pa.array(item))
    return pair_positions((candidates["request_id"], candidates["evidence_id"]), (owner, member)) >= 0
