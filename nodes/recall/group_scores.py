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
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, first_of_runs, order_by
from ..columns.numbers import quantise
from ..columns.ragged import slabs, spread
from ..frames import PostingIndex
from .bm25 import Bm25
from .lane_recall import FieldTerms
from .pair_scores import Pairs
from .posting_recall import capped, profiles_of, shares
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
    members = ((groups.of >= 0) & ~scope.withheld).nonzero()[0]
    if not len(members) or not len(entries.sub):
        return
    found = _Postings.of(scope, groups, postings, entries.keys)
    if not len(found.touched):
        return
    profile, entries = profiles_of(scope, entries)
    per = max(1, CELLS // max(groups.count, len(found.touched)))
    first = first_of_runs(scope.request)
    cut = first[first_of_runs(first // per)]
    for low, high in zip(cut.tolist(), [*cut[1:].tolist(), len(scope.sub)], strict=True):
        a, b = entries.sub.searchsorted([profile[low], profile[high - 1] + 1])
        if a < b:
            own = Entries(entries.keys, entries.sub[a:b] - profile[low], entries.key[a:b], entries.weight[a:b])
            line = profile[low:high] - profile[low]
            leading = scope.request[low:high][first_of_runs(line)]
            yield GroupPart(np.arange(low, high), line, *_scored(scope, groups, members, found, own, leading, bm25))


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


@dataclass(frozen=True)
class _Postings:
    """Postings of rows that are in a group: those of key `k` are `starts[k]:starts[k + 1]` of the others, by group."""

    starts: Int
    at: Int
    """Position in `touched`."""
    group: Int
    amount: NDArray[np.int32]
    """Occurrences in the row."""
    touched: Int
    """Positions in `scope.rows` of rows that contain some key, ascending."""

    @classmethod
    def of(cls, scope: ScopeGroup, groups: Groups, postings: PostingIndex, keys: Sequence[str]) -> _Postings:
        matches = postings.lookup(keys, scope.segments)
        local = scope.local(matches.rows)
        kept = local >= 0
        kept[kept] = (groups.of[local[kept]] >= 0) & ~scope.withheld[local[kept]]
        key = np.arange(len(keys)).repeat(np.diff(matches.starts))[kept]
        local, amount = local[kept], matches.freqs[kept]
        group = groups.of[local]
        order = order_by(key, group)
        touched, at = distinct_numbers(local)
        starts = key[order].searchsorted(np.arange(len(keys) + 1))
        return cls(starts, at[order], group[order], amount[order], touched)


def _scored(
    scope: ScopeGroup, groups: Groups, members: Int, found: _Postings, entries: Entries, request: Int, bm25: Bm25
) -> tuple[Float, Bool, Float, Int]:
    """Score and match per (profile, group), maximum score and number of groups per profile; `request` is that of a
    profile.
    """
    clock, of_request = scope.tables.clock
    clocks, at_clock = distinct_numbers(of_request[request])
    open_ = clock.grid(scope.tables.row_index, clocks, scope.rows[found.touched])
    count, length = _statistics(scope, groups, members, clocks)
    mean = np.divide(length.sum(axis=1), count, out=np.zeros(len(clocks)), where=count > 0)
    shape = (len(request), groups.count)
    score, matched, reach = np.zeros(shape[0] * shape[1]), np.zeros(shape[0] * shape[1], dtype=bool), np.zeros(shape[0])
    most = shares(entries.sub, len(request))
    counts = np.diff(found.starts)[entries.key]
    for low, high in slabs(counts, PAIRS):
        sub = entries.sub[low:high]
        own = at_clock[sub]
        of, at = spread(found.starts[entries.key[low:high]], counts[low:high])
        kept = open_.reshape(-1).take((own * open_.shape[1])[of] + found.at.take(at)).nonzero()[0]
        if not len(kept):
            continue
        of, at = of.take(kept), at.take(kept)
        cell = of * groups.count + found.group.take(at)  # ascending
        first = first_of_runs(cell)
        frequency = np.add.reduceat(found.amount.take(at), first)
        entry, group = np.divmod(cell[first], groups.count)
        held = np.bincount(entry, minlength=high - low)
        weight = entries.weight[low:high] * bm25.idf(held, count[own])
        part = weight[entry] * bm25.saturation(frequency, length[own[entry], group], mean[own[entry]])
        line = sub[entry] * groups.count + group
        score += np.bincount(line, weights=quantise(capped(part, sub, most, entry)), minlength=len(score))
        matched[line] = True
        known = held > 0
        reach += np.bincount(sub[known], weights=quantise(capped(weight, sub, most))[known], minlength=len(reach))
    return score.reshape(shape), matched.reshape(shape), reach, count[at_clock]


def _statistics(scope: ScopeGroup, groups: Groups, members: Int, clocks: Int) -> tuple[Int, Int]:
    """The number of groups with an admissible row under each clock, and the length of each group: [clocks, groups]."""
    index, clock = scope.tables.row_index, scope.tables.clock[0]
    of, rows = groups.of[members], scope.rows[members]
    count = np.zeros(len(clocks), dtype=np.int64)
    length = np.zeros((len(clocks), groups.count), dtype=np.int64)
    step = max(1, CELLS // len(members))
    for low in range(0, len(clocks), step):
        open_ = clock.grid(index, clocks[low : low + step], rows)
        own, at = open_.nonzero()
        cell, size = own * groups.count + of[at], len(open_) * groups.count
        count[low : low + step] = np.count_nonzero(np.bincount(cell, minlength=size).reshape(len(open_), -1), axis=1)
        total = np.bincount(cell, weights=index.length[rows[at]], minlength=size)
        length[low : low + step] = total.astype(np.int64).reshape(len(open_), -1)
    return count, length
