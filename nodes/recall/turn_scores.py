"""Scores of a turn from its conversation: BM25 of the adjacent turns, of a preceding question, of its session.

Reads pairs of request and turn, the adjacent turns, the term weights computed by recall, and the posting index.

Note: every neighbor is a row of A(r), found under the request's own clock (`turns`). The weights contain the document
frequencies of A(r); a turn and its neighbors are scored as one row in which a neighbor's terms count by `NEAR`, so that
a turn without such terms can match as an answer to the turn before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import distinct_numbers, gathered
from ..frames import PostingIndex
from .bm25 import Bm25
from .group_scores import pair_group_scores
from .pair_scores import Pairs, weighed_texts
from .recall_entries import TermWeights
from .recall_scope import Bool, Float, Int, RecallTables
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
    weights: TermWeights,
    tables: RecallTables,
    placements: pa.Table,
    postings: PostingIndex,
    bm25: Bm25,
) -> PairTurnScores:
    """The scores of pairs of request and row; rows that are not turns have 0, and cost nothing."""
    session = sessions_of(tables.evidence)
    turns = (session[pairs.row] >= 0).nonzero()[0] if session is not None and len(weights.sub) else pairs.row[:0]
    if not len(turns):
        return PairTurnScores(*np.zeros((4, len(pairs.row))))
    own = Pairs(pairs.request[turns], pairs.row[turns])
    found = turn_scores(own, weights, tables, placements, postings, bm25)
    scores = np.zeros((len(found), len(pairs.row)))
    scores[:, turns] = found
    return PairTurnScores(*scores)


def turn_scores(
    pairs: Pairs,
    weights: TermWeights,
    tables: RecallTables,
    placements: pa.Table,
    postings: PostingIndex,
    bm25: Bm25,
) -> PairTurnScores:
    """The scores of pairs of request and turn.

    Args:
        pairs: rows that are turns.
        weights: the weight of each term of a sub-query in A(r).
        tables: the inputs every lane reads.
        placements: the frame's placements.
        postings: the frame's index.
        bm25: the scoring of a posting.
    """
    beside = turns_beside(tables, placements, pairs.request, pairs.row, REACH)
    asks = _asks(tables.evidence, beside[_BEFORE])
    context, answer = _around(pairs, beside, asks, weights, tables, postings, bm25)
    session, reach = pair_group_scores(tables, "lexical", turn_groups, pairs, postings, bm25, least=2)
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
    there = beside >= 0
    best = np.zeros((3, len(pairs.row)))
    if not there.any():
        return best[0], best[1]
    length, near = tables.row_index.length, np.array(NEAR)[:, None]
    size = _WHOLE + (near * there).sum(axis=0)
    long = _WHOLE * length[pairs.row] + (near * np.where(there, length[beside], 0)).sum(axis=0)
    for own, terms in weighed_texts(pairs, weights, tables, postings):
        row, around = pairs.row[own], beside[:, own]
        alone, nearby = terms.times(row), terms.times(around.reshape(-1)).reshape(-1, *around.shape)
        together = (_WHOLE * alone + (near * nearby).sum(axis=1)) / _WHOLE
        asked = np.where(asks[own], nearby[:, _BEFORE], 0)
        score = (
            terms.score(alone, bm25, length[row], terms.mean),
            terms.score(together, bm25, long[own], terms.mean * size[own]),
            terms.score(asked, bm25, length[around[_BEFORE]], terms.mean),
        )
        best[:, own] = np.maximum(best[:, own], score)
    return np.where(there.any(axis=0), best[1] - best[0], 0.0), best[2]
