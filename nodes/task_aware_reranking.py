"""Task-aware reranking: similarity is not usefulness, so several kinds of scores are combined (S0.94, S0.95): of the
row, its file and its conversation, of the role and, where one is configured, of a cross-encoder.

Reads the pool, the stored rows, the anchors and the policies of purpose and role. Gives `lane_scores`,
`score_terms` (raw), `rerank_weights` and `ranked`. To try other weights, override
`rerank_weights`: nothing above it re-runs.

Note: every contribution is a multiple of 2**-30, so `final` equals the sum of the contributions with `==`, in any
order. The diversity term is greedy (it depends on the rows chosen before), yet needs no loop: only the first row of a
kind has it, and that is always the kind's best by the other terms.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.kept import OfTable
from .columns.keys import (
    distinct_values,
    first_of_runs,
    flat,
    floats,
    gathered,
    gathered_columns,
    integers,
    order_by,
    positions,
    rank_within,
)
from .columns.numbers import quantise, share_of, unit
from .frames import PostingIndex, RowIndex
from .models import CrossEncoder
from .plugins import ASKED, NO_PLUGINS, Plugins, values_of
from .recall.bm25 import Bm25
from .recall.feedback import Matched, feedback
from .recall.file_recall import FileRecall
from .recall.lane_recall import LexicalRecall
from .recall.pair_scores import Pairs, bm25_reach, lexical_scores, semantic_scores
from .recall.recall_scope import RecallTables
from .recall.turn_scores import turn_scores
from .recall.vector_recall import AskedVectors, vector_of_sub
from .reranking.anchor_hits import anchor_term
from .reranking.file_terms import file_terms
from .reranking.name_terms import name_terms
from .reranking.reasons import AUTHORITATIVE, RECENT, reasons, source_signal
from .reranking.role_terms import freshness, role_terms
from .reranking.row_terms import Rows, age_in_days, authority_term, lifecycle_factor, recency_term, scope_term
from .score_terms import TERMS, terms_of_plugins
from .tables import (
    LANE_SCORES,
    RANKED,
    RERANK_WEIGHTS,
    SCORE_TERMS,
    Anchors,
    Contracts,
    Evidence,
    KindPolicies,
    LaneScores,
    Placements,
    Pool,
    PurposePolicies,
    Ranked,
    Requests,
    RerankWeights,
    RolePolicies,
    RoleRules,
    ScoreTerms,
)
from .text.text_analysis import tokens_of
from .vocabulary import FEEDBACK_TERMS, PURPOSE_TERMS
from .vocabulary import SCORE_TERMS as SCORE_TERM_NAMES

_POOL_PER_ITEM = 3
"""Candidates that a cross-encoder reads per item of the block, where no mode sets `k_in`."""
_NO_SHARE = (0.0, "lexical")
_SHARES = {term.name: term.share or _NO_SHARE for term in TERMS}
"""The part of one of a role's four weights (S4.16) that each term has."""

_READ = ("evidence_kind", "document_type", "origin_class", "source_id", "path", "authority", "confidence", "lifecycle", "generated",
         "event_time", "owner_project", "owner_user", "branch", "session_id", "test_suite", "recorded_time")  # fmt: skip
"""The columns of the pool that are read, besides scores and places."""
_ASKED = ("purpose", "as_of", "role", "project", "branch", "session_id", "test_suite")
"""The columns read from each candidate's contract."""

Float = NDArray[np.float64]
Int = NDArray[np.int64]


