"""The semantic lane: the admissible rows whose vectors have the greatest positive cosine with that of the sub-query.

Reads the inputs every lane reads and the vectors. Gives `Found`, scope group by scope group.

Note: vectors are unit vectors whose components are integers below 2**15, in multiples of 2**-15. So the product of two
vectors is an integer below 2**31, and summation is exact in any order. Compiled loops multiply pairs of int16. NumPy
has no such product: it multiplies a large scope in float32, which rounds, then the rows that may still be among the
best in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, distinct_rows, integers, rank_within
from ..columns.numbers import RESOLUTION
from ..columns.ragged import starts_of
from ..frames import RowIndex, VectorIndex, segments_of
from ..kernels.compiled import in_threads, kernels
from .recall_scope import CELLS, Bool, Int, RecallTables, ScopeGroup, sub_query_of
from .recall_selection import SPARE, Found

ROWS_AT_ONCE = 1 << 12
"""Rows multiplied at once: 6 MiB of float32 at 384 dimensions, or 3 MiB of int16."""
TOGETHER = 1 << 10
"""The number of sub-queries that share one conversion of the rows."""
SHORTLIST_FROM = 48
"""A shortlist pays where a scope has at least this many rows per row returned; else every product is exact at once."""
PER_VISIT = 10
"""The number of products that NumPy selects from in the time of one visit of a posting."""
FLAGS = 1 << 25
"""(mask, row) pairs in memory at once: 32 MiB."""
QUERIES_AT_ONCE = 8
"""The number of queries of a block up to which one thread multiplies alone."""
ALONE = 1 << 18
"""Products of components that a BLAS computes in the calling thread. For more it wakes other threads, which spin; if
another process occupies their core, each product then waits milliseconds. No result depends on any of these bounds."""
_PLACES = 31
"""Bits of a key for the place of a row's id; those above contain the product."""
_LAST = (1 << _PLACES) - 1
_UNIT = 2.0**-24
"""Unit roundoff of float32."""

Keys = NDArray[np.int64]


class _Asked(NamedTuple):
    """Sub-queries of one scope: their vectors, the number of rows for each, and the rows that each may return."""

    vectors: NDArray[np.int16]
    """Distinct ones, int16[vectors, dimensions]."""
    of: Int
    k: Int
    rows: Int
    """Frame rows that have a vector and pass some mask, ascending."""
    masks: Bool | None
    """bool[masks, rows]; None = every row for all sub-queries."""
    mask: Int


