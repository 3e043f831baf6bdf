"""Tables of `task_aware_reranking`."""

from __future__ import annotations

from ..schema import caller, float64, int32, place, string, table
from ..score_terms import SCORED, TERMS

LANE_SCORES = table(
    "lane_scores",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    doc="BM25 and cosine of every row of the pool, whichever lane recalled it, of the conversation around a turn, and by "
    "what the best rows of the request say.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    bm25=float64("best BM25 over the texts of the request's sub-queries; 0 = no term in common"),
    bm25_reach=float64("the most that BM25 could give: the sum of the weights of the request's terms that A(r) holds"),
    cosine=float64("best cosine over the texts of the request's sub-queries; 0 = either has no vector"),
    context=float64("BM25 of a turn with its neighbors, minus BM25 of the turn alone; 0 of other rows"),
    answer=float64("BM25 of the turn before it, where that one asks something; 0 of other rows"),
    session=float64("BM25 of its session among the sessions of A(r); 0 where there are not two"),
    session_reach=float64("the most that BM25 could give a session"),
    feedback_rank=int32("its place among the rows that feedback is taken from; 0 = none of them"),
    lexical_feedback=float64("BM25 of the feedback terms as a share of the most that they could give"),
    semantic_feedback=float64("mean cosine with the best feedback rows"),
)

SCORE_TERMS = table(
    "score_terms",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    extra=float64("a term of a plugin, 0 to 1"),
    doc="The raw score terms of every row of the pool, 0 to 1 (turn_context and the role's two: -1 to 1); `ranked` weighs them.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row", of="candidates"),
    pool_rank=int32("its place among the candidates"),
    evidence_kind=string("its kind, for the diversity term", of="decisions"),
    **{term.name: float64(term.doc) for term in SCORED},
    freshness=string("fresh, aging, stale or undated, at as_of (C25)"),
    anchor_signal=string("the strongest anchor it hits, in words; null = none", nullable=True),
    source_signal=string("what kind of source it is, in words"),
    role_signal=string("why the role prefers it, in words; null = it does not", nullable=True),
    feedback_rank=int32("its place among the rows that gave feedback; 0 = none of them"),
)

RERANK_WEIGHTS = table(
    "rerank_weights",
    key=("request_id",),
    order=("request_id",),
    extra=float64("weight of a term of a plugin"),
    doc="The weights of the score terms per request, resolved from purpose and role; override it to try others.",
    request_id=string("the request", digest=False),
    **{term.name: float64("weight, 0 or more") for term in TERMS},
)

RANKED = table(
    "ranked",
    key=("request_id", "evidence_id"),
    order=("request_id", "rank"),
    extra=float64("contribution of a term of a plugin", of="score_terms.*"),
    doc="The rows of the pool in final order; the contributions add up to `final` exactly.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row", of="candidates"),
    place=place("its place in the pool"),
    rank=int32("1 is best"),
    final=float64("sum of the contributions"),
    **{term.name: float64(term.contribution, of="score_terms.*") for term in TERMS},
    selected_reason=caller(string("short reason, from its strongest signal (S0.60)")),
)

LaneScores = LANE_SCORES.annotation
ScoreTerms = SCORE_TERMS.annotation
RerankWeights = RERANK_WEIGHTS.annotation
Ranked = RANKED.annotation
