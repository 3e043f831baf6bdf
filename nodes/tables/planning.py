"""Tables of `session_trail` and `query_planning`."""

from __future__ import annotations

from ..schema import float64, int32, int64, place, string, strings, table, text, timestamp
from .inputs import PLAN_RULES

ANCHORS = table(
    "anchors",
    key=("request_id", "kind", "value"),
    order=("request_id", "kind", "value"),
    doc="What the request names: identifiers, paths, tests, error lines, ids and quoted texts found in question, anchors and traces.",
    request_id=string("the request", digest=False),
    kind=string("identifier, path, test, error, id, literal, regex"),
    value=text("the anchor as matched; of a literal its longest part without values; a regular expression reads lines"),
    origin=string(
        "failing_test, error_text, stack_trace, current_files, anchor_symbols, regexes, variables, question, state, "
        "context_summary or session_events"
    ),
    weight=float64("1 for a declared anchor, less for one found in prose"),
)

SESSION_EVENTS = table(
    "session_events",
    key=("request_id", "rank"),
    order=("request_id", "rank"),
    doc="The latest observations of each request's own session, read before planning (S0.42); `anchors` keeps what they name.",
    request_id=string("the request", digest=False),
    rank=int32("1 = the newest"),
    evidence_id=string("the event"),
    row=place("its frame row"),
)

SESSION_TEXTS = table(
    "session_texts",
    key=("request_id", "rank"),
    order=("request_id", "rank"),
    doc="The words of those events that planning reads.",
    request_id=string("the request"),
    rank=int32("1 = the newest"),
    text=text("the event, cut where it is long"),
)

SUB_QUERIES = table(
    "sub_queries",
    key=("request_id", "sub_query_id"),
    order=("request_id", "ordinal"),
    doc="The retrieval plan: one row per sub-query, best first.",
    request_id=string("the request", digest=False),
    sub_query_id=string("`q1`, `q2`, ... inside the request"),
    ordinal=int32("order in the plan, from 1"),
    **PLAN_RULES.take("intent", "sources", "kinds", "min_authority"),
    query_text=text("what is searched for"),
    expansion=text("words the role adds to the lexical lane, at a quarter of a term's weight", nullable=True),
    lanes=strings("lanes it uses"),
    lane_k=int32("rows a lane returns"),
    oldest=timestamp("rows older than this do not return; null = any age", nullable=True),
    window_paths=strings("path globs that `window_start` holds for"),
    window_start=timestamp("rows of `window_paths` older than this do not return; null = any age", nullable=True),
)

QUERY_TERMS = table(
    "query_terms",
    key=("sub_query", "term"),
    order=("sub_query", "field", "term"),
    doc="The index keys each sub-query looks up.",
    sub_query=int64("the sub-query, by its place among those of the shard"),
    field=string(
        "text, definition, reference, path, id or literal: the index field; the expansion lane alone asks for conflict"
    ),
    term=string("the term as indexed, after the prefix of its field"),
    weight=float64(
        "for a text term its count in the query, a quarter of that in the role's expansion; for any other key the anchor's "
        "weight, less for vaguer keys"
    ),
)

Anchors = ANCHORS.annotation
SessionEvents = SESSION_EVENTS.annotation
SessionTexts = SESSION_TEXTS.annotation
SubQueries = SUB_QUERIES.annotation
QueryTerms = QUERY_TERMS.annotation
