"""Weights per purpose, fitted to labeled collections, and their effect on held-out queries.

Reads collections and a run of their queries. Gives `Tuning`: per purpose the weights fitted to all queries, and for
every query its figures under weights that were fitted without it, and under the weights in force. If a purpose has
several collections, each is held out in turn; otherwise folds of the queries are, and all queries of one conversation
are in the same fold. Where judgements name lines, the rows that contain one are measured as well, and nothing is fitted to
them.

Note: the weights that are written were fitted to every query, so they have no figures of their own. The figures
reported are those of the procedure: of weights fitted the same way without the queries measured.

The loss is ListNet's top-one loss (Cao et al. 2007), by L-BFGS-B: each collection counts the same, and a document
counts by its best candidate. The order does not change when all weights are multiplied, so the fit may choose the
sharpness of the softmax, and the weights are scaled back to their original sum. A pull towards the initial weights
keeps terms that few queries affect in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...nodes.errors import InputError
from ..extras import package
from .asking import FULL, Asking, JudgedRun, ask
from .collections import Collection
from .frozen_terms import MEASURES, FrozenTerms
from .metrics import figures, measures_named

ITERATIONS = 30
PULL = 1.0
"""Weight of the squared distance between the shares of the weights and the initial shares."""
SHARPNESS = 20.0
"""The initial sum of the weights in the softmax: scores of 0 to 1 differ by tenths."""
DIGITS = 4

Float = NDArray[np.float64]


def fitted_weights(
    parts: Sequence[FrozenTerms],
    start: Mapping[str, float],
    *,
    pull: float = PULL,
) -> dict[str, float]:
    """The weight of every term that differs between candidates of some query, in the order of the terms.

    Args:
        parts: one per collection.
        start: the initial weights, which are also the target of the pull.
        pull: the strength of the pull towards the initial weights; 0 = none.

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

    found = package("scipy.optimize", "eval").minimize(
        loss, shares * SHARPNESS, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(terms),
        options={"maxiter": ITERATIONS},
    ).x  # fmt: skip
    scaled = found * before.sum() / found.sum() if found.sum() > 0 else before
    return {term: round(float(weight), DIGITS) for term, weight in zip(terms, scaled, strict=True)}


class _Lists:
    """The candidates of one collection, grouped by document."""

    def __init__(self, frozen: FrozenTerms, terms: Sequence[str]) -> None:
        rows = frozen.candidates
        self._document = rows.groupby(["query_id", "doc_id"], dropna=False).ngroup().to_numpy()
        self._starts = np.flatnonzero(np.r_[True, np.diff(self._document) > 0][: len(rows)])
        self._values = rows[list(terms)].to_numpy(dtype=np.float64).T
        self._query = rows.groupby("query_id").ngroup().to_numpy()[self._starts]
        gain = rows["relevance"].to_numpy(dtype=np.float64)[self._starts]
        relevance = np.bincount(self._query, gain)
        self._target = np.divide(gain, relevance[self._query], out=np.zeros(len(gain)), where=gain > 0)
        self._counts = relevance > 0
        """The queries with a relevant candidate: the others have no effect on the fit."""

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


DEFAULT, FITTED = "in force", "fitted"
FOLDS = 5
SEED = 20_080
"""The folds are the same each time."""
LEAST_QUERIES = 20
"""The minimum number of queries of a purpose: with fewer, weights would follow single ones."""


