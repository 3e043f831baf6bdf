"""Audit snapshot: what was decided about every candidate, what the caller should know, and one row per request.

Reads every table of the line. Gives `decisions` (recalled = selected + hidden + rejected), `conditions` (a set with
actions), the records that a run stores, and `snapshots` (status, counts and the digest of everything asked, decided and
shown).

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
from .audit.records import (
    ANSWER_RECORD,
    CANDIDATE_RECORD,
    COVERED,
    ITEM_RECORD,
    REQUEST_RECORD,
    AnswerRecord,
    CandidateRecord,
    ItemRecord,
    RequestRecord,
    recorded,
    snapshot_digests,
)
from .columns.digests import EMPTY_SHA256
from .columns.keys import (
    flags_at,
    flat,
    gathered,
    gathered_columns,
    integers,
    objects,
    positions,
    present,
    take_or,
    truth,
)
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
_OF_BLOCK = ("block_ref", "text_sha256", "items", "tokens", "bound_by")
_ANSWERS = ("request_id", "failures.error",
            *(f"blocks.{name}" for name in _OF_BLOCK))  # fmt: skip
"""What a snapshot repeats of its answer."""


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
    candidate_record: CandidateRecord,
    trimmed: Trimmed,
    blocks: Blocks,
    evidence: Evidence,
    structured_facts: StructuredFacts,
    fact_checks: FactChecks,
    admissible: Admissible,
) -> Conditions:
    """What the caller should know, by request, condition and subject; `healthy` where there is nothing to report."""
    return condition_rows(
        Answered(
            requests, failures, contracts, sub_queries, role_policies, lane_states, candidate_record, trimmed, blocks,
            evidence, structured_facts, fact_checks, admissible,
        )
    )  # fmt: skip


def request_record(
    requests: Requests,
    contracts: Contracts,
    admissible: Admissible,
    rerank_weights: RerankWeights,
    contract_bounds: ContractBounds,
    contract_layers: ContractLayers,
    filter_ladder: FilterLadder,
    session_events: SessionEvents,
    anchors: Anchors,
    sub_queries: SubQueries,
    hits: Hits,
) -> RequestRecord:
    """What was asked under which contract, the plan, what could be read, and what the lanes recalled, by request."""
    return recorded(
        REQUEST_RECORD, requests, contracts, admissible, rerank_weights, contract_bounds, contract_layers,
        filter_ladder, session_events, anchors, sub_queries, hits,
    )  # fmt: skip


def candidate_record(
    candidates: Candidates,
    verdicts: Verdicts,
    decisions: Decisions,
    pool: Pool,
    score_terms: ScoreTerms,
    ranked: Ranked,
    packs: Packs,
    trims: Trims,
) -> CandidateRecord:
    """Every candidate in recall order with all that was found of it, and its one outcome."""
    candidate = integers(pool["candidate"])
    rows = {"decisions": integers(decisions["candidate"]), "score_terms": candidate}
    rows |= {"ranked": candidate[integers(ranked["place"])], "packs": candidate[integers(packs["place"])]}
    rows["trims"] = candidate[integers(trims["place"])]
    return recorded(CANDIDATE_RECORD, candidates, verdicts, decisions, score_terms, ranked, packs, trims, rows=rows)


def item_record(trimmed: Trimmed, item_details: ItemDetails, citations: Citations) -> ItemRecord:
    """Every item that was shown, by request and place in the block."""
    cited = positions(citations["place"], trimmed["place"])
    return recorded(ITEM_RECORD, trimmed, item_details, citations, rows={"citations": cited})


def answer_record(
    captures: Captures,
    failures: Failures,
    blocks: Blocks,
    structured_facts: StructuredFacts,
    fact_checks: FactChecks,
    conditions: Conditions,
) -> AnswerRecord:
    """What was answered: block, facts and conditions, or why the request failed, by request and failure."""
    return recorded(
        ANSWER_RECORD, captures.select(["request_id"]), failures, blocks, structured_facts, fact_checks, conditions
    )


def snapshots(
    captures: Captures,
    contracts: Contracts,
    conditions: Conditions,
    trims: Trims,
    lane_states: LaneStates,
    provenance: Provenance,
    request_record: RequestRecord,
    candidate_record: CandidateRecord,
    item_record: ItemRecord,
    answer_record: AnswerRecord,
) -> Snapshots:
    """One row per request and per failure, by request id, with the digest of everything asked, decided and shown."""
    answers = {name: flat(answer_record[name]) for name in _ANSWERS}
    ids, blocks = answers["request_id"], {name: answers[f"blocks.{name}"] for name in _OF_BLOCK}
    contract = positions(ids, contracts["request_id"])
    owner = positions(candidate_record["request_id"], ids)
    outcome = objects(candidate_record["decisions.outcome"])
    walls = np.zeros(len(ids), bool)
    walls[owner[truth(candidate_record["verdicts.wall_disagreement"])]] = True

    def count(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(owner[mask], minlength=len(ids))

    failed, items = walls | present(answers["failures.error"]), blocks["items"].fill_null(0)
    row = {
        "request_id": ids,
        "snapshot_id": captures["snapshot_id"],
        "status": _statuses(ids, failed, flags_at(contracts["denied"], contract), lane_states, integers(items)),
        "action": worst_actions(ids, conditions),
        "contract_id": take_or(contracts["contract_id"], contract, ""),
        "block_ref": blocks["block_ref"],
        "visible_sha256": blocks["text_sha256"].fill_null(EMPTY_SHA256),
        "recalled": np.bincount(owner, minlength=len(ids)),
        "selected_rows": count(outcome == "selected"),
        "hidden": count(outcome == "hidden"),
        "rejected": count(outcome == "rejected"),
        "redacted": count((outcome == "selected") & truth(candidate_record["decisions.redacted"])),
        "estimated_tokens": blocks["tokens"].fill_null(0),
        "max_tokens": take_or(contracts["max_tokens"], contract, 0),
        "bound_by": blocks["bound_by"],
        "trimming_policy": take_or(trims["policy"], positions(ids, trims["request_id"]), _NO_POLICY),
        "created_at": captures["created_at"],
        "error": answers["failures.error"],
    }
    table = SNAPSHOTS.build({**row, "snapshot_digest": pa.repeat("", len(ids))})
    records = (request_record, candidate_record, item_record, answer_record, table)
    tables = {declared.name: made for declared, made in zip(COVERED, records, strict=True)}
    digests = snapshot_digests(tables, provenance, ids)
    place = SNAPSHOTS.schema.get_field_index("snapshot_digest")
    return table.set_column(place, SNAPSHOTS.schema.field(place), pa.array(digests, pa.string()))


def _statuses(
    ids: pa.Array,
    failed: NDArray[np.bool_],
    denied: NDArray[np.bool_],
    lane_states: pa.Table,
    items: NDArray[np.int64],
) -> NDArray[np.str_]:
    """Worst first: failed, denied, partial, empty, ok."""
    lane_failed = np.zeros(len(ids), bool)
    broken = lane_states.filter(pc.equal(lane_states["state"], "failed"))
    lane_failed[positions(broken["request_id"], ids)] = True
    return np.select([failed, denied, lane_failed, items == 0], ["failed", "denied", "partial", "empty"], "ok")


def _some(lists: pa.Array) -> pa.Array:
    """Whether each list has a value."""
    return pc.greater(pc.fill_null(pc.list_value_length(lists), 0), 0)
