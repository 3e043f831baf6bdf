"""The input of the lanes for one scope group: its rows, clocks and sub-queries, as NumPy arrays.

Reads the tables of planning and of the first wall. Gives one `ScopeGroup` per group that has sub-queries for a lane.

Note: a scope contains the rows that pass the *access* gates. Whether a row is admissible for a request also depends on
the visibility gates (`withheld`) and on the request's clock (`ContractClock`), which is evaluated for (clock, row)
pairs inside the kernels, never once per request and row of the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.kept import OfTable
from ..columns.keys import (
    codes_of,
    constants,
    distinct_numbers,
    distinct_rows,
    first_of_runs,
    flat,
    integers,
    positions,
    run_lengths,
)
from ..columns.list_columns import holds
from ..frames import OPEN_START, RowIndex, micros
from ..scope.selectors import SourcePairs, glob_mask, selected_pairs, source_pairs
from ..walls.clocks import ContractClock, distinct_clocks
from ..walls.moments import Moments

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]
Float = NDArray[np.float64]
Value = TypeVar("Value")

_FILTERS = ["sources", "kinds", "min_authority"]
SEPARATOR = "\x1f"
CELLS = 1 << 21
"""(sub-query, row) pairs in memory at once: about 120 MiB with all their values."""
PAIRS = 1 << 20
"""Pairs with a posting, or with a row of a document, expanded at once: about 60 MiB. No result depends on either bound."""


_columns_of = OfTable[tuple[Int, Int, Bool]](
    lambda rows: (integers(rows["scope_group"]), integers(rows["row"]), integers(rows["withheld_by"]) != 0)
)
"""Group, frame row and whether it is withheld, of REACHABLE."""
_values_of = OfTable[dict[Hashable, Any]](lambda _: {})
"""Values that follow from the rows of scopes alone, for all requests that reach the same rows."""


def _of_rows(make: Callable[[ScopeGroup], Value]) -> cached_property[Value]:
    """A property that follows from the rows of a scope alone."""
    return cached_property(lambda scope: scope.once(make.__name__, lambda: make(scope)))


@dataclass(frozen=True)
class RecallTables:
    """The inputs that every lane reads."""

    contracts: pa.Table
    row_groups: pa.Table
    reachable: pa.Table
    admissible: pa.Table
    segments: pa.Table
    evidence: pa.Table
    row_index: RowIndex
    sub_queries: pa.Table

    @cached_property
    def sub_request(self) -> Int:
        """The contract row of each sub-query."""
        return positions(self.sub_queries["request_id"], self.contracts["request_id"])

    @cached_property
    def group(self) -> Int:
        """The row group of each contract row, -1 where denied."""
        at = positions(self.contracts["request_id"], self.row_groups["request_id"])
        return np.where(at >= 0, integers(self.row_groups["scope_group"])[np.maximum(at, 0)] if len(at) else -1, -1)

    @cached_property
    def clock(self) -> tuple[ContractClock, Int]:
        """The distinct time bounds of the shard, and each contract row's position among them."""
        return distinct_clocks(self.contracts)

    @cached_property
    def statistics(self) -> tuple[Int, Int]:
        """N and total length of A(r), per contract row; 0 where the request has none."""
        at = positions(self.contracts["request_id"], self.admissible["request_id"])
        known = at >= 0
        out = []
        for name in ("rows", "total_length"):
            values = np.zeros(len(at), dtype=np.int64)
            values[known] = integers(self.admissible[name])[at[known]]
            out.append(values)
        return out[0], out[1]

    @cached_property
    def setting(self) -> Int:
        """A number per contract row, equal where time bounds, N and total length are: all that a score depends on."""
        return distinct_rows(self.clock[1], *self.statistics)[1]

    @cached_property
    def lane_k(self) -> Int:
        """The number of rows that a lane returns, per sub-query."""
        return integers(self.sub_queries["lane_k"])

    @cached_property
    def filters(self) -> tuple[list[dict[str, Any]], Int]:
        """The distinct filters (sources, kinds and least authority), and the filter of each sub-query."""
        keys = [pc.binary_join(flat(self.sub_queries[name]), SEPARATOR) for name in ("sources", "kinds")]
        first, filter_ = distinct_rows(codes_of([*keys, self.sub_queries["min_authority"]]))
        return self.sub_queries.select(_FILTERS).take(pa.array(first)).to_pylist(), filter_

    @cached_property
    def oldest(self) -> Int:
        """Per sub-query, the time before which rows are not returned; OPEN_START = any age."""
        return micros(self.sub_queries["oldest"], OPEN_START)

    @cached_property
    def window_start(self) -> Int:
        """Per sub-query, the start of its window; OPEN_START = any age."""
        return micros(self.sub_queries["window_start"], OPEN_START)

    @cached_property
    def window_globs(self) -> tuple[Int, list[str]]:
        """The list of window paths of each sub-query, and the distinct lists."""
        encoded = pc.binary_join(flat(self.sub_queries["window_paths"]), SEPARATOR).dictionary_encode()
        return integers(encoded.indices), encoded.dictionary.to_pylist()

    def contract_numbers(self, name: str) -> Int:
        """An integer column of the contracts."""
        return integers(self.contracts[name])

    def uses(self, lane: str) -> Bool:
        """Whether each sub-query uses a lane."""
        return holds(self.sub_queries["lanes"], lane)

    def scope_groups(self, lane: str | None) -> Iterator[ScopeGroup]:
        """The scope groups with at least one sub-query for this lane, or with any sub-query, in group order.

        They are not kept here: groups refer to these tables, and the cycle would hold all memory of a request until
        Python's next collection of cycles.
        """
        request = self.sub_request
        group = np.where(request >= 0, self.group[np.maximum(request, 0)] if len(self.group) else -1, -1)
        use = group >= 0 if lane is None else self.uses(lane) & (group >= 0)
        groups, rows, withheld = _columns_of(self.reachable)
        starts, ends = integers(self.segments["row_start"]), integers(self.segments["row_end"])
        asked = use.nonzero()[0]
        asked = asked[group[asked].argsort(kind="stable")]
        cuts = first_of_runs(group[asked])
        number = group[asked[cuts]]
        parts = [asked[low:high] for low, high in pairwise([*cuts.tolist(), len(asked)])]
        bounds = groups.searchsorted(number), groups.searchsorted(number, side="right")
        for low, high, sub in zip(*bounds, parts, strict=True):
            if low == high:
                continue
            own = rows[low:high]
            held = (own.searchsorted(starts) < own.searchsorted(ends)).nonzero()[0]
            yield ScopeGroup(
                tables=self,
                group=int(groups[low]),
                rows=own,
                withheld=withheld[low:high],
                segments=held,
                sub=sub,
            )


