"""Tables of `boundary_gates`, the first wall."""

from __future__ import annotations

from ..schema import caller, int8s, int32, int64, string, strings, table

SCOPE_GROUPS = table(
    "scope_groups",
    key=("request_id",),
    order=("request_id",),
    doc="Which requests read the same rows with the same outcome, time apart. Denied requests are in no group.",
    request_id=string("the request"),
    scope_group=int32("dense group number inside the shard; -1 = denied"),
)

GATED_ROWS = table(
    "gated_rows",
    key=("scope_group", "row_start"),
    order=("scope_group", "row_start"),
    doc="Every segment a row group reads, with the first access or visibility gate that stops each of its rows.",
    scope_group=int32("the group"),
    row_start=int64("first frame row of the segment"),
    stopped_by=int8s("per row of the segment: 0 = passes them all, else the gate's number in `gates.GATES`"),
)

REACHABLE = table(
    "reachable",
    key=("scope_group", "row"),
    order=("scope_group", "row"),
    doc="Frame rows that pass every access gate, per scope group, with the first visibility gate that withholds each.",
    scope_group=int32("the group"),
    row=int64("frame row"),
    withheld_by=int32("0 = passes every visibility gate, else the gate's number in `gates.GATES`"),
)

ADMISSIBLE = table(
    "admissible",
    key=("request_id",),
    order=("request_id",),
    doc="What recall may score for each request: A(r), as counts and a digest; the statistics of BM25 are taken here.",
    request_id=string("the request", digest=False),
    rows=int64("N, the number of admissible rows"),
    total_length=int64("index terms in those rows; avgdl = total_length / rows"),
    withheld=int64("rows that pass the access gates and are withheld by time or visibility"),
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

ScopeGroups = SCOPE_GROUPS.annotation
GatedRows = GATED_ROWS.annotation
Reachable = REACHABLE.annotation
Admissible = ADMISSIBLE.annotation
FilterLadder = FILTER_LADDER.annotation
