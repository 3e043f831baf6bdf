"""Rankings read from a run's own tables: each single lane, their fusion, the full line, and the block.

A ranking is a frame query_id, doc_id, score with one row per document: the best of its rows.

A document counts as recalled by a lane that recalled any of its rows at any rank; rows out of scope do not count (`gold_table`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa

FUSED = "rrf"
FULL = "full"
BLOCK = "block"


def lane_rankings(hits: pa.Table, documents: pd.Series) -> dict[str, pd.DataFrame]:
    """Per lane, documents by their best score over sub-queries and rows; withheld rows do not count.

    Args:
        hits: HITS.
        documents: document per evidence_id.
    """
    frame = hits.select(["request_id", "lane", "evidence_id", "rank", "score", "withheld"]).to_pandas()
    frame = frame[~frame["withheld"]]
    return {str(lane): _documents(rows.assign(score=rows["score"]), documents) for lane, rows in frame.groupby("lane")}


def fused_ranking(hits: pa.Table, documents: pd.Series, lanes: tuple[str, ...], k: int = 60) -> pd.DataFrame:
    """Reciprocal rank fusion of whole-question lane rankings (Cormack et al. 2009), `k` = 60."""
    rankings = [ranking for lane, ranking in lane_rankings(hits, documents).items() if lane in lanes]
    if not rankings:
        return pd.DataFrame({"query_id": [], "doc_id": [], "score": []})
    parts = []
    for ranking in rankings:
        ranking = ranking.sort_values(["query_id", "score", "doc_id"], ascending=[True, False, True], kind="stable")
        rank = ranking.groupby("query_id").cumcount() + 1
        parts.append(ranking.assign(score=1.0 / (k + rank)))
    return pd.concat(parts).groupby(["query_id", "doc_id"], as_index=False)["score"].sum()


def full_ranking(ranked: pa.Table, documents: pd.Series) -> pd.DataFrame:
    """The full line's order of rows, a document at its best row."""
    frame = ranked.select(["request_id", "evidence_id", "rank"]).to_pandas()
    return _documents(frame.assign(score=1.0 / frame["rank"].astype(np.float64)), documents)


def block_ranking(trimmed: pa.Table, documents: pd.Series, asked: Mapping[str, str]) -> pd.DataFrame:
    """The documents that blocks show, in the order of their items and within an item in document order.

    Args:
        trimmed: TRIMMED; an item may show rows of several documents, such as adjacent turns.
        documents: document per evidence_id.
        asked: the query of each request.
    """
    frame = trimmed.select(["request_id", "merged_rows", "position"]).to_pandas()
    frame = frame[frame["request_id"].isin(set(asked))].explode("merged_rows", ignore_index=True)
    frame = frame.sort_values(["request_id", "position"], kind="stable")
    place = frame.groupby("request_id").cumcount().to_numpy(dtype=np.float64) + 1.0
    rows = frame.assign(request_id=frame["request_id"].map(asked), evidence_id=frame["merged_rows"], score=1.0 / place)
    return _documents(rows, documents)


def _documents(rows: pd.DataFrame, documents: pd.Series) -> pd.DataFrame:
    rows = rows.assign(doc_id=rows["evidence_id"].map(documents), query_id=rows["request_id"])
    best = rows.groupby(["query_id", "doc_id"], as_index=False)["score"].max()
    return best.assign(query_id=best["query_id"].astype(str), doc_id=best["doc_id"].astype(str))


RECALLED, ALONE = "gold recalled", "gold, alone"
"""Measures of a lane: the shares of judged documents that it recalled, and that only it recalled."""
ANY = "any lane"


def gold_table(
    qrels: pd.DataFrame, hits: pa.Table, documents: pd.Series, ranking: pd.DataFrame, block: pd.DataFrame
) -> pd.DataFrame:
    """The judged documents: query_id, doc_id, relevance, a column of ranks per lane, lanes, alone, rank, shown.

    A rank is null where the lane, or the line, has no row of the document. `lanes` are the names separated by spaces,
    `alone` is the lane if there is only one.

    Args:
        qrels: query_id, doc_id, relevance.
        hits: HITS.
        documents: document per evidence_id.
        ranking: the order of the full line.
        block: the documents that the block shows.
    """
    key = ["query_id", "doc_id"]
    found = hits.select(["request_id", "lane", "evidence_id", "rank", "withheld"]).to_pandas()
    found = found[~found["withheld"]]
    found = found.assign(query_id=found["request_id"], doc_id=found["evidence_id"].map(documents))
    ranks = found.pivot_table(index=key, columns="lane", values="rank", aggfunc="min")
    lanes = [str(lane) for lane in ranks.columns]
    gold = qrels[[*key, "relevance"]].merge(ranks.reset_index(), on=key, how="left")
    there = gold[lanes].notna()
    names = there.apply(lambda row: " ".join(lane for lane in lanes if row[lane]), axis=1) if len(gold) else ""
    order = ranking.sort_values(["query_id", "score", "doc_id"], ascending=[True, False, True], kind="stable")
    place = order.assign(rank=order.groupby("query_id").cumcount() + 1)[[*key, "rank"]]
    shown = block[key].drop_duplicates().assign(shown=True)
    gold = gold.assign(lanes=names, alone=pd.Series(names, index=gold.index).where(there.sum(axis=1) == 1))
    gold = gold.merge(place, on=key, how="left").merge(shown, on=key, how="left")
    whole = {name: gold[name].astype("Int32") for name in [*lanes, "rank"]}
    return gold.assign(**whole, shown=gold["shown"].notna())


def lane_shares(gold: pd.DataFrame, lanes: list[str]) -> dict[str, dict[str, float]]:
    """Per lane, and for any of them, the share of judged documents that it recalled, and that only it recalled."""
    if not len(gold):
        return {}
    shares = {
        lane: {
            RECALLED: float(gold[lane].notna().mean()) if lane in gold else 0.0,
            ALONE: float((gold["alone"] == lane).mean()),
        }
        for lane in lanes
    }
    return {**shares, ANY: {RECALLED: float((gold["lanes"] != "").mean()), ALONE: float(gold["alone"].notna().mean())}}
