"""The score terms of a run, ranked again by the node `ranked` under any weights, and measured.

Reads `score_terms` and `rerank_weights` of a run, the document of each row, and the judgements. No lane runs and no
text is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.score_terms import terms_of_plugins
from ...nodes.task_aware_reranking import ranked
from ...nodes.vocabulary import ROLE_TERMS, SCORE_TERMS
from .metrics import per_query

DIVERSITY = "diversity"
"""The one term without values of its own: it depends on the order under the others."""
_KEY = ["query_id", "doc_id"]

Weights = Mapping[str, float]


def ranked_under(score_terms: pa.Table, rerank_weights: pa.Table, weights: Weights) -> pa.Table:
    """RANKED with these weights for every request; a term that is not named keeps its weights."""
    for term, weight in weights.items():
        at = rerank_weights.schema.get_field_index(term)
        column = pa.array(np.full(rerank_weights.num_rows, weight, dtype=np.float64))
        rerank_weights = rerank_weights.set_column(at, rerank_weights.schema.field(at), column)
    return ranked(score_terms, rerank_weights)


@dataclass(frozen=True)
class FrozenTerms:
    """The candidates of judged queries."""

    queries: tuple[str, ...]
    score_terms: pa.Table
    """SCORE_TERMS of the queries."""
    weights: pa.Table
    """RERANK_WEIGHTS of the queries."""
    documents: pd.Series
    """Document per evidence id."""
    qrels: pd.DataFrame
    """query_id, doc_id, relevance above 0."""

    @classmethod
    def of(
        cls,
        score_terms: pa.Table,
        rerank_weights: pa.Table,
        documents: Mapping[str, str] | pd.Series,
        qrels: pd.DataFrame,
        queries: Sequence[str],
    ) -> FrozenTerms:
        """The candidates of `queries`, each of them judged; other requests of the tables are left out."""
        documents = documents if isinstance(documents, pd.Series) else pd.Series(documents, dtype=object)
        return cls((), score_terms, rerank_weights, documents, qrels).of_queries(queries)

    def of_queries(self, queries: Sequence[str]) -> FrozenTerms:
        """The candidates of some of the queries."""
        names = pa.array(queries, pa.string())
        terms, weights = (t.filter(pc.is_in(t["request_id"], names)) for t in (self.score_terms, self.weights))
        qrels = self.qrels[self.qrels["query_id"].isin(set(queries))].drop_duplicates(_KEY)
        return replace(self, queries=tuple(queries), score_terms=terms, weights=weights, qrels=qrels)

    @property
    def weighed(self) -> tuple[str, ...]:
        """The terms weighted by a purpose, those of plugins last: the others are weighted by roles only."""
        own = [term for term in SCORE_TERMS if term not in ROLE_TERMS and term != DIVERSITY]
        return (*own, *terms_of_plugins(self.score_terms.column_names))

    def in_force(self) -> dict[str, float]:
        """The weight of each term in the run, as the mean over its requests."""
        return {term: round(pc.mean(self.weights[term]).as_py() or 0.0, 6) for term in self.weighed}

    def varying(self) -> tuple[str, ...]:
        """The terms that differ between candidates of some query: the others do not affect the order."""
        by_query = self.candidates.groupby("query_id")[list(self.weighed)]
        differs = (by_query.max() > by_query.min()).any()
        return tuple(term for term in self.weighed if differs[term])

    def telling(self) -> int:
        """The number of queries with both a relevant document and another one among their candidates."""
        relevant = self.candidates.groupby(_KEY)["relevance"].first() > 0
        by_query = relevant.groupby("query_id")
        return int((by_query.any() & ~by_query.all()).sum())

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """A row per candidate, ordered by query and document: query_id, doc_id, relevance and the terms."""
        frame = self.score_terms.select(["request_id", "evidence_id", *self.weighed]).to_pandas()
        return self._judged(frame).sort_values([*_KEY, "evidence_id"], kind="stable", ignore_index=True)

    def order(self, weights: Weights | None = None) -> pd.DataFrame:
        """The documents of every query, a document at its best row: query_id, doc_id, relevance, place (from 1)."""
        again = ranked_under(self.score_terms, self.weights, weights or {})
        rows = self._judged(again.select(["request_id", "evidence_id"]).to_pandas()).drop_duplicates(_KEY)
        return rows.assign(place=rows.groupby("query_id").cumcount() + 1)

    def values(self, measures: Sequence[str], order: pd.DataFrame) -> pd.DataFrame:
        """Measures of every query for an order, by their `ir_measures` names; 0 without a judgement or candidates.

        Raises:
            InputError: a measure is unknown, or `ir_measures` is missing.
        """
        ranking = order[_KEY].assign(score=-order["place"].astype(float))
        found = per_query(self.qrels.astype({"relevance": int}), ranking, measures)
        return found.reindex(pd.Index(self.queries, name="query_id"), fill_value=0.0)

    def first_relevant(self, order: pd.DataFrame) -> pd.Series:
        """The place of the first relevant document of every query; 0 where none is among its candidates."""
        first = order[order["relevance"] > 0].groupby("query_id")["place"].min()
        return first.reindex(self.queries).fillna(0).astype(int)

    def _judged(self, rows: pd.DataFrame) -> pd.DataFrame:
        named = rows.rename(columns={"request_id": "query_id"}).assign(doc_id=rows["evidence_id"].map(self.documents))
        found = named.merge(self.qrels[[*_KEY, "relevance"]], on=_KEY, how="left")
        return found.assign(relevance=found["relevance"].fillna(0.0))
