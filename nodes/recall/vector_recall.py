"""The semantic lane: the admissible rows whose vectors have the greatest positive cosine with that of the sub-query.

Reads the inputs every lane reads and the vectors. Gives `Found`, scope group by scope group.

Note: vectors are unit vectors whose components are integers below 2**15, in multiples of 2**-15. So the product of two
vectors is an integer below 2**31, and summation is exact in any order. Compiled loops multiply pairs of int16; NumPy
has no such product, and multiplies in float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, integers, pair_positions, take_or
from ..columns.numbers import RESOLUTION
from ..frames import RowIndex, VectorIndex, segments_of
from ..kernels.compiled import in_threads, kernels
from ..tables import QUERY_VECTORS
from .recall_scope import CELLS, Bool, Int, RecallTables, ScopeGroup
from .recall_selection import SPARE, Found

ROWS_AT_ONCE = 1 << 12
"""Rows multiplied at once: 6 MiB of float32 at 384 dimensions, or 3 MiB of int16."""
TOGETHER = 1 << 10
"""The number of sub-queries that share one conversion of the rows."""
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


class AskedVectors(NamedTuple):
    """The vectors of the frame with those of the queries, None where no query has one; the row of each sub-query among
    them, as QUERY_VECTORS; and the errors of requests that have a text without a vector, by id.
    """

    vectors: VectorIndex | None
    rows: pa.Table
    lost: Mapping[str, str]


NOTHING_ENCODED = AskedVectors(None, QUERY_VECTORS.empty(), {})


def vector_of_sub(tables: RecallTables, query_vectors: pa.Table) -> Int:
    """The query vector of each sub-query, -1 for none."""
    wanted, known = ((each["request_id"], each["sub_query_id"]) for each in (tables.sub_queries, query_vectors))
    return integers(take_or(query_vectors["vector_row"], pair_positions(wanted, known), -1))


def recall_vectors(tables: RecallTables, query_vectors: pa.Table, vectors: VectorIndex) -> Found:
    """The nearest rows of each sub-query that has a vector.

    Withheld rows are not recorded here: every row has some cosine with any query, so that would record noise.
    """
    vector = vector_of_sub(tables, query_vectors)
    parts = []
    for scope in tables.scope_groups("semantic"):
        with_one = np.flatnonzero(vector[scope.sub] >= 0)
        k = min(int(tables.lane_k[scope.sub[with_one]].max(initial=1)), len(scope.rows))
        step = max(1, min(TOGETHER, FLAGS // len(scope.rows), CELLS // k))
        for low in range(0, len(with_one), step):
            subs = with_one[low : low + step]
            asked = _asked(scope, vectors, subs, vector[scope.sub[subs]])
            if len(asked.rows):
                sub, row, product = _best(tables.row_index, vectors, asked)
                parts.append(Found.of(scope.sub[subs[sub]], row, product.astype(np.float64) * RESOLUTION))
    return Found.concat(parts)


def _asked(scope: ScopeGroup, vectors: VectorIndex, subs: Int, vector: Int) -> _Asked:
    distinct, of = distinct_numbers(vector)
    masks, mask = scope.shown(subs)
    chosen = np.flatnonzero(masks.any(axis=0) & vectors.encoded(scope.rows))
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
    else:
        best = _best_exact(vectors, asked, places)
    taken = (best > _LAST) & (np.arange(most) < asked.k[:, None])
    key = best.reshape(-1) if taken.all() else best[taken]
    sub = np.repeat(np.arange(len(best)), np.count_nonzero(taken, axis=1))
    return sub, index.by_id[_LAST - (key & _LAST)], key >> _PLACES


def _best_exact(vectors: VectorIndex, asked: _Asked, places: Int) -> Keys:
    """The keys of the best rows, descending, by the exact product with every row."""
    most, queries = int(asked.k.max()), asked.vectors.astype(np.float64)
    best = np.empty((len(asked.k), 0), dtype=np.int64)
    for low in range(0, len(asked.rows), ROWS_AT_ONCE):
        block = slice(low, min(low + ROWS_AT_ONCE, len(asked.rows)))
        product = _by_blocks(queries, vectors_of(vectors, asked.rows[block], np.float64))[asked.of]
        if asked.masks is not None:
            product *= asked.masks[asked.mask, block]
        best = _leading(np.concatenate([best, _keys(product.astype(np.int64), places[block])], axis=1), most)
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
