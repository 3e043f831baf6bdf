"""The requests of a run ranked again under other weights, from its frozen score terms: measures, deltas, changed ranks.

Reads: a run, judgements of its requests. Gives: `Reweighing`. No lane runs and no corpus is opened. `save` writes the chosen
weights as a weight file (the setting `weights`).

Note: only the ranking and its measures are computed again. To see the block under other weights, use `what-if`, which
also packs and trims again; both rank the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from ...nodes.errors import InputError
from ..config.policies.weight_files import weight_file_text
from ..runs import Run
from .frozen_terms import FrozenTerms
from .rankings import frozen
from .significance import paired_t

AS_RUN, CHANGED = "as run", "changed"
MEASURES = ("nDCG@10", "R@10")
Weights = Mapping[str, float]


@dataclass(frozen=True)
class Reweighing:
    """The judged requests of one purpose of a run, ranked again under other weights."""

    run_id: str
    purpose: str
    terms: FrozenTerms
    measures: Sequence[str] = MEASURES

    @classmethod
    def of(
        cls,
        run: Run,
        qrels: pd.DataFrame,
        *,
        documents: str | Mapping[str, str] = "evidence_id",
        purpose: str | None = None,
        measures: Sequence[str] = MEASURES,
    ) -> Reweighing:
        """The judged requests of a run.

        Args:
            run: a finished run, such as `retriever.runs.open(summary.run_id)`.
            qrels: columns query_id (the request), doc_id and relevance; rows with a relevance above 0 count as relevant.
            documents: the content of `doc_id`, `evidence_id` or `path`; or a mapping from evidence ids to document ids.
            purpose: the purpose whose requests are measured, since weights belong to a purpose; needed where the judged
                requests have several.

        Raises:
            InputError: no request is judged, or the judged ones have several purposes and none is given.
        """
        qrels = qrels[qrels["relevance"] > 0]
        contracts = run.table("contracts").select(["request_id", "purpose"]).to_pandas()
        judged = contracts[contracts["request_id"].isin(set(qrels["query_id"]))]
        purposes = sorted(judged["purpose"].unique())
        if not purposes:
            raise InputError.described("judgements of requests of the run", "none", f"{run.run_id}.qrels")
        if purpose is None and len(purposes) > 1:
            raise InputError.described("one purpose", f"{len(purposes)} ({', '.join(purposes)})", "purpose")
        if purpose not in (None, *purposes):
            raise InputError.one_of(purposes, str(purpose), "purpose")
        queries = sorted(judged[judged["purpose"] == (purpose or purposes[0])]["request_id"])
        terms = FrozenTerms.of(
            frozen(run, "score_terms"), frozen(run, "rerank_weights"), documents_of(run, documents), qrels, queries
        )
        return cls(run.run_id, purpose or purposes[0], terms, tuple(measures))

    @property
    def requests(self) -> int:
        """The number of requests measured."""
        return len(self.terms.queries)

    @cached_property
    def weights(self) -> dict[str, float]:
        """The run's weights, averaged over requests, of the terms that differ between the candidates of at least one request."""
        in_force, varying = self.terms.in_force(), self.terms.varying()
        return {term: in_force[term] for term in varying}

    def order(self, weights: Weights | None = None) -> pd.DataFrame:
        """The documents of every request, best first, under `weights`; by default, as in the run: query_id, doc_id,
        relevance and place."""
        if not weights:
            return self._as_run
        if unknown := sorted(set(weights) - set(self.terms.weighed)):
            raise InputError.one_of(self.terms.weighed, unknown[0], "weights")
        return self.terms.order(weights)

    def values(self, weights: Weights | None = None) -> pd.DataFrame:
        """The measures of every request under `weights`; by default, for the ranking of the run."""
        return self.terms.values(self.measures, self.order(weights)) if weights else self._values_as_run

    def figures(self, weights: Weights) -> pd.DataFrame:
        """One row per measure: the means as run and changed; their difference with its 95 % confidence interval and the p
        value of a paired t-test; and how many requests gain, lose and stay."""
        before, after = self.values(), self.values(weights)
        deltas = after - before
        p, low, high = paired_t(deltas.to_numpy())
        figures = {
            AS_RUN: before.mean(), CHANGED: after.mean(), "difference": deltas.mean(), "low": low, "high": high, "p": p,
            "gain": (deltas > 0).sum(), "lose": (deltas < 0).sum(), "stay": (deltas == 0).sum(),
        }  # fmt: skip
        return pd.DataFrame(figures).rename_axis("measure")

    def deltas(self, weights: Weights, measure: str | None = None) -> pd.DataFrame:
        """One row per request, the largest change first: the measure as run and changed, the delta, and the rank of the first
        relevant document as run and changed (0: none was recalled)."""
        measure = measure or self.measures[0]
        before, after = self.values()[measure], self.values(weights)[measure]
        found = pd.DataFrame(
            {
                AS_RUN: before, CHANGED: after, "delta": after - before,
                "place as run": self.terms.first_relevant(self._as_run),
                "place changed": self.terms.first_relevant(self.order(weights)),
            }
        ).rename_axis("request_id")  # fmt: skip
        return found.iloc[np.lexsort((found.index.to_numpy(), -found["delta"].abs().to_numpy()))]

    def sweep(self, terms: Sequence[str] | None = None, steps: int = 11) -> pd.DataFrame:
        """One row per term and weight, `steps` weights from 0 to 1 with the other terms as run: term, weight, and the mean
        of each measure."""
        tried = [(term, weight) for term in terms or self.weights for weight in np.linspace(0.0, 1.0, steps).round(6)]
        means = pd.DataFrame([self.values({term: weight}).mean() for term, weight in tried])
        return pd.concat([pd.DataFrame(tried, columns=pd.Index(["term", "weight"])), means], axis=1)

    def save(self, path: str | Path, weights: Weights) -> Path:
        """Write the weights of the purpose as a weight file, with the figures measured under them.

        Raises:
            InputError: there is no term of that name.
        """
        figures = self.figures(weights)
        provenance = {
            "command": "Reweighing.save", "data": [{"run": self.run_id, "requests": self.requests}],
            "figures": [
                {"measure": m, AS_RUN: round(float(row[AS_RUN]), 4), CHANGED: round(float(row[CHANGED]), 4)}
                for m, row in figures.iterrows()
            ],
            "note": "chosen by hand on these requests: measure on other requests before you rely on the figures",
        }  # fmt: skip
        path = Path(path)
        kept = {term: float(value) for term, value in weights.items()}
        path.write_text(weight_file_text({self.purpose: kept}, provenance), encoding="utf-8")
        return path

    @cached_property
    def _as_run(self) -> pd.DataFrame:
        return self.terms.order()

    @cached_property
    def _values_as_run(self) -> pd.DataFrame:
        return self.terms.values(self.measures, self._as_run)


def documents_of(run: Run, documents: str | Mapping[str, str]) -> Mapping[str, str]:
    """The document id of each evidence id that a run ranked; `documents` as for `Reweighing.of`.

    Raises:
        InputError: `documents` is neither a mapping nor `evidence_id` or `path`.
    """
    if not isinstance(documents, str):
        return documents
    if documents == "path":
        rows = run.table("decisions", texts=True).select(["evidence_id", "path"]).to_pandas()
        return dict(zip(rows["evidence_id"], rows["path"].fillna(""), strict=True))
    if documents != "evidence_id":
        raise InputError.one_of(("evidence_id", "path"), documents, "documents")
    ids = run.table("score_terms")["evidence_id"].unique().to_pylist()
    return dict(zip(ids, ids, strict=True))
