"""Audit snapshot: what was decided about every candidate, what the caller should know, and one row per request.

Reads every table of the line. Gives `decisions` (recalled = selected + hidden + rejected), `conditions` (a set with
actions) and `snapshots` (status, counts and the digest of everything asked, decided and shown).

A row merged into an item counts as selected only if the item still shows it after trimming. Conditions describe the
contract and what was shown, never what was withheld, because callers read them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .audit.condition_rules import Answered, condition_rows, worst_actions
from .audit.decision_rules import decision_columns, masked_rows
from .audit.snapshot_digest import snapshot_digests
from .columns.digests import EMPTY_SHA256
from .columns.keys import flags_at, flat, gathered, gathered_columns, objects, positions, take_or
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
    ContractLayers,
    Contracts,
    Decisions,
    Evidence,
    FactChecks,
    Failures,
    FilterLadder,
    Fits,
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

_NO_POLICY = "none"


def decisions(
    candidates: Candidates,
    verdicts: Verdicts,
    pool: Pool,
    ranked: Ranked,
    packs: Packs,
    fits: Fits,
    trimmed: Trimmed,
    citations: Citations,
    contracts: Contracts,
    evidence: Evidence,
    placements: Placements,
) -> Decisions:
    """Every candidate once, by request and evidence id, with outcome, stage, deciding rule and reason.

    The earliest stage that removed a row decided it; a row that no stage removed was selected.
    """
    columns = decision_columns(candidates, verdicts, pool, ranked, packs, fits, trimmed, citations, contracts)
    row, placement = candidates["row"], candidates["placement"]
    columns |= gathered_columns(evidence, ("source_id", "path", "evidence_kind", "redactions"), row)
    redacted = _some(columns.pop("redactions"))
    columns |= {
        "redacted": pc.or_(redacted, pa.array(masked_rows(pool, candidates.num_rows, trimmed))),
        "version": gathered(placements["version"], placement),
    }
    return DECISIONS.build(columns, rows=candidates.num_rows).sort_by(
        [("request_id", "ascending"), ("evidence_id", "ascending")]
    )


def conditions(
    requests: Requests,
    failures: Failures,
    contracts: Contracts,
    sub_queries: SubQueries,
    role_policies: RolePolicies,
    lane_states: LaneStates,
    verdicts: Verdicts,
    score_terms: ScoreTerms,
    candidates: Candidates,
    pool: Pool,
    packs: Packs,
    trimmed: Trimmed,
    blocks: Blocks,
    decisions: Decisions,
    evidence: Evidence,
    structured_facts: StructuredFacts,
    fact_checks: FactChecks,
    admissible: Admissible,
) -> Conditions:
    """What the caller should know, by request, condition and subject; `healthy` where there is nothing to report."""
    return condition_rows(
        Answered(
            requests, failures, contracts, sub_queries, role_policies, lane_states, verdicts, score_terms, candidates,
            pool, packs, trimmed, blocks, decisions, evidence, structured_facts, fact_checks, admissible,
        )
    )  # fmt: skip


def snapshots(
    captures: Captures,
    requests: Requests,
    failures: Failures,
    contracts: Contracts,
    contract_bounds: ContractBounds,
    contract_layers: ContractLayers,
    session_events: SessionEvents,
    anchors: Anchors,
    sub_queries: SubQueries,
    admissible: Admissible,
    filter_ladder: FilterLadder,
    hits: Hits,
    candidates: Candidates,
    verdicts: Verdicts,
    score_terms: ScoreTerms,
    rerank_weights: RerankWeights,
    ranked: Ranked,
    packs: Packs,
    structured_facts: StructuredFacts,
    fact_checks: FactChecks,
    trimmed: Trimmed,
    trims: Trims,
    citations: Citations,
    item_details: ItemDetails,
    blocks: Blocks,
    decisions: Decisions,
    conditions: Conditions,
    provenance: Provenance,
    lane_states: LaneStates,
) -> Snapshots:
    """One row per request and per failure, by request id, with the digest of everything asked, decided and shown."""
    ids = _ids(captures)
    capture = positions(ids, captures["request_id"])
    contract = positions(ids, contracts["request_id"])
    block = positions(ids, blocks["request_id"])
    outcome = objects(decisions["outcome"])
    owner = positions(decisions["request_id"], ids)
    failure = positions(ids, failures["request_id"])
    walls = np.zeros(len(ids), bool)
    walls[positions(verdicts["request_id"].filter(verdicts["wall_disagreement"]), ids)] = True

    def count(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(owner[mask], minlength=len(ids))

    row = {
        "request_id": ids,
        "snapshot_id": take_or(captures["snapshot_id"], capture),
        "status": _statuses(ids, failure, walls, contracts, contract, lane_states, blocks, block),
        "action": worst_actions(ids, conditions),
        "contract_id": take_or(contracts["contract_id"], contract, ""),
        "block_ref": take_or(blocks["block_ref"], block),
        "visible_sha256": take_or(blocks["text_sha256"], block, EMPTY_SHA256),
        "recalled": np.bincount(owner, minlength=len(ids)),
        "selected_rows": count(outcome == "selected"),
        "hidden": count(outcome == "hidden"),
        "rejected": count(outcome == "rejected"),
        "redacted": count(
            (outcome == "selected") & np.asarray(flat(decisions["redacted"]).to_numpy(False)).astype(bool)
        ),
        "estimated_tokens": take_or(blocks["tokens"], block, 0),
        "max_tokens": take_or(contracts["max_tokens"], contract, 0),
        "bound_by": take_or(blocks["bound_by"], block),
        "trimming_policy": take_or(trims["policy"], positions(ids, trims["request_id"]), _NO_POLICY),
        "created_at": take_or(captures["created_at"], capture),
        "error": take_or(failures["error"], failure),
    }
    table = SNAPSHOTS.build({**row, "snapshot_digest": pa.repeat("", len(ids))})
    tables = {
        "requests": requests, "failures": failures, "contracts": contracts, "contract_bounds": contract_bounds,
        "contract_layers": contract_layers, "session_events": session_events, "anchors": anchors, "sub_queries": sub_queries, "admissible": admissible,
        "filter_ladder": filter_ladder, "hits": hits, "candidates": candidates, "verdicts": verdicts,
        "score_terms": score_terms, "rerank_weights": rerank_weights, "ranked": ranked, "packs": packs,
        "structured_facts": structured_facts, "fact_checks": fact_checks, "trimmed": trimmed, "trims": trims,
        "citations": citations, "item_details": item_details, "blocks": blocks,
        "decisions": decisions, "conditions": conditions,
        "snapshots": table,
    }  # fmt: skip
    digests = snapshot_digests(tables, provenance, ids)
    place = SNAPSHOTS.schema.get_field_index("snapshot_digest")
    return table.set_column(place, SNAPSHOTS.schema.field(place), pa.array(digests, pa.string()))


def _ids(captures: pa.Table) -> pa.Array:
    """Every request and failure, by id."""
    return flat(captures["request_id"]).take(pc.sort_indices(captures["request_id"]))


def _statuses(
    ids: pa.Array,
    failure: NDArray[np.int64],
    walls: NDArray[np.bool_],
    contracts: pa.Table,
    contract: NDArray[np.int64],
    lane_states: pa.Table,
    blocks: pa.Table,
    block: NDArray[np.int64],
) -> NDArray[np.str_]:
    """Worst first: failed, denied, partial, empty, ok."""
    lane_failed = np.zeros(len(ids), bool)
    broken = lane_states.filter(pc.equal(lane_states["state"], "failed"))
    lane_failed[positions(broken["request_id"], ids)] = True
    items = np.asarray(take_or(blocks["items"], block, 0))
    return np.select(
        [(failure >= 0) | walls, flags_at(contracts["denied"], contract), lane_failed, items == 0],
        ["failed", "denied", "partial", "empty"],
        "ok",
    )


def _some(lists: pa.Array) -> pa.Array:
    """Whether each list has a value."""
    return pc.greater(pc.fill_null(pc.list_value_length(lists), 0), 0)
