"""Audit snapshot: what was decided about every candidate, what the caller should know, and one row per request.

Reads every table of the line. Gives `decisions` (recalled = selected + hidden + rejected), `conditions` (a set with
actions), the record that a run stores, and `snapshots` (status, counts and the digest of everything asked, decided and
shown).

Conditions describe the contract and what was shown, never what was withheld, because callers read them.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from .audit.condition_rules import (
    by_id,
    condition_rows,
    mismatches,
    of_answer,
    of_lanes,
    selected_rows,
    shown_rows,
    stale_records,
    worst_actions,
)
from .audit.decision_rules import decision_columns, masked_rows
from .audit.records import VIEWED, Recorded, recorded, snapshot_digests
from .blocks.rendering import TRIMMING_POLICY
from .columns.digests import EMPTY_SHA256, stored_form
from .columns.keys import flat, gathered, gathered_columns, truth
from .errors import VerificationError
from .facts.fact_conflicts import rivals
from .tables import (
    DECISIONS,
    SNAPSHOTS,
    Admissible,
    Anchors,
    Blocks,
    Candidates,
    Captures,
    Citations,
    Conditions,
    ContractBounds,
    Contracts,
    Decisions,
    Evidence,
    FactChecks,
    Failures,
    FilterLadder,
    Hits,
    ItemDetails,
    LaneStates,
    Packs,
    Placements,
    Pool,
    Provenance,
    Ranked,
    Requests,
    RerankWeights,
    RolePolicies,
    ScoreTerms,
    SessionEvents,
    Snapshots,
    StructuredFacts,
    SubQueries,
    Trimmed,
    Trims,
    Verdicts,
)

_SHOWN = ("block_ref", "text_sha256", "items", "tokens", "bound_by")
"""What a snapshot repeats of its block."""
_NOTHING_SHOWN = {"block_ref": None, "text_sha256": EMPTY_SHA256, "items": 0, "tokens": 0, "bound_by": None}
_COUNTED = ("request_id", "outcome", "redacted")


def decisions(
    candidates: Candidates,
    verdicts: Verdicts,
    pool: Pool,
    ranked: Ranked,
    packs: Packs,
    trims: Trims,
    trimmed: Trimmed,
    evidence: Evidence,
    placements: Placements,
) -> Decisions:
    """Every candidate once, in their order, with outcome, stage, deciding rule and reason.

    The earliest stage that removed a row decided it; a row that no stage removed was selected.
    """
    columns = decision_columns(candidates, verdicts, pool, ranked, packs, trims, trimmed)
    row, placement = candidates["row"], candidates["placement"]
    columns |= gathered_columns(evidence, ("source_id", "path", "evidence_kind", "redactions"), row)
    redacted = _some(columns.pop("redactions"))
    columns |= {
        "redacted": pc.or_(redacted, pa.array(masked_rows(pool, candidates.num_rows, trimmed))),
        "version": gathered(placements["version"], placement),
    }
    return DECISIONS.build(columns, rows=candidates.num_rows)


def conditions(
    requests: Requests,
    failures: Failures,
    contracts: Contracts,
    sub_queries: SubQueries,
    role_policies: RolePolicies,
    lane_states: LaneStates,
    candidates: Candidates,
    verdicts: Verdicts,
    decisions: Decisions,
    pool: Pool,
    score_terms: ScoreTerms,
    packs: Packs,
    trimmed: Trimmed,
    blocks: Blocks,
    evidence: Evidence,
    structured_facts: StructuredFacts,
    fact_checks: FactChecks,
    admissible: Admissible,
) -> Conditions:
    """What the caller should know, by request, condition and subject; `healthy` where there is nothing to report."""
    if not decisions["evidence_id"].equals(candidates["evidence_id"]):
        raise VerificationError(
            f"Expected one decision for each of {candidates.num_rows} candidates, got others", at="decisions"
        )
    owner, reason = decisions["request_id"], decisions["reason_code"]
    shown = truth(pc.equal(decisions["outcome"], "selected"))

    def where(owner: pa.ChunkedArray, mask: pa.ChunkedArray) -> set[str]:
        return {*owner.filter(mask).to_pylist()}

    of_shown = shown_rows(candidates, pool, score_terms, shown)
    selected = selected_rows(of_shown, sub_queries, contracts, role_policies, evidence)
    walls = where(owner, verdicts["wall_disagreement"])
    of_candidates = {name: where(owner, pc.equal(reason, name)) for name in ("conflict_downrank", "forbidden_source")}
    of_candidates["packed"] = where(packs["request_id"], pc.greater(packs["position"], 0))
    of_candidates["noted"] = where(trimmed["request_id"], trimmed["conflict_note"])
    messages = {"conflicting": rivals(candidates["row"], verdicts, shown, evidence, contracts)}
    messages |= {"fact_mismatch": mismatches(fact_checks, trimmed), "sot_stale": stale_records(structured_facts)}
    errors = dict(zip(failures["request_id"].to_pylist(), failures["error"].to_pylist(), strict=True))
    block, open_ = by_id(blocks, ("items", "tokens", "bound_by")), by_id(admissible, ("rows", "unmatched_sources"))
    contract = by_id(contracts, ("denied", "role", "max_tokens", "required_evidence"))
    asked = by_id(requests, ("role", "as_of"))
    said = [(one, "request_failed", "", "block", error) for one, error in errors.items()]
    words = "the two walls disagree about a row, so nothing is shown"
    said += [*of_lanes(lane_states), *((one, "wall_disagreement", "", "block", words) for one in walls)]
    for one, request in asked.items():
        mine = contract.get(one)
        if request["role"] and not (mine and mine["role"]):
            words = "no role overlay was applied: the shared corpus alone"
            said.append((one, "no_overlay", "role", "continue", words))
        if mine and mine["denied"]:
            said.append((one, "nothing_granted", "", "block", "nothing that was asked for is granted"))
        elif mine and one not in walls:
            true = {name for name, ids in of_candidates.items() if one in ids}
            told = {name: of[one] for name, of in messages.items() if one in of}
            answered = of_answer(request, mine, open_[one], block[one], selected[one], true, told)
            said += [(one, *condition) for condition in answered]
    return condition_rows({**asked, **errors}, said)


def record(
    captures: Captures,
    requests: Requests,
    contracts: Contracts,
    admissible: Admissible,
    rerank_weights: RerankWeights,
    contract_bounds: ContractBounds,
    filter_ladder: FilterLadder,
    session_events: SessionEvents,
    anchors: Anchors,
    sub_queries: SubQueries,
    hits: Hits,
    candidates: Candidates,
    verdicts: Verdicts,
    decisions: Decisions,
    score_terms: ScoreTerms,
    ranked: Ranked,
    packs: Packs,
    trims: Trims,
    trimmed: Trimmed,
    item_details: ItemDetails,
    citations: Citations,
    failures: Failures,
    blocks: Blocks,
    structured_facts: StructuredFacts,
    fact_checks: FactChecks,
    conditions: Conditions,
    pool: Pool,
) -> Recorded:
    """What a run stores: a row per request and per failure, with the rows of every table about it."""
    tables = locals()
    return recorded(flat(captures["request_id"]), {name: tables[name] for name in VIEWED}, pool)


def snapshots(
    captures: Captures,
    contracts: Contracts,
    failures: Failures,
    verdicts: Verdicts,
    decisions: Decisions,
    blocks: Blocks,
    conditions: Conditions,
    lane_states: LaneStates,
    provenance: Provenance,
    record: Recorded,
) -> Snapshots:
    """One row per request and per failure, by request id, with the digest of everything asked, decided and shown."""
    known, block = by_id(contracts, ("contract_id", "denied", "max_tokens")), by_id(blocks, _SHOWN)
    errors = dict(zip(failures["request_id"].to_pylist(), failures["error"].to_pylist(), strict=True))
    counted = Counter(zip(*(decisions[name].to_pylist() for name in _COUNTED), strict=True))
    walls = {*verdicts["request_id"].filter(verdicts["wall_disagreement"]).to_pylist()}
    broken = {*lane_states["request_id"].filter(pc.equal(lane_states["state"], "failed")).to_pylist()}
    rows = []
    actions = worst_actions(captures["request_id"], conditions)
    for stamp, action in zip(captures.to_pylist(), actions, strict=True):
        id_ = stamp["request_id"]
        error, shown = errors.get(id_), block.get(id_, _NOTHING_SHOWN)
        contract = known.get(id_) or {"contract_id": "", "denied": False, "max_tokens": 0}
        masked = counted[id_, "selected", True]
        counts = {"selected_rows": masked + counted[id_, "selected", False]}
        counts |= {name: counted[id_, name, True] + counted[id_, name, False] for name in ("hidden", "rejected")}
        status = (
            "failed" if id_ in errors or id_ in walls else "denied" if contract["denied"] else "partial" if id_ in broken
            else "ok" if shown["items"] else "empty"
        )  # fmt: skip
        rows.append(
            stamp
            | {
                "snapshot_digest": "",
                "status": status,
                "action": action,
                "contract_id": contract["contract_id"],
                "block_ref": shown["block_ref"],
                "visible_sha256": shown["text_sha256"],
                "recalled": sum(counts.values()),
                **counts,
                "redacted": masked,
                "estimated_tokens": shown["tokens"],
                "max_tokens": contract["max_tokens"],
                "bound_by": shown["bound_by"],
                "trimming_policy": TRIMMING_POLICY,
                "error": error,
            }
        )
    table = SNAPSHOTS.from_rows(rows)
    digests = snapshot_digests(record.rows, stored_form(table, SNAPSHOTS), provenance)
    place = SNAPSHOTS.schema.get_field_index("snapshot_digest")
    return table.set_column(place, SNAPSHOTS.schema.field(place), pa.array(digests, pa.string()))


def _some(lists: pa.Array) -> pa.Array:
    """Whether each list has a value."""
    return pc.greater(pc.fill_null(pc.list_value_length(lists), 0), 0)
