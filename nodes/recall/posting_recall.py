"""Scores from posting lists, under the statistics of each request's A(r).

Reads a scope, the posting index and `Entries` (which sub-query looks up which key with which weight). Gives the rows
found. The lexical lane scores with BM25; the symbol and exact lanes with idf alone.

Note: document frequencies count admissible postings only, so a row that is withheld, foreign or filtered out does not
affect other rows; it is scored with their statistics and selected separately. A sum of scores is exact in any order, so
the compiled loop, which a batch is worth loading for, gives the same rows and scores bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.kept import Recent
from ..columns.keys import distinct_numbers, distinct_rows, first_of_runs, gathered
from ..columns.numbers import EXACT_BELOW, quantise
from ..columns.ragged import expand_ranges, slabs, starts_of
from ..frames import PostingIndex, posting_keys
from ..kernels.compiled import in_threads, kernels
from ..text.text_analysis import tokens_of
from .bm25 import Bm25
from .recall_entries import Entries, TermWeights, Weighed
from .recall_scope import CELLS, Bool, Float, Int, ScopeGroup
from .recall_selection import VIA, Found, best_withheld, top


@dataclass(frozen=True)
class KeyRows:
    """The postings of some keys: those of key `k` are `first[k]:last[k]` of `row` and `frequency`."""

    first: Int
    last: Int
    row: NDArray[np.int32]
    """Positions in the rows of the scope, ascending inside a key."""
    frequency: NDArray[np.int32]

    @classmethod
    def of(cls, scope: ScopeGroup, postings: PostingIndex, keys: Sequence[str]) -> KeyRows:
        """The postings of keys inside a scope; of a literal, the rows whose text has it."""

        def look_up() -> KeyRows:
            prefix = posting_keys("literal", [""])[0]
            literals = {at: key.removeprefix(prefix) for at, key in enumerate(keys) if key.startswith(prefix)}
            found = cls(*scope.look_up(postings, keys))
            return found._with_literals(scope, postings, literals) if literals else found

        return scope.tables.looked_up.get((scope.group, *keys), look_up)

    def counts(self, keys: Int) -> Int:
        """The number of postings of some keys."""
        return self.last[keys] - self.first[keys]

    def places(self, keys: Int) -> Int:
        """The places of all postings of some keys, key after key."""
        return expand_ranges(self.first[keys], self.counts(keys))

    def _with_literals(self, scope: ScopeGroup, postings: PostingIndex, literals: Mapping[int, str]) -> KeyRows:
        """Its keys with the rows of literals: of those that have all of its words, the ones whose text has it."""
        every = np.arange(len(self.first))
        ends, places = starts_of(self.counts(every)), self.places(every)  # the lists may be those of the whole scope
        rows, first, last = [self.row[places]], ends[:-1].copy(), ends[1:].copy()
        for at, literal in literals.items():
            words = posting_keys("text", [*dict.fromkeys(tokens_of(literal))])
            with_words = KeyRows(*scope.look_up(postings, words))
            row, count = np.unique(with_words.row[with_words.places(np.arange(len(words)))], return_counts=True)
            row = row[count == len(words)]
            text = gathered(scope.tables.evidence["text"], scope.rows[row])
            rows.append(row[np.asarray(pc.match_substring(text, literal))])
            first[at] = sum(map(len, rows[:-1]))
            last[at] = first[at] + len(rows[-1])
        times = np.ones(sum(map(len, rows[1:])), dtype=np.int32)
        return KeyRows(first, last, np.concatenate(rows), np.concatenate([self.frequency[places], times]))


class Asked(NamedTuple):
    """The look-ups of sub-queries of a scope, with their weights."""

    subs: Int
    """Positions in `scope.sub`, ascending."""
    starts: Int
    """Where the look-ups of each one start in `key` and `weight`, and where those of the last one end."""
    key: Int
    weight: Float
    """The weight of a look-up times the idf of its key."""
    direct: Bool
    """Whether the look-up comes from the request itself."""
    line: Int
    """Of each sub-query, the line of the two that follow."""
    open: Bool
    """Which rows are admissible, bool[lines, rows]."""
    half: Float
    """The frequency at which a term reaches half of the maximum factor; 0 = frequencies do not count. float[lines, rows]."""

    def only(self, look_ups: Bool) -> Asked:
        """Some of the look-ups."""
        starts = starts_of(look_ups)[self.starts]
        key, weight, direct = (each[look_ups] for each in (self.key, self.weight, self.direct))
        return self._replace(starts=starts, key=key, weight=weight, direct=direct)

    def of(self, subs: Int) -> Asked:
        """The look-ups of the sub-queries at some places, ascending."""
        chosen = np.zeros(len(self.subs), dtype=bool)
        chosen[subs] = True
        some = self.only(chosen.repeat(np.diff(self.starts)))
        return some._replace(
            subs=self.subs[subs], starts=some.starts[np.append(subs, len(self.subs))], line=self.line[subs]
        )


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
    keys, found, weights = KeyRows.of(scope, postings, entries.keys), list[Found](), list[tuple[Int, Int, Float]]()
    for asked in asked_together(scope, entries, keys, bm25):
        found += [_shown(scope, keys, asked), *_hidden(scope, keys, asked)]
        sub = scope.sub[asked.subs].repeat(np.diff(asked.starts))
        weights.append((sub, asked.key, asked.weight))
    return Weighed(
        Found.concat(found), TermWeights(tuple(entries.keys), *map(np.concatenate, zip(*weights, strict=True)))
    )


class OpenRows(NamedTuple):
    """The look-ups of sub-queries of a scope, by the open rows and their statistics: all that a score depends on."""

    subs: Int
    """Positions in `scope.sub`, ascending."""
    starts: Int
    """Where the look-ups of each one start in `at`, and where those of the last one end."""
    at: Int
    """Positions in the entries."""
    line: Int
    """Of each sub-query, the line of the three that follow."""
    open: Bool
    """Which rows are admissible, bool[lines, rows]."""
    rows: Int
    length: Int
    """N and the total length, int64[lines]."""


def by_open_rows(scope: ScopeGroup, entries: Entries, most: int) -> Iterator[OpenRows]:
    """The sub-queries that look up keys, with at most so many different lines at once."""
    bounds = entries.sub.searchsorted(np.arange(len(scope.sub) + 1))
    asking = np.diff(bounds).nonzero()[0]
    request = scope.request[asking]
    clock, statistics = scope.tables.clock[1][request], [values[request] for values in scope.tables.statistics]
    first, line = distinct_rows(*scope.moments(clock), *statistics)
    for low in range(0, len(first), most):
        own = ((line >= low) & (line < low + most)).nonzero()[0]
        subs, example = asking[own], first[low : low + most]
        counts = np.diff(bounds)[subs]
        yield OpenRows(
            subs, starts_of(counts), expand_ranges(bounds[subs], counts), line[own] - low, scope.open(clock[example]),
            *(values[example] for values in statistics),
        )  # fmt: skip


def asked_together(scope: ScopeGroup, entries: Entries, keys: KeyRows, bm25: Bm25 | None) -> Iterator[Asked]:
    """The look-ups of the sub-queries of a scope, with their weights."""
    for own in by_open_rows(scope, entries, max(1, CELLS // len(scope.rows))):
        key, line = entries.key[own.at], own.line.repeat(np.diff(own.starts))
        held = _held(own.open, keys, line, key)
        weight = entries.weight[own.at] * (bm25 or Bm25()).idf(held, own.rows[line])
        mean = own.length / np.maximum(own.rows, 1)
        half = np.zeros(own.open.shape) if bm25 is None else _half(scope, bm25, mean)
        direct = np.full(len(key), True) if entries.hop is None else ~entries.hop[own.at]
        yield Asked(own.subs, own.starts, key, weight, direct, own.line, own.open, half)


def _held(open_: Bool, keys: KeyRows, line: Int, key: Int) -> Int:
    """The document frequency of some keys under a line of open rows each: the number of their open rows."""
    if open_.all():
        return keys.counts(key)
    used, of = distinct_numbers(line * len(keys.first) + key)
    at_line, at_key = np.divmod(used, len(keys.first))
    counts = keys.counts(at_key)
    passes = open_.reshape(-1)[(at_line * open_.shape[1]).repeat(counts) + keys.row[keys.places(at_key)]]
    return np.diff(starts_of(passes)[starts_of(counts)])[of]


def _half(scope: ScopeGroup, bm25: Bm25, mean: Float) -> Float:
    """`Bm25.half` of the rows of a scope, float[means, rows], kept for the mean lengths that were asked last."""
    kept: Recent[Float] = scope.once("half", lambda: Recent(4))
    return kept.get((bm25, mean.tobytes()), lambda: bm25.half(scope.length, mean[:, None]))


def scores_of(keys: KeyRows, asked: Asked, number: int) -> Float:
    """The score of every row of a scope for the look-ups of one of its sub-queries."""
    own = slice(*asked.starts[number : number + 2].tolist())
    key = asked.key[own]
    at = keys.places(key)
    row, frequency, weight = keys.row[at], keys.frequency[at], asked.weight[own].repeat(keys.counts(key))
    half = asked.half[asked.line[number]]
    part = weight * (frequency / (frequency + half[row]))
    part = quantise(np.minimum(part, share(len(key))))
    return np.bincount(row, part, minlength=len(half)).astype(np.float64, copy=False)


def _shown(scope: ScopeGroup, keys: KeyRows, asked: Asked) -> Found:
    """The `lane_k` best open rows of each sub-query."""
    k = scope.tables.lane_k[scope.sub[asked.subs]]
    number, row, score = best_rows(keys, asked, *_gates(scope, asked, asked.open), k, scope.place)
    via = None
    if not asked.direct.all():
        via, own = np.empty(len(row), dtype=np.int64), asked.only(asked.direct)
        for one in range(len(asked.subs)):
            direct = np.zeros(len(scope.rows), dtype=bool)
            direct[keys.row[keys.places(own.key[own.starts[one] : own.starts[one + 1]])]] = True
            via[number == one] = np.where(direct[row[number == one]], -1, VIA.index("call"))
    return Found.of(scope.sub[asked.subs[number]], scope.rows[row], score, via=via)


def _hidden(scope: ScopeGroup, keys: KeyRows, asked: Asked) -> Iterator[Found]:
    """The `withheld_k` best rows of each request that are not open."""
    closed = (~np.all(asked.open, axis=1)[asked.line]).nonzero()[0]
    if not len(closed):
        return
    asked = asked.only(asked.direct).of(closed)  # a withheld row is found by the request alone
    first = first_of_runs(scope.request[asked.subs])
    room = np.minimum(np.add.reduceat(np.append(keys.counts(asked.key), 0), asked.starts[:-1]), len(scope.rows))
    ends = np.append(first, len(asked.subs))
    for low, high in slabs(np.add.reduceat(room, first), CELLS):
        part = asked.of(np.arange(ends[low], ends[high]))
        every = np.full(len(part.subs), len(scope.rows))
        number, row, score = best_rows(keys, part, *_gates(scope, part, ~part.open), every, scope.place)
        sub = part.subs[number]
        best = best_withheld(scope, sub, row, score)
        yield Found.of(scope.sub[sub[best]], scope.rows[row[best]], score[best], withheld=True)


def _gates(scope: ScopeGroup, asked: Asked, lines: Bool) -> tuple[Bool, Int]:
    """The sets of rows that sub-queries may return, those of a line that pass a filter, and the set of each one."""
    passed, filter_ = scope.returned(asked.subs)
    return (lines[:, None] & passed).reshape(-1, lines.shape[1]), asked.line * len(passed) + filter_


def best_rows(keys: KeyRows, asked: Asked, gates: Bool, gate: Int, k: Int, place: Int) -> tuple[Int, Int, Float]:
    """The `k` best rows of each sub-query that pass its line of `gates`: its number, the row, the score, in no order.

    Of equal scores the least `place` is better.
    """
    visits = starts_of(keys.counts(asked.key))[asked.starts]
    if loops := kernels(int(visits[-1])):
        starts = starts_of(np.minimum(np.minimum(k, len(place)), np.diff(visits)))
        found = np.zeros(len(k), dtype=np.int64)
        row, score = np.empty(int(starts[-1]), dtype=np.int64), np.empty(int(starts[-1]))
        in_threads(
            loops.postings.best_rows, np.diff(visits), asked.starts, asked.key, asked.weight, keys.first, keys.last,
            keys.row, keys.frequency, asked.line, asked.half, gates, gate, k, place, starts, found, row, score,
        )  # fmt: skip
        at = expand_ranges(starts[:-1], found)
        return np.arange(len(k)).repeat(found), row[at], score[at]
    found, last, scores = list[tuple[Int, Int, Float]](), None, np.empty(0)
    for number, (low, high) in enumerate(pairwise(asked.starts.tolist())):
        looked_up = asked.line[number], asked.key[low:high].tobytes(), asked.weight[low:high].tobytes()
        if looked_up != last:  # a plan often repeats a text for several kinds of evidence
            last, scores = looked_up, scores_of(keys, asked, number)
        row = (gates[gate[number]] & (scores > 0)).nonzero()[0]
        row = row[top(scores[row], place[row], int(k[number]))]
        found.append((np.full(len(row), number), row, scores[row]))
    numbers, rows, totals = zip(*found, strict=True)
    return np.concatenate(numbers), np.concatenate(rows), np.concatenate(totals)


def share(look_ups: Any) -> Any:
    """The maximum that one of some look-ups may add to a score: its equal share of `EXACT_BELOW`.

    No weight bounds a contribution (a question may repeat a word a million times), and a sum beyond `EXACT_BELOW` would
    depend on its order. The cap follows from the sub-query alone.
    """
    return EXACT_BELOW / np.maximum(look_ups, 1)
