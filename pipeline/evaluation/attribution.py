"""Which lane found what was judged relevant, and which of it one lane alone found.

Reads the hits, the ranking and the block of a run. Gives a row per judged document (`gold_table`) and shares per lane.
A document counts as recalled by a lane that recalled any of its rows at any rank; rows out of scope do not count.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

RECALLED, ALONE = "gold recalled", "gold, alone"
"""Measures of a lane: shares of the judged documents that it recalled, and that no other lane recalled."""
ANY = "any lane"


def gold_table(
    qrels: pd.DataFrame, hits: pa.Table, documents: pd.Series, ranking: pd.DataFrame, block: pd.DataFrame
) -> pd.DataFrame:
    """The judged documents: query_id, doc_id, relevance, a column of ranks per lane, lanes, alone, rank, shown.

    A rank is null where the lane, or the line, has no row of the document. `lanes` are the names with a space between,
    `alone` is the one lane of those that have no other.

    Args:
        qrels: query_id, doc_id, relevance.
        hits: HITS.
        documents: document per evidence_id.
        ranking: the order of the full line.
        block: what the block shows.
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
    """Per lane, and for any of them, the share of the judged documents that it recalled, and that it alone recalled."""
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