@dataclass(frozen=True)
class Tuning:
    """The fitted weights, and figures of held-out queries."""

    run_id: str
    weights: dict[str, dict[str, float]]
    """Purpose -> score term -> weight, fitted to every query."""
    before: dict[str, dict[str, float]]
    """Purpose -> the weights in force of the same terms."""
    values: pd.DataFrame
    """purpose, collection, kind, query_id, metric, system, value, where the systems are `in force` and `fitted`."""
    left_out: dict[str, str]
    """Purpose -> the parts that were held out in turn."""
    data: list[dict[str, Any]]
    """collection, version, purpose, queries: the training data."""

    def held_out(self) -> pd.DataFrame:
        """Means over held-out queries: a row per collection, and per kind with several.

        Columns: purpose, metric, collection, queries, `in force`, `fitted`, difference, low, high, p.
        """
        of_purposes = self.values.groupby("purpose", sort=False)
        measures = self.values["metric"].unique()
        rows = pd.concat([figures(of, DEFAULT, measures).assign(purpose=purpose) for purpose, of in of_purposes])
        rows = rows[rows["system"] == FITTED]
        rows = rows.assign(**{DEFAULT: rows["value"] - rows["difference"], FITTED: rows["value"]})
        return rows[["purpose", "metric", "collection", "queries", DEFAULT, FITTED, "difference", "low", "high", "p"]]

    def fitted(self) -> dict[str, Any]:
        """The metadata of a weight file besides command, date and versions: plain values."""
        digits = dict.fromkeys((DEFAULT, FITTED, "difference", "low", "high"), 4) | {"p": 6}
        table = self.held_out().round(digits)
        return {
            "run": self.run_id, "data": self.data, "left_out": self.left_out, "weights_in_force": self.before,
            "held_out": table.astype(object).where(table.notna(), None).to_dict("records"),
        }  # fmt: skip

    def draw(self, path: Path) -> None:
        """Write a picture of the held-out means, in force and fitted, one bar per collection and measure.

        Raises:
            InputError: matplotlib is missing, or the file cannot be written.
        """
        figure: Any = package("matplotlib.figure", "eval").Figure(figsize=(8, 4), layout="constrained")
        table = self.held_out()
        means = table.set_index(table["metric"] + "\n" + table["collection"])[[DEFAULT, FITTED]]
        title = "Questions that were left out of the fit"
        axes: Any = means.plot.bar(ax=figure.subplots(), rot=0, ylim=(0, 1), xlabel="", title=title)
        for bars in axes.containers:
            axes.bar_label(bars, fmt="%.3f", fontsize=8)
        try:
            figure.savefig(path)
        except (OSError, ValueError) as error:
            raise InputError(f"{error}: --picture {path}") from error


def tune(
    collections: Sequence[Collection],
    how: Asking,
    *,
    measures: Sequence[str] = MEASURES,
    least_queries: int = LEAST_QUERIES,
) -> Tuning:
    """Fit weights to the judged queries of some collections, and measure them on held-out queries.

    Args:
        how: weights are fitted to the score terms of enabled plugins as well.
        measures: those to report, by their `ir_measures` names.
        least_queries: the minimum number of queries of a purpose with both relevant and other candidates.

    Raises:
        InputError: a measure is unknown, a package is missing, or there is too little data to hold any out.
    """
    measures_named(measures)
    asked = ask(collections, how, blocks=None)
    parts = [_Part.of(asked, collection, how.purpose) for collection in collections]
    weights, before, left_out, values = {}, {}, {}, []
    for purpose in dict.fromkeys(part.purpose for part in parts):
        of_purpose = [part for part in parts if part.purpose == purpose]
        _expect_queries(of_purpose, least_queries)
        start = of_purpose[0].terms.in_force()
        left_out[purpose] = "one collection" if len(of_purpose) > 1 else f"one of {FOLDS} folds of queries"
        for kept, out in _splits(of_purpose):
            how.progress(f"fitting {purpose} without {', '.join(sorted({part.collection.name for part in out}))}")
            fitted = fitted_weights([part.terms for part in kept], start)
            values += [table for part in out for table in part.values(measures, fitted)]
        how.progress(f"fitting {purpose}")
        weights[purpose] = fitted_weights([part.terms for part in of_purpose], start)
        before[purpose] = {term: start[term] for term in weights[purpose]}
    data = [
        {"collection": part.collection.name, "version": part.collection.digest(), "purpose": part.purpose,
         "queries": len(part.terms.queries)}
        for part in parts
    ]  # fmt: skip
    return Tuning(asked.run.run_id, weights, before, pd.concat(values, ignore_index=True), left_out, data)


