"""Lexical and semantic scores of given pairs of request and row, whichever lane recalled them.

Reads the weights of terms that recall computed (`TermWeights`), the posting index and the vectors. Gives scores that
equal those of the lanes bit for bit, and the maximum score of each request.

Note: the weights contain the document frequencies of A(r), counted once, in recall. Nothing is counted here, so no row
affects the score of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..columns.keys import distinct_rows, first_of_runs
from ..columns.numbers import RESOLUTION, quantise
from ..columns.ragged import spread, starts_of
from ..errors import SchemaError
from ..frames import PostingIndex, VectorIndex, segments_of
from ..kernels.compiled import kernels
from .bm25 import Bm25
from .posting_recall import share
from .recall_entries import TermWeights
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


def bm25_reach(weights: TermWeights, tables: RecallTables) -> Float:
    """The maximum BM25 under each contract row: the sum of the weights of its sub-query with the greatest sum."""
    sums = np.bincount(weights.sub, weights=weights.weight, minlength=tables.sub_queries.num_rows)
    reach = np.zeros(tables.contracts.num_rows)
    np.maximum.at(reach, tables.sub_request, sums)
    return reach


def lexical_scores(
    pairs: Pairs, weights: TermWeights, tables: RecallTables, postings: PostingIndex, bm25: Bm25
) -> Float:
    """The best BM25 of each pair over the sub-queries of its request that have weights."""
    best, length = np.zeros(len(pairs.row)), tables.row_index.length
    for own, terms in weighed_texts(pairs, weights, tables, postings):
        row = pairs.row[own]
        best[own] = np.maximum(best[own], terms.score(terms.times(row), bm25, length[row], terms.mean))
    return best


@dataclass(frozen=True)
class Terms:
    """The terms of a query text, their weights, and how often rows have them."""

    key: Int
    weight: Float
    mean: Float
    """The mean length of the rows of A(r)."""
    codes: Int
    """Key times `width` plus frame row of each posting of all keys, ascending, and a greater number."""
    frequency: NDArray[np.int32]
    width: int

    def times(self, rows: Int) -> NDArray[np.int32]:
        """How often each of some rows, in any order, has each term: int32[terms, rows]; -1 is no row."""
        wanted = self.key[:, None] * self.width + rows
        at = self.codes.searchsorted(wanted)
        return np.where((self.codes[at] == wanted) & (rows >= 0), self.frequency[at], 0)

    def score(self, times: NDArray[np.integer] | Float, bm25: Bm25, length: Int, mean: Float) -> Float:
        """BM25 of rows that have the terms so many times, under these lengths."""
        half = bm25.half(length, mean)
        factor = np.divide(times, times + half, out=np.zeros(times.shape), where=times > 0)
        return quantise(np.minimum(self.weight[:, None] * factor, share(len(self.key)))).sum(axis=0)


def weighed_texts(
    pairs: Pairs, weights: TermWeights, tables: RecallTables, postings: PostingIndex, *others: Int
) -> Iterator[tuple[slice, Terms]]:
    """For each request and each of its distinct query texts: some of the request's pairs, and the terms of the text. `others`
    are rows whose terms are read besides; they may be of other segments.
    """
    if not len(pairs.row) or not len(weights.sub):
        return
    rows, width = np.concatenate([pairs.row, *others]), len(tables.row_index.id_rank)
    segments = np.unique(segments_of(rows, postings.row_starts))

    def look_up() -> tuple[Int, NDArray[np.int32]]:
        found = postings.lookup(weights.keys, segments)
        codes = np.arange(len(weights.keys)).repeat(np.diff(found.starts)) * width + found.rows
        return np.append(codes, np.iinfo(np.int64).max), np.append(found.freqs, np.int32(0))

    codes, frequency = tables.looked_up.get((segments.tobytes(), *weights.keys), look_up)
    starts = pairs.starts(tables.contracts.num_rows)
    by_sub = weights.sub.argsort(kind="stable")
    sub = weights.sub[by_sub]
    seen: set[tuple[int, str, str | None]] = set()
    for low, high in pairwise([*first_of_runs(sub).tolist(), len(sub)]):
        request = int(tables.sub_request[sub[low]])
        text = request, *tables.texts[int(sub[low])]
        own = slice(*starts[request : request + 2].tolist())
        if text in seen or own.start == own.stop:  # a plan often repeats a text for several kinds of evidence
            continue
        seen.add(text)
        count, length = (int(values[request]) for values in tables.statistics)
        chosen, mean = by_sub[low:high], np.array([length / count if count else 0.0])
        terms = Terms(weights.key[chosen], weights.weight[chosen], mean, codes, frequency, width)
        step = max(1, CELLS // len(chosen))
        for some in range(own.start, own.stop, step):
            yield slice(some, min(some + step, own.stop)), terms


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
