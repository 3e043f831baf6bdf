"""The tables of an evaluation run as rankings, one collection at a time.

Reads a finished run. Gives the ranking of every system for the queries of a collection, and the cost of its blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError
from ...nodes.score_terms import terms_of_plugins
from ...nodes.tables import BLOCKS, HITS, RANKED, RERANK_WEIGHTS, TRIMMED
from ...nodes.tables import SCORE_TERMS as SCORES
from ...nodes.task_aware_reranking import ranked
from ...nodes.vocabulary import SCORE_TERMS
from ..runs import Run
from .metrics import GOLD_PER_1000, gold_per_1000
from .rankings import BLOCK, FULL, FUSED, block_ranking, full_ranking, fused_ranking, lane_rankings
from .report import DOCUMENTS, TOKENS

EACH = "each"
"""Instead of a term: every term with a weight, one at a time."""


def terms_named(names: Sequence[str], rerank_weights: pa.Table) -> tuple[str, ...]:
    """The score terms that `--without` names, in the order of the vocabulary.

    Raises:
        InputError: a name is not a score term.
    """
    of_plugins = terms_of_plugins(rerank_weights.column_names)
    expect_without_terms(names, of_plugins)
    terms = (*SCORE_TERMS, *of_plugins)
    weighing = {term for term in terms if (pc.max(rerank_weights[term]).as_py() or 0) > 0}
    return tuple(term for term in terms if term in names or (EACH in names and term in weighing))


def expect_without_terms(names: Iterable[str], of_plugins: Iterable[str] = ()) -> None:
    """Refuse names that are not score terms."""
    known = (*SCORE_TERMS, *of_plugins, EACH)
    for name in names:
        if name not in known:
            raise InputError.one_of(known, name, "--without")


def ranked_without(term: str, score_terms: pa.Table, rerank_weights: pa.Table) -> pa.Table:
    """RANKED with the weight of one score term set to 0."""
    at = rerank_weights.schema.get_field_index(term)
    nothing = pa.array([0.0] * rerank_weights.num_rows, pa.float64())
    return ranked(score_terms, rerank_weights.set_column(at, rerank_weights.schema.field(at), nothing))


WITHOUT = "without {term}"
"""The name of the line without a score term, as a system."""


@dataclass(frozen=True)
class Measured:
    """The tables of a run, read once for all its collections."""

    hits: pa.Table
    orders: dict[str, pa.Table]
    """RANKED per system: the line as it ran, and without each of some terms."""
    trimmed: pa.Table
    blocks: pa.Table

    @classmethod
    def of(cls, run: Run, without: Sequence[str] = ()) -> Measured:
        """The tables of a run, and the order without each of the named score terms."""
        hits, ranked, trimmed, blocks = (run.table(table.name) for table in (HITS, RANKED, TRIMMED, BLOCKS))
        orders = {FULL: ranked}
        if without:
            terms, weights = (frozen(run, table.name) for table in (SCORES, RERANK_WEIGHTS))
            orders |= {WITHOUT.format(term=t): ranked_without(t, terms, weights) for t in terms_named(without, weights)}
        return cls(hits, orders, trimmed, blocks)

    def rankings(self, documents: pd.Series, lanes: Sequence[str], queries: Sequence[str]) -> dict[str, pd.DataFrame]:
        """Ranking per system: the lanes, their fusion, and the line; `documents` by evidence id."""
        hits = self.hits_of(queries)
        rankings = {lane: ranking for lane, ranking in lane_rankings(hits, documents).items() if lane in lanes}
        rankings[FUSED] = fused_ranking(hits, documents, tuple(lanes))
        return rankings | {name: full_ranking(_of(table, queries), documents) for name, table in self.orders.items()}

    def hits_of(self, queries: Sequence[str]) -> pa.Table:
        """The hits of the lanes for these queries, under the budget of rankings."""
        return _of(self.hits, queries)

    def block(self, documents: pd.Series, queries: Sequence[str], system: str) -> pd.DataFrame:
        """The documents shown in the blocks of a budget."""
        return block_ranking(self.trimmed, documents, {under(query, system): query for query in queries})

    def block_figures(
        self, qrels: pd.DataFrame, shown: pd.DataFrame, queries: Sequence[str], system: str
    ) -> dict[str, float]:
        """For the blocks of a budget: relevant documents per 1,000 tokens, mean documents and mean tokens."""
        tokens = pc.sum(_of(self.blocks, [under(query, system) for query in queries])["tokens"]).as_py() or 0
        count = max(len(queries), 1)
        return {
            GOLD_PER_1000: gold_per_1000(qrels, shown, tokens),
            DOCUMENTS: shown["query_id"].isin(set(queries)).sum() / count,
            TOKENS: tokens / count,
        }


def under(request_id: str, system: str) -> str:
    """The request of a query under the budget of a system."""
    return request_id if system == FULL else f"{request_id}@{system}"


def frozen(run: Run, name: str) -> pa.Table:
    """A table of a run for the requests of rankings, without the requests under a budget of blocks."""
    table = run.table(name)
    return table.filter(pc.invert(pc.match_substring_regex(table["request_id"], f"@{BLOCK}(@[0-9]+)?$")))


def _of(table: pa.Table, requests: Sequence[str]) -> pa.Table:
    return table.filter(pc.is_in(table["request_id"], pa.array(requests, pa.string())))
