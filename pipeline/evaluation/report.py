"""The figures of an evaluation: means per collection, significant differences, and the underlying values.

Collections of one kind (documents, conversations, code) are pooled query by query, so a large one counts for more; the
means of each collection are shown as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..storage.places import Place
from .rankings import DOCUMENTS, FULL, GOLD, LINES, TOKENS
from .significance import compared

GOLD_PER_1000 = "gold/1k tokens"
"""Measure of blocks: relevant documents shown per 1,000 tokens of all blocks."""
POOLED = "all {kind}"


@dataclass(frozen=True)
class Evaluation:
    """One run over one or more collections, and the figures of each."""

    run_id: str
    corpus: Place
    """The corpus that the run asked."""
    seconds_index: float
    seconds_run: float
    statuses: dict[str, int]
    measures: tuple[str, ...]
    """The requested measures of rankings."""
    values: pd.DataFrame
    """Every value behind the means: collection, kind, query_id, system, metric, value."""
    rows: dict[str, int]
    """Collection -> its rows in the corpus."""

    def means(self, metric: str) -> pd.DataFrame:
        """Systems by collection for one measure, and by kind where several collections are of one."""
        return pd.DataFrame({name: _mean(values, metric) for name, _, values in self._groups()})

    def compared(self, metric: str) -> dict[str, pd.DataFrame]:
        """Per kind, `significance.compared` over the queries of all its collections, for the systems common to all."""
        return {
            str(kind): compared(_wide(values, metric), FULL) for kind, values in self.values.groupby("kind", sort=False)
        }

    def records(self) -> list[dict[str, Any]]:
        """One record per collection or pool, system and measure, for `data/results`.

        Measures of rankings have `low` and `high`, the ends of the mean's 95 % interval, and systems other than
        `full` have `difference` with its interval, `p` and `p_holm`; see `significance.compared`. A pool is the
        collection `all code`.
        """
        found = []
        for name, kind, values in self._groups():
            tail = {
                "queries": values["query_id"].nunique(),
                "rows": sum(self.rows[one] for one in values["collection"].unique()),
                "run_id": self.run_id,
            }
            for metric in (*self.measures, GOLD_PER_1000, DOCUMENTS, TOKENS, LINES):
                tested = {}
                if metric in self.measures:
                    tested = compared(_wide(values, metric), FULL).to_dict("index")
                for system, value in _mean(values, metric).items():
                    row = {key: one for key, one in tested.get(system, {}).items() if key != "mean"}
                    plain = {key: None if one != one else round(one, 6) for key, one in row.items()}
                    head = {"collection": name, "kind": kind, "system": system, "metric": metric}
                    found.append({**head, "value": round(value, 4), **tail, **plain})
        return found

    def _groups(self) -> Iterator[tuple[str, str, pd.DataFrame]]:
        """Name, kind and values of every collection, and of every kind with several."""
        for (name, kind), values in self.values.groupby(["collection", "kind"], sort=False):
            yield str(name), str(kind), values
        for kind, values in self.values.groupby("kind", sort=False):
            if values["collection"].nunique() > 1:
                yield POOLED.format(kind=kind), str(kind), values


def _mean(values: pd.DataFrame, metric: str) -> dict[str, float]:
    """A measure per system, of those that have it."""
    if metric == GOLD_PER_1000:
        shown, tokens = (_totals(values, name) for name in (GOLD, TOKENS))
        return {system: 1000 * shown[system] / total if total else 0.0 for system, total in tokens.items()}
    return {str(s): float(of["value"].mean()) for s, of in _of(values, metric).groupby("system", sort=False)}


def _of(values: pd.DataFrame, metric: str) -> pd.DataFrame:
    return values[values["metric"] == metric]


def _totals(values: pd.DataFrame, metric: str) -> dict[str, float]:
    return {str(system): float(of["value"].sum()) for system, of in _of(values, metric).groupby("system", sort=False)}


def _wide(values: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A row per query and a column per system that has a value for every query, in the order of the systems."""
    of_metric = _of(values, metric)
    wide = of_metric.pivot(index="query_id", columns="system", values="value")
    return wide[list(of_metric["system"].unique())].dropna(axis="columns")
