"""Score terms and weights of a few candidates, as a run stores them."""

from __future__ import annotations

from collections.abc import Sequence

from scoped_retrieval.nodes.tables import RERANK_WEIGHTS, SCORE_TERMS
from scoped_retrieval.nodes.vocabulary import SCORE_TERMS as CLASSES

TERMS = tuple(term for term in CLASSES if term != "diversity")
QUERIES = ("q1", "q2", "q3")


def score_terms(rows: Sequence[tuple[str, str, str, dict[str, float]]]):
    """SCORE_TERMS of (query, evidence, kind, terms)."""
    words = {"freshness": "fresh", "anchor_signal": None, "source_signal": "code", "role_signal": None}
    described = [
        {"request_id": query, "evidence_id": evidence, "evidence_kind": kind, "pool_rank": n, **dict.fromkeys(TERMS, 0.0), **terms, **words}
        for n, (query, evidence, kind, terms) in enumerate(rows, start=1)
    ]  # fmt: skip
    return SCORE_TERMS.from_rows(described)


def weights(given: dict[str, float]):
    return RERANK_WEIGHTS.from_rows(
        [{"request_id": query, **dict.fromkeys(CLASSES, 0.0), **given} for query in QUERIES]
    )