def lane_scores(
    pool: Pool,
    lexical_recall: LexicalRecall,
    recall_tables: RecallTables,
    placements: Placements,
    postings: PostingIndex,
    bm25: Bm25,
    query_vectors: AskedVectors,
    rerank_weights: RerankWeights,
    evidence: Evidence,
    row_index: RowIndex,
) -> LaneScores:
    """BM25 and cosine of every row of the pool, in recall order, whichever lane recalled it, and of the conversation
    around it; the latter is 0 for rows that are not turns. And what the request's best rows say of it.

    Without this, a row found by only one lane would count as if it scored 0 in the other.
    """
    tables = recall_tables
    pairs = Pairs(integers(pool["contract"]), integers(pool["row"]))
    lexical, semantic = (floats(pool[name]).copy() for name in ("bm25_raw", "semantic_raw"))
    weighed = lexical_recall.weighed
    unread = np.flatnonzero(lexical <= 0)
    lexical[unread] = lexical_scores(pairs.at(unread), weighed)
    if (vectors := query_vectors.vectors) is not None:
        vector = vector_of_sub(tables, query_vectors.rows)
        unread = np.flatnonzero(semantic <= 0)
        semantic[unread] = semantic_scores(pairs.at(unread), vector, tables, vectors)
    turns = turn_scores(pairs, weighed, tables, placements, postings, bm25)
    matched = Matched(lexical, bm25_reach(weighed, tables)[pairs.request], semantic)
    said = feedback(pool, matched, rerank_weights, evidence, row_index, tables, postings, bm25, query_vectors.vectors)
    return LANE_SCORES.build(
        {
            **_keys(pool),
            "bm25": matched.bm25,
            "bm25_reach": matched.reach,
            "cosine": matched.cosine,
            **turns._asdict(),
            **said._asdict(),
        }
    )


def score_terms(
    pool: Pool,
    lane_scores: LaneScores,
    file_recall: FileRecall,
    requests: Requests,
    contracts: Contracts,
    anchors: Anchors,
    evidence: Evidence,
    kind_policies: KindPolicies,
    role_policies: RolePolicies,
    role_rules: RoleRules,
    rerank_weights: RerankWeights,
    cross_encoder: CrossEncoder,
    plugins: Plugins = NO_PLUGINS,
) -> ScoreTerms:
    """The raw score terms of every row of the pool, in recall order: 0 to 1, role -1 to 1. A cross-encoder reads each
    request's best rows by the other terms.

    `turn_context` starts at -1. `lexical` is a share of the maximum score of the request's terms inside the boundary,
    independent of the other candidates (Bruch et al. 2023 on convex combination). `semantic` is the cosine, but for a
    row of source at least that of its file: a file's best words are often next to its nearest definition, or in a row
    that defines nothing and has no outline. `recency` is measured against `as_of` (S0.96). Only a request's best files
    and their rows have terms of a file.
    """
    owner, row = integers(pool["contract"]), integers(pool["row"])
    rows = {name: flat(pool[name]) for name in _READ}
    asked = gathered_columns(contracts, _ASKED, owner)
    anchor_owner = positions(anchors["request_id"], contracts["request_id"])
    if (anchor_owner < 0).any():
        anchors, anchor_owner = anchors.filter(pa.array(anchor_owner >= 0)), anchor_owner[anchor_owner >= 0]
    anchored = anchor_term(owner, row, evidence, anchors, anchor_owner, contracts.num_rows)
    actionability, half_life, lifecycle, signals, signal = _by_words(asked["purpose"], rows, kind_policies)
    age, undated = age_in_days(rows["event_time"], rows["recorded_time"], asked["as_of"])
    recency = recency_term(age, half_life)
    authority = authority_term(rows, evidence, row, lifecycle)
    reach = floats(lane_scores["bm25_reach"])
    lexical = share_of(floats(lane_scores["bm25"]), reach)
    cosine = unit(floats(lane_scores["cosine"]))
    best_files = file_recall.request, file_recall.row, file_recall.share
    files = file_terms(owner, rows, lexical, cosine, best_files, evidence)
    role = asked["role"]
    question = gathered(requests["question"], positions(contracts["request_id"], requests["request_id"]))
    named = name_terms(owner, row, rows, question, evidence)
    semantic = np.maximum(cosine, files.outlines)
    by_role = role_terms(role, row, evidence, age, role_policies, role_rules)
    definition = np.maximum(named.definition, anchored.written)
    # Authority, age and kind of a row that matches nothing do not put it ahead of one that matches.
    matching = np.any([floats(lane_scores["bm25"]), semantic, anchored.value, definition], axis=0)
    prior = matching | (np.bincount(owner, weights=matching, minlength=contracts.num_rows)[owner] == 0)
    terms = SCORE_TERMS.build(
        {
            **_keys(pool),
            "evidence_kind": rows["evidence_kind"],
            "semantic": semantic,
            "lexical": lexical,
            **{name: lane_scores[name] for name in FEEDBACK_TERMS},
            "anchor": anchored.value,
            "authority": authority * prior,
            "recency": recency * prior,
            "actionability": quantise(actionability) * prior,
            "scope": scope_term(owner, rows, asked, anchors, anchor_owner),
            "turn_context": share_of(floats(lane_scores["context"]), reach, least=-1.0),
            "turn_answer": share_of(floats(lane_scores["answer"]), reach),
            "turn_session": share_of(floats(lane_scores["session"]), floats(lane_scores["session_reach"])),
            "vocabulary": by_role.vocabulary,
            "metadata": by_role.metadata,
            "cross_encoder": np.zeros(len(row)),
            "file": files.file,
            "passages": files.passages,
            "outlines": files.outlines,
            "title": named.title,
            "definition": definition,
            "freshness": freshness(role, age, recency, undated, role_policies),
            "anchor_signal": anchored.signal,
            "source_signal": signals.take(pa.array(signal + 2 * (authority >= AUTHORITATIVE) + (recency >= RECENT))),
            "role_signal": by_role.signal,
            "feedback_rank": lane_scores["feedback_rank"],
            **_of_plugins(plugins, row, contracts, question, owner, evidence),
        }
    )
    if cross_encoder.model is None:
        return terms
    place = SCORE_TERMS.schema.get_field_index("cross_encoder")
    at = _best_rows(ranked(terms, rerank_weights), owner, contracts)
    texts = gathered(evidence["text"], row[at]).to_pylist()
    score = np.zeros(len(row))
    score[at] = cross_encoder.of(list(zip(question.take(pa.array(owner[at])).to_pylist(), texts, strict=True)))
    return terms.set_column(place, SCORE_TERMS.schema.field(place), pa.array(unit(score)))


