"""Weights of score terms fitted to what people judged relevant: ListNet's top-one loss (Cao et al. 2007), by L-BFGS-B.

Reads frozen score terms of one or more collections. Gives one weight per term, 0 or more. Each collection counts the
same, however many queries it has. A document counts by its best candidate under the current weights, as in its ranking.

Note: an order does not change when all weights are multiplied, so the fit is free to choose
how sharp the softmax is, and the weights are brought back to the sum they had. A pull towards the weights one starts from
keeps terms that few queries speak of where they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...nodes.errors import InputError
from .frozen_terms import FrozenTerms

ITERATIONS = 30
PULL = 1.0
"""Weight of the squared distance between the shares of the weights and those that one starts from."""
SHARPNESS = 20.0
"""Sum of the weights inside the softmax that the fit begins with: scores of 0 to 1 differ by tenths."""
DIGITS = 4

Float = NDArray[np.float64]


def fitted_weights(
    parts: Sequence[FrozenTerms],
    start: Mapping[str, float],
    *,
    iterations: int = ITERATIONS,
    pull: float = PULL,
) -> dict[str, float]:
    """The weight of every term that differs between candidates of some query, in the order of the terms.

    Args:
        parts: one per collection.
        start: the weights to begin with and to be pulled to; a term without one has 0.

    Raises:
        InputError: no query has candidates that differ, or scipy is missing.
    """
    varying = {term for part in parts for term in part.varying()}
    terms = [term for term in start if term in varying]
    before = np.array([start[term] for term in terms])
    if not terms or before.sum() <= 0:
        raise InputError("Expected score terms that differ between candidates, got none - at tune")
    lists = [_Lists(part, terms) for part in parts]
    shares = before / before.sum()

    def loss(weights: Float) -> tuple[float, Float]:
        losses, gradients = zip(*(each.loss(weights) for each in lists), strict=True)
        total = weights.sum()
        apart = weights / total - shares if total > 0 else -shares
        towards = 2 * (apart - apart @ weights / total) / total if total > 0 else np.zeros_like(weights)
        return float(np.mean(losses) + pull * apart @ apart), np.mean(gradients, axis=0) + pull * towards

    found = _scipy_optimize().minimize(
        loss, shares * SHARPNESS, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(terms),
        options={"maxiter": iterations},
    ).x  # fmt: skip
    scaled = found * before.sum() / found.sum() if found.sum() > 0 else before
    return {term: round(float(weight), DIGITS) for term, weight in zip(terms, scaled, strict=True)}


class _Lists:
    """The candidates of one collection by document, those of one document side by side."""

    def __init__(self, frozen: FrozenTerms, terms: Sequence[str]) -> None:
        order = np.argsort(frozen.document, kind="stable")
        self._document = frozen.document[order]
        self._starts = np.flatnonzero(np.r_[True, np.diff(self._document) > 0][: len(order)])
        self._values = np.stack([frozen.raw[term][order] for term in terms])
        self._query = frozen.query[order][self._starts]
        relevance = np.bincount(self._query, frozen.gain, len(frozen.queries))
        self._target = np.divide(
            frozen.gain, relevance[self._query], out=np.zeros(len(frozen.gain)), where=relevance[self._query] > 0
        )
        self._counts = relevance > 0
        """The queries that have something relevant among their candidates: the others teach nothing."""

    def loss(self, weights: Float) -> tuple[float, Float]:
        """Mean cross entropy between relevance and the softmax of the scores, over queries, and its gradient."""
        if not (queries := int(self._counts.sum())):
            return 0.0, np.zeros(len(weights))
        scores = weights @ self._values
        best = np.maximum.reduceat(scores, self._starts)
        equal = np.flatnonzero(scores == best[self._document])
        rows = equal[np.r_[True, np.diff(self._document[equal]) > 0]]
        most = np.full(len(self._counts), -np.inf)
        np.maximum.at(most, self._query, best)
        power = np.exp(best - most[self._query])
        sums = np.bincount(self._query, power, len(self._counts))
        share = power / sums[self._query]
        entropy = (np.log(sums[self._counts]) + most[self._counts]).sum() - self._target @ best
        gradient = self._values[:, rows] @ (share * self._counts[self._query] - self._target)
        return float(entropy) / queries, gradient / queries


def _scipy_optimize() -> Any:
    try:
        from scipy import optimize
    except ImportError as error:
        hint = 'pip install "scoped-retrieval[eval]"'
        raise InputError("Expected the package scipy, got none - at tune", hint=hint) from error
    return optimize
