"""Scores from posting lists, request by request, under the statistics of each one's A(r).

Reads a scope, the posting index and `Entries` (which sub-query looks up which key with which weight). Gives the cells
found. The lexical lane scores with BM25; the symbol and exact lanes with idf alone.

Note: document frequencies count admissible postings only, so a row that is withheld, foreign or filtered out does not
affect other rows; it is scored with their statistics and selected separately. A sum of scores is exact in any order, so
`compiled_recall`, which a batch is worth loading for, gives the same rows and scores bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import first_of_runs, gathered
from ..columns.numbers import EXACT_BELOW, quantise
from ..errors import SchemaError
from ..frames import Matches, PostingIndex, posting_keys
from ..kernels.compiled import kernels
from ..text.text_analysis import query_tokens
from .bm25 import Bm25
from .compiled_recall import recall_compiled
from .recall_entries import Entries, EntryScores, TermWeights, WantedRows, Weighed
from .recall_scope import Bool, Float, Int, ScopeGroup
from .recall_selection import VIA, Found, best_withheld, top

Asked = tuple[list[int], list[float], list[bool]]
"""The keys that a sub-query looks up, their weights, and which of them score admissible rows only."""


@dataclass(frozen=True)
class KeyRows:
    """The postings of some keys: those of key `k` are `starts[k]:starts[k + 1]` of the others."""

    starts: list[int]
    row: Int
    """Positions in the rows of the scope, ascending inside a key."""
    frequency: NDArray[np.int32]

    @classmethod
    def of(cls, scope: ScopeGroup, postings: PostingIndex, keys: Sequence[str]) -> KeyRows:
        """The postings of keys inside a scope."""
        found = _matches(scope, postings, keys)
        local = scope.local(found.rows)
        kept = local >= 0
        return cls(np.append(0, kept.cumsum())[found.starts].tolist(), local[kept], found.freqs[kept])

    def __getitem__(self, key: int) -> tuple[Int, NDArray[np.int32]]:
        own = slice(self.starts[key], self.starts[key + 1])
        return self.row[own], self.frequency[own]


class _Scored(NamedTuple):
    """What the look-ups of a sub-query give the rows of its scope."""

    score: Float
    matched: Bool
    direct: Bool
    """Rows that a look-up without `hop` matches."""
    weights: list[tuple[int, float]]
    """The keys that occur in an admissible row, with their weights."""


def recall_keys(scope: ScopeGroup, postings: PostingIndex, entries: Entries, bm25: Bm25 | None) -> Weighed:
    """The best rows per sub-query for its keys, the best withheld ones per request, and the weight of each key.

    Args:
        scope: the group.
        postings: the frame's index.
        entries: the look-ups.
        bm25: the scoring of a posting; None = by the term's idf, whatever its frequency.
    """
    if not len(entries.sub):
        return Weighed.concat([])
    ranked = bm25 if entries.hop is None else None
    loops = kernels(0) if ranked else None
    found = None if loops else KeyRows.of(scope, postings, entries.keys)
    if found and ranked:
        loops = kernels(int(np.diff(found.starts)[entries.key].sum()))
    if ranked and loops and (best := recall_compiled(loops.postings, scope, postings, entries, ranked)):
        return best
    found = found or KeyRows.of(scope, postings, entries.keys)
    shown, hidden, weights = list[Found](), list[tuple[Int, Int, Float]](), list[tuple[int, int, float]]()
    for subs, asked, open_ in profiles(scope, entries):
        scored = _scored(scope, found, asked, subs[0], open_, bm25)
        touched = scored.matched.nonzero()[0]
        visible = open_[touched]
        weights += [(int(scope.sub[subs[0]]), key, weight) for key, weight in scored.weights]
        allowed = scope.filtered(np.repeat(subs, len(touched)), np.tile(touched, len(subs)))
        for sub, passes in zip(subs, allowed.reshape(len(subs), -1), strict=True):
            shown.append(_shown(scope, sub, touched[visible & passes], scored))
            withheld = touched[~visible & passes & scored.direct[touched]]
            if len(withheld):
                hidden.append((np.full(len(withheld), sub), withheld, scored.score[withheld]))
    if hidden:
        sub, row, score = (np.concatenate(part) for part in zip(*hidden, strict=True))
        best = best_withheld(scope, sub, row, score)
        shown.append(Found.of(scope.sub[sub[best]], scope.rows[row[best]], score[best], withheld=True))
    of_sub, key, weight = zip(*weights, strict=True) if weights else ((), (), ())
    weighed = TermWeights(
        tuple(entries.keys), np.array(of_sub, np.int64), np.array(key, np.int64), np.array(weight, np.float64)
    )
    return Weighed(Found.concat(shown), (weighed,))


def score_rows(
    scope: ScopeGroup, postings: PostingIndex, entries: Entries, bm25: Bm25, rows: WantedRows
) -> EntryScores:
    """The scores of the given rows of each sub-query, and the maximum possible; these rows are admissible.

    Raises:
        SchemaError: a row is not in the scope.
    """
    if rows.row.min(initial=0) < 0:
        raise SchemaError(f"Expected rows of the scope, got another - at wanted row {int(rows.row.argmin())}")
    score, reach = np.zeros(len(rows.row)), np.zeros(len(scope.sub))
    found = KeyRows.of(scope, postings, entries.keys)
    for subs, asked, open_ in profiles(scope, entries):
        scored = _scored(scope, found, asked, subs[0], open_, bm25)
        for sub in subs:
            own = slice(*rows.starts[sub : sub + 2].tolist())
            score[own] = scored.score[rows.row[own]]
            reach[sub] = sum(weight for _, weight in scored.weights)
    return EntryScores(score, reach)


def _matches(scope: ScopeGroup, postings: PostingIndex, keys: Sequence[str]) -> Matches:
    """The postings of keys; of a literal, the rows whose text has it, among those that have all of its words."""
    found = postings.lookup(keys, scope.segments)
    prefix = posting_keys("literal", [""])[0]
    literals = {at: key.removeprefix(prefix) for at, key in enumerate(keys) if key.startswith(prefix)}
    if not literals:
        return found
    rows, frequencies = np.split(found.rows, found.starts[1:-1]), np.split(found.freqs, found.starts[1:-1])
    for at, literal in literals.items():
        words = posting_keys("text", query_tokens(pa.array([literal])).flatten().unique().to_pylist())
        row, count = np.unique(postings.lookup(words, scope.segments).rows, return_counts=True)
        row = row[(count == len(words)) & (scope.local(row) >= 0)]
        text = gathered(scope.tables.evidence["text"], row)
        rows[at] = row[np.asarray(pc.match_substring(text, literal))]
        frequencies[at] = np.ones(len(rows[at]), dtype=np.int32)
    return Matches(np.cumsum([0, *(len(row) for row in rows)]), np.concatenate(rows), np.concatenate(frequencies))


def profiles(scope: ScopeGroup, entries: Entries) -> Iterator[tuple[list[int], Asked, Bool]]:
    """Neighboring sub-queries of one request that look up the same keys, what they look up, and the open rows.

    They share one pass of scoring: a plan often repeats a text for several kinds of evidence.
    """
    bounds = entries.sub.searchsorted(np.arange(len(scope.sub) + 1)).tolist()
    keys, weights = entries.key.tolist(), entries.weight.tolist()
    hops = [False] * len(keys) if entries.hop is None else entries.hop.tolist()
    clock = scope.tables.clock[1]
    starts = [*first_of_runs(scope.request).tolist(), len(scope.sub)]
    for request in (range(low, high) for low, high in pairwise(starts)):
        groups: list[tuple[list[int], Asked]] = []
        for sub in request:
            own = slice(bounds[sub], bounds[sub + 1])
            asked = keys[own], weights[own], hops[own]
            if groups and groups[-1][1] == asked:
                groups[-1][0].append(sub)
            elif asked[0]:
                groups.append(([sub], asked))
        if groups:
            open_ = scope.open(int(clock[scope.request[request.start]]))
            yield from ((subs, asked, open_) for subs, asked in groups)


def _scored(scope: ScopeGroup, found: KeyRows, asked: Asked, sub: int, open_: Bool, bm25: Bm25 | None) -> _Scored:
    """The scores of a scope's rows for the look-ups of one sub-query."""
    keys, given_weights, hops = asked
    count, length = (int(values[scope.request[sub]]) for values in scope.tables.statistics)
    half = None if bm25 is None else bm25.half(scope.length, np.array([length / count if count else 0.0]))
    rows = [found[key] for key in keys]
    held = [_held(open_, row) for row, _ in rows]
    weights = np.array(given_weights) * (bm25 or Bm25()).idf(np.array(held), np.array(count))
    score, matched = np.zeros(len(scope.rows)), np.zeros(len(scope.rows), dtype=bool)
    direct = np.zeros(len(scope.rows), dtype=bool) if any(hops) else matched
    most = share(len(keys))
    for (row, frequency), weight, hop in zip(rows, weights, hops, strict=True):
        part = weight if half is None else weight * (frequency / (frequency + half[row]))
        score[row] += quantise(np.minimum(part, most))
        matched[row] = True
        if not hop:
            direct[row] = True
    known = [(key, weight) for key, weight, rows_ in zip(keys, weights.tolist(), held, strict=True) if rows_]
    return _Scored(score, matched, direct, known)


def _held(open_: Bool, row: Int) -> int:
    """The document frequency of a key with these rows."""
    return int(np.count_nonzero(open_[row]))


def _shown(scope: ScopeGroup, sub: int, row: Int, scored: _Scored) -> Found:
    """The best of some rows for a sub-query."""
    frame_row = scope.rows[row]
    best = top(scored.score[row], scope.tables.row_index.id_rank[frame_row], int(scope.tables.lane_k[scope.sub[sub]]))
    via = np.where(scored.direct[row[best]], -1, VIA.index("call"))
    return Found.of(np.full(len(best), scope.sub[sub]), frame_row[best], scored.score[row[best]], via=via)


def share(look_ups: int) -> float:
    """The maximum that one of some look-ups may add to a score: its equal share of `EXACT_BELOW`.

    No weight bounds a contribution (a question may repeat a word a million times), and a sum beyond `EXACT_BELOW` would
    depend on its order. The cap follows from the sub-query alone.
    """
    return EXACT_BELOW / max(look_ups, 1)
