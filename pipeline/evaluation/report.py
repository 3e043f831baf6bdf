"""The figures of an evaluation: means per collection, significant differences, and the underlying values.

Collections of one kind (documents, conversations, code) are pooled query by query, so a large one counts for more; the
means of each collection are shown as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from .metrics import DEFAULT_METRICS, GOLD_PER_1000
from .rankings import FULL
from .significance import compared

DOCUMENTS, TOKENS = "documents shown", "tokens"
"""Measures of blocks: the mean number of documents shown, and of tokens."""
POOLED = "all {kind}"


@dataclass
class CollectionScores:
    """The figures of one collection."""

    collection: str
    kind: str
    """documents, conversations or code."""
    queries: int
    rows: int
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    """system -> measure -> mean."""
    values: list[pd.DataFrame] = field(default_factory=list)
    """Per system: query_id, system, metric, value."""
    gold: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The outcome of every judged document; see `rankings.gold_table`."""

    def add(self, system: str, values: pd.DataFrame) -> None:
        """Add the values of a system: a row per query, a column per measure."""
        self.metrics[system] = {str(name): float(value) for name, value in values.mean().items()}
        long = values.reset_index().melt(id_vars="query_id", var_name="metric", value_name="value")
        self.values.append(long.assign(system=system)[["query_id", "system", "metric", "value"]])


@dataclass
class Evaluation:
    """One run over one or more collections, and the figures of each."""

    run_id: str
    seconds_index: float
    seconds_run: float
    statuses: dict[str, int]
    scores: list[CollectionScores] = field(default_factory=list)
    measures: tuple[str, ...] = DEFAULT_METRICS
    """The requested measures of rankings."""
    against: str = FULL
    """The system to compare with."""

    def records(self) -> list[dict[str, Any]]:
        """One record per collection, system and measure, and per pool of a kind, for `data/results`.

        Measures of rankings have `low` and `high`, the ends of the mean's 95 % interval, and systems other than
        `against` have `difference` with its interval, `p` and `p_holm`; see `significance.compared`. A pool is the
        collection `all code`.
        """
        found = []
        for one in self.scores:
            tested = {name: _tested(one.values, name, self.against) for name in self.measures}
            head = {"collection": one.collection, "kind": one.kind}
            tail = {"queries": one.queries, "rows": one.rows, "run_id": self.run_id}
            for system, values in one.metrics.items():
                for metric, value in values.items():
                    row = dict(tested[metric].get(system, {})) if metric in tested else {}
                    row.pop("mean", None)
                    found.append({**head, "system": system, "metric": metric, "value": round(value, 4), **tail, **row})
        for kind, values in self._kinds():
            rows = sum(one.rows for one in self.scores if one.kind == kind)
            for metric in self.measures:
                queries = values.loc[values["metric"] == metric, "query_id"].nunique()
                for system, row in _tested([values], metric, self.against).items():
                    found.append(
                        {"collection": POOLED.format(kind=kind), "kind": kind, "system": system, "metric": metric,
                         "value": row.pop("mean"), "queries": queries, "rows": rows, "run_id": self.run_id, **row}
                    )  # fmt: skip
        for kind, rates in self._gold_rates():
            of_kind = [one for one in self.scores if one.kind == kind]
            tail = {"queries": sum(one.queries for one in of_kind), "rows": sum(one.rows for one in of_kind)}
            found += [
                {"collection": POOLED.format(kind=kind), "kind": kind, "system": system, "metric": GOLD_PER_1000,
                 "value": round(rate, 4), **tail, "run_id": self.run_id}
                for system, rate in rates.items()
            ]  # fmt: skip
        return found

    def comparison(self, metric: str) -> pd.DataFrame:
        """Systems by collection for one measure, for printing; `GOLD_PER_1000` by kind as well."""
        means = {one.collection: {s: v.get(metric) for s, v in one.metrics.items()} for one in self.scores}
        if metric == GOLD_PER_1000:
            means |= {POOLED.format(kind=kind): rates for kind, rates in self._gold_rates()}
        return pd.DataFrame(means)

    def pooled(self, metric: str) -> dict[str, pd.DataFrame]:
        """Per kind, `significance.compared` over the queries of all its collections, for the systems common to all."""
        return {kind: compared(_wide(values, metric), self.against) for kind, values in self._kinds()}

    def per_query(self) -> pd.DataFrame:
        """Every value behind the means: collection, kind, query_id, system, metric, value."""
        return _together(self.scores, [pd.concat(one.values) for one in self.scores])

    def gold(self) -> pd.DataFrame:
        """The outcome of every judged document: collection, kind and the columns of `rankings.gold_table`."""
        return _together(self.scores, [one.gold for one in self.scores])

    def write(self, folder: Path, *, csv: bool) -> list[Path]:
        """Writes `per-query` and `gold` as Parquet or CSV, and returns the files."""
        written = []
        for name, frame in (("per-query", self.per_query()), ("gold", self.gold())):
            path = folder / f"{name}.{'csv' if csv else 'parquet'}"
            frame.to_csv(path, index=False) if csv else frame.to_parquet(path, index=False)
            written.append(path)
        return written

    def _gold_rates(self) -> Iterator[tuple[str, dict[str, float]]]:
        """Per system and kind with several collections: relevant documents per 1,000 tokens over all its blocks."""
        for kind in dict.fromkeys(one.kind for one in self.scores):
            of_kind = [one for one in self.scores if one.kind == kind]
            systems = [s for s in of_kind[0].metrics if all(TOKENS in one.metrics.get(s, {}) for one in of_kind)]
            if len(of_kind) > 1 and systems:
                tokens = {s: [one.metrics[s][TOKENS] * one.queries for one in of_kind] for s in systems}
                gold = {
                    s: sum(one.metrics[s][GOLD_PER_1000] * n for one, n in zip(of_kind, tokens[s], strict=True))
                    for s in systems
                }
                yield kind, {s: gold[s] / sum(tokens[s]) if sum(tokens[s]) else 0.0 for s in systems}

    def _kinds(self) -> Iterator[tuple[str, pd.DataFrame]]:
        for kind in dict.fromkeys(one.kind for one in self.scores):
            of_kind = [pd.concat(one.values) for one in self.scores if one.kind == kind]
            yield kind, pd.concat(of_kind)


def _together(scores: list[CollectionScores], frames: list[pd.DataFrame]) -> pd.DataFrame:
    named = []
    for one, frame in zip(scores, frames, strict=True):
        frame = frame.copy()
        frame.insert(0, "collection", one.collection)
        frame.insert(1, "kind", one.kind)
        named.append(frame)
    return pd.concat(named, ignore_index=True)


def _wide(values: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A row per query and a column per system that has a value for every query, in the order of the systems."""
    of_metric = values[values["metric"] == metric]
    wide = of_metric.pivot(index="query_id", columns="system", values="value")
    return wide[list(dict.fromkeys(of_metric["system"]))].dropna(axis="columns")


def _tested(values: list[pd.DataFrame], metric: str, against: str) -> dict[str, dict[str, Any]]:
    """Per system, the result of `compared`, rounded; None in place of NaN."""
    table = compared(_wide(pd.concat(values), metric), against)
    return {
        str(system): {
            str(name): _plain(float(value), 6 if str(name) in ("p", "p_holm") else 4) for name, value in row.items()
        }
        for system, row in table.to_dict("index").items()
    }


def _plain(value: float, digits: int) -> float | None:
    return None if value != value else round(value, digits)
