"""Audit snapshot: what was decided about every candidate, what the caller should know, and one row per request.

Reads every table of the line. Gives `decisions` (recalled = selected + hidden + rejected), `conditions` (a set with
actions), the records that a run stores, and `snapshots` (status, counts and the digest of everything asked, decided and
shown).

A row merged into an item counts as selected only if the item still shows it after trimming. Conditions describe the
contract and what was shown, never what was withheld, because callers read them.
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
    stale_records,
    worst_actions,
)
from .audit.decision_rules import decision_columns, masked_rows
from .audit.records import (
    ANSWER_RECORD,
    CANDIDATE_RECORD,
    COVERED,
    REQUEST_RECORD,
    AnswerRecord,
    CandidateRecord,
    RequestRecord,
    recorded,
    snapshot_digests,
)
from .blocks.rendering import TRIMMING_POLICY
from .columns.digests import EMPTY_SHA256
from .columns.keys import gathered, gathered_columns, integers, truth
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

_ANSWERED = ["request_id", "failures.error",
             *(f"blocks.{name}" for name in ("block_ref", "text_sha256", "items", "tokens", "bound_by"))]  # fmt: skip
"""What a snapshot repeats of its answer."""
_CONTRACTED = ["request_id", "contract_id", "denied", "max_tokens"]
_COUNTED = ("request_id", "decisions.outcome", "decisions.redacted")


def decisions(
    candidates: Candidates,
    verdicts: Verdicts,
    pool: Pool,
    ranked: Ranked,
    packs: Packs,
    trims: Trims,
    trimmed: Trimmed,
    citations: Citations,
    contracts: Contracts,
    evidence: Evidence,
    placements: Placements,
) -> Decisions:
    """Every candidate once, in their order, with outcome, stage, deciding rule and reason.

    The earliest stage that removed a row decided it; a row that no stage removed was selected.
    """
    columns = decision_columns(candidates, verdicts, pool, ranked, packs, trims, trimmed, citations, contracts)
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
    candidate_record: CandidateRecord,
    trimmed: Trimmed,
    blocks: Blocks,
    evidence: Evidence,
    structured_facts: StructuredFacts,
    fact_checks: FactChecks,
    admissible: Admissible,
) -> Conditions:
    """What the caller should know, by request, condition and subject; `healthy` where there is nothing to report."""
    owner, reason = candidate_record["request_id"], candidate_record["decisions.reason_code"]
    shown = truth(pc.equal(candidate_record["decisions.outcome"], "selected"))

    def where(mask: pa.ChunkedArray) -> set[str]:
        return {*owner.filter(mask).to_pylist()}

    selected = selected_rows(candidate_record, shown, sub_queries, contracts, role_policies, evidence)
    walls = where(candidate_record["verdicts.wall_disagreement"])
    of_candidates = {name: where(pc.equal(reason, name)) for name in ("conflict_downrank", "forbidden_source")}
    of_candidates["packed"] = where(pc.greater(candidate_record["packs.position"], 0))
    of_candidates["noted"] = {*trimmed["request_id"].filter(trimmed["conflict_note"]).to_pylist()}
    messages = {"conflicting": rivals(candidate_record, shown, evidence, contracts)}
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


def request_record(
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
) -> RequestRecord:
    """What was asked under which contract, the plan, what could be read, and what the lanes recalled, by request."""
    return recorded(
        REQUEST_RECORD, requests, contracts, admissible, rerank_weights, contract_bounds,
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
    rows = {"score_terms": candidate}
    rows |= {
        table: candidate[integers(of["place"])]
        for table, of in (("ranked", ranked), ("packs", packs), ("trims", trims))
    }
    return recorded(CANDIDATE_RECORD, candidates, verdicts, decisions, score_terms, ranked, packs, trims, rows=rows)


def answer_record(
    captures: Captures,
    trimmed: Trimmed,
    item_details: ItemDetails,
    citations: Citations,
    failures: Failures,
    blocks: Blocks,
    structured_facts: StructuredFacts,
    fact_checks: FactChecks,
    conditions: Conditions,
) -> AnswerRecord:
    """What was answered: items, block, facts and conditions, or why the request failed, by request and failure."""
    return recorded(
        ANSWER_RECORD, captures.select(["request_id"]), trimmed, item_details, citations, failures, blocks,
        structured_facts, fact_checks, conditions,
    )  # fmt: skip


def snapshots(
    captures: Captures,
    contracts: Contracts,
    conditions: Conditions,
    lane_states: LaneStates,
    provenance: Provenance,
    request_record: RequestRecord,
    candidate_record: CandidateRecord,
    answer_record: AnswerRecord,
) -> Snapshots:
    """One row per request and per failure, by request id, with the digest of everything asked, decided and shown."""
    answers = answer_record.select(_ANSWERED).to_pylist()
    known = {row["request_id"]: row for row in contracts.select(_CONTRACTED).to_pylist()}
    counted = Counter(zip(*(candidate_record[name].to_pylist() for name in _COUNTED), strict=True))
    walls = {*candidate_record["request_id"].filter(candidate_record["verdicts.wall_disagreement"]).to_pylist()}
    broken = {*lane_states["request_id"].filter(pc.equal(lane_states["state"], "failed")).to_pylist()}
    rows = []
    stamped = captures.select(["snapshot_id", "created_at"]).to_pylist()
    actions = worst_actions(answer_record["request_id"], conditions)
    for answer, action, stamp in zip(answers, actions, stamped, strict=True):
        id_, error, items = answer["request_id"], answer["failures.error"], answer["blocks.items"] or 0
        contract = known.get(id_) or {"contract_id": "", "denied": False, "max_tokens": 0}
        masked = counted[id_, "selected", True]
        counts = {"selected_rows": masked + counted[id_, "selected", False]}
        counts |= {name: counted[id_, name, True] + counted[id_, name, False] for name in ("hidden", "rejected")}
        status = (
            "failed" if error is not None or id_ in walls else "denied" if contract["denied"] else "partial" if id_ in broken
            else "ok" if items else "empty"
        )  # fmt: skip
        rows.append(
            stamp
            | {
                "request_id": id_,
                "snapshot_digest": "",
                "status": status,
                "action": action,
                "contract_id": contract["contract_id"],
                "block_ref": answer["blocks.block_ref"],
                "visible_sha256": answer["blocks.text_sha256"] or EMPTY_SHA256,
                "recalled": sum(counts.values()),
                **counts,
                "redacted": masked,
                "estimated_tokens": answer["blocks.tokens"] or 0,
                "max_tokens": contract["max_tokens"],
                "bound_by": answer["blocks.bound_by"],
                "trimming_policy": TRIMMING_POLICY,
                "error": error,
            }
        )
    table = SNAPSHOTS.from_rows(rows)
    records = (request_record, candidate_record, answer_record, table)
    tables = {declared.name: made for declared, made in zip(COVERED, records, strict=True)}
    digests = snapshot_digests(tables, provenance, answer_record["request_id"])
    place = SNAPSHOTS.schema.get_field_index("snapshot_digest")
    return table.set_column(place, SNAPSHOTS.schema.field(place), pa.array(digests, pa.string()))


def _some(lists: pa.Array) -> pa.Array:
    """Whether each list has a value."""
    return pc.greater(pc.fill_null(pc.list_value_length(lists), 0), 0)
