"""How well the requests of a run found judged documents: figures for its report.

Reads: a run, judgements of its requests. Gives: `quality_of`, measures of the ranking and of blocks, and the worst
requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ...nodes.errors import InputError
from ..runs import Run
from .metrics import per_query
from .rankings import block_ranking, full_ranking
from .reweighing import documents_of

__all__ = ["RunQuality", "quality_of"]

MEASURES = ("nDCG@10", "R@10", "RR@10")
SHOWN = "R@1000"


@dataclass(frozen=True)
class RunQuality:
    """Figures of the judged requests of a run."""

    ranking: pd.DataFrame
    """A row per request, a column per measure of the ranking."""
    shown: pd.Series
    """The share of relevant documents that the block of each request shows."""

    def means(self) -> list[tuple[str, float]]:
        """The mean of every measure, and of the share shown in blocks."""
        return [
            *((str(name), float(value)) for name, value in self.ranking.mean().items()),
            ("shown in the block", float(self.shown.mean())),
        ]

    def fifths(self) -> list[tuple[str, int]]:
        """The number of requests by nDCG@10: zero, and in fifths."""
        value = self.ranking["nDCG@10"]
        found = [("none", int((value == 0).sum()))]
        names = ("up to .2", "up to .4", "up to .6", "up to .8", "up to 1")
        return found + [
            (name, int(((value > low / 5) & (value <= (low + 1) / 5)).sum())) for low, name in enumerate(names)
        ]

    def worst(self) -> list[str]:
        """The judged requests, worst first."""
        frame = pd.DataFrame({"value": self.ranking["nDCG@10"], "shown": self.shown})
        return frame.rename_axis("request").reset_index().sort_values(["value", "shown", "request"])["request"].tolist()


def quality_of(
    run: Run, qrels: pd.DataFrame, documents: str | Mapping[str, str], requests: Sequence[str]
) -> RunQuality:
    """The figures of the judged ones among some requests.

    Args:
        qrels: query_id (the request), doc_id, relevance; rows with a relevance above 0 count.
        documents: the content of `doc_id`: `evidence_id`, `path`, or a document for each evidence id.

    Raises:
        InputError: none of the requests is judged.
    """
    judged = qrels[(qrels["relevance"] > 0) & qrels["query_id"].isin(set(requests))]
    if judged.empty:
        raise InputError.described("judgements of requests of the run", "none", f"{run.run_id}.qrels")
    of = pd.Series(documents_of(run, documents))
    asked = sorted(judged["query_id"].unique())
    ranking = per_query(judged, full_ranking(run.table("ranked"), of), MEASURES).reindex(asked).fillna(0.0)
    blocks = block_ranking(run.table("trimmed"), of, {request: request for request in asked})
    shown = per_query(judged, blocks, (SHOWN,)).reindex(asked).fillna(0.0)[SHOWN]
    return RunQuality(ranking, shown)
