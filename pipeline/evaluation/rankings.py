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
        hits = _of(self.hits, queries, FULL, ["lane", "evidence_id", "score", "withheld"])
        of_lanes = hits[~hits["withheld"]].groupby("lane")
        rankings = {str(lane): _documents(rows, documents) for lane, rows in of_lanes if lane in lanes}
        fused = fused_ranking(list(rankings.values()))
        ranked = _of(self.ranked, queries, FULL, ["evidence_id", "rank"])
        full = _documents(ranked.assign(score=1.0 / ranked["rank"].astype(np.float64)), documents)
        return {**rankings, FUSED: fused, FULL: full}

    def block(self, documents: pd.Series, queries: Sequence[str], system: str) -> pd.DataFrame:
        """The documents shown in the blocks of a budget, in the order of their items and within an item in document order;
        an item may show rows of several documents, such as adjacent turns.
        """
        frame = _of(self.trimmed, queries, system, ["merged_rows", "position"]).explode("merged_rows")
        frame = frame.sort_values(["query_id", "position"], kind="stable")
        place = frame.groupby("query_id").cumcount().to_numpy(dtype=np.float64) + 1.0
        return _documents(frame.assign(evidence_id=frame["merged_rows"], score=1.0 / place), documents)

    def block_figures(
        self, qrels: pd.DataFrame, shown: pd.DataFrame, queries: Sequence[str], system: str
    ) -> pd.DataFrame:
        """The measures of the blocks of a budget that are no measures of rankings: a row per query."""
        blocks = _of(self.blocks, queries, system, ["tokens"])
        gold = shown.merge(qrels, on=["query_id", "doc_id"])
        figures = {
            GOLD: gold.groupby("query_id").size(),
            DOCUMENTS: shown.groupby("query_id").size(),
            TOKENS: blocks.groupby("query_id")["tokens"].sum(),
        }
        return pd.DataFrame(figures, index=pd.Index(queries, name="query_id")).fillna(0.0).astype(float)

    def lines_shown(
        self, gold: pd.DataFrame, documents: pd.Series, queries: Sequence[str], system: str
    ) -> pd.DataFrame:
        """For each query with judged lines whether a block of a budget shows one of them, in its place and whole."""
        items = _of(self.trimmed, queries, system, ["evidence_id", "line_start", "line_end", "visible_text"])
        pairs = items.assign(doc_id=items["evidence_id"].map(documents)).merge(gold, on=["query_id", "doc_id"])
        inside = (pairs["line_start"] <= pairs["line"]) & (pairs["line"] <= pairs["line_end"])
        seen = [text in visible for text, visible in zip(pairs["text"], pairs["visible_text"], strict=True)]
        shown = set(pairs.loc[inside & pd.Series(seen, index=pairs.index, dtype=bool), "query_id"])
        judged = pd.Index(sorted(set(gold["query_id"]) & set(queries)), name="query_id")
        return pd.DataFrame({LINES: [float(query in shown) for query in judged]}, index=judged)


def under(request_id: str, system: str) -> str:
    """The request of a query under the budget of a system."""
    return request_id if system == FULL else f"{request_id}@{system}"


def _of(table: pa.Table, queries: Sequence[str], system: str, columns: list[str]) -> pd.DataFrame:
    """Columns of the rows of queries under the budget of a system, with the query of each."""
    asked = {under(query, system): query for query in queries}
    rows = table.filter(pc.is_in(table["request_id"], pa.array(list(asked), pa.string())))
    frame = rows.select(["request_id", *columns]).to_pandas()
    return frame.assign(query_id=frame["request_id"].map(asked))


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


def _documents(rows: pd.DataFrame, documents: pd.Series) -> pd.DataFrame:
    rows = rows.assign(doc_id=rows["evidence_id"].map(documents))
    best = rows.groupby(["query_id", "doc_id"], as_index=False)["score"].max()
    return best.assign(query_id=best["query_id"].astype(str), doc_id=best["doc_id"].astype(str))
