"""Tables of `relevance_feedback` and `task_aware_reranking`."""

from __future__ import annotations

from ..schema import caller, float64, int32, int64, string, table, text
from ..score_terms import SCORED, TERMS

LANE_SCORES = table(
    "lane_scores",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=False,
    doc="BM25 and cosine of every bounded candidate, whichever lane recalled it; `score_terms` has what is made of them.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    bm25=float64("best BM25 over the texts of the request's sub-queries; 0 = no term in common"),
    bm25_reach=float64("the most that BM25 could give: the sum of the weights of the request's terms that A(r) holds"),
    cosine=float64("best cosine over the texts of the request's sub-queries; 0 = either has no vector"),
)

FILE_SCORES = table(
    "file_scores",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=False,
    doc="How well the file of every bounded candidate answers; 0 for rows that are no source code.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    file=float64("BM25 of the whole file as a share of the most that the request's terms could give"),
    passages=float64("sum of the lexical terms of the file's three best candidates, divided by three"),
    outlines=float64("mean cosine of the file's three nearest candidates, or of the fewer that are near at all"),
)

TURN_SCORES = table(
    "turn_scores",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=False,
    doc="What the conversation around a bounded candidate says; all 0 where the row is no turn of a session.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    context=float64("BM25 of the turn with its neighbors, minus BM25 of the turn alone"),
    answer=float64("BM25 of the turn before it, where that one asks something"),
    session=float64("BM25 of its session among the sessions of A(r); 0 where there are not two"),
    session_reach=float64("the most that BM25 could give a session"),
)

FEEDBACK_ROWS = table(
    "feedback_rows",
    key=("request_id", "evidence_id"),
    order=("request_id", "rank"),
    persist=False,
    doc="The rows that a request takes feedback from: its best bounded candidates by a weighted sum of lexical and semantic score.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    row=int64("its frame row; envelope", digest=False),
    rank=int32("1 is best"),
    score=float64("3/4 of its share of the lexical reach and 1/4 of its cosine"),
)

FEEDBACK_TERMS = table(
    "feedback_terms",
    key=("request_id", "term"),
    order=("request_id", "term"),
    persist=False,
    doc="The terms that the feedback rows of a request use most (RM1, Lavrenko & Croft 2001).",
    request_id=string("the request"),
    term=text("a term of the posting index"),
    weight=float64("its share of the total weight of the terms taken, times their number: 1 on average"),
)

FEEDBACK_SCORES = table(
    "feedback_scores",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=False,
    doc="What the feedback rows say of every bounded candidate; `score_terms` has it.",
    request_id=string("the request"),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    rank=int32("its place among the feedback rows; 0 = none of them"),
    lexical=float64("BM25 of the feedback terms as a share of the most that they could give"),
    semantic=float64("mean cosine with the best feedback rows"),
)

SCORE_TERMS = table(
    "score_terms",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    persist=True,
    extra=float64("a term of a plugin, 0 to 1"),
    doc="The raw score terms of every bounded candidate, 0 to 1 (turn_context and the role's two: -1 to 1); `ranked` weighs them.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row"),
    pool_rank=int32("its place among the candidates"),
    evidence_kind=string("its kind, for the diversity term"),
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
    persist=True,
    extra=float64("weight of a term of a plugin"),
    doc="The weights of the score terms per request, resolved from purpose and role; override it to try others.",
    request_id=string("the request", digest=False),
    **{term.name: float64("weight, 0 or more") for term in TERMS},
)

RANKED = table(
    "ranked",
    key=("request_id", "evidence_id"),
    order=("request_id", "rank"),
    persist=True,
    extra=float64("contribution of a term of a plugin"),
    doc="The bounded candidates in final order; the contributions add up to `final` exactly.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row"),
    rank=int32("1 is best"),
    final=float64("sum of the contributions"),
    **{term.name: float64(term.contribution) for term in TERMS},
    selected_reason=caller(string("short reason, from its strongest signal (S0.60)")),
)

LaneScores = LANE_SCORES.annotation
FileScores = FILE_SCORES.annotation
TurnScores = TURN_SCORES.annotation
FeedbackRows = FEEDBACK_ROWS.annotation
FeedbackTerms = FEEDBACK_TERMS.annotation
FeedbackScores = FEEDBACK_SCORES.annotation
ScoreTerms = SCORE_TERMS.annotation
RerankWeights = RERANK_WEIGHTS.annotation
Ranked = RANKED.annotation
