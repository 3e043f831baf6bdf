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
import pyarrow as pa
from numpy.typing import NDArray

from .bm25 import Bm25
from .compiled import in_threads
from .frames import PostingIndex, key_hashes
from .numbers import EXACT_BELOW, RESOLUTION
from .ragged import starts_of
from .recall_scope import Bool, Float, Int, Scope, recorded_at, spread
from .recall_selection import Found

if TYPE_CHECKING:
    from .posting_recall import Entries

POSTINGS = 1 << 23
"""Postings whose parts are held at once: about 100 MiB. A request that needs more is worked out alone."""


class _Lists(NamedTuple):
    """The postings of some keys inside a scope: those of key `k` are `starts[k]:starts[k + 1]` of the others."""

    starts: Int
    row: NDArray[np.int32]
    """Position in `scope.rows`, ascending inside a key."""
    freq: NDArray[np.int32]


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
    blocks: Int
    """Where each pair's open rows start, block by block of rows."""
    shown: tuple[NDArray[np.int32], Int]
    """Open rows and their parts, by pair."""
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
    lists, place = _lists(kernels, scope, postings, entries.keys)
    if len(lists.row):
        yield from (_prepared(kernels, scope, lists, part, bm25) for part in _parts(scope, lists, entries, place))


def score(kernels: ModuleType, scope: Scope, prepared: Prepared) -> list[Found]:
    """The best rows of a part's sub-queries, and the best withheld ones of its requests."""
    return [_shown(kernels, scope, prepared), _held(kernels, scope, prepared)]


def _lists(kernels: ModuleType, scope: Scope, postings: PostingIndex, keys: list[str]) -> tuple[_Lists, Int]:
    """The postings of the keys, by hash, and the place of each key among them."""
    hashes = key_hashes(keys)
    order = np.argsort(hashes)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    hashes = hashes[order]
    starts, texts = _texts(pa.array(keys, pa.large_string()).take(pa.array(order)))
    segments = [(postings.parts[number], own) for number, own in zip(scope.segments, scope.by_segment, strict=True)]
    positions = np.empty((len(segments), len(keys)), dtype=np.int64)
    counts = np.zeros(len(keys), dtype=np.int64)
    for position, (part, own) in zip(positions, segments, strict=True):
        kernels.find(hashes, starts, texts, part.hashes, *_texts(part.keys), position)
        kernels.count(position, part.starts, part.rows, own, bool(len(own) and own.min() >= 0), counts)
    bounds = starts_of(counts)
    ends = bounds[:-1].copy()
    row, freq = (np.empty(int(bounds[-1]), dtype=np.int32) for _ in range(2))
    for position, (part, own) in zip(positions, segments, strict=True):
        kernels.gather(position, part.starts, part.rows, part.freqs, own, ends, row, freq)
    return _Lists(bounds, row, freq), place


def _texts(keys: pa.Array) -> tuple[Int, NDArray[np.uint8]]:
    """Where each text starts, and the last one's end, in the bytes of all; zero-copy."""
    _, offsets, data = keys.buffers()
    if not len(keys):
        return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    starts = np.frombuffer(offsets, dtype=np.int64)[keys.offset : keys.offset + len(keys) + 1]
    return starts, np.frombuffer(data or b"", dtype=np.uint8)


