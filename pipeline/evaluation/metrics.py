"""Metrics by their `ir_measures` names, TREC run files, and whether a difference between systems is more than chance.

Paired t-tests, corrected for the number of systems (Holm 1979), and their intervals. The t-test and the
randomization test agree on retrieval data (Smucker et al. 2007); Wilcoxon's and the sign test do not.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...nodes.errors import InputError
from ..extras import package

INTERVAL = 0.95
"""The coverage of intervals of differences, those of the t-test."""

Float = NDArray[np.float64]
TESTED = ("difference", "low", "high", "p", "p_holm")
_MEASURE = re.compile(r"^(\w+)(?:\((.*)\))?(?:@(\d+))?$")
"""Name, parameters and cutoff."""
_GIVEN = re.compile(r"(\w+)=([^,]+)")
DEFAULT_METRICS = ("nDCG@10", "R@5", "R@10", "R@20", "RR@10")


def per_query(qrels: pd.DataFrame, run: pd.DataFrame, metrics: Sequence[str] = DEFAULT_METRICS) -> pd.DataFrame:
    """A row per query of `qrels`, by query_id, and a column per metric; a query without results counts as 0.

    Args:
        qrels: query_id, doc_id, relevance.
        run: query_id, doc_id, score; higher is better.

    Raises:
        InputError: a metric is unknown to `ir_measures`, or the package is missing.
    """
    parsed = measures_named(metrics)
    found = package("ir_measures", "eval").iter_calc(parsed.values(), qrels, run)
    values = {(one.query_id, one.measure): one.value for one in found}
    queries = pd.Index(sorted(qrels["query_id"].unique()), name="query_id")
    columns = {name: [float(values.get((query, one), 0.0)) for query in queries] for name, one in parsed.items()}
    return pd.DataFrame(columns, index=queries)


def measures_named(names: Sequence[str]) -> dict[str, Any]:
    """The measures of `ir_measures` with these names, such as `nDCG@10` or `Judged(rel=2)@5`.

    `ir_measures.parse_measure` (0.4.3) fails under Python 3.14: it reads classes of `ast` that were removed.

    Raises:
        InputError: there is no such measure, or the package is missing.
    """
    registry, found = package("ir_measures", "eval").measures.registry, {}
    for name in names:
        try:
            measure, given, cutoff = _MEASURE.findall(name)[0]
            values = {key: ast.literal_eval(value) for key, value in _GIVEN.findall(given)}
            values |= {registry[measure].AT_PARAM: int(cutoff)} if cutoff else {}
            if values.get(registry[measure].AT_PARAM, 1) < 1:  # it would end the process in pytrec_eval
                raise ValueError(name)
            found[name] = registry[measure](**values)
            found[name].validate_params()
        except (AssertionError, IndexError, KeyError, TypeError, ValueError, SyntaxError) as error:
            expected = "a measure by its ir_measures name, e.g. nDCG@10 or R@100"
            raise InputError.expected(expected, name, "--metric") from error
    return found


def write_trec_run(path: Path, run: pd.DataFrame, tag: str) -> None:
    """`query_id Q0 doc_id rank score tag`, best first; ranks start at 1. Scores strictly decrease to keep the order."""
    rows = run.sort_values(["query_id", "score", "doc_id"], ascending=[True, False, True], kind="stable")
    rows = rows.assign(q0="Q0", tag=tag, rank=rows.groupby("query_id").cumcount() + 1)
    rows["doc_id"] = rows["doc_id"].astype(str).str.replace(" ", "%20")
    columns = ["query_id", "q0", "doc_id", "rank", "score", "tag"]
    rows.to_csv(path, sep=" ", columns=columns, header=False, index=False, float_format="%.10g", quoting=csv.QUOTE_NONE)


def figures(values: pd.DataFrame, against: str, tested: Sequence[str]) -> pd.DataFrame:
    """A row per collection, and per kind with several (`all code`), measure and system: collection, kind, metric, system,
    queries, value (the mean) and, for `tested` measures, the columns of `compared`.

    Args:
        values: collection, kind, query_id, system, metric, value: one row per query, measure and system.
        against: the system that the others are compared with.
    """
    rows = []
    for name, of_group in groups(values):
        common = {"collection": name, "kind": of_group["kind"].iloc[0], "queries": of_group["query_id"].nunique()}
        for metric, of_metric in of_group.groupby("metric", sort=False):
            means = of_metric.groupby("system", sort=False)["value"].mean()
            wide = of_metric.pivot(index="query_id", columns="system", values="value")
            wide = wide[means.index].dropna(axis="columns")  # systems that have a value for every query
            found = compared(wide, against).T if metric in tested else {}
            rows += [
                {**common, "metric": metric, "system": system, "value": value, **dict(found.get(system, {}))}
                for system, value in means.items()
            ]
    return pd.DataFrame(rows)


def groups(values: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The values of every collection, then those of every kind with several."""
    pools = [(f"all {kind}", of) for kind, of in values.groupby("kind", sort=False) if of["collection"].nunique() > 1]
    return [*((str(name), of) for name, of in values.groupby("collection", sort=False)), *pools]


def compared(values: pd.DataFrame, against: str) -> pd.DataFrame:
    """One row per system, in the order of the columns: difference, low, high, p, p_holm.

    A difference is the system's mean minus that of `against`, `low` and `high` are the ends of its interval. p and its
    correction are NaN for `against` itself and where there are fewer than two queries; 1 where no query differs, and such a
    system is not counted in the correction.

    Args:
        values: a row per query, a column per system.
        against: the column that the others are compared with.
    """
    stats = package("scipy.stats", "eval")
    differences = values.sub(values[against], axis="index").to_numpy(dtype=np.float64)
    alike = (differences == 0).all(axis=0)
    p, low, high = np.full((3, len(alike)), np.nan)
    if len(differences) > 1:
        with np.errstate(all="ignore"), catch_warnings(action="ignore"):  # a column without variance
            result = stats.ttest_1samp(differences, 0.0)
        p, (low, high) = np.where(alike, 1.0, result.pvalue), result.confidence_interval(INTERVAL)
    p[values.columns.get_loc(against)] = np.nan
    corrected = np.where(alike, p, holm(np.where(alike, np.nan, p)))
    found = (differences.mean(axis=0), low, high, p, corrected)
    return pd.DataFrame(dict(zip(TESTED, found, strict=True)), index=values.columns)


def holm(p: Float) -> Float:
    """p adjusted step by step from the smallest (Holm 1979), in the same order; NaN is kept and not counted."""
    adjusted, known = p.copy(), np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1.0)
    return adjusted
