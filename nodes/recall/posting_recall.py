"""Scores from posting lists, under the statistics of each request's A(r).

Reads a scope, the posting index and `Entries` (which sub-query looks up which key with which weight). Gives `Asked`, the
look-ups with the weights of their keys, and by these the best rows of each sub-query, or the scores of given rows. The
lexical lane scores with BM25; the symbol and exact lanes with idf alone.

Note: document frequencies count admissible postings only, so a row that is withheld, foreign or filtered out does not
affect other rows; it is scored with their statistics and selected separately. A sum of scores is exact in any order, so
the compiled loop, which a batch is worth loading for, gives the same rows and scores bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.kept import Recent
from ..columns.keys import distinct_numbers, first_of_runs, gathered
from ..columns.numbers import EXACT_BELOW, quantise
from ..columns.ragged import expand_ranges, slabs, starts_of
from ..frames import FIELDS, PostingIndex, posting_keys
from ..kernels.compiled import in_threads, kernels
from ..text.text_analysis import tokens_of
from .bm25 import Bm25
from .recall_scope import CELLS, Bool, Float, Int, Lines, ScopeGroup
from .recall_selection import VIA, Found, best_withheld, top


@dataclass(frozen=True)
class KeyRows:
    """The postings of some keys: those of key `k` are `first[k]:last[k]` of `row` and `frequency`."""

    names: list[str]
    first: Int
    last: Int
    row: NDArray[np.int32]
    """Positions in the rows of the scope, or groups of these; ascending inside a key."""
    frequency: NDArray[np.int32]

    @classmethod
    def of(cls, scope: ScopeGroup, postings: PostingIndex, names: list[str]) -> KeyRows:
        """The postings of keys inside a scope."""
        if not names:
            places, rows = np.empty(0, np.int64), np.empty(0, np.int32)
            return cls(names, places, places, rows, rows)
        return cls(names, *scope.look_up(postings, names))

    def counts(self, keys: Int) -> Int:
        """The number of postings of some keys."""
        return self.last[keys] - self.first[keys]

    def places(self, keys: Int) -> Int:
        """The places of all postings of some keys, key after key."""
        return expand_ranges(self.first[keys], self.counts(keys))

    @cached_property
    def _codes(self) -> tuple[int, Int, NDArray[np.int32]]:
        """A width; key times width plus row of each posting, ascending, and a greater number; and the frequencies."""
        every = np.arange(len(self.first))
        places = self.places(every)
        row = self.row[places]
        width = int(row.max(initial=-1)) + 1
        codes = every.repeat(self.counts(every)) * width + row
        last = np.array([np.iinfo(np.int64).max]), np.zeros(1, np.int32)
        return width, np.concatenate((codes, last[0])), np.concatenate((self.frequency[places], last[1]))

    def times(self, keys: Int, rows: Int) -> NDArray[np.int32]:
        """How often each of some rows, in any order, has each of some keys: int32[keys, rows]; -1 is no row."""
        width, codes, frequency = self._codes
        wanted = keys[:, None] * width + rows
        at = codes.searchsorted(wanted)
        return np.where((codes[at] == wanted) & (rows >= 0) & (rows < width), frequency[at], 0)

    def with_texts(self, scope: ScopeGroup, postings: PostingIndex) -> KeyRows:
        """Its keys with the rows of literals and regular expressions, by their texts; those of a literal have all of its
        words.
        """
        every = np.arange(len(self.first))
        ends, places = starts_of(self.counts(every)), self.places(every)  # the lists may be those of the whole scope
        rows, first, last = [self.row[places]], ends[:-1].copy(), ends[1:].copy()
        for at, name in enumerate(self.names):
            kind, _, value = name.partition(":")
            if kind == FIELDS["literal"]:
                words = posting_keys("text", [*dict.fromkeys(tokens_of(value))])
                with_words = KeyRows(words, *scope.look_up(postings, words))
                row, count = np.unique(with_words.row[with_words.places(np.arange(len(words)))], return_counts=True)
                row = row[count == len(words)]
                found = pc.match_substring(gathered(scope.tables.evidence["text"], scope.rows[row]), value)
            elif kind == FIELDS["regex"]:
                row = np.arange(len(scope.rows), dtype=np.int32)
                found = pc.match_substring_regex(scope.column("text"), value)
            else:
                continue
            rows.append(row[np.asarray(found)])
            first[at] = sum(map(len, rows[:-1]))
            last[at] = first[at] + len(rows[-1])
        times = np.ones(sum(map(len, rows[1:])), dtype=np.int32)
        return KeyRows(self.names, first, last, np.concatenate(rows), np.concatenate([self.frequency[places], times]))


@dataclass(frozen=True)
class Entries:
    """Look-ups of a scope: `sub` (a row of SUB_QUERIES, ascending), `key` (a position in `keys`), `weight`.

    `hop` marks look-ups that do not come from the request itself: they score admissible rows only.
    """

    keys: KeyRows
    sub: Int
    key: Int
    weight: Float
    hop: Bool | None = None

    @classmethod
    def of(cls, keys: KeyRows, found: Sequence[tuple[int, int, float]]) -> Entries:
        """From look-ups one by one: sub-query, key and weight."""
        sub, key, weight = zip(*found, strict=True) if found else ((), (), ())
        return cls(keys, np.array(sub, np.int64), np.array(key, np.int64), np.array(weight, np.float64))


class OpenRows(NamedTuple):
    """The look-ups of sub-queries of a scope, by their open rows."""

    subs: Int
    """Positions in `scope.sub`, ascending."""
    starts: Int
    """Where the look-ups of each one start in `at`, and where those of the last one end."""
    at: Int
    """Positions in the entries."""
    line: Int
    """Of each sub-query, its place among `lines`."""
    lines: Lines


def by_open_rows(scope: ScopeGroup, entries: Entries, most: int) -> Iterator[OpenRows]:
    """The sub-queries that look up keys, with at most so many different lines at once."""
    first, last = (entries.sub.searchsorted(scope.sub, side=side) for side in ("left", "right"))
    counts = last - first
    for low in range(0, len(scope.lines.clock), most):
        subs = ((counts > 0) & (scope.line >= low) & (scope.line < low + most)).nonzero()[0]
        if len(subs):
            at = expand_ranges(first[subs], counts[subs])
            yield OpenRows(subs, starts_of(counts[subs]), at, scope.line[subs] - low, scope.lines.part(low, low + most))


class Asked(NamedTuple):
    """The look-ups of sub-queries of a scope, with the weights of their keys. Postings are those of the scope's rows or of
    groups of them, each with its `length`.

    A key of no admissible row weighs as the rarest: what a question asks for counts, whether or not it is there.
    """

    scope: ScopeGroup
    keys: KeyRows
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
    """Of each sub-query, its place in `mean`."""
    length: Int
    mean: Float
    """The mean length of what is open, by line."""
    bm25: Bm25 | None
    """The scoring of a posting; None = by the weight alone, whatever its frequency."""

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

    def own(self, number: int) -> slice:
        """The look-ups of one of the sub-queries."""
        return slice(*self.starts[number : number + 2].tolist())

    def half(self) -> Float:
        """The frequency at which a key reaches half of the maximum factor; 0 = frequencies do not count. float[lines, rows];
        of rows, it is kept for the mean lengths that were asked last.
        """
        if self.bm25 is None:
            return np.zeros((len(self.mean), len(self.length)))
        if self.length is not self.scope.length:
            return self.bm25.half(self.length, self.mean[:, None])
        bm25, kept = self.bm25, self.scope.once("half", lambda: Recent[Float](4))
        return kept.get((bm25, self.mean.tobytes()), lambda: bm25.half(self.length, self.mean[:, None]))

    def score(self, number: int, rows: Int) -> Float:
        """The BM25 of some rows for the look-ups of one of the sub-queries."""
        return self.sum_of(number, self.keys.times(self.key[self.own(number)], rows), self.length[rows])

    def sum_of(self, number: int, times: NDArray[np.integer] | Float, length: Int, of_mean: float | Int = 1) -> Float:
        """The BM25 of rows that have the keys of a sub-query so many times, under these lengths and a multiple of the mean one."""
        assert self.bm25 is not None
        weight, mean = self.weight[self.own(number)], self.mean[self.line[number]]
        half = self.bm25.half(length, np.asarray(mean * of_mean))
        factor = np.divide(times, times + half, out=np.zeros(times.shape), where=times > 0)
        return quantise(np.minimum(weight[:, None] * factor, share(len(weight)))).sum(axis=0)

    def reach(self) -> Float:
        """The maximum score of each sub-query: the sum of the weights of its keys."""
        sub = np.arange(len(self.subs)).repeat(np.diff(self.starts))
        return np.bincount(sub, self.weight, len(self.subs)).astype(np.float64, copy=False)


def asked_together(scope: ScopeGroup, entries: Entries, bm25: Bm25 | None) -> Iterator[tuple[Asked, Bool]]:
    """The look-ups of the sub-queries of a scope, with their weights; and the open rows of their lines, bool[lines, rows]."""
    for own in by_open_rows(scope, entries, max(1, CELLS // len(scope.rows))):
        open_ = scope.open(own.lines.clock)
        key, line = entries.key[own.at], own.line.repeat(np.diff(own.starts))
        held = _held(open_, entries.keys, line, key)
        weight = entries.weight[own.at] * (bm25 or Bm25()).idf(held, own.lines.rows[line])
        direct = np.full(len(key), True) if entries.hop is None else ~entries.hop[own.at]
        yield Asked(
            scope, entries.keys, own.subs, own.starts, key, weight, direct, own.line, scope.length, own.lines.mean, bm25
        ), open_  # fmt: skip


def _held(open_: Bool, keys: KeyRows, line: Int, key: Int) -> Int:
    """The document frequency of some keys under a line of open rows each: the number of their open rows."""
    if open_.all():
        return keys.counts(key)
    used, of = distinct_numbers(line * len(keys.first) + key)
    at_line, at_key = np.divmod(used, len(keys.first))
    counts = keys.counts(at_key)
    passes = open_.reshape(-1)[(at_line * open_.shape[1]).repeat(counts) + keys.row[keys.places(at_key)]]
    return np.diff(starts_of(passes)[starts_of(counts)])[of]


def recall_keys(scope: ScopeGroup, entries: Entries, bm25: Bm25 | None) -> tuple[Found, list[Asked]]:
    """The best rows per sub-query for its keys, the best withheld ones per request, and the weight of each key."""
    if not len(entries.sub):
        return Found.concat([]), []
    found, weighed = list[Found](), list[Asked]()
    for asked, open_ in asked_together(scope, entries, bm25):
        found += [_shown(asked, open_), *_hidden(asked, open_)]
        weighed.append(asked)
    return Found.concat(found), weighed


def _shown(asked: Asked, open_: Bool) -> Found:
    """The `lane_k` best open rows of each sub-query."""
    scope, keys = asked.scope, asked.keys
    k = scope.tables.lane_k[scope.sub[asked.subs]]
    number, row, score = best_rows(asked, *scope.gates(asked.subs, open_, asked.line), k, scope.place)
    via = None
    if not asked.direct.all():
        via, own = np.full(len(row), -1), asked.only(asked.direct)
        for one in range(len(asked.subs)):
            at = (number == one).nonzero()[0]
            via[at[~keys.times(own.key[own.own(one)], row[at]).any(axis=0)]] = VIA.index("call")
    return Found.of(scope.sub[asked.subs[number]], scope.rows[row], score, via=via)


def _hidden(asked: Asked, open_: Bool) -> Iterator[Found]:
    """The `withheld_k` best rows of each request that are not open."""
    scope, keys = asked.scope, asked.keys
    closed = (~np.all(open_, axis=1)[asked.line]).nonzero()[0]
    if not len(closed):
        return
    asked = asked.only(asked.direct).of(closed)  # a withheld row is found by the request alone
    first = first_of_runs(scope.request[asked.subs])
    room = np.minimum(np.add.reduceat(np.append(keys.counts(asked.key), 0), asked.starts[:-1]), len(scope.rows))
    ends = np.append(first, len(asked.subs))
    for low, high in slabs(np.add.reduceat(room, first), CELLS):
        part = asked.of(np.arange(ends[low], ends[high]))
        every = np.full(len(part.subs), len(scope.rows))
        number, row, score = best_rows(part, *scope.gates(part.subs, ~open_, part.line), every, scope.place)
        sub = part.subs[number]
        best = best_withheld(scope, sub, row, score)
        yield Found.of(scope.sub[sub[best]], scope.rows[row[best]], score[best], withheld=True)


def _scores(asked: Asked, number: int, half: Float) -> Float:
    """The score of every row for the look-ups of one of the sub-queries."""
    keys, own = asked.keys, asked.own(number)
    key = asked.key[own]
    at = keys.places(key)
    row, frequency, weight = keys.row[at], keys.frequency[at], asked.weight[own].repeat(keys.counts(key))
    part = weight * (frequency / (frequency + half[row]))
    part = quantise(np.minimum(part, share(len(key))))
    return np.bincount(row, part, minlength=len(half)).astype(np.float64, copy=False)


def best_rows(asked: Asked, gates: Bool, gate: Int, k: Int, place: Int) -> tuple[Int, Int, Float]:
    """The `k` best rows of each sub-query that pass its line of `gates`: its number, the row, the score, in no order.

    Of equal scores the least `place` is better.
    """
    keys, half = asked.keys, asked.half()
    visits = starts_of(keys.counts(asked.key))[asked.starts]
    if loops := kernels(int(visits[-1])):
        starts = starts_of(np.minimum(np.minimum(k, len(place)), np.diff(visits)))
        found = np.zeros(len(k), dtype=np.int64)
        row, score = np.empty(int(starts[-1]), dtype=np.int64), np.empty(int(starts[-1]))
        in_threads(
            loops.postings.best_rows, np.diff(visits), asked.starts, asked.key, asked.weight, keys.first, keys.last,
            keys.row, keys.frequency, asked.line, half, gates, gate, k, place, starts, found, row, score,
        )  # fmt: skip
        at = expand_ranges(starts[:-1], found)
        return np.arange(len(k)).repeat(found), row[at], score[at]
    found, last, scores = list[tuple[Int, Int, Float]](), None, np.empty(0)
    for number, (low, high) in enumerate(pairwise(asked.starts.tolist())):
        looked_up = asked.line[number], asked.key[low:high].tobytes(), asked.weight[low:high].tobytes()
        if looked_up != last:  # a plan often repeats a text for several kinds of evidence
            last, scores = looked_up, _scores(asked, number, half[asked.line[number]])
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