@dataclass(frozen=True)
class _Part:
    """The candidates of one collection of judged queries, and the groups of the queries."""

    collection: Collection
    purpose: str
    terms: FrozenTerms
    groups: np.ndarray
    """A number per query: queries with the same number are held out together."""
    lines: FrozenTerms | None
    """The same candidates, judged by lines."""

    @classmethod
    def of(cls, asked: JudgedRun, collection: Collection, purpose: str | None) -> _Part:
        queries, documents = asked.queries[collection.name], asked.documents[collection.name]
        terms = FrozenTerms.of(asked.run, collection.qrels, documents=documents, queries=queries)
        lines = None
        if len(collection.labels):
            lines = FrozenTerms.of(asked.run, _rows_with_lines(asked, collection), queries=queries)
        requests = {request["request_id"]: request for request in collection.requests(purpose=purpose)}
        projects = pd.Series([requests[query]["project"] for query in queries])
        groups = pd.factorize(projects)[0] if projects.nunique() > 1 else np.arange(len(queries))
        return cls(collection, requests[queries[0]]["purpose"], terms, groups, lines)

    def some(self, chosen: np.ndarray) -> _Part:
        """The part of some of its queries."""
        queries = [query for query, wanted in zip(self.terms.queries, chosen, strict=True) if wanted]
        lines = self.lines and self.lines.of_queries(queries)
        return replace(self, terms=self.terms.of_queries(queries), groups=self.groups[chosen], lines=lines)

    def values(self, measures: Sequence[str], fitted: Mapping[str, float]) -> Iterator[pd.DataFrame]:
        """The figures of every query, under the weights in force and under new ones."""
        for terms, suffix in ((self.terms, ""), (self.lines, ", by lines")):
            if terms is None:
                continue
            name, kind = self.collection.name + suffix, self.collection.shape + suffix
            for system, weights in ((DEFAULT, None), (FITTED, fitted)):
                found = terms.values(weights, measures).reset_index().melt(id_vars="query_id", var_name="metric")
                yield found.assign(purpose=self.purpose, collection=name, kind=kind, system=system)


def _rows_with_lines(asked: JudgedRun, collection: Collection) -> pd.DataFrame:
    """Judgements by evidence id: the candidates that contain a judged line."""
    frame = asked.corpus.frame(collection.projects())
    candidates = asked.table("candidates", FULL, ["evidence_id", "placement"])
    candidates = candidates[candidates["query_id"].isin(asked.queries[collection.name])].reset_index(drop=True)
    lines = frame.placements.select(["line_start", "line_end"]).take(candidates["placement"].to_numpy()).to_pandas()
    pairs = pd.concat([candidates, lines], axis=1).merge(collection.labels, on=["query_id", "doc_id"])
    pairs = pairs[(pairs["line_start"] <= pairs["last"]) & (pairs["line_end"] >= pairs["first"])]
    judged = pairs[["query_id", "evidence_id"]].drop_duplicates().rename(columns={"evidence_id": "doc_id"})
    return judged.assign(relevance=1)


def _expect_queries(parts: Sequence[_Part], least: int) -> None:
    """Refuse a fit to so few queries that their weights would follow single ones.

    Raises:
        InputError: fewer than `least` queries have both relevant and other candidates.
    """
    if (telling := sum(part.terms.telling() for part in parts)) < least:
        names = ", ".join(part.collection.name for part in parts)
        raise InputError.described(
            f"{least} queries or more whose candidates hold relevant documents and others",
            f"{telling} of {sum(len(part.terms.queries) for part in parts)}",
            f"{parts[0].purpose} ({names})",
            hint="judge more queries; with --least-queries N, single queries may dominate the weights",
        )


def _splits(parts: Sequence[_Part]) -> list[tuple[list[_Part], list[_Part]]]:
    """Pairs of training and test data: every query is measured once."""
    if len(parts) > 1:
        return [([other for other in parts if other is not part], [part]) for part in parts]
    part = parts[0]
    groups = np.random.default_rng(SEED).permutation(int(part.groups.max()) + 1)
    if len(groups) < 2:
        raise InputError.described("two queries or more, so that one can be left out", "one", part.collection.name)
    fold = (groups % min(FOLDS, len(groups)))[part.groups]
    return [([part.some(fold != n)], [part.some(fold == n)]) for n in np.unique(fold)]