def recall_vectors(tables: RecallTables, query_vectors: pa.Table, vectors: VectorIndex) -> Found:
    """The nearest rows of each sub-query that has a vector.

    Withheld rows are not recorded here: every row has some cosine with any query, so that would record noise.
    """
    vector = np.full(tables.sub_queries.num_rows, -1, dtype=np.int64)
    vector[sub_query_of(tables.sub_queries, query_vectors)] = integers(query_vectors["vector_row"])
    parts = []
    for scope in tables.scope_groups("semantic"):
        with_one = np.flatnonzero(vector[scope.sub] >= 0)
        step = TOGETHER if len(scope.rows) * TOGETHER <= FLAGS or _alike(scope) else max(1, FLAGS // len(scope.rows))
        for subs in _parts(with_one, np.minimum(tables.lane_k[scope.sub[with_one]], len(scope.rows)), step):
            asked = _asked(scope, vectors, subs, vector[scope.sub[subs]])
            if len(asked.rows):
                sub, row, product = _best(tables.row_index, vectors, asked)
                parts.append(Found.of(scope.sub[subs[sub]], row, product.astype(np.float64) * RESOLUTION))
    return Found.concat(parts)


def _parts(subs: Int, k: Int, most: int) -> Iterator[Int]:
    """Parts of at most `most` sub-queries, and at least one, whose lines for the greatest `k` have at most `CELLS`
    keys.
    """
    waiting = [slice(low, min(low + most, len(subs))) for low in range(0, len(subs), most)][::-1]
    while waiting:
        part = waiting.pop()
        count = part.stop - part.start
        if count > 1 and count * int(k[part].max()) > CELLS:
            middle = part.start + count // 2
            waiting += [slice(middle, part.stop), slice(part.start, middle)]
        else:
            yield subs[part]


def _alike(scope: ScopeGroup) -> bool:
    """Every sub-query of a scope has the same mask."""
    clock = scope.tables.clock[1][scope.request]
    return (
        all(values.min() == values.max() for values in (clock, scope.oldest, *scope.windows))
        and len(scope.filters[0]) == 1
    )


def _asked(scope: ScopeGroup, vectors: VectorIndex, subs: Int, vector: Int) -> _Asked:
    distinct, of = distinct_numbers(vector)
    clock, of_request = scope.tables.clock
    allowed, filter_ = scope.returned(subs)
    asked = of_request[scope.request[subs]]
    first, mask = distinct_rows(asked, filter_)
    clocks, at = distinct_numbers(asked[first])
    masks = clock.grid(scope.tables.row_index, clocks, scope.rows)[at] & allowed[filter_[first]]
    chosen = np.flatnonzero(masks.any(axis=0) & ~scope.withheld & vectors.encoded(scope.rows))
    masks = masks[:, chosen]
    k = np.minimum(scope.tables.lane_k[scope.sub[subs]], len(chosen))
    return _Asked(
        vectors.queries[distinct],
        of,
        k,
        scope.rows[chosen],
        None if masks.all() else masks,
        mask,
    )


def _best(index: RowIndex, vectors: VectorIndex, asked: _Asked) -> tuple[Int, Int, Int]:
    """Sub-query, frame row and product of the best rows."""
    places = index.id_rank[asked.rows]
    most = int(asked.k.max())
    loops = kernels(len(asked.k) * len(asked.rows) // PER_VISIT)
    if loops is not None:
        best = _best_compiled(loops.vectors, vectors, asked, places)
    elif len(asked.rows) > SHORTLIST_FROM * most:
        sub, at = _shortlist(vectors, asked)
        keys = _keys(_products(vectors, asked, sub, at), places[at])
        best = _leading(_padded(sub, keys, len(asked.k)), most)
    else:
        best = _best_exact(vectors, asked, np.arange(len(asked.k)), places)
    taken = (best > _LAST) & (np.arange(most) < asked.k[:, None])
    key = best.reshape(-1) if taken.all() else best[taken]
    sub = np.repeat(np.arange(len(best)), np.count_nonzero(taken, axis=1))
    return sub, index.by_id[_LAST - (key & _LAST)], key >> _PLACES


def _best_exact(vectors: VectorIndex, asked: _Asked, subs: Int, places: Int) -> Keys:
    """The keys of the best rows of some sub-queries, descending, by the exact product with every row."""
    most = int(asked.k.max())
    best = np.zeros((len(subs), most), dtype=np.int64)
    for low in range(0, len(asked.rows), ROWS_AT_ONCE):
        block = slice(low, min(low + ROWS_AT_ONCE, len(asked.rows)))
        rows = vectors_of(vectors, asked.rows[block], np.float64)
        for part in _slices(len(subs), len(rows)):
            own = subs[part]
            product = _by_blocks(asked.vectors[asked.of[own]].astype(np.float64), rows)
            if asked.masks is not None:
                product *= asked.masks[asked.mask[own], block]
            keys = _keys(product.astype(np.int64), places[block])
            best[part] = _leading(np.concatenate([best[part], keys], axis=1) if low else keys, most)
    return best


def _by_blocks(queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product of each query with each row, of whole numbers and so the same in any blocks; see `ALONE`."""
    product = np.empty((len(queries), len(rows)))
    few = min(len(queries), QUERIES_AT_ONCE)
    step = max(1, ALONE // max(few * rows.shape[1], 1))
    for high in range(0, len(queries), QUERIES_AT_ONCE):
        for low in range(0, len(rows), step):
            block = slice(high, high + QUERIES_AT_ONCE), slice(low, low + step)
            np.matmul(queries[block[0]], rows[block[1]].T, out=product[block])
    return product


def _best_compiled(loops: ModuleType, vectors: VectorIndex, asked: _Asked, places: Int) -> Keys:
    """The keys of the best rows, descending, by the exact product with every row, block by block."""
    subs, most = len(asked.k), int(asked.k.max())
    queries = _tiles(_in_pairs(asked.vectors), loops.QUERIES)
    by_vector = np.argsort(asked.of, kind="stable")
    starts = np.searchsorted(asked.of[by_vector], np.arange(len(asked.vectors) + 1))
    mask = np.zeros(subs, dtype=np.int64) if asked.masks is None else asked.mask
    edge, held = np.full(subs, _LAST), np.zeros(subs, dtype=np.int64)
    keys = np.empty((subs, min(4 * most + 256, len(asked.rows)) + 2 * loops.ROWS), dtype=np.int64)
    for low in range(0, len(asked.rows), ROWS_AT_ONCE):
        block = slice(low, min(low + ROWS_AT_ONCE, len(asked.rows)))
        rows = _in_pairs(vectors_of(vectors, asked.rows[block], np.int16))
        panels = np.empty((-(-len(rows) // loops.ROWS), rows.shape[1], loops.ROWS), dtype=np.int32)
        in_threads(loops.side_by_side, np.full(len(panels), panels[0].size // PER_VISIT), rows, panels)
        masks = np.empty((1, 0), dtype=bool) if asked.masks is None else np.ascontiguousarray(asked.masks[:, block])
        in_threads(
            loops.best, np.full(len(queries), loops.QUERIES * len(rows)), queries, panels, starts, by_vector, places[block],
            masks, mask, asked.k, edge, held, keys,
        )  # fmt: skip
    found = np.zeros((subs, most + SPARE), dtype=np.int64)

    def order(first: int, last: int) -> None:
        loops.leading(first, last, asked.k, held, keys, found)
        found[first:last].sort(axis=1)

    in_threads(order, held)
    return found[:, : SPARE - 1 : -1]


def _in_pairs(vectors: NDArray[np.int16]) -> NDArray[np.int32]:
    """Two components as one number; padded with a zero where their number is odd."""
    if vectors.shape[1] % 2:
        vectors = np.pad(vectors, ((0, 0), (0, 1)))
    return np.ascontiguousarray(vectors).view(np.int32)


def _tiles(vectors: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    """The pairs of `size` vectors at a time, int32[tiles, pairs, size], padded with zeros after the last vector."""
    padded = np.pad(vectors, ((0, -len(vectors) % size), (0, 0)))
    return np.ascontiguousarray(padded.reshape(-1, size, vectors.shape[1]).transpose(0, 2, 1))


def _keys(product: Int, place: Int) -> Keys:
    """Keys in the order of the hits: by product, then by descending place; above `_LAST` where the product is positive."""
    return (product << _PLACES) | (_LAST - place)


def _leading(keys: Keys, k: int) -> Keys:
    """The `k` greatest of each line, descending."""
    if keys.shape[1] > k:
        keys = np.partition(keys, keys.shape[1] - k, axis=1)[:, -k:]
    elif keys.shape[1] < k:
        keys = np.pad(keys, ((0, 0), (0, k - keys.shape[1])))
    return np.sort(keys, axis=1)[:, ::-1]


def _padded(sub: Int, keys: Keys, subs: int) -> Keys:
    """The keys of each sub-query as a line, padded with 0; `sub` is ascending."""
    counts = np.bincount(sub, minlength=subs)
    out = np.zeros((subs, int(counts.max(initial=1))), dtype=np.int64)
    out[sub, rank_within(sub)] = keys
    return out


def _shortlist(vectors: VectorIndex, asked: _Asked) -> tuple[Int, Int]:
    """Pairs of sub-query (ascending) and position in `rows` that include the `k` best of each sub-query.

    A float32 product of n terms, summed in whatever order and with or without fused steps, is off by at most g |q| |v|
    with g = nu / (1 - nu), u = 2**-24 (Higham 2002, section 3.1, and Cauchy-Schwarz). With m that bound for the longest
    row, k rows whose rounded product is at least t have true products of at least t - m; so for a row with a rounded
    product below t - 2m there are k better ones, and one below -m is not positive. Lengths are rounded up by a
    thousandth, which covers their own rounding.
    """
    queries = asked.vectors.astype(np.float32)
    error = _error(queries)[asked.of]
    least = np.full(len(asked.k), -np.inf)
    longest, tightened = 0.0, ROWS_AT_ONCE
    found = _Pairs.none()
    for low in range(0, len(asked.rows), ROWS_AT_ONCE):
        rows = vectors_of(vectors, asked.rows[low : low + ROWS_AT_ONCE], np.float32)
        longest = max(longest, float(_lengths(rows).max()))
        parts = [found]
        for own in _slices(len(asked.k), len(rows)):
            product = queries[asked.of[own]] @ rows.T
            if asked.masks is not None:
                product[~asked.masks[asked.mask[own], low : low + len(rows)]] = -np.inf
            margin = error[own] * longest
            open_ = np.flatnonzero(least[own] == -np.inf)
            if len(open_) and len(rows) >= int(asked.k.max()):
                least[own.start + open_] = _kth(product[open_], asked.k[own][open_])
            bound = np.maximum(least[own] - 2 * margin, -margin).astype(np.float32)
            # Rounded down: a bound that is too low only admits more pairs.
            at = np.flatnonzero(product >= np.nextafter(bound, np.float32(-np.inf))[:, None])
            sub, at_row = np.divmod(at, len(rows))
            parts.append(_Pairs(sub + own.start, at_row + low, product.reshape(-1)[at]))
        found = _Pairs(*map(np.concatenate, zip(*parts, strict=True)))
        if low + ROWS_AT_ONCE >= min(8 * tightened, len(asked.rows)):
            tightened = low + ROWS_AT_ONCE
            found, least = _tightened(found, asked.k, least, 2 * error * longest)
    return found.sub, found.at


class _Pairs(NamedTuple):
    sub: Int
    at: Int
    product: NDArray[np.float32]

    @classmethod
    def none(cls) -> _Pairs:
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))


def _tightened(
    found: _Pairs, k: Int, least: NDArray[np.float64], margin: NDArray[np.float64]
) -> tuple[_Pairs, NDArray[np.float64]]:
    """The pairs within the margin of the `k`-th, by sub-query, and the `k`-th of each sub-query."""
    order = np.lexsort((-found.product, found.sub))
    sub = found.sub[order]
    last = np.flatnonzero(rank_within(sub) == k[sub] - 1)
    least = least.copy()
    least[sub[last]] = np.maximum(least[sub[last]], found.product[order[last]])
    kept = order[found.product[order] >= (least - margin)[sub]]
    return _Pairs(found.sub[kept], found.at[kept], found.product[kept]), least


def _kth(product: NDArray[np.float32], k: Int) -> NDArray[np.float64]:
    """The `k`-th greatest of each line."""
    most = int(k.max())
    top = np.sort(np.partition(product, product.shape[1] - most, axis=1)[:, -most:], axis=1)
    return top[np.arange(len(k)), most - k].astype(np.float64)


def _error(queries: NDArray[np.float32]) -> NDArray[np.float64]:
    """The bound of `_shortlist` for a row of length 1."""
    terms = queries.shape[1] * _UNIT
    return terms / (1 - terms) * _lengths(queries)


def _lengths(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Upper bounds of the lengths of vectors."""
    return 1.001 * np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float32).astype(np.float64))


def _products(vectors: VectorIndex, asked: _Asked, sub: Int, at: Int) -> Int:
    """The exact product of each pair of sub-query (ascending) and position in `rows`."""
    counts = np.bincount(sub, minlength=len(asked.k))
    width = int(counts.max(initial=1))
    place = rank_within(sub)
    starts = starts_of(counts)
    out = np.empty(len(sub), dtype=np.int64)
    queries = asked.vectors[asked.of].astype(np.float64)
    for own in _slices(len(asked.k), width * queries.shape[1]):
        low, high = starts[own.start], starts[own.stop]
        rows = np.zeros((own.stop - own.start, width, queries.shape[1]))
        rows[sub[low:high] - own.start, place[low:high]] = vectors_of(vectors, asked.rows[at[low:high]], np.int16)
        product = rows @ queries[own, :, None]
        out[low:high] = product[sub[low:high] - own.start, place[low:high], 0].astype(np.int64)
    return out


def _slices(subs: int, width: int) -> Iterator[slice]:
    """Sub-queries in parts of at most `CELLS` numbers."""
    step = max(1, CELLS // max(width, 1))
    return (slice(low, min(low + step, subs)) for low in range(0, subs, step))


def vectors_of(vectors: VectorIndex, rows: Int, kind: type) -> NDArray:
    """The vectors of frame rows whose segments have vectors, as numbers of a given type."""
    segment = segments_of(rows, vectors.row_starts)
    out = np.empty((len(rows), vectors.queries.shape[1]), dtype=kind)
    order = np.argsort(segment, kind="stable")
    first = np.flatnonzero(np.diff(segment[order], prepend=-1))
    for number, own in zip(segment[order[first]].tolist(), np.split(order, first[1:]), strict=False):
        part, at = vectors.parts[number], rows[own] - vectors.row_starts[number]
        assert part is not None
        if np.all(np.diff(at) == 1) and np.all(np.diff(own) == 1):  # a copy without an index
            out[own[0] : own[-1] + 1] = part[at[0] : at[-1] + 1]
        else:
            out[own] = part[at]
    return out
