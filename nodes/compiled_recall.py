"""The best rows of a scope group by BM25 through the compiled loops: what `posting_recall` finds, bit for bit.

Reads a scope, the posting index and its look-ups. Gives `Found`.

The one thing to know: a posting's part of a score depends on its key, its weight in the query, and the setting (clock, N
and total length), not on the query. So each distinct (setting, key, weight), a *pair*, is worked out once for all
sub-queries that share it; a thousand queries over one scope at one instant divide once where each would have divided.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bm25 import Bm25
from .compiled import in_threads
from .frames import PostingIndex
from .keys import distinct_numbers, distinct_rows
from .numbers import EXACT_BELOW, RESOLUTION
from .ragged import starts_of
from .recall_scope import Bool, Float, Int, Scope, recorded_at, spread
from .recall_selection import Found
from .scope_postings import Lists, lists_of

if TYPE_CHECKING:
    from .posting_recall import Entries

POSTINGS = 1 << 23
"""Postings whose parts are held at once: about 100 MiB. A request that needs more is worked out alone."""
KEY_BITS = 62
"""Of a score and the place of an id as one number; where they need more, they are compared one after the other."""
WORD = 64
"""Rows that a word has bits for: a list with fewer of them per row would be all zeros."""
LONG = 1 << 10
"""Postings from which on a bit per row pays: a shorter list is soon searched."""
SPARE = 32
"""Keys of a sub-query beside its best, so that few have to be told apart before they are sorted."""


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


class Prepared(NamedTuple):
    """What is worked out once for the sub-queries of a part: the parts of scores, by pair, and which rows may return."""

    part: _Part
    bounds: Int
    """The least and the greatest part of each pair."""
    shown_starts: Int
    shown: tuple[NDArray[np.int32], Int]
    """Open rows and their parts, by pair."""
    words: tuple[Int, NDArray[np.uint64], NDArray[np.int32]]
    """The line of each pair that has a bit per row, -1 for others; the bits; how many stand before each word."""
    held_starts: Int
    held: tuple[NDArray[np.int32], Int]
    """The other rows."""
    allowed: Bool
    filter_: Int
    rank: Int
    """The place of each row's id."""
    clocks: Int


def recall_compiled(
    kernels: ModuleType, scope: Scope, postings: PostingIndex, entries: Entries, bm25: Bm25
) -> Found | None:
    """The best rows per sub-query under BM25 (lucene), and the best withheld ones per request.

    None if a part of a score is less than the resolution or its sum could reach beyond what is exact.
    """
    found = []
    for prepared in prepare(kernels, scope, postings, entries, bm25):
        if prepared is None:
            return None
        found += score(kernels, scope, prepared)
    return Found.concat(found)


def prepare(
    kernels: ModuleType, scope: Scope, postings: PostingIndex, entries: Entries, bm25: Bm25
) -> Iterator[Prepared | None]:
    """What `score` needs, part by part of the scope's sub-queries."""
    lists, place = lists_of(kernels, scope, postings, entries.keys, len(entries.sub))
    if len(lists.row):
        yield from (_prepared(kernels, scope, lists, part, bm25) for part in _parts(scope, lists, entries, place))


def score(kernels: ModuleType, scope: Scope, prepared: Prepared) -> list[Found]:
    """The best rows of a part's sub-queries, and the best withheld ones of its requests."""
    return [_shown(kernels, scope, prepared), _held(kernels, scope, prepared)]


