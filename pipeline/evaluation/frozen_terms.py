"""The score terms of a run, ranked again by the node `ranked` under any weights, and measured.

Reads `score_terms` and `rerank_weights` of a run, the document of each row, and the judgements. No lane runs and no
text is read. Gives `FrozenTerms`, to which `tuning` fits weights, and whose weights a notebook changes by hand.

Note: only the ranking is computed again. To see the block under other weights, use `what-if`, which also packs and
trims again; both rank the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError
from ...nodes.score_terms import terms_of_plugins
from ...nodes.task_aware_reranking import ranked
from ...nodes.vocabulary import ROLE_TERMS, SCORE_TERMS
from ..runs import Run
from .metrics import compared, per_query

DIVERSITY = "diversity"
"""The one term without values of its own: it depends on the order under the others."""
AS_RUN, CHANGED = "as run", "changed"
MEASURES = ("nDCG@10", "R@10")
_KEY = ["query_id", "doc_id"]

Weights = Mapping[str, float]


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
        run: Run,
        qrels: pd.DataFrame,
        *,
        documents: pd.Series | None = None,
        queries: Sequence[str] | None = None,
    ) -> FrozenTerms:
        """The candidates of judged requests of a run, which should have one purpose, since weights belong to one.

        Args:
            qrels: query_id (the request), doc_id and relevance.
            documents: the document of each evidence id; default: every row is one, named by its id.
            queries: the requests; default: those that are judged.

        Raises:
            InputError: no request is judged.
        """
        terms, weights = run.table("score_terms"), run.table("rerank_weights")
        if queries is None:
            queries = sorted(set(weights["request_id"].to_pylist()) & set(qrels["query_id"]))
        if not queries:
            raise InputError.described("judgements of requests of the run", "none", f"{run.run_id}.qrels")
        if documents is None:
            ids = pc.unique(terms["evidence_id"]).to_pylist()
            documents = pd.Series(ids, index=ids)
        return cls((), terms, weights, documents, qrels[qrels["relevance"] > 0]).of_queries(queries)

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
        """The documents of every query, a document at its best row: query_id, doc_id, relevance, place (from 1).

        A term that `weights` does not name keeps its weights.

        Raises:
            InputError: there is no term of that name.
        """
        table = self.weights
        for term, weight in (weights or {}).items():
            if term not in self.weighed:
                raise InputError.one_of(self.weighed, term, "weights")
            at = table.schema.get_field_index(term)
            column = pa.array(np.full(table.num_rows, weight, dtype=np.float64))
            table = table.set_column(at, table.schema.field(at), column)
        again = ranked(self.score_terms, table).select(["request_id", "evidence_id"])
        rows = self._judged(again.to_pandas()).drop_duplicates(_KEY)
        return rows.assign(place=rows.groupby("query_id").cumcount() + 1)

    def values(self, weights: Weights | None = None, measures: Sequence[str] = MEASURES) -> pd.DataFrame:
        """Measures of every query, by their `ir_measures` names; 0 without a judgement or candidates.

        Raises:
            InputError: a measure or a term is unknown, or `ir_measures` is missing.
        """
        order = self.order(weights)
        ranking = order[_KEY].assign(score=-order["place"].astype(float))
        found = per_query(self.qrels.astype({"relevance": int}), ranking, measures)
        return found.reindex(pd.Index(self.queries, name="query_id"), fill_value=0.0)

    def figures(self, weights: Weights) -> pd.DataFrame:
        """One row per measure: the means as run and changed; their difference with its 95 % confidence interval and the p
        value of a paired t-test; and how many requests gain, lose and stay."""
        before, after = self.values(), self.values(weights)
        deltas = after - before
        tested = compared(deltas.assign(none=0.0), "none").drop(columns="p_holm")
        counts = {"gain": (deltas > 0).sum(), "lose": (deltas < 0).sum(), "stay": (deltas == 0).sum()}
        means = pd.DataFrame({AS_RUN: before.mean(), CHANGED: after.mean()})
        return means.join(tested).assign(**counts).rename_axis("measure")

    def deltas(self, weights: Weights, measure: str = MEASURES[0]) -> pd.DataFrame:
        """One row per request, the largest change first: the measure as run and changed, the delta, and the rank of the first
        relevant document as run and changed (0: none was recalled)."""
        found = {}
        for name, under in ((AS_RUN, {}), (CHANGED, weights)):
            order = self.order(under)
            first = order[order["relevance"] > 0].groupby("query_id")["place"].min()
            found[name] = self.values(under)[measure]
            found[f"place {name}"] = first.reindex(self.queries).fillna(0).astype(int)
        rows = pd.DataFrame(found).assign(delta=found[CHANGED] - found[AS_RUN]).rename_axis("request_id")
        rows = rows[[AS_RUN, CHANGED, "delta", f"place {AS_RUN}", f"place {CHANGED}"]].sort_index()
        return rows.sort_values("delta", key=lambda delta: -delta.abs(), kind="stable")

    def _judged(self, rows: pd.DataFrame) -> pd.DataFrame:
        named = rows.rename(columns={"request_id": "query_id"}).assign(doc_id=rows["evidence_id"].map(self.documents))
        found = named.merge(self.qrels[[*_KEY, "relevance"]], on=_KEY, how="left")
        return found.assign(relevance=found["relevance"].fillna(0.0))
