"""Tables of `candidate_recall`."""

from __future__ import annotations

from ..lanes import LANE_NAMES
from ..schema import boolean, float64, int32, int64, place, string, strings, table

LANE_HITS = table(
    "lane_hits",
    key=("sub_query", "lane", "row"),
    order=("sub_query", "lane", "rank"),
    doc="Rows that a lane recalled, best first.",
    sub_query=place("the sub-query that asked, by its place among those of the shard"),
    lane=string(f"{', '.join(LANE_NAMES[:-1])} or {LANE_NAMES[-1]}"),
    row=place("its frame row"),
    rank=int32("1 is best, dense within request, sub-query and lane"),
    score=float64("raw lane score; not comparable between lanes"),
    withheld=boolean("recalled for the record only: a time or visibility gate withholds it"),
    via=string(
        "by which link: parent, child, neighbour, conflict, superseding, citation, record, or call (symbol lane, "
        "second hop); of the graph lane the edge, its confidence and the evidence id that it starts from, as in "
        "`citation 0.90 <id>`, also import; null = directly",
        nullable=True,
    ),
)

HITS = table(
    "hits",
    key=("request_id", "sub_query_id", "lane", "evidence_id"),
    order=("request_id", "sub_query", "lane", "rank"),
    doc="Rows the lanes recalled, best first within a lane.",
    request_id=string("the request", digest=False),
    sub_query_id=string("the sub-query that asked"),
    evidence_id=string("the row"),
    **LANE_HITS.columns,
)

CANDIDATES = table(
    "candidates",
    key=("request_id", "evidence_id"),
    order=("request_id", "pool_rank"),
    doc="Hits merged: one row per request and evidence, in recall order under the merge policy.",
    request_id=string("the request", digest=False),
    evidence_id=string("the row"),
    row=place("its frame row"),
    placement=int64("frame placement shown or judged: the one alive at as_of, else the nearest", digest=False),
    pool_rank=int32("1 is best; order of the merge policy"),
    merge_score=float64("reciprocal rank fusion over sub-queries and lanes, k = 60"),
    lanes=strings("lanes that recalled it, sorted"),
    intents=strings("intents of the sub-queries that recalled it, sorted"),
    bm25_raw=float64("best lexical score over sub-queries; 0 = not recalled there"),
    semantic_raw=float64("best cosine over sub-queries; 0 = not recalled there"),
    symbol_raw=float64("best symbol score over sub-queries; 0 = not recalled there"),
    via=string("by which link it was reached; null = a lane found it directly", nullable=True),
    withheld=boolean("recalled for the record only"),
    replaced_by=string(
        "the admissible row that replaces it; itself = it names another in superseded_by", nullable=True
    ),
)

LaneHits = LANE_HITS.annotation
Hits = HITS.annotation
Candidates = CANDIDATES.annotation
