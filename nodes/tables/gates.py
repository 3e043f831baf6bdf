"""Tables of `boundary_gates`, the first wall."""

from __future__ import annotations

from ..schema import boolean, caller, int8s, int32, int64, int64s, string, strings, table, timestamp

GATED_ROWS = table(
    "gated_rows",
    key=("scope_group", "row_start"),
    order=("scope_group", "row_start"),
    doc="Every segment a scope group reads, with the first access or visibility gate that stops each of its rows.",
    scope_group=int32("the group; one that reads no segment has one row, with an empty `stopped_by`"),
    row_start=int64("first frame row of the segment"),
    same_as=int32("the first group that reads the same rows with the same outcome; only that one lists it"),
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

SCOPE_TIMES = table(
    "scope_times",
    key=("scope_group", "as_of", "window_start", "window_end", "include_deleted"),
    order=("scope_group", "as_of", "window_start", "window_end", "include_deleted"),
    doc="The distinct instants and windows a scope group is asked for, each judged once.",
    scope_group=int32("the group"),
    as_of=timestamp("the instant"),
    window_start=timestamp("start of the window; null = open, sorted first", nullable=True),
    window_end=timestamp("end of the window, exclusive; null = open, sorted last", nullable=True),
    include_deleted=boolean("superseded and deleted text passes"),
    rows=int64("rows that pass every gate"),
    total_length=int64("index terms in those rows"),
    row_digest=string("SHA-256 over the sorted evidence ids, a line end after each, hex"),
    stopped=int64s("rows stopped by each time gate, in the order of `gates.GATES`"),
    sources=strings("class and id of the sources of those rows, a tab between them; [] where no request names sources"),
)

ADMISSIBLE = table(
    "admissible",
    key=("request_id",),
    order=("request_id",),
    doc="What recall may score for each request: A(r), as counts and a digest; the statistics of BM25 are taken here.",
    request_id=string("the request", digest=False),
    scope_group=int32("group inside the shard; envelope", digest=False),
    segments=strings("segments read; envelope: merging changes them and nothing else", digest=False),
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

GatedRows = GATED_ROWS.annotation
Reachable = REACHABLE.annotation
ScopeTimes = SCOPE_TIMES.annotation
Admissible = ADMISSIBLE.annotation
FilterLadder = FILTER_LADDER.annotation
