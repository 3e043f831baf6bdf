"""The best rows of a scope group by BM25, by the compiled loops: the same as `posting_recall`, bit for bit.

Reads a scope, the posting index and its look-ups. Gives `Found`.

Note: a posting's part of a score is the product of its key's weight and its grade's factor (see `score_bounds`) under a
setting (clock, N and total length). So weights are computed once for each distinct (setting, key, weight), a *pair*,
factors once per setting, and their product only for the postings that a sub-query reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, distinct_rows
from ..columns.numbers import EXACT_BELOW, RESOLUTION
from ..columns.ragged import spread, starts_of
from ..frames import PostingIndex
from ..kernels.compiled import in_threads
from .bm25 import Bm25
from .recall_entries import Entries, TermWeights, Weighed
from .recall_scope import Bool, Float, Int, ScopeGroup
from .recall_selection import SPARE, Found
from .scope_postings import lists_of
from .score_bounds import KeyPostings

POSTINGS = 1 << 23
"""Postings of rows that are not open, judged rows, factors and keys in memory at once: about 100 MiB. A request that
needs more is computed alone.
"""
KEY_BITS = 62
"""Bits of a score and the place of an id as one number; where they need more, they are compared one after the other."""
SLACK = 1.0 + 2.0**-40
"""Added to bounds, so that no rounded product exceeds its bound."""


class _Part(NamedTuple):
    """Some requests of a scope and their pairs. Sub-queries count from `low`, requests and settings from 0."""

    low: int
    requests: Int
    """Where the sub-queries of each request start, and where the last one's end."""
    starts: Int
    """Where the pairs of each sub-query start in `pairs`, and where the last one's end."""
    pairs: Int
    key: Int
    weight: Float
    setting: Int
    """Of each pair."""
    examples: Int
    """A sub-query of the scope for each setting."""
    longest: int
    """The maximum number of look-ups of a sub-query, including keys that the scope does not have: they share the exact
    range."""


class Prepared(NamedTuple):
    """Values that are computed once for the sub-queries of a part: weights, factors, and the rows to return."""

    part: _Part
    lists: KeyPostings
    scale: Float
    """The weight of each pair over the resolution: multiplied by a factor and rounded, it is a part of a score."""
    bounds: Int
    """The maximum that each pair can add to a score."""
    factor: Float
    """Of each setting and grade."""
    judged: Int
    """The line of each setting in `open_`, -1 where every row is open."""
    open_: Bool
    held_starts: Int
    held_counts: Int
    held: tuple[NDArray[np.int32], NDArray[np.int32]]
    """The rows that are not open and their grades, by pair, with one spare entry after each pair."""
    allowed: Bool
    filter_: Int
    rank: Int
    """The place of each row's id."""
    clocks: Int
    weight: Float
    """Of each pair."""
    of_list: Int
    """The key of each list, as a position among those looked up."""


def recall_compiled(
    kernels: ModuleType, scope: ScopeGroup, postings: PostingIndex, entries: Entries, bm25: Bm25
) -> Weighed | None:
    """The best rows per sub-query under BM25, the best withheld ones per request, and the weight of each key.

    None if a part of a score is less than the resolution or a sum could exceed the exact range.
    """
    found, weights = [], []
    for prepared in prepare(kernels, scope, postings, entries, bm25):
        if prepared is None:
            return None
        found += score(kernels, scope, prepared)
        weights.append(_weights(scope, entries, prepared))
    return Weighed(Found.concat(found), tuple(weights))


def _weights(scope: ScopeGroup, entries: Entries, prepared: Prepared) -> TermWeights:
    """The weight of each key of a part's sub-queries that occurs in an open row."""
    part = prepared.part
    sub = np.repeat(scope.sub[part.low : part.low + len(part.starts) - 1], np.diff(part.starts))
    held = (prepared.lists.counts(part.key) > prepared.held_counts)[part.pairs]
    pairs = part.pairs[held]
    return TermWeights(tuple(entries.keys), sub[held], prepared.of_list[part.key[pairs]], prepared.weight[pairs])


