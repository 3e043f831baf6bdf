"""The input of the lanes for one scope group: its rows, clocks and sub-queries, as NumPy arrays.

Reads the tables of planning and of the first wall. Gives one `ScopeGroup` per group that has sub-queries for a lane.

Note: a scope contains the rows that pass the *access* gates. Whether a row is admissible for a request also depends on
the visibility gates (`withheld`) and on the request's clock (`ContractClock`), which is evaluated for (clock, row)
pairs inside the kernels, never once per request and row of the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.kept import Recent
from ..columns.keys import (
    codes_of,
    constants,
    distinct_numbers,
    distinct_rows,
    first_of_runs,
    gathered,
    integers,
    positions,
)
from ..columns.ragged import slabs, spread, starts_of
from ..frames import OPEN_START, PostingIndex, RowIndex, SegmentPostings, key_hashes, micros
from ..scope.selectors import SourcePairs, glob_mask, selected_pairs, source_pairs
from ..text.references import References
from ..walls.time_gates import ContractClock, GroupRows, distinct_clocks, rows_of_groups

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]
Float = NDArray[np.float64]
Rows = NDArray[np.int32]
Value = TypeVar("Value")

VIA = ("neighbour", "parent", "conflict", "superseding", "call", "child", "citation", "record", "import")
"""The links by which a row is reached from another."""
CELLS = 1 << 21
"""(sub-query, row) pairs in memory at once: about 120 MiB with all their values."""
PAIRS = 1 << 20
"""Pairs with a posting, or with a row of a document, expanded at once: about 60 MiB. No result depends on either bound."""
MOST_POSTINGS = 1 << 26
"""Postings of the lists that are kept for a scope: half a GiB."""
MERGED_AFTER = 1.0
"""Look-ups, per key of a scope's segments, after which its lists are merged: they then have cost as much as this does."""


def _of_rows(make: Callable[[ScopeGroup], Value]) -> cached_property[Value]:
    """A property that follows from the rows of a scope alone."""
    return cached_property(lambda scope: scope.once(make.__name__, lambda: make(scope)))


class Filter(NamedTuple):
    """Which rows a sub-query returns. Times are microseconds; OPEN_START = any age."""

    sources: tuple[str, ...]
    kinds: tuple[str, ...]
    min_authority: int
    oldest: int
    window_paths: tuple[str, ...]
    window_start: int
    """Of rows with these paths, none that happened before is returned."""
    clock: int
    """Whose placement dates a row; -1 where no row is too old."""


