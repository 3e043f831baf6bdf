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
from ..frames import PostingIndex
from .bm25 import Bm25
from .group_scores import Groups, of_groups
from .lane_recall import entries_of
from .pair_scores import Pairs, weighed_texts
from .posting_recall import Asked, Entries
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
    weighed: Sequence[Asked],
    tables: RecallTables,
    placements: pa.Table,
    postings: PostingIndex,
    bm25: Bm25,
) -> TurnScores:
    """The scores of pairs of request and row; rows that are not turns have 0.

    Args:
        pairs: of request and row.
        weighed: the weights of terms in the lexical lane.
        tables: the inputs every lane reads.
        placements: the frame's placements.
        postings: the frame's index.
        bm25: the scoring of a posting.
    """
    scores = TurnScores(*np.zeros((4, len(pairs.row))))
    for scope in tables.scope_groups("lexical") if weighed else ():
        if (groups := sessions(scope)) is None:
            continue
        own = np.isin(pairs.request, scope.request).nonzero()[0]
        local = scope.local(pairs.row[own])
        turns = groups.of[local] >= 0
        own, local = own[turns], local[turns]
        asked = pairs.at(own)
        adjacent = beside(scope, placements, asked.request, local, groups.of, REACH, timed=True)
        in_scope = [one for one in weighed if one.scope.group == scope.group]
        scores.context[own], scores.answer[own] = _around(scope, asked, local, adjacent, in_scope)
        of_session = _of_sessions(scope, groups, asked, local, entries_of(scope, postings, ("text",)), bm25)
        scores.session[own], scores.session_reach[own] = of_session
    return scores


def _of_sessions(
    scope: ScopeGroup, groups: Groups, pairs: Pairs, local: Int, entries: Entries, bm25: Bm25
) -> tuple[Float, Float]:
    """The best BM25 of each turn's session over the sub-queries of its request, and the maximum possible for each; 0 where
    a request sees fewer than two sessions.
    """
    best, reach = np.zeros(len(local)), np.zeros(len(local))
    if groups.count < 2:
        return best, reach
    starts = pairs.starts(scope.tables.contracts.num_rows).tolist()
    for part in of_groups(scope, groups, entries, bm25):
        for number, request in enumerate(scope.request[part.asked.subs].tolist() if part.groups > 1 else ()):
            own = slice(starts[request], starts[request + 1])
            score = part.asked.score(number, groups.of[local[own]])
            best[own] = np.maximum(best[own], score)
            reach[own] = np.maximum(reach[own], part.reach[number])
    return best, reach


def _asks(evidence: pa.Table, row: Int) -> Bool:
    """Which rows are questions; -1 is not."""
    asks = np.zeros(len(row), dtype=bool)
    there = (row >= 0).nonzero()[0]
    rows, at = distinct_numbers(row[there])
    asks[there] = np.asarray(pc.match_substring_regex(gathered(evidence["text"], rows), _QUESTION))[at]
    return asks


def _around(
    scope: ScopeGroup, pairs: Pairs, local: Int, adjacent: Int, weighed: Sequence[Asked]
) -> tuple[Float, Float]:
    """The amount that adjacent turns add to the best BM25 of each turn, and the best BM25 of the question before it.

    `adjacent` are positions in `scope.rows` as `local`, -1 for none.
    """
    there = adjacent >= 0
    best = np.zeros((3, len(local)))
    if not there.any():
        return best[0], best[1]
    near = np.array(NEAR)[:, None]
    asks = _asks(scope.tables.evidence, np.where(there[_BEFORE], scope.rows[adjacent[_BEFORE]], -1))
    size = _WHOLE + (near * there).sum(axis=0)
    long = _WHOLE * scope.length[local] + (near * np.where(there, scope.length[adjacent], 0)).sum(axis=0)
    for asked, number, own in weighed_texts(pairs, weighed):
        key, turn, around = asked.key[asked.own(number)], local[own], adjacent[:, own]
        alone = asked.keys.times(key, turn)
        nearby = asked.keys.times(key, around.reshape(-1)).reshape(-1, *around.shape)
        together = (_WHOLE * alone + (near * nearby).sum(axis=1)) / _WHOLE
        question = np.where(asks[own], nearby[:, _BEFORE], 0)
        score = (
            asked.sum_of(number, alone, scope.length[turn]),
            asked.sum_of(number, together, long[own], size[own]),
            asked.sum_of(number, question, scope.length[around[_BEFORE]]),
        )
        best[:, own] = np.maximum(best[:, own], score)
    return np.where(there.any(axis=0), best[1] - best[0], 0.0), best[2]
