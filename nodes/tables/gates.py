"""Tables of `boundary_gates`, the first wall."""

from __future__ import annotations

from ..schema import caller, int8s, int32, int64, int64s, place, string, strings, table

REACHABLE = table(
    "reachable",
    key=("scope_group",),
    order=("scope_group",),
    doc="What each row group reads; access gates leave no trace but counts.",
    scope_group=int32("the group, from 0"),
    rows=int64s("frame rows that pass every access gate, ascending"),
    withheld_by=int8s("of each: 0 = passes every visibility gate, else the gate's number in `gates.GATES`"),
    left=int64s("rows of its segments before each gate but those of time, in their order, and after the last"),
)

ADMISSIBLE = table(
    "admissible",
    key=("request_id",),
    order=("request_id",),
    doc="What recall may score for each request: A(r), as counts and a digest; the statistics of BM25 are taken here.",
    request_id=string("the request", digest=False),
    scope_group=place("its row group, from 0, which reads the same rows with the same outcome; -1 = denied"),
    rows=int64("N, the number of admissible rows"),
    encoded=int64("those of them that have a vector"),
    total_length=int64("index terms in those rows; avgdl = total_length / rows"),
    withheld=int64("rows that pass the access gates and are withheld by time or visibility"),
    stopped=int64s("rows that each time gate stops, in their order", digest=False, stored=False),
    row_digest=string("SHA-256 over the sorted evidence ids, a line end after each, hex"),
    unmatched_sources=caller(strings("allowed source selectors of the request that pick no row of A(r)")),
)

FILTER_LADDER = table(
    "filter_ladder",
    key=("request_id", "ordinal"),
    order=("request_id", "ordinal"),
    doc="Gate by gate, how many rows were considered and admitted. A caller's ladder starts after the access gates.",
    request_id=string("the request", digest=False),
    ordinal=int32("order of the gate, from 1"),
    gate=caller(string("name of the gate")),
    gate_class=caller(string("access, visibility or time")),
    considered=int64("rows that reached this gate"),
    admitted=int64("rows that passed it"),
    reason_code=caller(string("the reason of a row that did not")),
)

Reachable = REACHABLE.annotation
Admissible = ADMISSIBLE.annotation
FilterLadder = FILTER_LADDER.annotation
