"""`eval`: measure labeled collections per system, from one run of their queries.

Systems: every single lane, their reciprocal rank fusion, the full line, and the block that a model receives. They are read
from the run's own tables, so the figures describe what a user of the run would have seen. A ranking is a frame query_id,
doc_id, score with one row per document: the best of its rows.

Collections of one kind (documents, conversations, code) are pooled query by query, so a large one counts for more; the
means of each collection are shown as well.

Note: a ranking does not determine the block. Lanes and rankings are measured under a budget that is deep enough for
them, so each query runs once more under every budget for which the block is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .asking import FULL, Asking, JudgedRun, ask
from .collections import Collection
from .metrics import DEFAULT_METRICS, TESTED, figures, groups, measures_named, per_query, write_trec_run

FUSED = "rrf"
GOLD, DOCUMENTS, TOKENS, LINES = "gold shown", "documents shown", "tokens", "line shown"
"""Measures of blocks: relevant documents shown, all documents shown, tokens, and whether a judged line is shown."""
GOLD_PER_1000 = "gold/1k tokens"
"""Measure of blocks: relevant documents shown per 1,000 tokens of all blocks."""
OF_BLOCKS = (GOLD_PER_1000, DOCUMENTS, TOKENS, LINES)


@dataclass(frozen=True)
class Evaluation:
    """One run over one or more collections, and the figures of each."""

    asked: JudgedRun
    values: pd.DataFrame
    """Every value behind the means: collection, kind, query_id, system, metric, value."""
    figures: pd.DataFrame
    """`metrics.figures`, against `full`, with the number of rows; measures of blocks are not tested."""

    def means(self, metric: str) -> pd.DataFrame:
        """Systems by collection for one measure, and by kind where several collections are of one."""
        of_metric = self.figures[self.figures["metric"] == metric]
        return of_metric.set_index(["system", "collection"])["value"].unstack(sort=False)

    def compared(self, metric: str) -> dict[str, pd.DataFrame]:
        """Per kind the systems that rank every query of all its collections, compared with `full`."""
        found = {}
        for kind, rows in self.figures[self.figures["metric"] == metric].groupby("kind", sort=False):
            pool = rows[rows["collection"] == rows["collection"].iloc[-1]].set_index("system")
            found[str(kind)] = pool[["value", *TESTED]].dropna(subset="difference").rename(columns={"value": "mean"})
        return found

    def records(self) -> list[dict[str, Any]]:
        """The figures for `data/results`, rounded; null where a measure is not tested."""
        rounded = self.figures.assign(value=self.figures["value"].round(4), run_id=self.asked.run.run_id)
        rounded[[*TESTED]] = rounded[[*TESTED]].round(6)
        plain = rounded.astype(object).where(rounded.notna(), None).to_dict("records")
        return [{str(key): value for key, value in row.items()} for row in plain]


def evaluate(
    collections: Sequence[Collection],
    how: Asking,
    *,
    metrics: Sequence[str] = DEFAULT_METRICS,
    blocks: Sequence[int] = (),
) -> Evaluation:
    """Index, run and measure collections; corpus, run, and a TREC run file per collection and system go to `how.work`.

    Args:
        blocks: budgets in tokens for which the block is measured, besides that of the purpose.

    Raises:
        InputError: two collections have one name, a measure is unknown, or a package is missing.
    """
    measures_named(metrics)
    asked = ask(collections, how, blocks)
    how.progress("measuring")
    values = _values(asked, metrics, how.work / "trec")
    values.to_parquet(how.work / "per-query.parquet", index=False)
    found = figures(values, FULL, metrics)
    gold, tokens = (found[found["metric"] == name].set_index(["collection", "system"]) for name in (GOLD, TOKENS))
    rate = gold.assign(metric=GOLD_PER_1000, value=(1000 * gold["value"] / tokens["value"]).fillna(0.0))
    found = pd.concat([found[found["metric"] != GOLD], rate.reset_index()], ignore_index=True)
    rows = {name: sum(len(asked.documents[one]) for one in of["collection"].unique()) for name, of in groups(values)}
    found = found.assign(rows=found["collection"].map(rows))
    return Evaluation(asked, values, found)


def _values(asked: JudgedRun, metrics: Sequence[str], trec: Path) -> pd.DataFrame:
    """Every system measured on every query; its rankings are written to the folder `trec`."""
    of = {query: name for name, queries in asked.queries.items() for query in queries}
    qrels = pd.concat([one.qrels for one in asked.collections])
    qrels = qrels[qrels["query_id"].isin(of)]
    lines = pd.concat([one.gold_lines() for one in asked.collections])
    lanes, found = {lane.name for lane in asked.lanes}, []
    for system, ranking in _rankings(asked):
        figures = per_query(qrels, ranking, metrics)
        if system in asked.budgets and system != FULL:
            figures = figures.join(_of_blocks(asked, system, qrels, ranking, lines))
        long = figures.reset_index().melt(id_vars="query_id", var_name="metric").dropna(subset="value")
        long = long.assign(system=system, collection=long["query_id"].map(of))
        ranked = ranking["query_id"].map(of)
        for collection in asked.collections:
            if system in lanes and not (ranked == collection.name).any():
                continue  # a lane that is not for such rows
            (trec / collection.name).mkdir(parents=True, exist_ok=True)
            write_trec_run(trec / collection.name / f"{system}.run", ranking[ranked == collection.name], system)
            found.append(long[long["collection"] == collection.name].assign(kind=collection.shape))
    order = {collection.name: number for number, collection in enumerate(asked.collections)}
    values = pd.concat(found).sort_values("collection", key=lambda names: names.map(order), kind="stable")
    return values[["collection", "kind", "query_id", "system", "metric", "value"]].reset_index(drop=True)


def _rankings(asked: JudgedRun) -> Iterator[tuple[str, pd.DataFrame]]:
    """Ranking per system: the lanes by the best score of a row, their fusion, the line, and the documents that blocks
    show or name, in the order of their items.
    """
    measured = [lane.name for lane in asked.lanes if lane.measured]
    hits = asked.table("hits", FULL, ["lane", "evidence_id", "score", "withheld"])
    of_lanes = hits[~hits["withheld"]].groupby("lane")
    lanes = {str(lane): _best(rows) for lane, rows in of_lanes if lane in measured}
    yield from lanes.items()
    yield FUSED, fused_ranking([*lanes.values()])
    ranked = asked.table("ranked", FULL, ["evidence_id", "rank"])
    yield FULL, _best(ranked.assign(score=1.0 / ranked["rank"].astype(np.float64)))
    for system in asked.budgets[1:]:
        shown = asked.table("trimmed", system, ["evidence_id", "position"])
        shown = shown.sort_values(["query_id", "position"], kind="stable")
        place = shown.groupby("query_id").cumcount().to_numpy(dtype=np.float64) + 1.0
        yield system, _best(shown.assign(score=1.0 / place))


def fused_ranking(rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Reciprocal rank fusion of rankings (Cormack et al. 2009), k = 60."""
    parts = [pd.DataFrame({"query_id": [], "doc_id": [], "score": []})]
    for ranking in rankings:
        ranking = ranking.sort_values(["query_id", "score", "doc_id"], ascending=[True, False, True], kind="stable")
        parts.append(ranking.assign(score=1.0 / (60 + ranking.groupby("query_id").cumcount() + 1)))
    return pd.concat(parts).groupby(["query_id", "doc_id"])["score"].sum().reset_index()