@dataclass(frozen=True)
class RecallTables:
    """The inputs that every lane reads."""

    contracts: pa.Table
    reachable: pa.Table
    admissible: pa.Table
    segments: pa.Table
    evidence: pa.Table
    row_index: RowIndex
    sub_queries: pa.Table
    query_terms: pa.Table
    looked_up: Recent[Any] = field(default_factory=lambda: Recent(64))
    """What the groups looked up last, by group and fields: several lanes ask for the same words."""

    @cached_property
    def sub_request(self) -> Int:
        """The contract row of each sub-query."""
        return positions(self.sub_queries["request_id"], self.contracts["request_id"])

    @cached_property
    def group(self) -> Int:
        """The row group of each contract row, -1 where denied."""
        return integers(self.admissible["scope_group"])

    @cached_property
    def group_of_sub(self) -> Int:
        """The row group of each sub-query."""
        return self.group[self.sub_request] if len(self.group) else self.sub_request

    @cached_property
    def clock(self) -> tuple[ContractClock, Int]:
        """The distinct time bounds of the shard, and each contract row's position among them."""
        return distinct_clocks(self.contracts)

    @cached_property
    def statistics(self) -> tuple[Int, Int]:
        """N and total length of A(r), per contract row; 0 where the request has none."""
        return integers(self.admissible["rows"]), integers(self.admissible["total_length"])

    @cached_property
    def lane_k(self) -> Int:
        """The number of rows that a lane returns, per sub-query."""
        return integers(self.sub_queries["lane_k"])

    @cached_property
    def filters(self) -> tuple[list[Filter], Int]:
        """The distinct filters, and the number of each sub-query's."""
        listed = self.sub_queries.select(["sources", "kinds", "window_paths", "min_authority"]).to_pylist()
        times = (micros(self.sub_queries[name], OPEN_START).tolist() for name in ("oldest", "window_start"))
        numbers, of = dict[Filter, int](), list[int]()
        for row, oldest, start, at in zip(listed, *times, self.clock[1][self.sub_request].tolist(), strict=True):
            sources, kinds, paths = (tuple(row[name] or ()) for name in ("sources", "kinds", "window_paths"))
            clock = at if max(oldest, start) > OPEN_START else -1
            one = Filter(sources, kinds, row["min_authority"], oldest, paths, start, clock)
            of.append(numbers.setdefault(one, len(numbers)))
        return list(numbers), np.array(of, dtype=np.int64)

    @cached_property
    def texts(self) -> list[tuple[str, str | None]]:
        """The text of each sub-query, and what its role adds."""
        return list(zip(*(self.sub_queries[name].to_pylist() for name in ("query_text", "expansion")), strict=True))

    @cached_property
    def _lanes(self) -> dict[str, Bool]:
        lanes = self.sub_queries["lanes"].to_pylist()
        return {lane: np.array([lane in own for own in lanes]) for lane in {lane for own in lanes for lane in own}}

    def uses(self, lane: str) -> Bool:
        """Whether each sub-query uses a lane."""
        return self._lanes.get(lane, np.zeros(self.sub_queries.num_rows, dtype=bool))

    @cached_property
    def _groups(self) -> list[tuple[int, GroupRows, Int, Int, Int, Lines]]:
        """The number, rows, segments and sub-queries of each group that has rows and sub-queries; its lines, and the line
        of each sub-query.
        """
        group = self.group_of_sub
        reached = rows_of_groups(self.reachable)
        starts, ends = integers(self.segments["row_start"]), integers(self.segments["row_end"])
        order = group.argsort(kind="stable")[np.count_nonzero(group < 0) :]
        found = []
        for low, high in pairwise([*first_of_runs(group[order]).tolist(), len(order)]):
            number = int(group[order[low]])
            rows = reached[number].rows
            if len(rows):
                held = (rows.searchsorted(starts) < rows.searchsorted(ends)).nonzero()[0]
                sub = order[low:high]
                found.append((number, reached[number], held, sub, *self._lines(reached[number], self.sub_request[sub])))
        return found

    def _lines(self, group: GroupRows, request: Int) -> tuple[Int, Lines]:
        """The line of each of some requests of a group, and the lines."""
        clocks, clock = self.clock[0], self.clock[1][request]
        rows, length = (values[request] for values in self.statistics)
        first, line = distinct_rows(*group.moments(self.row_index, clocks.some(clock)).T, rows, length)
        return line, Lines(clock[first], rows[first], length[first] / np.maximum(rows[first], 1))

    def scope_groups(self, lane: str | None) -> Iterator[ScopeGroup]:
        """The scope groups with at least one sub-query for this lane, or with any sub-query, in group order.

        They are not kept here: groups refer to these tables, and the cycle would hold all memory of a request until
        Python's next collection of cycles.
        """
        for number, reached, segments, sub, line, lines in self._groups:
            asks = np.full(len(sub), True) if lane is None else self.uses(lane)[sub]
            if asks.any():
                yield ScopeGroup(self, number, reached, segments, sub[asks], line[asks], lines)


class Lines(NamedTuple):
    """The requests of a group by their open rows and the statistics of these: all that a score depends on."""

    clock: Int
    """An example of the clocks under which just these rows are open."""
    rows: Int
    mean: Float
    """N and the mean length."""

    def part(self, low: int, high: int) -> Lines:
        """Some of the lines."""
        return Lines(self.clock[low:high], self.rows[low:high], self.mean[low:high])


