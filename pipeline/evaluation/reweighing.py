"""The requests of a run ranked again under other weights, from its frozen score terms: measures, deltas, changed ranks.

Reads: a run, judgements of its requests. Gives: `Reweighing`. No lane runs and no corpus is opened. `save` writes the chosen
weights as a weight file (the setting `weights`).

Note: only the ranking and its measures are computed again. To see the block under other weights, use `what-if`, which
also packs and trims again; both rank the same way.

In a notebook, `Sliders` use ipywidgets (extra `notebook`), and every move measures again. Where no widget can be shown,
such as on a repository's web page, the figures are HTML.
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
from ..progress import counted
from ..requests.converters import weight as request_weight
from ..runs import Run
from .frozen_terms import FrozenTerms
from .rankings import frozen
from .significance import paired_t

__all__ = ["Reweighing", "Sliders", "documents_of"]

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

    def values(self, measure: str, weights: Weights | None = None) -> pd.Series:
        """The measure of every request under `weights`; by default, for the ranking of the run."""
        return self.terms.values(measure, self.order(weights)).rename(measure)

    def figures(self, weights: Weights) -> pd.DataFrame:
        """One row per measure: the means as run and changed; their difference with its 95 % confidence interval and the p
        value of a paired t-test; and how many requests gain, lose and stay."""
        found, order = [], self.order(weights)
        for measure in self.measures:
            before, after = self.values(measure), self.terms.values(measure, order)
            delta = (after - before).to_numpy()
            p, low, high = (float(value[0]) for value in paired_t(delta[:, None]))
            found.append(
                {
                    "measure": measure, AS_RUN: before.mean(), CHANGED: after.mean(), "difference": delta.mean(),
                    "low": low, "high": high, "p": p, "gain": int((delta > 0).sum()),
                    "lose": int((delta < 0).sum()), "stay": int((delta == 0).sum()),
                }
            )  # fmt: skip
        return pd.DataFrame(found).set_index("measure")

    def deltas(self, weights: Weights, measure: str | None = None) -> pd.DataFrame:
        """One row per request, the largest change first: the measure as run and changed, the delta, and the rank of the first
        relevant document as run and changed (0: none was recalled)."""
        measure = measure or self.measures[0]
        order = self.order(weights)
        before, after = self.values(measure), self.terms.values(measure, order)
        found = pd.DataFrame(
            {
                AS_RUN: before, CHANGED: after, "delta": after - before,
                "place as run": self.terms.first_relevant(self._as_run),
                "place changed": self.terms.first_relevant(order),
            }
        ).rename_axis("request_id")  # fmt: skip
        return found.iloc[np.lexsort((found.index.to_numpy(), -found["delta"].abs().to_numpy()))]

    def sweep(self, terms: Sequence[str] | None = None, steps: int = 11) -> pd.DataFrame:
        """One row per term and weight, `steps` weights from 0 to 1 with the other terms as run: term, weight, and the mean
        of each measure."""
        rows = []
        for term in terms or self.weights:
            for weight in np.linspace(0.0, 1.0, steps).round(6):
                order = self.order({term: weight})
                measured = {measure: self.terms.values(measure, order).mean() for measure in self.measures}
                rows.append({"term": term, "weight": weight, **measured})
        return pd.DataFrame(rows)

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

    def sliders(self) -> Any:
        """A `Sliders`: one slider per term in a notebook; if widgets cannot be shown, the same figures as HTML."""

        return Sliders(self)

    @cached_property
    def _as_run(self) -> pd.DataFrame:
        return self.terms.order()


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


LISTED = 8
_DIGITS = 6
"""The number of decimals of a weight."""
_WIDGET = "application/vnd.jupyter.widget-view+json"


class Sliders:
    """Adjustable weights. `weights` are the current ones, `figures` and `deltas` their effects."""

    def __init__(self, reweighing: Reweighing) -> None:
        self.reweighing = reweighing
        self.weights = dict(reweighing.weights)
        self.controls: dict[str, Any] = {}
        """An ipywidgets slider per term, once they were shown."""
        self._panel = self._shown = None
        self._measure()

    def move(self, **weights: float) -> Sliders:
        """Set weights by the names of their terms.

        Raises:
            InputError: there is no slider of that name, or the weight is not allowed in a request.
        """
        for term, value in weights.items():
            if term not in self.weights:
                raise InputError.one_of(tuple(self.weights), term, "weights")
            self.weights[term] = round(request_weight(value, f"weights.{term}"), _DIGITS)
        self._measure()
        return self

    def save(self, path: str | Path) -> Path:
        """Write the current weights as a weight file."""
        return self.reweighing.save(path, self.weights)

    def html(self) -> str:
        """The current figures, without sliders."""
        weights = pd.DataFrame([self.weights], index=["weight"])
        moved = self.deltas[self.deltas["delta"] != 0].head(LISTED)
        head = f"<p>{counted(self.reweighing.requests, 'request')}, purpose {self.reweighing.purpose}</p>"
        return head + "".join(table.round(4).to_html(border=0) for table in (weights, self.figures, moved))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": self.figures.round(4).to_string(), "text/html": self.html()}
        panel = self._widgets()
        shown = panel._repr_mimebundle_() if panel is not None else {}
        return {**bundle, _WIDGET: shown[_WIDGET]} if _WIDGET in shown else bundle

    def _measure(self) -> None:
        changed = {t: w for t, w in self.weights.items() if w != self.reweighing.weights[t]}
        self.figures = self.reweighing.figures(changed)
        self.deltas = self.reweighing.deltas(changed)
        if self._shown is not None:
            self._shown.value = self.html()

    def _widgets(self) -> Any:
        """The panel, created once; None without ipywidgets."""
        if self._panel is not None:
            return self._panel
        try:
            import ipywidgets
        except ImportError:
            return None
        self._shown = ipywidgets.HTML(self.html())
        for term, weight in self.weights.items():
            self.controls[term] = ipywidgets.FloatSlider(
                value=weight, min=0.0, max=max(1.0, weight), step=0.01, description=term, continuous_update=False,
                style={"description_width": "10em"},
            )  # fmt: skip
            self.controls[term].observe(lambda change, term=term: self.move(**{term: change["new"]}), names="value")
        self._panel = ipywidgets.VBox([*self.controls.values(), self._shown])
        return self._panel
