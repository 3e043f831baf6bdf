"""Weights measured on frozen score terms give what `ranked` and ir_measures give, ties and variety included."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from frozen_rows import QUERIES, score_terms, weights
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.task_aware_reranking import ranked
from scoped_retrieval.pipeline.evaluation.frozen_terms import FrozenTerms, parsed
from scoped_retrieval.pipeline.evaluation.metrics import per_query
from scoped_retrieval.pipeline.evaluation.rankings import full_ranking

MEASURES = ("nDCG@3", "nDCG@10", "R@2", "R@10")


shares = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
vectors = st.fixed_dictionaries(dict.fromkeys(("semantic", "lexical", "recency", "diversity"), shares))


@st.composite
def candidates(draw):
    """Candidates of two queries: rows in any order of ids, several of a document, many equal scores."""
    found = []
    for query in QUERIES[:2]:
        ids = draw(st.lists(st.integers(0, 30), min_size=1, max_size=12, unique=True))
        found += [
            (query, f"{query}-e{id_:02}", draw(st.sampled_from(["code", "doc"])),
             {t: draw(shares) for t in ("semantic", "lexical", "recency")})
            for id_ in ids
        ]  # fmt: skip
    return found


@given(candidates(), vectors, vectors, st.data())
@settings(deadline=None)
def test_any_weights_give_the_figures_of_the_line(rows, in_force, other, data):
    documents = pd.Series({evidence: f"d{data.draw(st.integers(0, 5))}" for _, evidence, _, _ in rows})
    judged = [(query, f"d{n}", data.draw(st.integers(1, 3))) for query in QUERIES for n in (0, 1, 4)]
    qrels = pd.DataFrame(judged, columns=["query_id", "doc_id", "relevance"])
    table, force = score_terms(rows), weights(in_force)
    frozen = FrozenTerms.of(table, force, documents, qrels, QUERIES)
    for vector in (None, other):
        order = full_ranking(ranked(table, weights(vector or in_force)), documents)
        expected = per_query(qrels, order, MEASURES)
        for measure in MEASURES:
            np.testing.assert_allclose(frozen.values(measure, vector), expected[measure], atol=1e-12)


def small() -> FrozenTerms:
    rows = [
        ("q1", "a", "doc", {"lexical": 0.9, "semantic": 0.1}), ("q1", "b", "doc", {"lexical": 0.5, "semantic": 0.8}),
        ("q2", "c", "doc", {"lexical": 0.2, "semantic": 0.2}), ("q2", "d", "code", {"lexical": 0.9, "semantic": 0.2}),
    ]  # fmt: skip
    qrels = pd.DataFrame({"query_id": ["q1", "q2", "q3"], "doc_id": ["b", "d", "z"], "relevance": 1})
    documents = {name: name for name in "abcd"}
    return FrozenTerms.of(score_terms(rows), weights({"lexical": 1.0}), documents, qrels, QUERIES)


def test_a_query_without_candidates_counts_as_nothing_found():
    assert small().values("R@1").tolist() == [0.0, 1.0, 0.0]
    assert small().values("R@1", {"lexical": 0.0, "semantic": 1.0}).tolist() == [1.0, 0.0, 0.0]  # c before d by its id


def test_some_queries_have_the_figures_that_they_have_among_all():
    chosen = np.array([False, True, True])
    part = small().of_queries(chosen)
    assert part.queries == ("q2", "q3")
    assert part.values("nDCG@10").tolist() == small().values("nDCG@10")[chosen].tolist()


def test_terms_that_are_the_same_for_all_candidates_of_each_query_do_not_vary():
    assert small().varying() == ("semantic", "lexical")
    assert small().of_queries(np.array([False, True, False])).varying() == ("lexical",)


@pytest.mark.parametrize("measure", ["MAP", "nDCG", "R@0", "nDCG@10x"])
def test_a_measure_that_no_weights_are_fitted_to_is_named(measure):
    with pytest.raises(InputError, match=f"Expected nDCG@k or R@k, got '{measure}' - at --metric"):
        parsed(measure)
