"""Relevance feedback inside the scope: scores a request's candidates by their similarity to its best rows.

Reads the pool with the scores of the lanes, the stored rows, the posting index and the vectors. Gives `feedback`: two
score terms.

Note: both kinds of feedback are sums, so they are separate score classes next to the ones they extend. BM25 of the
query plus a share of BM25 of the terms of its best rows is BM25 of the query expanded by them (RM3, Lavrenko & Croft
2001); the cosine with the query plus a share of the cosine with its best rows is the cosine with the vector moved
towards them (Rocchio 1971), times its length. The shares are weights, and 0 switches feedback off.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, first_of_runs, floats, gathered_columns, integers, order_by, rank_within
from ..columns.numbers import quantise, share_of, unit
from ..frames import PostingIndex, RowIndex, VectorIndex, posting_keys
from ..text.text_analysis import TEXT_COLUMNS, analyzer_for, index_text, terms_in
from ..vocabulary import EVIDENCE_KINDS
from ..vocabulary import FEEDBACK_TERMS as CLASSES
from .bm25 import Bm25
from .pair_scores import Pairs, mean_cosines
from .posting_recall import Entries, KeyRows, asked_together
from .recall_scope import RecallTables

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
PROSE = tuple(kind for kind in EVIDENCE_KINDS.values if analyzer_for(kind) == "prose/2" and kind not in SPOKEN)
"""Kinds whose terms are used. In code and logs the most frequent terms are those of the language; turns and memories
are too short to tell which of their words matter (nDCG@10 on locomo .487 without their terms, .478 with them).
"""

Bool = NDArray[np.bool_]
Float = NDArray[np.float64]
Int = NDArray[np.int64]
Terms = dict[int, dict[str, float]]
"""The feedback terms of each request, by the number of its contract, with their weights, in the order of the terms."""


class Matched(NamedTuple):
    """The scores of each row of the pool under the request's own texts, and the most that BM25 could give."""

    bm25: Float
    reach: Float
    cosine: Float


class FeedbackScores(NamedTuple):
    """Of each row of the pool: its rank among the rows that feedback is taken from, 0 = none of them; and both kinds."""

    feedback_rank: NDArray[np.int32]
    lexical_feedback: Float
    semantic_feedback: Float


def feedback(
    pool: pa.Table,
    matched: Matched,
    rerank_weights: pa.Table,
    evidence: pa.Table,
    row_index: RowIndex,
    tables: RecallTables,
    postings: PostingIndex,
    bm25: Bm25,
    vectors: VectorIndex | None,
) -> FeedbackScores:
    """What the best rows of each request that weighs feedback say of every row of the pool, in recall order.

    Terms count where the request's own terms do: a request without terms or without the lexical lane has no lexical
    feedback.
    """
    pairs = Pairs(integers(pool["contract"]), integers(pool["row"]))
    chosen, rank, score = _best_rows(pairs, matched, rerank_weights, row_index)
    place = np.zeros(pool.num_rows, dtype=np.int32)
    place[chosen] = rank
    lexical, semantic = np.zeros(pool.num_rows), np.zeros(pool.num_rows)
    prose = chosen[[kind in PROSE for kind in pool["evidence_kind"].take(pa.array(chosen)).to_pylist()]]
    if len(prose):
        weight = np.zeros(pool.num_rows)
        weight[chosen] = score
        terms = _terms(pairs.request[prose], pairs.row[prose], weight[prose], evidence)
        lexical = _lexical(pairs, matched.reach > 0, terms, tables, postings, bm25)
    if vectors is not None:
        nearest = chosen[rank <= NEAREST]
        among = Pairs(pairs.request[nearest], pairs.row[nearest])
        cosines = mean_cosines(pairs, among, tables.contracts.num_rows, vectors)
        semantic = unit(cosines)
    return FeedbackScores(place, lexical, semantic)


def _best_rows(pairs: Pairs, matched: Matched, rerank_weights: pa.Table, row_index: RowIndex) -> tuple[Int, Int, Float]:
    """The places in the pool of the rows that feedback is taken from, by request and rank; ties by evidence id; their
    ranks, from 1, and their scores. The weights have a row per contract.
    """
    weighed = np.any([floats(rerank_weights[name]) > 0 for name in CLASSES], axis=0)[pairs.request]
    words = share_of(matched.bm25, matched.reach)
    score = quantise(WORDS * words + (1 - WORDS) * np.minimum(np.maximum(matched.cosine, 0.0), 1.0))
    chosen = (weighed & (score > 0)).nonzero()[0]
    order = chosen[order_by(pairs.request[chosen], -score[chosen], row_index.id_rank[pairs.row[chosen]])]
    rank = rank_within(pairs.request[order]) + 1
    best = rank <= ROWS
    return order[best], rank[best], score[order[best]]


def _terms(request: Int, row: Int, score: Float, evidence: pa.Table) -> Terms:
    """The most used terms of some rows of prose, RM1 weighted by score: a weight is 1 on average."""
    rows, of_row = distinct_numbers(row)
    columns = gathered_columns(evidence, TEXT_COLUMNS, rows)
    counts = [Counter(terms_in(text[:LONGEST])) for text in index_text(columns).to_pylist()]
    totals: dict[int, defaultdict[str, float]] = {}
    for of, at, weight in zip(request.tolist(), of_row.tolist(), score.tolist(), strict=True):
        total, own = totals.setdefault(of, defaultdict(float)), np.array(list(counts[at].values()))
        # Quantised, so that a sum over rows is the same in any order.
        for term, part in zip(counts[at], quantise(weight * (own / max(own.sum(), 1))).tolist(), strict=True):
            total[term] += part
    found: Terms = {}
    for of, total in totals.items():
        best = sorted([(-weight, term) for term, weight in total.items() if weight])[:TERMS]
        share = len(best) / -sum([weight for weight, _ in best]) if best else 0.0
        found[of] = {term: -weight * share for weight, term in sorted(best, key=itemgetter(1))}
    return found


def _lexical(
    pairs: Pairs, worded: Bool, terms: Terms, tables: RecallTables, postings: PostingIndex, bm25: Bm25
) -> Float:
    """BM25 of the feedback terms, under the statistics of A(r), as a share of the maximum possible."""
    starts = pairs.starts(tables.contracts.num_rows).tolist()
    asks = np.zeros(tables.contracts.num_rows, dtype=bool)
    asks[pairs.request[worded]] = True
    found = np.zeros(len(pairs.row))
    for scope in tables.scope_groups("lexical"):
        # The terms of a request are looked up under the first of its sub-queries.
        host = first_of_runs(scope.request)
        places: dict[str, int] = {}
        looked_up = [
            (sub, places.setdefault(term, len(places)), weight)
            for sub, request in zip(scope.sub[host].tolist(), scope.request[host].tolist(), strict=True)
            for term, weight in (terms.get(request, {}).items() if asks[request] else ())
        ]
        if not looked_up:
            continue
        entries = Entries.of(KeyRows.of(scope, postings, posting_keys("text", list(places))), looked_up)
        for asked, _ in asked_together(scope, entries, bm25):
            reach = np.add.reduceat(asked.weight, asked.starts[:-1])
            for number, request in enumerate(scope.request[asked.subs].tolist()):
                own = slice(starts[request], starts[request + 1])
                score = asked.score(number, scope.local(pairs.row[own]))
                found[own] = share_of(score, reach[number].repeat(len(score)))
    return found