def _best_rows(ranked: pa.Table, owner: Int, contracts: pa.Table) -> Int:
    """The places in the pool of the rows that a cross-encoder reads: the best `k` of each request, the mode's `k_in`
    (S1.27), else three times `max_items`.
    """
    place = integers(ranked["place"])
    without = np.asarray(flat(contracts["mode"]).is_null())
    most = np.where(without, _POOL_PER_ITEM * floats(contracts["max_items"]), floats(contracts["lane_k"]))
    return np.sort(place[floats(ranked["rank"]) <= most[owner[place]]])


def _keys(pool: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name: pool[name] for name in ("request_id", "evidence_id", "pool_rank")}


def _of_plugins(
    plugins: Plugins, row: Int, contracts: pa.Table, question: pa.Array, owner: Int, evidence: pa.Table
) -> dict[str, Float]:
    """The plugin terms, by name; `question` is that of each contract."""
    if not plugins.score_terms:
        return {}
    terms = pa.array([tokens_of(text or "") for text in question.to_pylist()], pa.list_(pa.string()))
    every = contracts.select(ASKED).append_column("question", question).append_column("terms", terms)
    found = values_of(
        plugins.score_terms, evidence, pa.array(row), pa.table(gathered_columns(every, every.column_names, owner))
    )
    return {name: quantise(values) for name, values in found.items()}


def rerank_weights(
    contracts: Contracts,
    purpose_policies: PurposePolicies,
    role_policies: RolePolicies,
    plugins: Plugins = NO_PLUGINS,
) -> RerankWeights:
    """The weight of each score term, by request id: the request's own, else its role's, else its purpose's.

    A role has no weight for a cross-encoder, a file, a turn or a plugin term: the purpose's weights apply under it. A
    plugin term has its own weight where neither request nor purpose sets one.
    """
    purposes, roles = _weights_of_purposes(purpose_policies), _weights_of_roles(role_policies)
    of_plugins, rows = {term.name: term.weight for term in plugins.score_terms}, []
    for one in contracts.select(["request_id", "purpose", "role", "weights"]).to_pylist():
        of_role = roles.get(one["role"], {})
        asked = json.loads(one["weights"] or "{}")
        rows.append({"request_id": one["request_id"]} | of_plugins | purposes[one["purpose"]] | of_role | asked)
    return RERANK_WEIGHTS.from_rows(rows)