@dataclass(frozen=True)
class ScopeGroup:
    """One group: its rows, `segments`, and `sub`-queries, each with its line among `lines`."""

    tables: RecallTables
    group: int
    reached: GroupRows
    segments: Int
    sub: Int
    line: Int
    lines: Lines

    def once(self, name: Hashable, make: Callable[[], Value]) -> Value:
        """What `make` returns, which follows from the rows of the group alone, see `GroupRows.once`."""
        return self.reached.once(name, make)

    @property
    def rows(self) -> Int:
        """Frame rows, ascending."""
        return self.reached.rows

    @property
    def withheld(self) -> Bool:
        """Which of them a visibility gate withholds."""
        return self.reached.withheld

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

    def open(self, clock: Int) -> Bool:
        """Which rows are admissible under some clocks, bool[clocks, rows]."""
        moments = self.reached.at(self.tables.row_index, self.tables.clock[0].some(clock))
        return np.array([moment.open for moment in moments])

    def gates(self, sub: Int, lines: Bool, line: Int) -> tuple[Bool, Int]:
        """The sets of rows that some sub-queries may return, those of a line that pass its filter, and the set of each one.

        `sub` are positions in `self.sub`; `line` is the place of each one's line in bool[lines, rows].
        """
        every, of = self.tables.filters
        pairs: dict[tuple[int, int], int] = {}
        asked = zip(line.tolist(), of[self.sub[sub]].tolist(), strict=True)
        gate = [pairs.setdefault(pair, len(pairs)) for pair in asked]
        passed = {filter_: self._returned(every[filter_]) for _, filter_ in pairs}
        return np.array([lines[at] & passed[filter_] for at, filter_ in pairs]), np.array(gate, dtype=np.int64)

    def shown(self, sub: Int) -> tuple[Bool, Int]:
        """The sets of admissible rows that some sub-queries may return, and the set of each one."""
        lines, line = distinct_numbers(self.line[sub])
        return self.gates(sub, self.open(self.lines.clock[lines]), line)

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

    def look_up(self, postings: PostingIndex, keys: Sequence[str]) -> tuple[Int, Int, Rows, Rows]:
        """The postings of distinct keys inside the scope: where those of each key start and end in the other two, the
        positions in `rows` (ascending inside a key) and how often the row has the key.
        """
        lists: _Lists = self.once("lists", lambda: _Lists.of(postings, self.segments))
        if (one := lists.serving(self, postings, keys)) is not None:
            at = one.find(pa.array(keys, pa.large_string()), key_hashes(keys))
            known = at >= 0
            first, last = np.where(known, one.starts[at], 0), np.where(known, one.starts[at + 1], 0)
            return first, last, one.rows, one.freqs
        found = postings.lookup(keys, self.segments)
        local = self._table[self._offset(found.rows)]
        kept = local >= 0
        starts = starts_of(kept)[found.starts]
        return starts[:-1], starts[1:], local[kept], found.freqs[kept]

    def referred(self, postings: PostingIndex, **named: References) -> Iterator[tuple[Int, Int, Int, Int]]:
        """For some of the references at once, which are given by link: the number of each, a position in `rows` that has its
        key, the position of the link in VIA, and a number of the key.
        """
        places: dict[str, int] = {}
        links = ((VIA.index(link), references) for link, references in named.items())
        every = [(n, via, places.setdefault(key, len(places))) for via, references in links for n, key in references]
        if not every:
            return
        number, via, code = np.array(every, np.int64).T
        first, last, found, _ = self.look_up(postings, list(places))
        counts = (last - first)[code]
        for low, high in slabs(counts, PAIRS):
            of, at = spread(first[code[low:high]], counts[low:high])
            yield number[low + of], found[at].astype(np.int64), via[low + of], code[low + of]

    def admitted(self, request: Int, local: Int) -> tuple[Bool, Int]:
        """Whether each row is in A(r) of a contract row, and the placement that it was judged by."""
        clock, of_request = self.tables.clock
        passes, placement = clock.judge(self.tables.row_index, of_request[request], self.rows[local])
        return passes & ~self.withheld[local], placement

    def column(self, name: str) -> pa.Array:
        """An evidence column of the scope's rows; the cost follows these."""
        return gathered(self.tables.evidence[name], self.rows)

    @_of_rows
    def owner(self) -> Int:
        """A code of (owner_project, owner_user) per row: equal paths of two owners are two documents."""
        return codes_of([self.column("owner_project"), self.column("owner_user")])

    @_of_rows
    def document(self) -> Int:
        """A code of (owner, source_id, path) per row; a row without a path is a document of its own."""
        path = self.column("path")
        codes = codes_of([pa.array(self.owner), self.column("source_id"), path])
        alone = np.asarray(path.is_null())
        codes[alone] = codes.max(initial=-1) + 1 + np.arange(int(alone.sum()))
        return np.unique(codes, return_inverse=True)[1].reshape(-1)

    def _passed(self, sources: tuple[str, ...], kinds: tuple[str, ...], min_authority: int) -> Bool:
        """The rows of some sources, kinds and a least authority."""

        def make() -> Bool:
            passed = np.ones(len(self.rows), dtype=bool)
            if sources:
                passed &= selected_pairs(sources, self._pairs)[self._pairs.codes]
            if kinds:
                kind, names = self._kinds
                passed &= np.asarray(pc.is_in(names, value_set=constants(kinds)))[kind]
            if min_authority > 0:
                passed &= self.column("authority").fill_null(0).to_numpy(zero_copy_only=False) >= min_authority
            return passed

        return self.once((sources, kinds, min_authority), make)

    @_of_rows
    def _pairs(self) -> SourcePairs:
        return source_pairs(self.column("origin_class"), self.column("source_id"))

    @_of_rows
    def _kinds(self) -> tuple[Int, pa.Array]:
        encoded = self.column("evidence_kind").dictionary_encode()
        return integers(encoded.indices), encoded.dictionary

    def _windowed(self, paths: tuple[str, ...]) -> Bool:
        """The rows with one of these paths."""
        return self.once(("paths", paths), lambda: glob_mask(self.column("path"), paths))

    def _returned(self, filter_: Filter) -> Bool:
        passed = self._passed(*filter_[:3])
        if filter_.clock < 0:
            return passed
        passed = passed.copy()
        local = passed.nonzero()[0]  # there may be few, for example of logs only
        passed[local] = self._young(filter_, local)
        return passed

    def _young(self, filter_: Filter, local: Int) -> Bool:
        """Which of some rows are not too old for a filter."""
        happened = self._happened(filter_.clock, local)
        if filter_.window_start == OPEN_START:
            return happened >= filter_.oldest
        windowed = self._windowed(filter_.window_paths)[local]
        return (happened >= filter_.oldest) & ~(windowed & (happened < filter_.window_start))

    def in_window(self, sub: Int, local: Int) -> Bool:
        """Which (sub-query, position in `rows`) pairs pass the mode's window, regardless of filters."""
        every, of = self.tables.filters
        inside = np.ones(len(sub), dtype=bool)
        for number, filter_ in enumerate(every):
            if filter_.window_start > OPEN_START:
                own = (of[sub] == number).nonzero()[0]
                inside[own] = self._young(filter_._replace(oldest=OPEN_START), local[own])
        return inside

    def _happened(self, clock: int, local: Int) -> Int:
        """The time of each of some rows under a clock, microseconds: its event time, else its recorded time."""
        index, rows = self.tables.row_index, self.rows[local]
        time = index.event_time[rows]
        undated = (time == OPEN_START).nonzero()[0]  # only these need a placement
        if len(undated):
            _, placement = self.tables.clock[0].judge(index, np.full(len(undated), clock), rows[undated])
            time[undated] = index.recorded_at(placement)
        return time


@dataclass
class _Lists:
    """The posting lists of the rows of a scope: those of its segments, or one merged part for a scope that is asked often."""

    keys: int
    """The number of keys of all segments of the scope."""
    small: bool
    looked_up: int = 0
    merged: SegmentPostings | None = None

    @classmethod
    def of(cls, postings: PostingIndex, segments: Int) -> _Lists:
        parts = [postings.parts[segment] for segment in segments.tolist()]
        return cls(
            sum(len(part.hashes) for part in parts),
            sum(int(part.starts[-1] - part.starts[0]) for part in parts) <= MOST_POSTINGS,
        )

    def serving(self, scope: ScopeGroup, postings: PostingIndex, keys: Sequence[str]) -> SegmentPostings | None:
        """The lists in which to look up some keys; None = those of each segment."""
        if len(scope.segments) == 1 and len(scope.rows) == len(scope._table):
            return postings.parts[int(scope.segments[0])]
        self.looked_up += len(keys) * len(scope.segments)
        if self.merged is None and self.small and self.looked_up >= MERGED_AFTER * self.keys:
            self.merged = postings.merged(scope.segments, starts_of(scope._ranges[1])[:-1], scope._table)
            self.small = self.merged is not None
        return self.merged
