"""BM25 over groups of rows, such as sessions or files; a group is the concatenation of its admissible rows.

Reads a scope, which group each of its rows belongs to, the posting index and look-ups. Gives the score of every group
that a sub-query's terms touch, and the score of the groups that given pairs of request and row belong to.

Note: a group is made of A(r) alone. Term frequencies and lengths are summed over the rows that are admissible for the
request, under its clock; document frequencies and N count groups that have such a row. A group of withheld, foreign or
future rows does not exist. If no row of a scope is in a group, nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..columns.keys import distinct_numbers, first_of_runs
from ..columns.numbers import quantise
from ..columns.ragged import slabs, spread
from ..frames import PostingIndex
from .bm25 import Bm25
from .lane_recall import FieldTerms
from .pair_scores import Pairs
from .posting_recall import Asked, KeyRows, profiles, share
from .recall_entries import Entries
from .recall_scope import CELLS, PAIRS, Bool, Float, Int, RecallTables, ScopeGroup


@dataclass(frozen=True)
class Groups:
    """`of` is the group of each row of a scope (a position in `scope.rows`), -1 for none; groups count from 0."""

    of: Int
    count: int

    @classmethod
    def numbered(cls, codes: Int, member: Bool) -> Groups:
        """Groups the member rows that have equal codes."""
        of = np.full(len(codes), -1, dtype=np.int64)
        used, of[member] = distinct_numbers(codes[member])
        return cls(of, len(used))


class GroupPart(NamedTuple):
    """The scores of consecutive sub-queries of a scope, of whole requests; equal for those with the same profile."""

    sub: Int
    """Positions in `scope.sub`, consecutive."""
    profile: Int
    """The line of each of them in `score`, `matched` and `reach`."""
    score: Float
    """float64[profiles, groups], multiples of 2**-30."""
    matched: Bool
    """bool[profiles, groups]: an admissible row of the group contains a term."""
    reach: Float
    """The maximum score for the terms of each profile."""
    held: Int
    """The number of groups with an admissible row, per profile."""


def group_scores(
    scope: ScopeGroup,
    groups: Groups,
    postings: PostingIndex,
    entries: Entries,
    bm25: Bm25,
) -> Iterator[GroupPart]:
    """BM25 of the groups of a scope per sub-query, some requests at a time; empty where no group contains a term.

    Args:
        scope: the row group, with its sub-queries.
        groups: of its rows.
        postings: the frame's index.
        entries: the look-ups, by sub-query.
        bm25: k1 and b.
    """
    if not len(entries.sub) or not groups.count:
        return
    found = KeyRows.of(scope, postings, entries.keys)
    if not len(found.row):
        return
    waiting: list[tuple[list[int], _Scored]] = []
    statistics = None
    for subs, asked, open_ in profiles(scope, entries):
        if statistics is None or statistics.open is not open_:
            statistics = _Statistics.of(groups, open_, scope.length)
        waiting.append((subs, _scored(groups, statistics, found, asked, bm25)))
        if len(waiting) * groups.count >= CELLS:
            yield _together(waiting)
            waiting = []
    if waiting:
        yield _together(waiting)


def _together(scored: Sequence[tuple[list[int], _Scored]]) -> GroupPart:
    """The scores of some profiles as one part."""
    sub = [one for subs, _ in scored for one in subs]
    profile = [line for line, (subs, _) in enumerate(scored) for _ in subs]
    columns = (np.array(column) for column in zip(*(one for _, one in scored), strict=True))
    return GroupPart(np.array(sub), np.array(profile), *columns)


class _Scored(NamedTuple):
    """A line of `GroupPart`."""

    score: Float
    matched: Bool
    reach: float
    held: int


class _Statistics(NamedTuple):
    """The groups that have an open row: how many there are, and the length of each."""

    open: Bool
    """Which rows of the scope are open and in a group."""
    groups: int
    length: Int
    mean: Float

    @classmethod
    def of(cls, groups: Groups, open_: Bool, length: Int) -> _Statistics:
        at = (open_ & (groups.of >= 0)).nonzero()[0]
        count = int(np.count_nonzero(np.bincount(groups.of[at], minlength=groups.count)))
        own = np.bincount(groups.of[at], weights=length[at], minlength=groups.count).astype(np.int64)
        return cls(open_, count, own, np.array([own.sum() / count if count else 0.0]))


def _scored(groups: Groups, statistics: _Statistics, found: KeyRows, asked: Asked, bm25: Bm25) -> _Scored:
    """The scores of groups for the look-ups of one sub-query."""
    score, matched, reach = np.zeros(groups.count), np.zeros(groups.count, dtype=bool), 0.0
    most = share(len(asked[0]))
    for key, weight, _ in zip(*asked, strict=True):
        row, amount = found[key]
        kept = statistics.open[row] & (groups.of[row] >= 0)
        times = np.bincount(groups.of[row[kept]], weights=amount[kept], minlength=groups.count).astype(np.int64)
        group = times.nonzero()[0]
        weight = weight * float(bm25.idf(np.array(len(group)), np.array(statistics.groups)))
        if len(group):
            part = weight * bm25.saturation(times[group], statistics.length[group], statistics.mean)
            score[group] += quantise(np.minimum(part, most))
            matched[group] = True
            reach += float(quantise(min(weight, most)))
    return _Scored(score, matched, reach, statistics.groups)


def pair_group_scores(
    tables: RecallTables,
    lane: str,
    grouping: Callable[[ScopeGroup], Groups | None],
    terms: FieldTerms,
    pairs: Pairs,
    postings: PostingIndex,
    bm25: Bm25,
    *,
    least: int = 1,
) -> tuple[Float, Float]:
    """The best BM25 of each pair's group over the sub-queries of its request, and the maximum possible for each.

    Args:
        tables: the inputs every lane reads.
        lane: the lane whose sub-queries are scored.
        grouping: the groups of a scope; None where it has none, at no further cost.
        terms: the look-ups of the sub-queries.
        pairs: of request and row; a row of no group scores 0.
        postings: the frame's index.
        bm25: k1 and b.
        least: requests with fewer groups get no scores.
    """
    best, reach = np.zeros(len(pairs.row)), np.zeros(len(pairs.row))
    if not len(pairs.row):
        return best, reach
    starts = pairs.starts(tables.contracts.num_rows)
    asked = np.diff(starts) > 0
    for whole in tables.scope_groups(lane):
        scope = replace(whole, sub=whole.sub[asked[whole.request]])
        groups = grouping(scope) if len(scope.sub) else None
        if groups is None or not groups.count:
            continue
        for part in group_scores(scope, groups, postings, terms.entries(scope), bm25):
            request = scope.request[part.sub[first_of_runs(part.profile)]]
            counts = np.diff(starts)[request]
            for low, high in slabs(counts, PAIRS):
                of, pair = spread(starts[request[low:high]], counts[low:high])
                group = groups.of[scope.local(pairs.row[pair])]
                own = (group >= 0) & (part.held[of + low] >= least)
                of, pair, group = of[own] + low, pair[own], group[own]
                np.maximum.at(best, pair, part.score[of, group])
                np.maximum.at(reach, pair, part.reach[of])
    return best, reach