def prepare(
    kernels: ModuleType, scope: ScopeGroup, postings: PostingIndex, entries: Entries, bm25: Bm25
) -> Iterator[Prepared | None]:
    """The inputs of `score`, per part of the scope's sub-queries."""
    lists, place = lists_of(kernels, scope, postings, entries.keys, len(entries.sub))
    if len(lists.row):
        of_list = np.zeros(len(lists.starts) - 1, dtype=np.int64)
        of_list[place[place >= 0]] = np.flatnonzero(place >= 0)
        parts = _parts(scope, lists, entries, place)
        yield from (_prepared(kernels, scope, lists, part, bm25, of_list) for part in parts)


def score(kernels: ModuleType, scope: ScopeGroup, prepared: Prepared) -> list[Found]:
    """The best rows of a part's sub-queries, and the best withheld ones of its requests."""
    return [_shown(kernels, scope, prepared), _held(kernels, scope, prepared)]


def _parts(scope: ScopeGroup, lists: KeyPostings, entries: Entries, place: Int) -> Iterator[_Part]:
    """Ranges of whole requests with at most `POSTINGS` in total, or of a single request."""
    setting = scope.tables.setting[scope.request]
    examples, of_sub = distinct_rows(setting)
    weights, weight = _distinct_weights(entries.weight)
    keys = len(lists.starts) - 1
    known = np.flatnonzero(place[entries.key] >= 0)
    sub = entries.sub[known]
    code = (of_sub[sub] * keys + place[entries.key[known]]) * len(weights) + weight[known]
    starts = np.searchsorted(sub, np.arange(len(scope.sub) + 1))
    first = np.flatnonzero(np.diff(scope.request, prepend=-1, append=-1))
    shut = len(scope.rows) - scope.tables.statistics[0][scope.request[examples]]
    entry_counts = np.bincount(entries.sub, minlength=len(scope.sub))
    k = np.minimum(scope.tables.lane_k[scope.sub], len(scope.rows))
    waiting = [(0, len(first) - 1)]
    while waiting:
        low, high = waiting.pop()
        requests = first[low : high + 1]
        own = starts[requests[0] : requests[-1] + 1]
        pairs, pair = distinct_numbers(code[own[0] : own[-1]])
        rest, of_weight = np.divmod(pairs, len(weights))
        setting, key = np.divmod(rest, keys)
        settings, setting = distinct_numbers(setting)
        lines = np.count_nonzero(shut[settings]) + scope.aged_lines(np.arange(requests[0], requests[-1]))
        grid = len(scope.rows) * lines + len(lists.times) * len(settings)
        held = np.minimum(lists.counts(key), shut[settings][setting]).sum()
        written = (requests[-1] - requests[0]) * (k[requests[0] : requests[-1]].max() + SPARE)
        if high - low > 1 and grid + held + written > POSTINGS:
            middle = (low + high) // 2
            waiting += [(middle, high), (low, middle)]
        elif len(pairs):
            yield _Part(
                int(requests[0]), requests - requests[0], own - own[0], pair,
                key, weights[of_weight], setting, examples[settings], int(entry_counts[requests[0] : requests[-1]].max()),
            )  # fmt: skip


def _distinct_weights(weights: Float) -> tuple[Float, Int]:
    """The distinct weights, and the position of each; nearly always there is only one."""
    if weights.min() == weights.max():
        return weights[:1], np.zeros(len(weights), dtype=np.int64)
    distinct, inverse = np.unique(weights, return_inverse=True)
    return distinct, inverse.reshape(-1)


