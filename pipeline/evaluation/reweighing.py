"""The requests of a run ranked again under other weights, from its frozen score terms: measures, deltas, changed ranks.

Reads: a run, judgements of its requests. Gives: `Reweighing`. No lane runs and no corpus is opened. `save` writes the chosen
weights as a weight file (`ask --weights FILE`).

Note: only the ranking is computed again, and the measures of that ranking. To see which block
other weights would give, use `what-if`, which also packs and trims again; both rank the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...nodes.errors import InputError
from ..config.policies.weight_files import weight_file_text
from ..runs import Run
from .frozen_terms import FrozenTerms
from .measuring import frozen
from .significance import paired_interval, paired_p

__all__ = ["Reweighing", "documents_of"]

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
            documents: what `doc_id` holds, `evidence_id` or `path`; or a mapping from evidence ids to document ids.
            purpose: the purpose whose requests are measured, since weights belong to a purpose; needed where the judged
                requests have several.

        Raises:
            InputError: no request is judged, or the judged ones have several purposes and none is named.
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
        """How many requests are measured."""
        return len(self.terms.queries)

    @cached_property
    def weights(self) -> dict[str, float]:
        """The run's weights, averaged over requests, of the terms that differ between the candidates of at least one request."""
        return {term: round(float(self.terms.weights[term].mean()), 6) for term in self._adjustable}

    def values(self, measure: str, weights: Weights | None = None) -> pd.Series:
        """The measure of every request under `weights`; without them, of the ranking of the run."""
        given = dict(weights or {})
        if unknown := sorted(set(given) - set(self.terms.weighed)):
            raise InputError.one_of(self.terms.weighed, unknown[0], "weights")
        return pd.Series(self.terms.values(measure, given or None), index=list(self.terms.queries), name=measure)

    def figures(self, weights: Weights) -> pd.DataFrame:
        """One row per measure: the means as run and changed; their difference with its 95 % confidence interval and the p
        value of a paired t-test; and how many requests gain, lose and stay."""
        found = []
        for measure in self.measures:
            before, after = self._as_run[measure], self.values(measure, weights)
            delta = (after - before).to_numpy()
            low, high = paired_interval(delta)
            found.append(
                {
                    "measure": measure, AS_RUN: before.mean(), CHANGED: after.mean(), "difference": delta.mean(),
                    "low": low, "high": high, "p": float(paired_p(delta[:, None])[0]), "gain": int((delta > 0).sum()),
                    "lose": int((delta < 0).sum()), "stay": int((delta == 0).sum()),
                }
            )  # fmt: skip
        return pd.DataFrame(found).set_index("measure")

    def deltas(self, weights: Weights, measure: str | None = None) -> pd.DataFrame:
        """One row per request, the largest change first: the measure as run and changed, the delta, and the rank of the first
        relevant document as run and changed (0: none was recalled)."""
        measure = measure or self.measures[0]
        before, after = self._as_run[measure], self.values(measure, weights)
        found = pd.DataFrame(
            {
                AS_RUN: before, CHANGED: after, "delta": after - before,
                "place as run": self._places, "place changed": self.terms.first_relevant(weights),
            }
        ).rename_axis("request_id")  # fmt: skip
        order = np.lexsort((found.index.to_numpy(), -found["delta"].abs().to_numpy()))
        return found.iloc[order]

    def sweep(self, terms: Sequence[str] | None = None, steps: int = 11) -> pd.DataFrame:
        """One row per term and weight, `steps` weights from 0 to 1 with the other terms as run: term, weight, and the mean
        of each measure."""
        return pd.DataFrame(
            [
                {"term": t, "weight": w, **{m: self.values(m, {t: w}).mean() for m in self.measures}}
                for t in terms or self._adjustable
                for w in np.linspace(0.0, 1.0, steps).round(6)
            ]
        )

    def save(self, path: str | Path, weights: Weights) -> Path:
        """Write the weights of the purpose as a weight file, with the figures measured under them.

        Raises:
            InputError: a term has no such name.
        """
        figures = self.figures(weights)
        said = {
            "command": "Reweighing.save", "data": [{"run": self.run_id, "requests": self.requests}],
            "figures": [
                {"measure": m, AS_RUN: round(float(row[AS_RUN]), 4), CHANGED: round(float(row[CHANGED]), 4)}
                for m, row in figures.iterrows()
            ],
            "note": "chosen by hand on these requests: measure on other requests before you rely on the figures",
        }  # fmt: skip
        path = Path(path)
        kept = {term: float(value) for term, value in weights.items()}
        path.write_text(weight_file_text({self.purpose: kept}, said), encoding="utf-8")
        return path

    def sliders(self) -> Any:
        """A `Sliders`: one slider per term in a notebook; where widgets cannot be shown, the same figures as HTML."""
        from .sliders import Sliders

        return Sliders(self)

    @cached_property
    def _adjustable(self) -> tuple[str, ...]:
        varying = set(self.terms.varying())
        return tuple(term for term in self.terms.weighed if term in varying)

    @cached_property
    def _as_run(self) -> dict[str, pd.Series]:
        return {measure: self.values(measure) for measure in self.measures}

    @cached_property
    def _places(self) -> np.ndarray:
        return self.terms.first_relevant()


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
