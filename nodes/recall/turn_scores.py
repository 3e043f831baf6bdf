"""Scores of a turn from its conversation: BM25 of the adjacent turns, of a preceding question, of its session.

Reads pairs of request and turn, the adjacent turns, the term weights computed by recall, and the posting index.

Note: every neighbor is a row of A(r), found under the request's own clock (`turns`). The weights contain the document
frequencies of A(r); a turn and its neighbors are scored as one row in which a neighbor's terms count by `NEAR`, so that
a turn without such terms can match as an answer to the turn before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import distinct_numbers, gathered
from ..columns.numbers import quantise
from ..columns.ragged import slabs, spread, starts_of
from ..frames import PostingIndex
from .bm25 import Bm25
from .group_scores import pair_group_scores
from .lane_recall import FieldTerms
from .pair_scores import Pairs, of_distinct_texts, postings_of
from .posting_recall import capped, shares
from .recall_entries import TermWeights
from .recall_scope import PAIRS, Bool, Float, Int, RecallTables
from .turns import sessions_of, turn_groups, turns_beside

REACH = 2
"""The number of turns on each side that are scored with a turn."""
NEAR = (1, 2, 2, 1)
"""The weight, in quarters, of an occurrence in the turns at -2, -1, 1 and 2, and of their length: half for each step
away."""
_WHOLE = 4
_BEFORE = REACH - 1
"""The line of the preceding turn among the adjacent ones."""
_QUESTION = "[?\u00bf\uff1f\u061f\u037e]"
"""Question marks of Latin, Chinese, Arabic and Greek script."""


class PairTurnScores(NamedTuple):
    """One value per pair."""

    context: Float
    """BM25 with the adjacent turns minus BM25 alone."""
    answer: Float
    """BM25 of the preceding turn, if that is a question."""
    session: Float
    """BM25 of its session among the sessions of A(r); 0 where there are fewer than two."""
    session_reach: Float
    """The maximum score of a session for the terms."""


def scores_of_rows(
    pairs: Pairs,
    weights: Sequence[TermWeights],
    query_terms: pa.Table,
    tables: RecallTables,
    placements: pa.Table,
    postings: PostingIndex,
    bm25: Bm25,
) -> PairTurnScores:
    """The scores of pairs of request and row; rows that are not turns have 0, and cost nothing."""
    session = sessions_of(tables.evidence)
    turns = (session[pairs.row] >= 0).nonzero()[0] if session is not None and weights else pairs.row[:0]
    if not len(turns):
        return PairTurnScores(*np.zeros((4, len(pairs.row))))
    own = Pairs(pairs.request[turns], pairs.row[turns])
    terms = FieldTerms.of(tables, query_terms, ("text",))
    found = turn_scores(own, TermWeights.concat(weights), terms, tables, placements, postings, bm25)
    scores = np.zeros((len(found), len(pairs.row)))
    scores[:, turns] = found
    return PairTurnScores(*scores)


def turn_scores(
    pairs: Pairs,
    weights: TermWeights,
    terms: FieldTerms,
    tables: RecallTables,
    placements: pa.Table,
    postings: PostingIndex,
    bm25: Bm25,
) -> PairTurnScores:
    """The scores of pairs of request and turn.

    Args:
        pairs: rows that are turns.
        weights: the weight of each term of a sub-query in A(r).
        terms: the text terms of the sub-queries.
        tables: the inputs every lane reads.
        placements: the frame's placements.
        postings: the frame's index.
        bm25: the scoring of a posting.
    """
    beside = turns_beside(tables, placements, pairs.request, pairs.row, REACH)
    asks = _asks(tables.evidence, beside[_BEFORE])
    context, answer = _around(pairs, beside, asks, weights, tables, postings, bm25)
    session, reach = pair_group_scores(tables, "lexical", turn_groups, terms, pairs, postings, bm25, least=2)
    return PairTurnScores(context, answer, session, reach)


def _asks(evidence: pa.Table, row: Int) -> Bool:
    """Which rows are questions; -1 is not."""
    asks = np.zeros(len(row), dtype=bool)
    there = (row >= 0).nonzero()[0]
    rows, at = distinct_numbers(row[there])
    asks[there] = np.asarray(pc.match_substring_regex(gathered(evidence["text"], rows), _QUESTION))[at]
    return asks


def _around(
    pairs: Pairs,
    beside: Int,
    asks: Bool,
    weights: TermWeights,
    tables: RecallTables,
    postings: PostingIndex,
    bm25: Bm25,
) -> tuple[Float, Float]:
    """The amount that adjacent turns add to the best BM25 of each turn, and the best BM25 of the question before it."""
    none = np.zeros(len(pairs.row))
    there = beside >= 0
    if not there.any() or not len(weights.sub):
        return none, none
    weights = of_distinct_texts(weights, tables)
    cells = _Cells.of(np.concatenate([pairs.row[None], beside]), pairs.request, tables)
    code, frequency = postings_of(weights.keys, cells.rows, postings)
    subs, sub = distinct_numbers(weights.sub)
    request = tables.sub_request[subs]
    starts = pairs.starts(tables.contracts.num_rows)
    counts = np.diff(starts)[request]
    lines = starts_of(counts)
    alone, within, before = (np.zeros(lines[-1]) for _ in range(3))
    most = shares(sub, len(subs))
    held, total = tables.statistics
    mean = np.divide(total, held, out=np.zeros(len(held)), where=held > 0)
    length = tables.row_index.length
    near = np.array(NEAR)[:, None]
    long = _WHOLE * length[pairs.row] + (near * np.where(there, length[beside], 0)).sum(axis=0)
    size = _WHOLE + (near * there).sum(axis=0)
    of_cells = np.diff(cells.starts)[request]
    for low, high in slabs((of_cells + (1 + len(NEAR)) * counts)[sub], PAIRS):
        own = sub[low:high]
        of, cell = spread(cells.starts[request[own]], of_cells[own])
        wanted = weights.key[low:high][of] * len(cells.rows) + cells.row[cell]
        found = np.minimum(code.searchsorted(wanted), max(len(code) - 1, 0))
        hit = code[found] == wanted if len(code) else np.zeros(len(wanted), dtype=bool)
        times = np.append(np.where(hit, frequency[found], 0) if len(code) else np.zeros(len(wanted), dtype=int), 0)
        of, pair = spread(starts[request[own]], counts[own])
        shift = starts_of(of_cells[own])[:-1] - cells.starts[request[own]]
        at = cells.place[:, pair]
        window_counts = times[np.where(at >= 0, at + shift[of], -1)]
        together = _WHOLE * window_counts[0] + (near * window_counts[1:]).sum(axis=0)
        line = lines[own[of]] + pair - starts[request[own]][of]
        average = mean[request[own]][of]
        previous = np.where(asks[pair], window_counts[1 + _BEFORE], 0)
        for sums, often, words, mean_of in (
            (alone, window_counts[0], length[pairs.row[pair]], average),
            (within, together / _WHOLE, long[pair], average * size[pair]),
            (before, previous, length[beside[_BEFORE, pair]], average),
        ):
            some = often.nonzero()[0]
            part = weights.weight[low:high][of[some]] * bm25.saturation(often[some], words[some], mean_of[some])
            part = quantise(capped(part, own, most, of[some]))
            sums += np.bincount(line[some], weights=part, minlength=len(sums))
    _, pair = spread(starts[request], counts)
    best = []
    for sums in (alone, within, before):
        best.append(none.copy())
        np.maximum.at(best[-1], pair, sums)
    return np.where(there.any(axis=0), best[1] - best[0], 0.0), best[2]


class _Cells(NamedTuple):
    """The distinct pairs of request and row among turns and their neighbors, by request."""

    starts: Int
    """The start of each request's pairs, and the end of the last one's."""
    row: Int
    """Position in `rows`."""
    rows: Int
    """Distinct frame rows, ascending."""
    place: Int
    """The cell of each turn and of each turn adjacent to it: int64[1 + beside, turns], -1 for none."""

    @classmethod
    def of(cls, row: Int, request: Int, tables: RecallTables) -> _Cells:
        width = len(tables.row_index.id_rank)
        there = row >= 0
        rows, position = distinct_numbers(row[there])
        used, cell = np.unique(np.broadcast_to(request, row.shape)[there] * width + rows[position], return_inverse=True)
        of_request, at = np.divmod(used, width)
        place = np.full(row.shape, -1, dtype=np.int64)
        place[there] = cell.reshape(-1)
        starts = of_request.searchsorted(np.arange(tables.contracts.num_rows + 1))
        return cls(starts, rows.searchsorted(at), rows, place)