def _prepared(
    kernels: ModuleType, scope: ScopeGroup, lists: KeyPostings, part: _Part, bm25: Bm25, of_list: Int
) -> Prepared | None:
    index, rows = scope.tables.row_index, scope.rows
    clocks = scope.tables.clock[1][scope.request[part.examples]]
    count, length = (values[scope.request[part.examples]] for values in scope.tables.statistics)
    shut = np.flatnonzero(count < len(rows))  # if N equals the number of rows, all are open and none has to be judged
    line = np.full(len(count), -1, dtype=np.int64)
    line[shut] = np.arange(len(shut))
    open_ = _open(kernels, scope, clocks[shut])
    judged, postings = line[part.setting], lists.counts(part.key)
    closed = np.zeros(len(count), dtype=np.int64)
    closed[shut] = len(rows) - np.count_nonzero(open_, axis=1)
    held = starts_of(np.where(judged < 0, 0, np.minimum(postings, closed[part.setting]) + 1))
    held_row, held_grade = (np.empty(int(held[-1]), dtype=np.int32) for _ in range(2))
    frequency = np.empty(len(postings), dtype=np.int64)
    in_threads(
        kernels.frequencies, np.where(judged < 0, 0, postings), lists.starts, lists.row, lists.grade, part.key, judged,
        open_, held, held_row, held_grade, frequency,
    )  # fmt: skip
    mean = np.divide(length, count, out=np.zeros(len(count)), where=count > 0)
    factor = bm25.saturation(lists.times, lists.span, mean[:, None])
    weight = part.weight * bm25.idf(frequency, count[part.setting])
    scale = weight / RESOLUTION
    least, ratio = factor.min(axis=1), (factor / lists.usual).max(axis=1)
    most = scale * ratio[part.setting] * lists.top[part.key] * SLACK
    exact = np.rint(scale * least[part.setting]).min() >= 1 and most.max() * RESOLUTION <= EXACT_BELOW / part.longest
    if not exact:  # also where a weight is not a number
        return None
    allowed, filter_ = scope.returned(np.arange(part.low, part.low + len(part.starts) - 1))
    rank = index.id_rank if len(rows) == len(index.id_rank) else index.id_rank[rows]
    bounds = np.ceil(most).astype(np.int64)
    return Prepared(
        part, lists, scale, bounds, factor, line, open_, held, postings - frequency, (held_row, held_grade), allowed,
        filter_, rank, clocks, weight, of_list,
    )  # fmt: skip


def _open(kernels: ModuleType, scope: ScopeGroup, clocks: Int) -> Bool:
    """Which rows are open under some clocks, bool[clocks, rows]."""
    index, rows, clock = scope.tables.row_index, scope.rows, scope.tables.clock[0]
    if not index.single or clock.history[clocks].any():
        return clock.grid(index, clocks, rows) & ~scope.withheld
    open_ = np.empty((len(clocks), len(rows)), dtype=bool)
    if len(clocks):
        at = index.placement_starts[rows]
        since = np.maximum(index.recorded[at], index.valid_from[rows])
        until = np.minimum(np.minimum(index.superseded[at], index.deleted[at]), index.valid_until[rows])
        work = np.full(len(clocks), len(rows))
        in_threads(
            kernels.judge, work, clock.as_of[clocks], clock.start[clocks], clock.end[clocks], since, until,
            index.happened_at(rows, at), scope.withheld, open_,
        )  # fmt: skip
    return open_