@dataclass(frozen=True)
class ScopeGroup:
    """One group: `rows` (frame rows, ascending), `withheld` by a visibility gate, `segments`, and `sub`-queries."""

    tables: RecallTables
    group: int
    rows: Int
    withheld: Bool
    segments: Int
    sub: Int

    def once(self, name: Hashable, make: Callable[[], Value]) -> Value:
        """What `make` returns, which follows from `rows` and `withheld` alone; kept as long as the table of reachable rows.

        It must not refer to the evidence: the frame would never be released.
        """
        known, key = _values_of(self.tables.reachable), (self.group, name)
        if key not in known:
            known[key] = make()
        return known[key]

    @cached_property
    def request(self) -> Int:
        """The contract row of each sub-query of the scope."""
        return self.tables.sub_request[self.sub]

    @_of_rows
    def length(self) -> Int:
        """The number of terms of each row."""
        return self.tables.row_index.length[self.rows]

    @_of_rows
    def place(self) -> Int:
        """The place of each row's id: smaller ids come first where scores are equal."""
        return self.tables.row_index.id_rank[self.rows]

    def open(self, clock: int) -> Bool:
        """Which rows are admissible under a clock."""
        clocks, index = self.tables.clock[0], self.tables.row_index
        moments: Moments[Bool] = self.once("moments", lambda: Moments(self.rows, index))
        as_of, start, end = (int(bound[clock]) for bound in (clocks.as_of, clocks.start, clocks.end))

        def judge() -> Bool:
            return clocks.grid(index, np.array([clock]), self.rows)[0] & ~self.withheld

        return moments.at(as_of, start, end, bool(clocks.history[clock]), judge)

    @cached_property
    def _ranges(self) -> tuple[Int, Int]:
        starts = integers(self.tables.segments["row_start"])[self.segments]
        return starts, integers(self.tables.segments["row_end"])[self.segments] - starts

    @_of_rows
    def _table(self) -> NDArray[np.int32]:
        """Position in `rows` of every row of the scope's segments, -1 where a gate stops it."""
        table = np.full(int(self._ranges[1].sum()), -1, dtype=np.int32)
        table[self._offset(self.rows)] = np.arange(len(self.rows), dtype=np.int32)
        return table

    @property
    def by_segment(self) -> list[NDArray[np.int32]]:
        """Position in `rows` of every row of each of `segments`, -1 where a gate stops it."""
        return np.split(self._table, self._ranges[1].cumsum()[:-1])

    def _offset(self, frame_rows: Int) -> Int:
        starts, lengths = self._ranges
        if len(starts) == 1:
            return frame_rows - starts[0]
        shift = starts - (lengths.cumsum() - lengths)
        return frame_rows - shift[starts.searchsorted(frame_rows, side="right") - 1]

    def local(self, frame_rows: Int) -> Int:
        """Position of each frame row in `rows`, -1 for a row that an access gate stops.

        The rows must belong to the scope's segments, as posting look-ups return them.
        """
        return self._table[self._offset(frame_rows)].astype(np.int64)

    def column(self, name: str) -> pa.Array:
        """An evidence column of the scope's rows; the cost follows the scope's segments."""
        column = self.tables.evidence[name]
        starts, lengths = self._ranges
        parts = [column.slice(s, n) for s, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
        chunks = [chunk for part in parts for chunk in part.chunks]
        whole = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
        return whole if len(whole) == len(self.rows) else whole.take(pa.array(self._offset(self.rows)))

    @_of_rows
    def owner(self) -> Int:
        """A code of (owner_project, owner_user) per row: equal paths of two owners are two documents."""
        of = self.tables.segments.take(pa.array(self.segments))
        codes = codes_of([of["owner_project"], of["owner_user"]])
        starts, _ = self._ranges
        return codes[starts.searchsorted(self.rows, side="right") - 1]

    @_of_rows
    def document(self) -> Int:
        """A code of (owner, source_id, path) per row; a row without a path is a document of its own."""
        path = self.column("path")
        codes = codes_of([pa.array(self.owner), self.column("source_id"), path])
        alone = np.asarray(path.is_null())
        codes[alone] = codes.max(initial=-1) + 1 + np.arange(int(alone.sum()))
        return np.unique(codes, return_inverse=True)[1].reshape(-1)

    @cached_property
    def filters(self) -> tuple[NDArray[np.bool_], Int]:
        """The rows that each distinct sub-query filter passes, bool[filters, rows], and each sub-query's filter.

        Sources, kinds and least authority; the greatest age depends on the clock and is judged per pair.
        """
        every, of = self.tables.filters
        used, inverse = distinct_numbers(of[self.sub])
        return np.stack([self._passed(**every[filter_]) for filter_ in used.tolist()]), inverse

    def _passed(self, sources: list[str], kinds: list[str], min_authority: int) -> Bool:
        """The rows that a filter passes."""

        def make() -> Bool:
            passed = np.ones(len(self.rows), dtype=bool)
            if sources:
                passed &= selected_pairs(sources, self._pairs)[self._pairs.codes]
            if kinds:
                kind, names = self._kinds
                passed &= np.asarray(pc.is_in(names, value_set=constants(tuple(kinds))))[kind]
            if min_authority > 0:
                passed &= self.column("authority").fill_null(0).to_numpy(zero_copy_only=False) >= min_authority
            return passed

        return self.once((tuple(sources or ()), tuple(kinds or ()), min_authority), make)

    @_of_rows
    def _pairs(self) -> SourcePairs:
        return source_pairs(self.column("origin_class"), self.column("source_id"))

    @_of_rows
    def _kinds(self) -> tuple[Int, pa.Array]:
        encoded = self.column("evidence_kind").dictionary_encode()
        return integers(encoded.indices), encoded.dictionary

    @property
    def oldest(self) -> Int:
        """Per sub-query, the time before which rows are not returned; OPEN_START = any age."""
        return self.tables.oldest[self.sub]

    @property
    def windows(self) -> tuple[Int, Int]:
        """Per sub-query, the list of paths that its window applies to, and the window's start; OPEN_START = any age."""
        return self.tables.window_globs[0][self.sub], self.tables.window_start[self.sub]

    @cached_property
    def _windowed(self) -> NDArray[np.bool_]:
        """Rows that each distinct list of window paths matches, bool[lists, rows]."""
        path = self.column("path")
        return np.stack([glob_mask(path, globs.split(SEPARATOR)) for globs in self.tables.window_globs[1]])

    def earliest(self, sub: Int, local: Int) -> Int:
        """The time before which the row of each pair is not returned; OPEN_START = any age."""
        of, start = self.windows
        if (start == OPEN_START).all():
            return self.oldest[sub]
        held = self._windowed[of[sub], local]
        return np.where(held, np.maximum(self.oldest[sub], start[sub]), self.oldest[sub])

    def returned(self, sub: Int) -> tuple[NDArray[np.bool_], Int]:
        """The rows that the distinct filters of some sub-queries pass, bool[filters, rows], and the filter of each."""
        passed, of = self.filters
        aged = self._aged(sub)
        if aged is None:
            return passed, of[sub]
        first, inverse = aged
        subs = sub[first]
        allowed = passed[of[subs]]
        bound = ((self.oldest[subs] != OPEN_START) | (self.windows[1][subs] != OPEN_START)).nonzero()[0]
        step = max(1, CELLS // max(len(self.rows), 1))
        for some in (bound[low : low + step] for low in range(0, len(bound), step)):
            line, local = allowed[some].nonzero()  # there may be few, for example of logs only
            allowed[some[line], local] = self.filtered(subs[some[line]], local)
        return allowed, inverse

    def aged_lines(self, sub: Int) -> int:
        """The number of lines that `returned` adds for some sub-queries to those of the filters."""
        aged = self._aged(sub)
        return 0 if aged is None else len(aged[0])

    def _aged(self, sub: Int) -> tuple[Int, Int] | None:
        """The first of the sub-queries that return equal rows at equal ages, and the position of each; None without
        ages.
        """
        lists, start = self.windows
        if (self.oldest[sub] == OPEN_START).all() and (start[sub] == OPEN_START).all():
            return None
        clock = self.tables.clock[1][self.request]
        return distinct_rows(*(values[sub] for values in (self.filters[1], clock, self.oldest, lists, start)))

    def filtered(self, sub: Int, local: Int) -> Bool:
        """Which (position in `sub`, position in `rows`) pairs pass the sub-query's filter."""
        passed, of = self.filters
        allowed = passed[of[sub], local]
        earliest = self.earliest(sub, local)
        aged = (allowed & (earliest != OPEN_START)).nonzero()[0]
        if len(aged):
            allowed[aged] = self._happened(sub[aged], local[aged]) >= earliest[aged]
        return allowed

    def in_window(self, sub: Int, local: Int) -> Bool:
        """Which (position in `sub`, position in `rows`) pairs pass the mode's window, regardless of filters."""
        of, start = self.windows
        inside = np.ones(len(sub), dtype=bool)
        if (start != OPEN_START).any():
            held = (self._windowed[of[sub], local] & (start[sub] != OPEN_START)).nonzero()[0]
            inside[held] = self._happened(sub[held], local[held]) >= start[sub[held]]
        return inside

    def _happened(self, sub: Int, local: Int) -> Int:
        """The time of the row of each pair, microseconds: its event time, else its recorded time."""
        clock, of_request = self.tables.clock
        index, rows = self.tables.row_index, self.rows[local]
        time = index.event_time[rows]
        undated = (time == OPEN_START).nonzero()[0]  # only these need a placement
        if len(undated):
            _, placement = clock.judge(index, of_request[self.request[sub[undated]]], rows[undated])
            time[undated] = index.recorded_at(placement)
        return time


def sub_query_of(sub_queries: pa.Table, table: pa.Table) -> Int:
    """For a table sorted by (request_id, sub_query_id): the sub-query of each row.

    Only the first row of each run of equal owners is looked up.
    """
    if not table.num_rows:
        return np.empty(0, dtype=np.int64)
    request, sub_query = flat(table["request_id"]), flat(table["sub_query_id"])
    change = np.zeros(len(request), dtype=bool)
    change[0] = True
    for column in (request, sub_query):
        change[1:] |= np.asarray(pc.not_equal(column[1:], column[:-1]))
    first = change.nonzero()[0]
    at = pa.array(first)
    asked = pc.binary_join_element_wise(request.take(at), sub_query.take(at), "\n")
    known = pc.binary_join_element_wise(flat(sub_queries["request_id"]), flat(sub_queries["sub_query_id"]), "\n")
    return positions(asked, known).repeat(run_lengths(first, len(request)))
