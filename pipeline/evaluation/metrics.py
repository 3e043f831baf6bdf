"""Rankings, TREC run files and metrics by their `ir_measures` names."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from ...nodes.errors import InputError

DEFAULT_METRICS = ("nDCG@10", "R@5", "R@10", "R@20", "RR@10")


def measure(qrels: pd.DataFrame, run: pd.DataFrame, metrics: Sequence[str] = DEFAULT_METRICS) -> dict[str, float]:
    """The mean of each metric over the queries of `qrels`; see `per_query`."""
    return {str(name): float(value) for name, value in per_query(qrels, run, metrics).mean().items()}


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
    """The measures of `ir_measures` with these names.

    Raises:
        InputError: there is no such measure, or the package is missing.
    """
    registry, found = package("ir_measures", "eval").measures.registry, {}
    for name in names:
        try:
            found[name] = _parsed(name, registry)
        except (AssertionError, KeyError, TypeError, ValueError, SyntaxError) as error:
            expected = "a measure by its ir_measures name, e.g. nDCG@10 or R@100"
            raise InputError.expected(expected, name, "--metric") from error
    return found


def _parsed(name: str, registry: Mapping[str, Any]) -> Any:
    """The measure of a name such as `nDCG@10` or `Judged(rel=2)@5`.

    `ir_measures.parse_measure` (0.4.3) fails under Python 3.14: it reads classes of `ast` that were removed.
    """
    node, values = ast.parse(name, mode="eval").body, {}
    cutoff = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) else None
    node = node.left if cutoff is not None and isinstance(node, ast.BinOp) else node
    if isinstance(node, ast.Call) and not node.args:
        values = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
        node = node.func
    if not isinstance(node, ast.Name):
        raise ValueError(name)
    measure = registry[node.id]
    if cutoff is not None:
        values[measure.AT_PARAM] = ast.literal_eval(cutoff)
    if not values.get(measure.AT_PARAM, 1) > 0:  # it would end the process in pytrec_eval
        raise ValueError(name)
    made = measure(**values)
    made.validate_params()
    return made


def write_trec_run(path: Path, run: pd.DataFrame, tag: str) -> None:
    """`query_id Q0 doc_id rank score tag`, best first; ranks start at 1. Scores strictly decrease to keep the order."""
    rows = run.sort_values(["query_id", "score", "doc_id"], ascending=[True, False, True], kind="stable")
    rank = rows.groupby("query_id").cumcount() + 1
    lines = (
        f"{query} Q0 {str(doc).replace(' ', '%20')} {r} {score:.10g} {tag}\n"
        for query, doc, r, score in zip(rows["query_id"], rows["doc_id"], rank, rows["score"], strict=True)
    )
    path.write_text("".join(lines), encoding="utf-8")


def package(name: str, at: str) -> Any:
    """A package of the extra `eval`.

    Raises:
        InputError: it is missing.
    """
    try:
        return import_module(name)
    except ImportError as error:
        hint = 'pip install "scoped-retrieval[eval]"'
        raise InputError(f"Expected the package {name.partition('.')[0]}, got none - at {at}", hint=hint) from error