def _shown(kernels: ModuleType, scope: ScopeGroup, prepared: Prepared) -> Found:
    """The `lane_k` best open rows per sub-query."""
    part, index = prepared.part, scope.tables.row_index
    subs = len(part.starts) - 1
    sub = scope.sub[part.low : part.low + subs]
    k = np.minimum(scope.tables.lane_k[sub], len(scope.rows))
    bits = int(prepared.rank.max()).bit_length()
    highest = int(prepared.bounds.max()) * int(np.diff(part.starts).max())
    bits = bits if highest.bit_length() + bits <= KEY_BITS else 0
    found, keys = np.zeros(subs, dtype=np.int64), np.zeros((subs, int(k.max()) + SPARE), dtype=np.int64)
    places = np.zeros((0 if bits else subs, keys.shape[1]), dtype=np.int64)
    lists, work = prepared.lists, _work(part, prepared.lists.counts(part.key))
    gates, gate = _gates(prepared)
    given = (
        part.starts, part.pairs, part.key, part.setting, prepared.scale, prepared.bounds, prepared.factor,
        lists.starts, lists.row, lists.grade, lists.line, lists.words, lists.before, gates, gate, k,
        prepared.rank, bits, found, keys, places,
    )  # fmt: skip

    def find(first: int, last: int) -> None:
        kernels.best_rows(first, last, *given)
        if bits:
            keys[first:last].sort(axis=1)  # NumPy's sort is many times faster than a compiled loop

    in_threads(find, work)
    ends = np.cumsum(found)
    row, score = np.empty(int(ends[-1]), dtype=np.int64), np.empty(int(ends[-1]))
    kernels.read_keys(0, subs, found, keys, places, bits, index.by_id, ends, row, score)
    return Found.of(np.repeat(sub, found), row, score)


def _gates(prepared: Prepared) -> tuple[Bool, Int]:
    """The distinct sets of rows to return, bool[sets, rows], and the set of each sub-query, -1 for all rows."""
    part, allowed, filter_ = prepared.part, prepared.allowed, prepared.filter_
    line = np.full(len(part.starts) - 1, -1, dtype=np.int64)
    asked = np.flatnonzero(np.diff(part.starts))
    line[asked] = prepared.judged[part.setting[part.pairs[part.starts[asked]]]]
    if allowed.all():
        return prepared.open_ if len(prepared.open_) else allowed, line
    first, gate = distinct_rows(line, filter_)
    gates = allowed[filter_[first]]
    judged = line[first] >= 0
    gates[judged] &= prepared.open_[line[first[judged]]]
    return gates, gate


def _held(kernels: ModuleType, scope: ScopeGroup, prepared: Prepared) -> Found:
    """The `withheld_k` best rows per request that are not open, only the newest of each document."""
    part = prepared.part
    if not prepared.held_counts.any():
        return Found.concat([])
    index, (clock, of_request) = scope.tables.row_index, scope.tables.clock
    request = scope.request[part.low + part.requests[:-1]]
    line = np.zeros(len(request), dtype=np.int64)
    if index.single:
        recorded = index.recorded[index.placement_starts[scope.rows]][None, :]
    else:
        own = np.unique(prepared.clocks[prepared.judged >= 0])  # requests under other clocks have no withheld rows
        line = np.searchsorted(own, of_request[request]).clip(max=len(own) - 1)
        pairs = np.repeat(own, len(scope.rows)), np.tile(scope.rows, len(own))
        recorded = index.recorded_at(clock.judge(index, *pairs)[1]).reshape(len(own), -1)
    k = np.minimum(scope.tables.contract_numbers("withheld_k")[request], len(scope.rows))
    ends, found = np.cumsum(k), np.zeros(len(request), dtype=np.int64)
    sub, row, total = (np.empty(int(k.sum()), dtype=np.int64) for _ in range(3))
    work = np.diff(starts_of(_work(part, prepared.held_counts))[part.requests])
    alone = np.bincount(scope.document)[scope.document] == 1
    in_threads(
        kernels.best_held, work, part.requests, part.starts, part.pairs, part.setting, prepared.scale, prepared.bounds,
        prepared.factor, prepared.held_starts, prepared.held_counts, *prepared.held, prepared.allowed, prepared.filter_,
        scope.document, alone, int(scope.document.max()) + 1, recorded, line, k, prepared.rank, ends, found, sub, row,
        total,
    )  # fmt: skip
    _, at = spread(ends - k, found)
    return Found.of(
        scope.sub[part.low + sub[at]], scope.rows[row[at]], total[at].astype(np.float64) * RESOLUTION, withheld=True
    )


def _work(part: _Part, postings: Int) -> Int:
    """The postings of each sub-query's pairs."""
    return np.diff(starts_of(postings[part.pairs])[part.starts])
