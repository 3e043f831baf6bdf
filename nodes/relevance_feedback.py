"""Relevance feedback inside the scope: scores a request's candidates by their similarity to its best rows.

Reads the bounded candidates with the scores of the lanes, their stored rows, the posting index and the vectors. Gives
`feedback_rows`, `feedback_terms` and `feedback_scores`, from which `score_terms` makes two classes.

Note: both kinds of feedback are sums, so they are separate score classes next to the ones they extend. BM25 of the
query plus a share of BM25 of the terms of its best rows is BM25 of the query expanded by them (RM3, Lavrenko & Croft
2001); the cosine with the query plus a share of the cosine with its best rows is the cosine with the vector moved
towards them (Rocchio 1971), times its length. The shares are weights, and 0 switches feedback off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import (
    constants,
    distinct_numbers,
    first_of_runs,
    flat,
    gathered,
    gathered_columns,
    integers,
    order_by,
    positions,
    rank_within,
    run_lengths,
    take_or,
)
from .columns.numbers import quantise, share_of
from .columns.ragged import expand_ranges, spread, starts_of
from .frames import PostingIndex, RowIndex, VectorIndex, posting_keys
from .recall.bm25 import Bm25
from .recall.pair_scores import Pairs, mean_cosines
from .recall.posting_recall import score_rows
from .recall.recall_entries import Entries, WantedRows
from .recall.recall_scope import RecallTables
from .tables import (
    FEEDBACK_ROWS,
    FEEDBACK_SCORES,
    FEEDBACK_TERMS,
    Candidates,
    Evidence,
    FeedbackRows,
    FeedbackScores,
    FeedbackTerms,
    LaneScores,
    RerankWeights,
)
from .text.indexed_text import TEXT_COLUMNS, index_text
from .text.text_analysis import analyzer_for, terms_by_kind
from .vocabulary import EVIDENCE_KINDS
from .vocabulary import FEEDBACK_TERMS as CLASSES

ROWS = 5
"""Number of rows whose terms are used."""
TERMS = 20
"""Number of feedback terms per request."""
NEAREST = 3
"""Number of rows whose vectors are used."""
WORDS = 0.75
"""Weight of the lexical share in the order of the rows; the rest is the cosine. With the cosine alone, rows that are
near by chance would pull in more of their kind."""
LONGEST = 20_000
"""Maximum number of characters read for the terms of a row."""
SPOKEN = ("session-event", "memory")
PROSE = tuple(kind for kind in EVIDENCE_KINDS.values if analyzer_for(kind) == "prose/1" and kind not in SPOKEN)
"""Kinds whose terms are used. In code and logs the most frequent terms are those of the language; turns and memories
are too short to tell which of their words matter (nDCG@10 on locomo .487 without their terms, .478 with them).
"""

Bool = NDArray[np.bool_]
Float = NDArray[np.float64]
Int = NDArray[np.int64]


def feedback_rows(
    bounded_candidates: Candidates, lane_scores: LaneScores, rerank_weights: RerankWeights, row_index: RowIndex
) -> FeedbackRows:
    """The best bounded candidates of each request that weighs feedback, by request and rank; ties by evidence id."""
    owner = positions(bounded_candidates["request_id"], rerank_weights["request_id"])
    weighed = np.any([np.asarray(rerank_weights[name]) > 0 for name in CLASSES], axis=0)[owner]
    bm25, reach, cosine = (np.asarray(lane_scores[name]) for name in ("bm25", "bm25_reach", "cosine"))
    score = quantise(WORDS * share_of(bm25, reach) + (1 - WORDS) * np.clip(cosine, 0.0, 1.0))
    chosen = (weighed & (score > 0)).nonzero()[0]
    row = integers(bounded_candidates["row"])
    order = chosen[order_by(owner[chosen], -score[chosen], row_index.id_rank[row[chosen]])]
    rank = rank_within(owner[order]) + 1
    order, rank = order[rank <= ROWS], rank[rank <= ROWS]
    return FEEDBACK_ROWS.build(
        {
            **gathered_columns(bounded_candidates, ("request_id", "evidence_id", "row"), order),
            "rank": rank.astype(np.int32),
            "score": score[order],
        }
    )


def feedback_terms(feedback_rows: FeedbackRows, evidence: Evidence) -> FeedbackTerms:
    """The most used terms of the feedback rows, by request and term: RM1 over rows of prose, weighted by score."""
    row = integers(feedback_rows["row"])
    kind = gathered(evidence["evidence_kind"], row)
    used = np.asarray(pc.is_in(kind, constants(PROSE))).nonzero()[0]
    if not len(used):
        return FEEDBACK_TERMS.empty()
    rows, of_row = distinct_numbers(row[used])
    row_terms = _terms_of_rows(evidence, rows)
    of, at = spread(row_terms.starts[of_row], np.diff(row_terms.starts)[of_row])
    # Quantised, so that a sum over rows is the same in any order.
    part = quantise(np.asarray(feedback_rows["score"])[used][of] * row_terms.share[at])
    names = flat(feedback_rows["request_id"]).dictionary_encode()
    size = max(len(row_terms.terms), 1)
    pairs, pair = distinct_numbers(integers(names.indices)[used][of] * size + row_terms.term[at])
    total = np.bincount(pair, weights=part, minlength=len(pairs))
    pairs, total = pairs[total > 0], total[total > 0]
    request, term = np.divmod(pairs, size)
    best = order_by(request, -total, term)
    best = np.sort(best[rank_within(request[best]) < TERMS])
    request, total = request[best], total[best]
    first = first_of_runs(request)
    count = run_lengths(first, len(request))
    return FEEDBACK_TERMS.build(
        {
            "request_id": names.dictionary.take(pa.array(request)),
            "term": row_terms.terms.take(pa.array(term[best])),
            "weight": total * (count / np.add.reduceat(total, first)).repeat(count) if len(first) else total,
        }
    )


def feedback_scores(
    bounded_candidates: Candidates,
    feedback_rows: FeedbackRows,
    feedback_terms: FeedbackTerms,
    lane_scores: LaneScores,
    recall_tables: RecallTables,
    postings: PostingIndex,
    bm25: Bm25,
    vectors: VectorIndex | None,
) -> FeedbackScores:
    """The feedback scores of every bounded candidate, in recall order.

    Terms count where the request's own terms do: a request without terms or without the lexical lane has no lexical
    feedback.
    """
    tables, contracts = recall_tables, recall_tables.contracts["request_id"]
    pairs = Pairs(positions(bounded_candidates["request_id"], contracts), integers(bounded_candidates["row"]))
    chosen = Pairs(positions(feedback_rows["request_id"], contracts), integers(feedback_rows["row"]))
    lexical, semantic = np.zeros(len(pairs.row)), np.zeros(len(pairs.row))
    rank = np.asarray(feedback_rows["rank"])
    if feedback_terms.num_rows:
        worded = np.asarray(lane_scores["bm25_reach"]) > 0
        lexical = _lexical(pairs, worded, feedback_terms, tables, postings, bm25)
    if vectors is not None:
        nearest = Pairs(chosen.request[rank <= NEAREST], chosen.row[rank <= NEAREST])
        semantic = quantise(np.clip(mean_cosines(pairs, nearest, len(contracts), vectors), 0.0, 1.0))
    return FEEDBACK_SCORES.build(
        {
            **{name: bounded_candidates[name] for name in ("request_id", "evidence_id", "pool_rank")},
            "rank": take_or(feedback_rows["rank"], pairs.among(chosen), 0),
            "lexical": lexical,
            "semantic": semantic,
        }
    )


def _lexical(
    pairs: Pairs, worded: Bool, feedback_terms: pa.Table, tables: RecallTables, postings: PostingIndex, bm25: Bm25
) -> Float:
    """BM25 of the feedback terms, under the statistics of A(r), as a share of the maximum possible."""
    contracts = tables.contracts["request_id"]
    owner = positions(feedback_terms["request_id"], contracts)
    spoken = flat(feedback_terms["term"]).dictionary_encode()
    keys = posting_keys("text", spoken.dictionary.to_pylist())
    key, weight = integers(spoken.indices), np.asarray(feedback_terms["weight"])
    starts = pairs.starts(len(contracts))
    asks = np.zeros(len(contracts), dtype=bool)
    asks[pairs.request[worded]] = True
    found = np.zeros(len(pairs.row))
    for scope in tables.scope_groups("lexical"):
        # The terms of a request are looked up under the first of its sub-queries.
        host = first_of_runs(scope.request)
        host = host[asks[scope.request[host]]]
        request = scope.request[host]
        low = owner.searchsorted(request)
        terms = expand_ranges(low, owner.searchsorted(request, side="right") - low)
        if not len(terms):
            continue
        used, own = distinct_numbers(key[terms])
        sub = host[np.searchsorted(request, owner[terms])]
        entries = Entries([keys[one] for one in used.tolist()], sub, own, weight[terms])
        counts = np.zeros(len(scope.sub), dtype=np.int64)
        counts[host] = np.diff(starts)[request]
        at = expand_ranges(starts[request], counts[host])
        rows = WantedRows(starts_of(counts), scope.local(pairs.row[at]))
        scored = score_rows(scope, postings, entries, bm25, rows)
        found[at] = share_of(scored.score, scored.reach.repeat(counts))
    return found


class _RowTerms(NamedTuple):
    """The terms of rows: row `i` has `starts[i]:starts[i + 1]` of `term` and `share`."""

    terms: pa.Array
    """The distinct terms, sorted."""
    starts: Int
    term: Int
    share: Float
    """Share of all terms of the row, repetitions included."""


def _terms_of_rows(evidence: pa.Table, rows: Int) -> _RowTerms:
    """The distinct terms of some rows, analyzed like the index, and the share of each in its row."""
    columns = gathered_columns(evidence, ("evidence_kind", *TEXT_COLUMNS), rows)
    texts = pc.utf8_slice_codeunits(index_text(columns, TEXT_COLUMNS), 0, LONGEST)
    terms = terms_by_kind(texts, columns["evidence_kind"])
    order = pc.array_sort_indices(terms.vocabulary).to_numpy()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    size = max(len(order), 1)
    codes, counts = np.unique(terms.rows * size + place[terms.codes], return_counts=True)
    row, term = np.divmod(codes, size)
    length = np.diff(terms.starts)
    starts = starts_of(np.bincount(row, minlength=len(rows)))
    return _RowTerms(terms.vocabulary.take(pa.array(order)), starts, term, counts / length[row])
