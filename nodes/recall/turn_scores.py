"""Scores of a turn from its conversation: BM25 of the adjacent turns, of a preceding question, of its session.

Reads pairs of request and turn, the adjacent turns, the term weights computed by recall, and the posting index.

Note: every neighbor is a row of A(r), found under the request's own clock (`turns`). The weights contain the document
frequencies of A(r); a turn and its neighbors are scored as one row in which a neighbor's terms count by `NEAR`, so that
a turn without such terms can match as an answer to the turn before it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import distinct_numbers, gathered
from ..frames import PostingIndex
from .bm25 import Bm25
from .group_scores import Groups, of_groups
from .lane_recall import entries_of
from .pair_scores import Pairs, weighed_texts
from .posting_recall import scores_of
from .recall_entries import TermWeights
from .recall_scope import Bool, Float, Int, RecallTables, ScopeGroup
from .turns import beside, sessions

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


class TurnScores(NamedTuple):
    """One value per pair."""

    context: Float
    """BM25 with the adjacent turns minus BM25 alone."""
    answer: Float
    """BM25 of the preceding turn, if that is a question."""
    session: Float
    """BM25 of its session among the sessions of A(r); 0 where there are fewer than two."""
    session_reach: Float
    """The maximum score of a session for the terms."""


def turn_scores(
    pairs: Pairs,
    weights: TermWeights,
    tables: RecallTables,
    placements: pa.Table,
    postings: PostingIndex,
    bm25: Bm25,
) -> TurnScores:
    """The scores of pairs of request and row; rows that are not turns have 0.

    Args:
        pairs: of request and row.
        weights: the weight of each term of a sub-query in A(r).
        tables: the inputs every lane reads.
        placements: the frame's placements.
        postings: the frame's index.
        bm25: the scoring of a posting.
    """
    scores = TurnScores(*np.zeros((4, len(pairs.row))))
    for scope in tables.scope_groups("lexical") if len(weights.sub) else ():
        if (groups := sessions(scope)) is None:
            continue
        own = np.isin(pairs.request, scope.request).nonzero()[0]
        local = scope.local(pairs.row[own])
        turns = groups.of[local] >= 0
        own, local = own[turns], local[turns]
        asked = pairs.at(own)
        found = beside(scope, placements, asked.request, local, groups.of, REACH, timed=True)
        adjacent = np.where(found >= 0, scope.rows[found], -1)
        scores.context[own], scores.answer[own] = _around(asked, adjacent, weights, tables, postings, bm25)
        scores.session[own], scores.session_reach[own] = _of_sessions(scope, groups, asked, local, postings, bm25)
    return scores


def _of_sessions(
    scope: ScopeGroup, groups: Groups, pairs: Pairs, local: Int, postings: PostingIndex, bm25: Bm25
) -> tuple[Float, Float]:
    """The best BM25 of each turn's session over the sub-queries of its request, and the maximum possible for each; 0 where
    a request sees fewer than two sessions.
    """
    best, reach = np.zeros(len(local)), np.zeros(len(local))
    if groups.count < 2:
        return best, reach
    starts = pairs.starts(scope.tables.contracts.num_rows)
    asking = replace(scope, sub=scope.sub[np.diff(starts)[scope.request] > 0])
    for part in of_groups(asking, groups, postings, entries_of(asking, ("text",)), bm25):
        for number, request in enumerate(asking.request[part.asked.subs].tolist() if part.groups > 1 else ()):
            own = slice(*starts[request : request + 2].tolist())
            score = scores_of(part.keys, part.asked, number)[groups.of[local[own]]]
            best[own], reach[own] = np.maximum(best[own], score), np.maximum(reach[own], part.reach[number])
    return best, reach


def _asks(evidence: pa.Table, row: Int) -> Bool:
    """Which rows are questions; -1 is not."""
    asks = np.zeros(len(row), dtype=bool)
    there = (row >= 0).nonzero()[0]
    rows, at = distinct_numbers(row[there])
    asks[there] = np.asarray(pc.match_substring_regex(gathered(evidence["text"], rows), _QUESTION))[at]
    return asks


def _around(
    pairs: Pairs,
    adjacent: Int,
    weights: TermWeights,
    tables: RecallTables,
    postings: PostingIndex,
    bm25: Bm25,
) -> tuple[Float, Float]:
    """The amount that adjacent turns add to the best BM25 of each turn, and the best BM25 of the question before it."""
    there, asks = adjacent >= 0, _asks(tables.evidence, adjacent[_BEFORE])
    best = np.zeros((3, len(pairs.row)))
    if not there.any():
        return best[0], best[1]
    length, near = tables.row_index.length, np.array(NEAR)[:, None]
    size = _WHOLE + (near * there).sum(axis=0)
    long = _WHOLE * length[pairs.row] + (near * np.where(there, length[adjacent], 0)).sum(axis=0)
    for own, terms in weighed_texts(pairs, weights, tables, postings, adjacent[there]):
        row, around = pairs.row[own], adjacent[:, own]
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
