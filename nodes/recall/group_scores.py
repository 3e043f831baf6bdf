"""BM25 over groups of rows, such as sessions or files; a group is the concatenation of its admissible rows.

Reads a scope, which group each of its rows belongs to, the posting index and look-ups. Gives the look-ups with the
postings of groups in place of rows.

Note: a group is made of A(r) alone. Term frequencies and lengths are summed over the rows that are admissible for the
request, under its clock; document frequencies and N count groups that have such a row. A group of withheld, foreign or
future rows does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..columns.kept import Recent
from ..columns.keys import distinct_numbers
from ..columns.numbers import quantise
from .bm25 import Bm25
from .posting_recall import Asked, Entries, KeyRows, by_open_rows, share
from .recall_scope import Bool, Float, Int, ScopeGroup


@dataclass(frozen=True)
class Groups:
    """`of` is the group of each row of a scope (a position in `scope.rows`), -1 for none; groups count from 0."""

    of: Int
    count: int
    kept: Recent[_Statistics] = field(default_factory=lambda: Recent(4))
    """The statistics under the open rows that were asked last."""

    @classmethod
    def numbered(cls, codes: Int, member: Bool) -> Groups:
        """Groups the member rows that have equal codes."""
        of = np.full(len(codes), -1, dtype=np.int64)
        used, of[member] = distinct_numbers(codes[member])
        return cls(of, len(used))

    def statistics(self, open_: Bool, length: Int) -> _Statistics:
        """The groups under some open rows."""
        return self.kept.get(open_.tobytes(), lambda: _Statistics.of(self, open_, length))


class _Statistics(NamedTuple):
    """The groups that have an open row: how many there are, and the length of each."""

    member: Bool
    """Which rows of the scope are open and in a group."""
    groups: int
    length: Int

    @classmethod
    def of(cls, groups: Groups, open_: Bool, length: Int) -> _Statistics:
        member = open_ & (groups.of >= 0)
        at = groups.of[member]
        count = int(np.count_nonzero(np.bincount(at, minlength=groups.count)))
        return cls(member, count, np.bincount(at, length[member], minlength=groups.count).astype(np.int64))


class OfGroups(NamedTuple):
    """Look-ups of sub-queries that share their open rows; the postings that they find are of groups."""

    asked: Asked
    open: Bool
    """The rows that make the groups up."""
    reach: Float
    """Per sub-query, the maximum score of a group."""
    groups: int
    """The number of groups that have an open row."""


def of_groups(scope: ScopeGroup, groups: Groups, entries: Entries, bm25: Bm25) -> Iterator[OfGroups]:
    """The look-ups of sub-queries over the groups of a scope, by clock and statistics.

    Args:
        scope: the row group, with its sub-queries.
        groups: of its rows.
        entries: the look-ups, by sub-query.
        bm25: k1 and b.
    """
    if not groups.count:
        return
    found = entries.keys
    for own in by_open_rows(scope, entries, 1):
        (open_,) = scope.open(own.lines.clock)
        statistics = groups.statistics(open_, scope.length)
        used, key = distinct_numbers(entries.key[own.at])
        places = found.places(used)
        member = statistics.member[found.row[places]]
        kept = places[member]
        of_key = np.arange(len(used)).repeat(found.counts(used))[member]
        codes, place = distinct_numbers(of_key * groups.count + groups.of[found.row[kept]])
        times = np.bincount(place, found.frequency[kept], minlength=len(codes)).astype(np.int32)
        starts = codes.searchsorted(np.arange(len(used) + 1) * groups.count)
        keys = KeyRows([], starts[:-1], starts[1:], (codes % groups.count).astype(np.int32), times)
        weight = entries.weight[own.at] * bm25.idf(keys.counts(key), np.array(statistics.groups))
        direct, length = np.full(len(key), True), statistics.length
        mean = np.array([length.sum() / statistics.groups if statistics.groups else 0.0])
        asked = Asked(scope, keys, own.subs, own.starts, key, weight, direct, own.line, length, mean, bm25)
        counts = np.diff(own.starts)
        most = np.minimum(weight, share(counts).repeat(counts))
        yield OfGroups(asked, open_, np.add.reduceat(quantise(most), own.starts[:-1]), statistics.groups)
