"""Lexical and semantic scores of given pairs of request and row, whichever lane recalled them.

Reads the weights of terms that recall computed (`TermWeights`), the posting index and the vectors. Gives scores that
equal those of the lanes bit for bit, and the maximum score of each request.

Note: the weights contain the document frequencies of A(r), counted once, in recall. Nothing is counted here, so no row
affects the score of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, distinct_rows, first_of_runs
from ..columns.numbers import RESOLUTION, quantise
from ..columns.ragged import slabs, spread, starts_of
from ..errors import SchemaError
from ..frames import PostingIndex, VectorIndex, segments_of
from ..kernels.compiled import kernels
from .bm25 import Bm25
from .posting_recall import capped, shares
from .recall_entries import TermWeights
from .recall_scope import CELLS, PAIRS, Float, Int, RecallTables
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


def bm25_reach(weights: TermWeights, tables: RecallTables, bm25: Bm25) -> Float:
    """The maximum BM25 under each contract row: the sum of the weights of its sub-query with the greatest sum."""
    sums = np.bincount(weights.sub, weights=weights.weight, minlength=tables.sub_queries.num_rows)
    reach = np.zeros(tables.contracts.num_rows)
    np.maximum.at(reach, tables.sub_request, sums)
    return reach


def lexical_scores(
    pairs: Pairs, weights: TermWeights, tables: RecallTables, postings: PostingIndex, bm25: Bm25
) -> Float:
    """The best BM25 of each pair over the sub-queries of its request that have weights."""
    best = np.zeros(len(pairs.row))
    if not len(best) or not len(weights.sub):
        return best
    weights = of_distinct_texts(weights, tables)
    rows, row_code = distinct_numbers(pairs.row)
    code, frequency = postings_of(weights.keys, rows, postings)
    subs, sub = distinct_numbers(weights.sub)
    request = tables.sub_request[subs]
    starts = pairs.starts(tables.contracts.num_rows)
    counts = np.diff(starts)[request]
    cells = starts_of(counts)
    scores = np.zeros(cells[-1])
    most = shares(sub, len(subs))
    held, total = tables.statistics
    mean = np.divide(total, held, out=np.zeros(len(held)), where=held > 0)
    length = tables.row_index.length
    for low, high in slabs(counts[sub], PAIRS):
        own = sub[low:high]
        of, at = spread(starts[request[own]], counts[own])
        wanted = (weights.key[low:high] * len(rows))[of] + row_code.take(at)
        found = np.minimum(code.searchsorted(wanted), max(len(code) - 1, 0))
        hit = code[found] == wanted if len(code) else np.zeros(len(wanted), dtype=bool)
        of, at, found = of[hit], at[hit], found[hit]
        asked = request[own[of]]
        part = weights.weight[low:high][of] * bm25.saturation(frequency[found], length[pairs.row[at]], mean[asked])
        part = quantise(capped(part, own, most, of))
        scores += np.bincount(cells[own[of]] + at - starts[asked], weights=part, minlength=len(scores))
    _, pair = spread(starts[request], counts)
    np.maximum.at(best, pair, scores)
    return best


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


def of_distinct_texts(weights: TermWeights, tables: RecallTables) -> TermWeights:
    """The weights of one of the sub-queries of a request with the same text: a plan often repeats a text for several
    kinds of evidence.
    """
    subs, sub = distinct_numbers(weights.sub)
    asked = [
        tables.sub_queries[name].take(subs).combine_chunks().dictionary_encode() for name in ("query_text", "expansion")
    ]
    codes = [np.asarray(one.indices.fill_null(-1)).astype(np.int64) for one in asked]
    first, _ = distinct_rows(tables.sub_request[subs], *codes)
    chosen = np.zeros(len(subs), dtype=bool)
    chosen[first] = True
    kept = chosen[sub]
    return TermWeights(weights.keys, weights.sub[kept], weights.key[kept], weights.weight[kept])


def postings_of(keys: Sequence[str], rows: Int, postings: PostingIndex) -> tuple[Int, NDArray[np.int32]]:
    """Which rows (ascending) contain which key, as key * len(rows) + place, ascending, and how often."""
    segments = np.unique(segments_of(rows, postings.row_starts))
    matches = postings.lookup(keys, segments)
    # With many postings, a table with a place per row of the frame is faster than a search.
    size = max(int(rows[-1]), int(matches.rows.max(initial=0))) + 1
    if size <= len(matches.rows):
        place = np.full(size, -1, dtype=np.int32)
        place[rows] = np.arange(len(rows))
        at = place[matches.rows]
        kept = at >= 0
    else:
        at = np.minimum(rows.searchsorted(matches.rows), len(rows) - 1)
        kept = rows[at] == matches.rows
    key = np.arange(len(keys)).repeat(np.diff(matches.starts))
    code = key[kept] * len(rows) + at[kept]
    order = code.argsort(kind="stable")
    return code[order], matches.freqs[kept][order]