def _parts(scope: Scope, lists: Lists, entries: Entries, place: Int) -> Iterator[_Part]:
    """Ranges of whole requests whose pairs have at most `POSTINGS` postings together, and at least one request."""
    setting = scope.tables.setting[scope.request]
    examples, of_sub = distinct_rows(setting)
    weights, weight = _distinct_weights(entries.weight)
    keys = len(lists.starts) - 1
    known = np.flatnonzero(place[entries.key] >= 0)
    sub = entries.sub[known]
    code = (of_sub[sub] * keys + place[entries.key[known]]) * len(weights) + weight[known]
    starts = np.searchsorted(sub, np.arange(len(scope.sub) + 1))
    first = np.flatnonzero(np.diff(scope.request, prepend=-1, append=-1))
    waiting = [(0, len(first) - 1)]
    while waiting:
        low, high = waiting.pop()
        requests = first[low : high + 1]
        own = starts[requests[0] : requests[-1] + 1]
        pairs, pair = distinct_numbers(code[own[0] : own[-1]])
        rest, of_weight = np.divmod(pairs, len(weights))
        setting, key = np.divmod(rest, keys)
        settings, setting = distinct_numbers(setting)
        grid = len(settings) * len(scope.rows)
        if high - low > 1 and grid + int(np.diff(lists.starts)[key].sum()) > POSTINGS:
            middle = (low + high) // 2
            waiting += [(middle, high), (low, middle)]
        elif len(pairs):
            yield _Part(
                int(requests[0]), requests - requests[0], own - own[0], pair,
                key, weights[of_weight], setting, examples[settings],
            )  # fmt: skip


def _distinct_weights(weights: Float) -> tuple[Float, Int]:
    """The distinct weights, and which each is; nearly always there is one."""
    if weights.min() == weights.max():
        return weights[:1], np.zeros(len(weights), dtype=np.int64)
    distinct, inverse = np.unique(weights, return_inverse=True)
    return distinct, inverse.reshape(-1)


def _prepared(kernels: ModuleType, scope: Scope, lists: Lists, part: _Part, bm25: Bm25) -> Prepared | None:
    index, pairs = scope.tables.row_index, len(part.key)
    clock, of_request = scope.tables.clock
    clocks = of_request[scope.request[part.examples]]
    count, length = (values[scope.request[part.examples]] for values in scope.tables.statistics)
    open_ = clock.grid(index, clocks, scope.rows) & ~scope.withheld
    frequency = np.empty(pairs, dtype=np.int64)
    postings = np.diff(lists.starts)[part.key]
    in_threads(
        kernels.frequencies, postings, lists.starts, lists.row, part.key, part.setting, open_, frequency
    )  # fmt: skip
    weight = part.weight * bm25.idf(frequency, count[part.setting])
    mean = np.divide(length, count, out=np.zeros(len(count)), where=count > 0)
    shown, held = starts_of(frequency), starts_of(postings - frequency)
    shown_row, held_row = (np.empty(int(ends[-1]), dtype=np.int32) for ends in (shown, held))
    shown_part, held_part = (np.empty(len(row), dtype=np.int64) for row in (shown_row, held_row))
    bounds = np.empty((pairs, 2), dtype=np.int64)
    words = _words(frequency, len(scope.rows))
    in_threads(
        kernels.contributions, postings, lists.starts, lists.row, lists.freq, part.key, part.setting, weight, open_,
        index.length[scope.rows], mean, bm25.k1, bm25.b, shown, held, shown_row, shown_part, held_row, held_part,
        bounds, *words,
    )  # fmt: skip
    most = max(int(np.diff(part.starts).max()), 1)
    if bounds[:, 0].min() < 1 or bounds[:, 1].max() * RESOLUTION > EXACT_BELOW / most:
        return None
    allowed, filter_ = scope.returned(np.arange(part.low, part.low + len(part.starts) - 1))
    rank = index.id_rank[scope.rows]
    return Prepared(
        part, bounds, shown, (shown_row, shown_part), words, held, (held_row, held_part), allowed, filter_, rank, clocks
    )  # fmt: skip