def _parts(scope: Scope, lists: _Lists, entries: Entries, place: Int) -> Iterator[_Part]:
    """Ranges of whole requests whose pairs have at most `POSTINGS` postings together, and at least one request."""
    setting = scope.tables.setting[scope.request]
    _, examples, of_sub = np.unique(setting, return_index=True, return_inverse=True)
    weights, weight = np.unique(entries.weight, return_inverse=True)
    keys = len(lists.starts) - 1
    code = (of_sub[entries.sub] * keys + place[entries.key]) * len(weights) + weight.reshape(-1)
    starts = np.searchsorted(entries.sub, np.arange(len(scope.sub) + 1))
    first = np.flatnonzero(np.diff(scope.request, prepend=-1, append=-1))
    waiting = [(0, len(first) - 1)]
    while waiting:
        low, high = waiting.pop()
        requests = first[low : high + 1]
        own = starts[requests[0] : requests[-1] + 1]
        pairs, pair = np.unique(code[own[0] : own[-1]], return_inverse=True)
        rest, of_weight = np.divmod(pairs, len(weights))
        setting, key = np.divmod(rest, keys)
        settings, setting = np.unique(setting, return_inverse=True)
        grid = len(settings) * len(scope.rows)
        if high - low > 1 and grid + int(np.diff(lists.starts)[key].sum()) > POSTINGS:
            middle = (low + high) // 2
            waiting += [(middle, high), (low, middle)]
        elif len(pairs):
            yield _Part(
                int(requests[0]), requests - requests[0], own - own[0], pair.reshape(-1),
                key, weights[of_weight], setting.reshape(-1), examples[settings],
            )  # fmt: skip


def _prepared(kernels: ModuleType, scope: Scope, lists: _Lists, part: _Part, bm25: Bm25) -> Prepared | None:
    index, pairs = scope.tables.row_index, len(part.key)
    clock, of_request = scope.tables.clock
    clocks = of_request[scope.request[part.examples]]
    count, length = (values[scope.request[part.examples]] for values in scope.tables.statistics)
    open_ = clock.grid(index, clocks, scope.rows) & ~scope.withheld
    frequency = np.empty(pairs, dtype=np.int64)
    kernels.frequencies(lists.starts, lists.row, part.key, part.setting, open_, frequency)
    weight = part.weight * bm25.idf(frequency, count[part.setting])
    mean = np.divide(length, count, out=np.zeros(len(count)), where=count > 0)
    half = bm25.half(index.length[scope.rows], mean[:, None])
    postings = np.diff(lists.starts)[part.key]
    shown, held = starts_of(frequency), starts_of(postings - frequency)
    shown_row, held_row = (np.empty(int(ends[-1]), dtype=np.int32) for ends in (shown, held))
    shown_part, held_part = (np.empty(len(row), dtype=np.int64) for row in (shown_row, held_row))
    blocks = np.empty((pairs, -(-len(scope.rows) // kernels.BLOCK) + 1), dtype=np.int64)
    bounds = np.empty((pairs, 2), dtype=np.int64)
    in_threads(
        kernels.contributions, postings, lists.starts, lists.row, lists.freq, part.key, part.setting, weight, open_, half,
        shown, held, shown_row, shown_part, held_row, held_part, blocks, bounds,
    )  # fmt: skip
    most = max(int(np.diff(part.starts).max()), 1)
    if bounds[:, 0].min() < 1 or bounds[:, 1].max() * RESOLUTION > EXACT_BELOW / most:
        return None
    allowed, filter_ = scope.returned(np.arange(part.low, part.low + len(part.starts) - 1))
    rank = index.id_rank[scope.rows]
    return Prepared(
        part, blocks, (shown_row, shown_part), held, (held_row, held_part), allowed, filter_, rank, clocks
    )  # fmt: skip


def _shown(kernels: ModuleType, scope: Scope, prepared: Prepared) -> Found:
    """The `lane_k` best open rows per sub-query."""
    part, blocks = prepared.part, prepared.blocks
    subs = len(part.starts) - 1
    sub = scope.sub[part.low : part.low + subs]
    k = np.minimum(scope.tables.lane_k[sub], len(scope.rows))
    ends, found = np.cumsum(k), np.zeros(subs, dtype=np.int64)
    row, total = (np.empty(int(k.sum()), dtype=np.int64) for _ in range(2))
    in_threads(
        kernels.best_shown, _work(part, np.diff(blocks[:, [0, -1]])[:, 0]), part.starts, part.pairs, blocks,
        *prepared.shown, prepared.allowed, prepared.filter_, k, prepared.rank, ends, found, row, total,
    )  # fmt: skip
    of, at = spread(ends - k, found)
    return Found.of(sub[of], scope.rows[row[at]], total[at].astype(np.float64) * RESOLUTION)


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
