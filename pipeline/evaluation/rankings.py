"""Rankings read from a run's own tables: each single lane, their fusion, the full line and the block.

A ranking is a frame query_id, doc_id, score with one row per document: the best of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..runs import Run

FUSED = "rrf"
FULL = "full"
BLOCK = "block"
GOLD, DOCUMENTS, TOKENS, LINES = "gold shown", "documents shown", "tokens", "line shown"
"""Measures of blocks: relevant documents shown, all documents shown, tokens, and whether a judged line is shown."""


@dataclass(frozen=True)
class Measured:
    """The tables of a run, read once for all its collections."""

    hits: pa.Table
    ranked: pa.Table
    trimmed: pa.Table
    blocks: pa.Table

    @classmethod
    def of(cls, run: Run) -> Measured:
        """The tables of a run."""
        return cls(*(run.table(name, texts=name == "trimmed") for name in ("hits", "ranked", "trimmed", "blocks")))

    def rankings(self, documents: pd.Series, lanes: Sequence[str], queries: Sequence[str]) -> dict[str, pd.DataFrame]:
        """Ranking per system: the lanes by the best score of a row, their fusion, and the line; `documents` by evidence id."""
        hits = _of(self.hits, queries).select(["request_id", "lane", "evidence_id", "score", "withheld"]).to_pandas()
        of_lanes = hits[~hits["withheld"]].groupby("lane")
        rankings = {str(lane): _documents(rows, documents) for lane, rows in of_lanes if lane in lanes}
        fused = fused_ranking(list(rankings.values()))
        return {**rankings, FUSED: fused, FULL: full_ranking(_of(self.ranked, queries), documents)}

    def block(self, documents: pd.Series, queries: Sequence[str], system: str) -> pd.DataFrame:
        """The documents shown in the blocks of a budget, in the order of their items and within an item in document order;
        an item may show rows of several documents, such as adjacent turns.
        """
        asked = {under(query, system): query for query in queries}
        frame = _of(self.trimmed, list(asked)).select(["request_id", "merged_rows", "position"]).to_pandas()
        frame = frame.explode("merged_rows").sort_values(["request_id", "position"], kind="stable")
        place = frame.groupby("request_id").cumcount().to_numpy(dtype=np.float64) + 1.0
        frame = frame.assign(request_id=frame["request_id"].map(asked), evidence_id=frame["merged_rows"])
        return _documents(frame.assign(score=1.0 / place), documents)

    def block_figures(
        self, qrels: pd.DataFrame, shown: pd.DataFrame, queries: Sequence[str], system: str
    ) -> pd.DataFrame:
        """The measures of the blocks of a budget that are no measures of rankings: a row per query."""
        asked = {under(query, system): query for query in queries}
        blocks = _of(self.blocks, list(asked)).select(["request_id", "tokens"]).to_pandas()
        gold = shown.merge(qrels, on=["query_id", "doc_id"])
        figures = {
            GOLD: gold.groupby("query_id").size(),
            DOCUMENTS: shown.groupby("query_id").size(),
            TOKENS: blocks["tokens"].groupby(blocks["request_id"].map(asked)).sum(),
        }
        return pd.DataFrame(figures, index=pd.Index(queries, name="query_id")).fillna(0.0).astype(float)

    def lines_shown(
        self, gold: pd.DataFrame, documents: pd.Series, queries: Sequence[str], system: str
    ) -> pd.DataFrame:
        """For each query with judged lines whether a block of a budget shows one of them, in its place and whole."""
        asked = {under(query, system): query for query in queries}
        columns = ["request_id", "evidence_id", "line_start", "line_end", "visible_text"]
        items = _of(self.trimmed, list(asked)).select(columns).to_pandas()
        items = items.assign(query_id=items["request_id"].map(asked), doc_id=items["evidence_id"].map(documents))
        pairs = items.merge(gold, on=["query_id", "doc_id"])
        inside = (pairs["line_start"] <= pairs["line"]) & (pairs["line"] <= pairs["line_end"])
        seen = [text in visible for text, visible in zip(pairs["text"], pairs["visible_text"], strict=True)]
        shown = set(pairs.loc[inside & pd.Series(seen, index=pairs.index, dtype=bool), "query_id"])
        judged = pd.Index(sorted(set(gold["query_id"]) & set(queries)), name="query_id")
        return pd.DataFrame({LINES: [float(query in shown) for query in judged]}, index=judged)


def under(request_id: str, system: str) -> str:
    """The request of a query under the budget of a system."""
    return request_id if system == FULL else f"{request_id}@{system}"


def frozen(run: Run, name: str) -> pa.Table:
    """A table of a run for the requests of rankings, without the requests under a budget of blocks."""
    table = run.table(name)
    return table.filter(pc.invert(pc.match_substring_regex(table["request_id"], f"@{BLOCK}(@[0-9]+)?$")))


def _of(table: pa.Table, requests: Sequence[str]) -> pa.Table:
    return table.filter(pc.is_in(table["request_id"], pa.array(requests, pa.string())))


def fused_ranking(rankings: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Reciprocal rank fusion of rankings (Cormack et al. 2009), k = 60."""
    if not rankings:
        return pd.DataFrame({"query_id": [], "doc_id": [], "score": []})
    parts = []
    for ranking in rankings:
        ranking = ranking.sort_values(["query_id", "score", "doc_id"], ascending=[True, False, True], kind="stable")
        rank = ranking.groupby("query_id").cumcount() + 1
        parts.append(ranking.assign(score=1.0 / (60 + rank)))
    return pd.concat(parts).groupby(["query_id", "doc_id"], as_index=False)["score"].sum()


def full_ranking(ranked: pa.Table, documents: pd.Series) -> pd.DataFrame:
    """The full line's order of rows, a document at its best row."""
    frame = ranked.select(["request_id", "evidence_id", "rank"]).to_pandas()
    return _documents(frame.assign(score=1.0 / frame["rank"].astype(np.float64)), documents)


def _documents(rows: pd.DataFrame, documents: pd.Series) -> pd.DataFrame:
    rows = rows.assign(doc_id=rows["evidence_id"].map(documents), query_id=rows["request_id"])
    best = rows.groupby(["query_id", "doc_id"], as_index=False)["score"].max()
    return best.assign(query_id=best["query_id"].astype(str), doc_id=best["doc_id"].astype(str))