def _words(frequency: Int, rows: int) -> tuple[Int, NDArray[np.uint64], NDArray[np.int32]]:
    """Room for a bit per row, for the long lists."""
    chosen = np.flatnonzero(frequency >= max(rows // WORD, LONG))
    line = np.full(len(frequency), -1, dtype=np.int64)
    line[chosen] = np.arange(len(chosen))
    shape = len(chosen), rows // WORD + 1
    return line, np.zeros(shape, dtype=np.uint64), np.empty(shape, dtype=np.int32)


def _shown(kernels: ModuleType, scope: Scope, prepared: Prepared) -> Found:
    """The `lane_k` best open rows per sub-query."""
    part, index = prepared.part, scope.tables.row_index
    subs = len(part.starts) - 1
    sub = scope.sub[part.low : part.low + subs]
    k = np.minimum(scope.tables.lane_k[sub], len(scope.rows))
    bits = int(prepared.rank.max()).bit_length()
    highest = int(prepared.bounds[:, 1].max()) * int(np.diff(part.starts).max())
    bits = bits if highest.bit_length() + bits <= KEY_BITS else 0
    found, keys = np.zeros(subs, dtype=np.int64), np.zeros((subs, int(k.max()) + SPARE), dtype=np.int64)
    places = np.zeros((0 if bits else subs, keys.shape[1]), dtype=np.int64)
    given = (
        part.starts, part.pairs, prepared.shown_starts, *prepared.shown, prepared.bounds, *prepared.words,
        prepared.allowed, prepared.allowed.all(axis=1), prepared.filter_, k, prepared.rank, bits, found, keys, places,
    )  # fmt: skip

    def find(first: int, last: int) -> None:
        kernels.best_shown(first, last, *given)
        if bits:
            keys[first:last].sort(axis=1)  # NumPy's sort is many times as fast as a compiled loop

    in_threads(find, _work(part, np.diff(prepared.shown_starts)))
    ends = np.cumsum(found)
    row, score = np.empty(int(ends[-1]), dtype=np.int64), np.empty(int(ends[-1]))
    kernels.read_keys(0, subs, found, keys, places, bits, index.by_id, ends, row, score)
    return Found.of(np.repeat(sub, found), row, score)


def _held(kernels: ModuleType, scope: Scope, prepared: Prepared) -> Found:
    """The `withheld_k` best rows per request that are not open, of a document the newest only."""
    part = prepared.part
    if not len(prepared.held[0]):
        return Found.concat([])
    index, (clock, of_request) = scope.tables.row_index, scope.tables.clock
    request = scope.request[part.low + part.requests[:-1]]
    line = np.zeros(len(request), dtype=np.int64)
    if index.single:
        recorded = index.recorded[index.placement_starts[scope.rows]][None, :]
    else:
        own = np.unique(prepared.clocks)
        line = np.searchsorted(own, of_request[request]).clip(max=len(own) - 1)
        pairs = np.repeat(own, len(scope.rows)), np.tile(scope.rows, len(own))
        recorded = recorded_at(index, clock.judge(index, *pairs)[1]).reshape(len(own), -1)
    k = np.minimum(scope.tables.contract_numbers("withheld_k")[request], len(scope.rows))
    ends, found = np.cumsum(k), np.zeros(len(request), dtype=np.int64)
    sub, row, total = (np.empty(int(k.sum()), dtype=np.int64) for _ in range(3))
    work = np.diff(starts_of(_work(part, np.diff(prepared.held_starts)))[part.requests])
    in_threads(
        kernels.best_held, work, part.requests, part.starts, part.pairs, prepared.held_starts, *prepared.held,
        prepared.allowed, prepared.filter_, scope.document, int(scope.document.max()) + 1, recorded, line, k,
        prepared.rank, ends, found, sub, row, total,
    )  # fmt: skip
    _, at = spread(ends - k, found)
    return Found.of(
        scope.sub[part.low + sub[at]], scope.rows[row[at]], total[at].astype(np.float64) * RESOLUTION, withheld=True
    )


def _work(part: _Part, postings: Int) -> Int:
    """The postings of each sub-query's pairs."""
    return np.diff(starts_of(postings[part.pairs])[part.starts])