def _best(rows: pd.DataFrame) -> pd.DataFrame:
    """The best row of each document."""
    best = rows.groupby(["query_id", "doc_id"], as_index=False)["score"].max()
    return best.assign(query_id=best["query_id"].astype(str), doc_id=best["doc_id"].astype(str))


def _of_blocks(
    asked: JudgedRun, system: str, qrels: pd.DataFrame, shown: pd.DataFrame, lines: pd.DataFrame
) -> pd.DataFrame:
    """The measures of the blocks of a budget that are no measures of rankings: a row per query. A judged line counts where it
    is shown in its place and whole.
    """
    gold = shown.merge(qrels, on=["query_id", "doc_id"])
    queries = pd.Index(qrels["query_id"].unique(), name="query_id")
    figures = {
        GOLD: gold.groupby("query_id").size(),
        DOCUMENTS: shown.groupby("query_id").size(),
        TOKENS: asked.table("blocks", system, ["tokens"]).groupby("query_id")["tokens"].sum(),
    }
    found = pd.DataFrame(figures, index=queries).fillna(0.0).astype(float)
    items = asked.table("trimmed", system, ["evidence_id", "line_start", "line_end", "visible_text"])
    pairs = items.merge(lines, on=["query_id", "doc_id"])
    pairs = pairs[(pairs["line_start"] <= pairs["line"]) & (pairs["line"] <= pairs["line_end"])]
    seen = {query for query, text, visible in pairs[["query_id", "text", "visible_text"]].to_numpy() if text in visible}
    found[LINES] = pd.Series({query: float(query in seen) for query in lines["query_id"].unique()}, dtype=float)
    return found