_weights_of_purposes = OfTable[dict[str, dict[str, float]]](
    lambda policies: {
        row["purpose"]: dict.fromkeys(SCORE_TERM_NAMES, 0.0)
        | {name[7:]: weight for name, weight in row.items() if name.startswith("weight_") and weight is not None}
        for row in policies.to_pylist()
    }
)
"""The weights of each purpose, by term."""

_weights_of_roles = OfTable[dict[str, dict[str, float]]](
    lambda policies: {
        row["role"]: {
            name: share * (row[f"weight_{of}"] or 0.0)
            for name, (share, of) in _SHARES.items()
            if name not in PURPOSE_TERMS
        }
        for row in policies.to_pylist()
    }
)
"""The weights of each role, by the terms that have other weights under it."""


def ranked(score_terms: ScoreTerms, rerank_weights: RerankWeights, plugins: Plugins = NO_PLUGINS) -> Ranked:
    """The rows of the pool by request and rank; final score descending, then evidence id.

    A contribution is weight times term. Diversity is 1 for the best item of its kind, else 0
    (`evidenceDiversity(selectedKinds)` of S0.95).
    """
    weight = positions(score_terms["request_id"], rerank_weights["request_id"])
    names = [name for name in SCORE_TERM_NAMES if name != "diversity"]
    names += terms_of_plugins(score_terms.column_names)
    weights, terms = (np.asarray(table.select(names), dtype=np.float64) for table in (rerank_weights, score_terms))
    weighed = quantise(weights[weight] * terms)
    base = weighed.sum(axis=1)
    id_rank = np.empty(len(base), dtype=np.int64)
    id_rank[np.asarray(pc.array_sort_indices(flat(score_terms["evidence_id"])))] = np.arange(len(base))
    kind = np.asarray(flat(score_terms["evidence_kind"]).dictionary_encode().indices)
    best_first = order_by(weight, kind, -base, id_rank)
    first = np.zeros(len(base), dtype=bool)
    first[best_first[first_of_runs(weight[best_first], kind[best_first])]] = True
    diversity = quantise(floats(rerank_weights["diversity"])[weight]) * first
    final = base + diversity
    order = order_by(weight, -final, id_rank)
    why = reasons(score_terms, tuple(names), weighed, plugins.score_terms)
    return RANKED.build(
        {
            **gathered_columns(score_terms, ("request_id", "evidence_id"), order),
            "place": order,
            "rank": (rank_within(weight[order]) + 1).astype(np.int32),
            "final": final[order],
            **dict(zip(names, weighed[order].T, strict=True)),
            "diversity": diversity[order],
            "selected_reason": why.take(pa.array(order)),
        }
    )


_stated_by_kind = OfTable[dict[tuple[Any, ...], tuple[float, float]]](
    lambda table: {
        (row["purpose"], row["evidence_kind"], row["document_type"]): (row["actionability"], row["half_life_days"])
        for row in table.to_pylist()
    }
)


def _by_words(purpose: pa.Array, rows: Rows, kind_policies: pa.Table) -> tuple[Float, Float, Float, pa.Array, Int]:
    """What follows from the words of a row and its purpose alone, for each candidate: actionability and half-life of its
    document type, else those of its kind, else 0 and none; the factor of its state; and its kind of source in words: four
    of each combination, by whether a row is authoritative and recent, and the place of the first for each candidate.
    """
    stated = _stated_by_kind(kind_policies)
    names = ("evidence_kind", "document_type", "origin_class", "lifecycle")
    keys, which = distinct_values([purpose, *(rows[name] for name in names)])
    numbers, signals = list[tuple[float, float, float]](), list[str]()
    for asked, kind, document_type, origin, state in keys:
        policy = stated.get((asked, kind, document_type)) or stated.get((asked, kind, ""), (0.0, np.inf))
        numbers.append((*policy, lifecycle_factor(state)))
        signals += [source_signal(kind, origin, state, high, new) for high in (False, True) for new in (False, True)]
    actionability, half_life, lifecycle = np.array(numbers).reshape(-1, 3)[which].T
    return actionability, half_life, lifecycle, pa.array(signals, pa.string()), which * 4
