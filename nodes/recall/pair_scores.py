"""Lexical and semantic scores of given pairs of request and row, whichever lane recalled them.

Reads the weights of terms that recall computed (`Asked`) and the vectors. Gives scores that
equal those of the lanes bit for bit, and the maximum score of each request.

Note: the weights contain the document frequencies of A(r), counted once, in recall. Nothing is counted here, so no row
affects the score of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..columns.keys import distinct_rows, first_of_runs
from ..columns.numbers import RESOLUTION
from ..columns.ragged import spread, starts_of
from ..errors import SchemaError
from ..frames import VectorIndex, segments_of
from ..kernels.compiled import kernels
from .posting_recall import Asked
from .recall_scope import CELLS, Float, Int, RecallTables
from .vector_recall import vectors_of


@dataclass(frozen=True)
class Pairs:
    """Pairs of request (a contract row, ascending) and frame row."""

    request: Int
    row: Int

    def at(self, index: Int) -> Pairs:
        """Some of the pairs."""
        return Pairs(self.request[index], self.row[index])

    def starts(self, requests: int) -> Int:
        """The start of each request's pairs, and the end of the last one's."""
        return starts_of(np.bincount(self.request, minlength=requests))


def bm25_reach(weighed: Sequence[Asked], tables: RecallTables) -> Float:
    """The maximum BM25 under each contract row: the sum of the weights of its sub-query with the greatest sum."""
    reach = np.zeros(tables.contracts.num_rows)
    for asked in weighed:
        np.maximum.at(reach, asked.scope.request[asked.subs], asked.reach())
    return reach


def lexical_scores(pairs: Pairs, weighed: Sequence[Asked]) -> Float:
    """The best BM25 of each pair over the sub-queries of its request that have weights."""
    best = np.zeros(len(pairs.row))
    for asked, number, own in weighed_texts(pairs, weighed):
        score = asked.score(number, asked.scope.local(pairs.row[own]))
        best[own] = np.maximum(best[own], score)
    return best


def weighed_texts(pairs: Pairs, weighed: Sequence[Asked]) -> Iterator[tuple[Asked, int, slice]]:
    """For each request and each of its distinct query texts: the look-ups of the text, and some of the request's pairs."""
    if not len(pairs.row):
        return
    for asked in weighed:
        tables, seen = asked.scope.tables, set[tuple[int, str, str | None]]()
        starts = pairs.starts(tables.contracts.num_rows).tolist()
        for number, sub in enumerate(asked.scope.sub[asked.subs].tolist()):
            request = int(tables.sub_request[sub])
            text = request, *tables.texts[sub]
            looked_up = asked.own(number)
            if (
                text in seen or looked_up.start == looked_up.stop
            ):  # a plan often repeats a text for several kinds of evidence
                continue
            seen.add(text)
            low, high, step = *starts[request : request + 2], max(1, CELLS // (looked_up.stop - looked_up.start))
            for some in range(low, high, step):
                yield asked, number, slice(some, min(some + step, high))


def semantic_scores(pairs: Pairs, vector_of_sub: Int, tables: RecallTables, vectors: VectorIndex) -> Float:
    """The greatest cosine of each pair over the sub-queries of its request that have a vector; 0 where the row has none.

    `vector_of_sub` is the query vector of each sub-query, -1 for none.
    """
    best = np.zeros(len(pairs.row))
    asked = np.flatnonzero(vector_of_sub >= 0)
    first, _ = distinct_rows(tables.sub_request[asked], vector_of_sub[asked])
    asked = asked[first]
    starts = pairs.starts(tables.contracts.num_rows)
    request = tables.sub_request[asked]
    _, pair = spread(starts[request], np.diff(starts)[request])
    query = vector_of_sub[asked].repeat(np.diff(starts)[request])
    has = vectors.encoded(pairs.row)[pair]
    pair, query = pair[has], query[has]
    product = _products(vectors, pairs.row[pair], vectors.queries.astype(np.int32), query)
    np.maximum.at(best, pair, product * RESOLUTION)
    return best


def mean_cosines(pairs: Pairs, among: Pairs, requests: int, vectors: VectorIndex) -> Float:
    """The mean cosine of each pair's row with the rows `among` of its request that have vectors; 0 where there are
    none.

    One product per pair: of its vector and the sum of the others.
    """
    means = np.zeros(len(pairs.row))
    chosen, asked = (vectors.encoded(each.row).nonzero()[0] for each in (among, pairs))
    if not len(chosen):
        return means
    owner = among.request[chosen]
    first = first_of_runs(owner)
    counts = np.zeros(requests, dtype=np.int64)
    counts[owner[first]] = np.diff(first, append=len(owner))
    # Components have 16 bits: 32 bits hold the sum of as many vectors as a request may have.
    sums = np.add.reduceat(vectors_of(vectors, among.row[chosen], np.int32), first, dtype=np.int32)
    place = np.zeros(requests, dtype=np.int64)
    place[owner[first]] = np.arange(len(first))
    asked = asked[counts[pairs.request[asked]] > 0]
    request = pairs.request[asked]
    product = _products(vectors, pairs.row[asked], sums, place[request])
    means[asked] = product * RESOLUTION / counts[request]
    return means


def _products(vectors: VectorIndex, rows: Int, others: NDArray[np.int32], which: Int) -> Float:
    """The product of each row's vector and `others[which]`: whole numbers below 2**53, so exact in any order."""
    out = np.empty(len(rows))
    if (loops := kernels(0)) is not None:
        segment = segments_of(rows, vectors.row_starts)
        for number in np.unique(segment).tolist():
            part, own = vectors.parts[number], (segment == number).nonzero()[0]
            if part is None or part.shape[1] != others.shape[1]:  # the loop does not check
                got = "none" if part is None else part.shape[1]
                raise SchemaError(f"Expected vectors of {others.shape[1]} dimensions, got {got} - at segment {number}")
            product = np.empty(len(own), dtype=np.int64)
            loops.vectors.products(part, rows[own] - vectors.row_starts[number], others, which[own], product)
            out[own] = product
        return out
    right = others.astype(np.float64)
    step = max(1, CELLS // max(others.shape[1], 1))
    for low in range(0, len(rows), step):
        part = slice(low, low + step)
        out[part] = np.einsum("ij,ij->i", vectors_of(vectors, rows[part], np.float64), right[which[part]])
    return out
