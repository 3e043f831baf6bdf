"""The score terms of a run as arrays, so that a weight vector is measured on every query of it in one pass.

Reads `score_terms` and `rerank_weights` of a run, the document of each row, and the judgements. Gives the value of a
measure for each query under any weights: the same order as `ranked`, a document at its best row, the same figures as
`ir_measures`. No lane runs, no text is read, and there is no loop over queries.

Note: candidates form a matrix, a row per query, ordered by evidence id, so that a stable sort breaks ties as `ranked`
does. The terms are all term columns of the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.numbers import quantise
from ...nodes.errors import InputError
from ...nodes.score_terms import terms_of_plugins
from ...nodes.vocabulary import ROLE_TERMS, SCORE_TERMS

DIVERSITY = "diversity"
"""The one term that depends on the others: 1 for the best row of its kind."""
TERMS = tuple(term for term in SCORE_TERMS if term != DIVERSITY)
_MEASURE = re.compile(r"(nDCG|R)@([1-9][0-9]*)")

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class FrozenTerms:
    """The candidates of some queries: every array over candidates is ordered by query, then by evidence id."""

    queries: tuple[str, ...]
    raw: Mapping[str, Float]
    """Term -> its value per candidate."""
    weights: Mapping[str, Float]
    """Term -> its weight in the run, per query."""
    query: Int
    """The query of each candidate, ascending."""
    kind: Int
    """The same number for candidates of the same query and kind."""
    document: Int
    """The same number for candidates of the same query and document."""
    gain: Float
    """Relevance by number of document; 0 where it was not judged relevant."""
    ideal: Float
    """A row per query: its relevance values, the largest first, padded to the longest."""

    @classmethod
    def of(
        cls,
        score_terms: pa.Table,
        rerank_weights: pa.Table,
        documents: Mapping[str, str] | pd.Series,
        qrels: pd.DataFrame,
        queries: Sequence[str],
    ) -> FrozenTerms:
        """The candidates of `queries`, each of them judged.

        Args:
            score_terms: SCORE_TERMS; candidates of other queries are left out.
            rerank_weights: RERANK_WEIGHTS.
            documents: document per evidence id.
            qrels: query_id, doc_id, relevance above 0.
        """
        terms = (*TERMS, *terms_of_plugins(score_terms.column_names))
        columns = ["request_id", "evidence_id", "evidence_kind", *terms]
        asked = pa.array(queries, pa.string())
        rows = score_terms.select(columns).filter(pc.is_in(score_terms["request_id"], asked)).to_pandas()
        place = {query: number for number, query in enumerate(queries)}
        rows = rows.assign(query=rows["request_id"].map(place), doc=rows["evidence_id"].map(pd.Series(documents)))
        rows = rows.sort_values(["query", "evidence_id"], kind="stable", ignore_index=True)
        judged = qrels[qrels["query_id"].isin(place)].assign(query=qrels["query_id"].map(place))
        judged = judged.sort_values(["query", "relevance"], ascending=[True, False], kind="stable")
        nth = judged.groupby("query").cumcount().to_numpy()
        ideal = np.zeros((len(queries), int(nth.max(initial=0)) + 1))
        ideal[judged["query"].to_numpy(dtype=np.int64), nth] = judged["relevance"]
        numbers = rows.groupby(["query", "doc"], sort=True, dropna=False)
        of_document = numbers.ngroup().to_numpy()
        named = rows[["query", "doc"]].assign(document=of_document).drop_duplicates("document").sort_values("document")
        gains = named.merge(judged, left_on=["query", "doc"], right_on=["query", "doc_id"], how="left")["relevance"]
        given = rerank_weights.to_pandas().set_index("request_id").reindex(list(queries)).fillna(0.0)
        return cls(
            tuple(queries),
            {term: rows[term].to_numpy(dtype=np.float64) for term in terms},
            {term: given[term].to_numpy(dtype=np.float64) for term in (*terms, DIVERSITY)},
            rows["query"].to_numpy(dtype=np.int64),
            rows.groupby(["query", "evidence_kind"], sort=True).ngroup().to_numpy(),
            of_document,
            gains.fillna(0.0).to_numpy(dtype=np.float64),
            ideal,
        )

    def of_queries(self, chosen: Bool) -> FrozenTerms:
        """The candidates of some of the queries, by a mask."""
        kept = chosen[self.query]
        _, kind = np.unique(self.kind[kept], return_inverse=True)
        documents, document = np.unique(self.document[kept], return_inverse=True)
        return replace(
            self,
            queries=tuple(name for name, wanted in zip(self.queries, chosen, strict=True) if wanted),
            raw={term: values[kept] for term, values in self.raw.items()},
            weights={term: values[chosen] for term, values in self.weights.items()},
            query=(np.cumsum(chosen) - 1)[self.query[kept]],
            kind=kind, document=document, gain=self.gain[documents], ideal=self.ideal[chosen],
        )  # fmt: skip

    @property
    def weighed(self) -> tuple[str, ...]:
        """The terms weighted by a purpose, those of plugins last: the others are weighted by roles only."""
        own = [term for term in SCORE_TERMS if term not in ROLE_TERMS]
        return (*own, *terms_of_plugins(self.raw))

    def varying(self) -> tuple[str, ...]:
        """The terms that differ between candidates of some query: the others do not affect the order."""
        if not len(self.query):
            return ()
        starts = np.flatnonzero(np.r_[True, np.diff(self.query) > 0])
        spread = {t: np.maximum.reduceat(v, starts) > np.minimum.reduceat(v, starts) for t, v in self.raw.items()}
        return tuple(term for term in self.raw if spread[term].any())

    def telling(self) -> Bool:
        """Which queries have both a relevant document and another one among their candidates."""
        of, relevant = self._query_of_document, self.gain > 0
        judged, others = (np.bincount(of[chosen], minlength=len(self.queries)) for chosen in (relevant, ~relevant))
        return (judged > 0) & (others > 0)

    def final(self, weights: Mapping[str, float] | None = None) -> Float:
        """The final score of every candidate: contributions as in `ranked`, under these weights for every query.

        A term without a weight here keeps its weight in the run.
        """
        given = {term: self._weight(term, weights or {}) for term in self.weights}
        base = np.zeros(len(self.query))
        for term in self.raw:
            weight = given[term]
            if np.any(weight):
                base += quantise(self.raw[term] * (weight[self.query] if isinstance(weight, np.ndarray) else weight))
        weight = given[DIVERSITY]
        if not np.any(weight):
            return base
        added = quantise(np.broadcast_to(np.asarray(weight, dtype=np.float64), (len(self.queries),)))
        return base + added[self.query] * self._first_of_kind(base)

    def values(self, measure: str = "nDCG@10", weights: Mapping[str, float] | None = None) -> Float:
        """The measure of every query under these weights; a query without candidates has 0.

        Raises:
            InputError: the measure is neither nDCG@k nor R@k.
        """
        name, k = parsed(measure)
        place = self._document_places(self.final(weights))
        within = (place > 0) & (place <= k)
        gain, query = self.gain[within], self._query_of_document[within]
        if name == "R":
            return _over(
                np.bincount(query, (gain > 0).astype(np.float64), len(self.queries)).astype(np.float64),
                (self.ideal > 0).sum(axis=1),
            )
        found = np.bincount(query, gain / np.log2(1.0 + place[within]), len(self.queries)).astype(np.float64)
        best = self.ideal[:, :k]
        return _over(found, (best / np.log2(2.0 + np.arange(best.shape[1]))).sum(axis=1))

    def first_relevant(self, weights: Mapping[str, float] | None = None) -> Int:
        """The place of the first relevant document of every query, from 1; 0 where none is among its candidates."""
        relevant = self.gain > 0
        first = np.full(len(self.queries), self._width + 1, dtype=np.int64)
        np.minimum.at(first, self._query_of_document[relevant], self._document_places(self.final(weights))[relevant])
        return np.where(first > self._width, 0, first)

    def _document_places(self, final: Float) -> Int:
        """The place of every document among those of its query, from 1, by its best candidate."""
        rank = self._ranks(final)
        best = np.full(len(self.gain), len(self.query), dtype=np.int64)
        np.minimum.at(best, self.document, rank)
        leads = np.zeros((len(self.queries), self._width), dtype=np.int64)
        query = self._query_of_document
        leads[query, best] = 1
        return np.cumsum(leads, axis=1)[query, best]

    def _ranks(self, final: Float) -> Int:
        """The rank of every candidate inside its query, from 0; ties by evidence id."""
        scores = np.full((len(self.queries), self._width), np.inf)
        scores[self.query, self._column] = -final
        order = np.argsort(scores, axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(self._width)[None, :], axis=1)
        return rank[self.query, self._column]

    def _first_of_kind(self, base: Float) -> Float:
        """1 for the best candidate of each kind of a query, the first by evidence id among equals."""
        best = np.full(int(self.kind.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(best, self.kind, base)
        equal = np.flatnonzero(base == best[self.kind])
        _, first = np.unique(self.kind[equal], return_index=True)
        leading = np.zeros(len(base))
        leading[equal[first]] = 1.0
        return leading

    def _weight(self, term: str, weights: Mapping[str, float]) -> Float | float:
        return weights[term] if term in weights else self.weights[term]

    @cached_property
    def _column(self) -> Int:
        starts = np.searchsorted(self.query, np.arange(len(self.queries)))
        return np.arange(len(self.query)) - starts[self.query]

    @cached_property
    def _width(self) -> int:
        return int(np.bincount(self.query, minlength=1).max(initial=1))

    @cached_property
    def _query_of_document(self) -> Int:
        found = np.zeros(len(self.gain), dtype=np.int64)
        found[self.document] = self.query
        return found


def parsed(measure: str) -> tuple[str, int]:
    """The name and depth of a measure that weights can be fitted to.

    Raises:
        InputError: the measure is not supported.
    """
    if not (match := _MEASURE.fullmatch(measure)):
        raise InputError.expected("nDCG@k or R@k", measure, "--metric")
    return match[1], int(match[2])


def _over(found: Float, most: Float | Int) -> Float:
    return np.divide(found, most, out=np.zeros(len(found)), where=most > 0)
