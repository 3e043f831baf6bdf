"""Scores from posting lists: every sub-query of a scope group at once, under the statistics of each one's A(r).

Reads a scope, the posting index and `Entries` (which sub-query looks up which key with which weight). Gives the cells
found. The lexical lane scores with BM25; the symbol and exact lanes with idf alone.

Note: time is judged here, per (clock, row) pair of the rows that contain some key. Document frequencies count
admissible postings only, so a row that is withheld, foreign or filtered out does not affect other rows; it is scored
with their statistics and selected separately.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, first_of_runs, gathered
from ..columns.numbers import EXACT_BELOW, quantise
from ..columns.ragged import slabs, spread, starts_of
from ..errors import SchemaError
from ..frames import Matches, PostingIndex, posting_keys
from ..kernels.compiled import kernels
from ..text.text_analysis import query_tokens
from .bm25 import Bm25
from .compiled_recall import recall_compiled
from .compiled_recall import score_rows as compiled_score_rows
from .recall_entries import Entries, EntryScores, TermWeights, WantedRows, Weighed
from .recall_scope import CELLS, PAIRS, Bool, Float, Int, ScopeGroup
from .recall_selection import VIA, Found, best_cells, best_withheld


@dataclass(frozen=True)
class _Postings:
    """The postings of `keys` inside the scope: those of key `k` are `starts[k]:starts[k + 1]` of the others."""

    starts: Int
    at: Int
    """Position in `touched`."""
    frequency: NDArray[np.int32]
    touched: Int
    """Positions in `scope.rows` of rows that contain some key, ascending."""


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
    if ranked and loops and (best := recall_compiled(loops.postings, scope, postings, entries, ranked)):
        return best
    found = _postings(scope, postings, entries.keys)
    if not len(found.touched):
        return Weighed.concat([])
    visits = int((found.starts[entries.key + 1] - found.starts[entries.key]).sum())
    if (
        ranked
        and not loops
        and (loops := kernels(visits))
        and (best := recall_compiled(loops.postings, scope, postings, entries, ranked))
    ):
        return best
    profile, entries = profiles_of(scope, entries)
    parts = [
        _recall_part(scope, found, part, bounds, profile, bm25)
        for bounds, part in _parts(scope, entries, found, profile)
    ]
    return Weighed.concat(parts)


def _postings(scope: ScopeGroup, postings: PostingIndex, keys: list[str]) -> _Postings:
    matches = _matches(scope, postings, keys)
    local = scope.local(matches.rows)
    kept = local >= 0
    local = local[kept]
    flag = np.zeros(len(scope.rows), dtype=bool)
    flag[local] = True
    starts = np.concatenate(([0], kept.cumsum()))[matches.starts]
    return _Postings(starts, (flag.cumsum() - 1)[local], matches.freqs[kept], flag.nonzero()[0])


def _matches(scope: ScopeGroup, postings: PostingIndex, keys: list[str]) -> Matches:
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
    return Matches(starts_of(np.array([len(row) for row in rows])), np.concatenate(rows), np.concatenate(frequencies))


def profiles_of(scope: ScopeGroup, entries: Entries) -> tuple[Int, Entries]:
    """The profile of each sub-query, and the entries of the profiles.

    Neighboring sub-queries of one request that look up the same keys share a profile, and so one pass of scoring: a
    plan often repeats a text for several kinds of evidence.
    """
    counts = np.bincount(entries.sub, minlength=len(scope.sub))
    starts = counts.cumsum() - counts
    same = np.zeros(len(counts), dtype=bool)
    same[1:] = (counts[1:] == counts[:-1]) & (scope.request[1:] == scope.request[:-1])
    later = same.nonzero()[0]
    of, at = spread(starts[later], counts[later])
    before = at - counts[later][of]
    differs = (entries.key[at] != entries.key[before]) | (entries.weight[at] != entries.weight[before])
    if entries.hop is not None:
        differs |= entries.hop[at] != entries.hop[before]
    same[later[of[differs]]] = False
    profile = (~same).cumsum() - 1
    kept = (~same[entries.sub]).nonzero()[0]
    hop = None if entries.hop is None else entries.hop[kept]
    return profile, Entries(entries.keys, profile[entries.sub[kept]], entries.key[kept], entries.weight[kept], hop)


def _parts(
    scope: ScopeGroup, entries: Entries, found: _Postings, profile: Int
) -> Iterator[tuple[tuple[int, int], Entries]]:
    """Ranges of sub-queries, of whole requests and of about `CELLS` cells, and the entries of their profiles."""
    per = max(1, CELLS // len(found.touched))
    first = first_of_runs(scope.request)
    cut = first[first_of_runs(first // per)]
    for low, high in zip(cut.tolist(), [*cut[1:].tolist(), len(scope.sub)], strict=True):
        a, b = entries.sub.searchsorted([profile[low], profile[high - 1] + 1])
        if a < b:
            hop = None if entries.hop is None else entries.hop[a:b]
            sub = entries.sub[a:b] - profile[low]
            yield (low, high), Entries(entries.keys, sub, entries.key[a:b], entries.weight[a:b], hop)


def _recall_part(
    scope: ScopeGroup,
    found: _Postings,
    entries: Entries,
    bounds: tuple[int, int],
    profile: Int,
    bm25: Bm25 | None,
) -> Weighed:
    """`recall_keys` for the sub-queries from `low` to `high`; the profiles of the entries count from 0."""
    low, high = bounds
    width, index = len(found.touched), scope.tables.row_index
    profile = profile[low:high] - profile[low]
    leading = first_of_runs(profile)
    request = scope.request[low:high][leading]
    profiles = len(request)
    rows = scope.rows[found.touched]
    open_, at_clock, frequency, weight, mean = _weights(scope, found, entries, request, bm25 or Bm25())
    saturate = None if bm25 is None else (bm25, index.length[rows], mean)
    scores, matched, direct = _accumulate(found, entries, weight, saturate, profiles)

    counts = np.count_nonzero(matched, axis=1)
    sub, of_cell = spread((counts.cumsum() - counts)[profile], counts[profile])
    cells = matched.reshape(-1).nonzero()[0][of_cell]
    at = cells - (profile * width)[sub]
    allowed = scope.filtered(sub + low, found.touched[at])
    visible = open_.reshape(-1)[(at_clock[profile] * width)[sub] + at]
    shown, hidden = (visible & allowed).nonzero()[0], (~visible & allowed).nonzero()[0]
    score = scores.reshape(-1)[cells[shown]]
    k = scope.tables.sub_queries["lane_k"].to_numpy()[scope.sub[low:high]]
    best = best_cells(sub[shown], score, index.id_rank[rows[at[shown]]], k)
    shown, score = shown[best], score[best]
    via = np.where(direct.reshape(-1)[cells[shown]], -1, VIA.index("call"))
    hidden = hidden[direct.reshape(-1)[cells[hidden]]]
    held = scores.reshape(-1)[cells[hidden]]
    best = best_withheld(scope, sub[hidden] + low, found.touched[at[hidden]], held)
    hidden, held = hidden[best], held[best]
    seen = frequency > 0
    weighed = TermWeights(
        tuple(entries.keys), scope.sub[low:high][leading][entries.sub[seen]], entries.key[seen], weight[seen]
    )
    cells = [
        Found.of(scope.sub[sub[shown] + low], rows[at[shown]], score, via=via),
        Found.of(scope.sub[sub[hidden] + low], rows[at[hidden]], held, withheld=True),
    ]
    return Weighed(Found.concat(cells), (weighed,))


def score_rows(
    scope: ScopeGroup, postings: PostingIndex, entries: Entries, bm25: Bm25, rows: WantedRows
) -> EntryScores:
    """The scores of the given rows of each sub-query, and the maximum possible; these rows are admissible.

    Raises:
        SchemaError: a row is not in the scope.
    """
    if rows.row.min(initial=0) < 0:
        raise SchemaError(f"Expected rows of the scope, got another - at wanted row {int(rows.row.argmin())}")
    large = len(entries.keys) * len(scope.rows) > CELLS  # else their setup costs more than it saves
    loops = kernels(0) if large else None
    if loops and (scored := compiled_score_rows(loops.postings, scope, postings, entries, bm25, rows)):
        return scored
    score, reach = np.zeros(len(rows.row)), np.zeros(len(scope.sub))
    found = _postings(scope, postings, entries.keys)
    if not len(found.touched):
        return EntryScores(score, reach)
    width, index = len(found.touched), scope.tables.row_index
    code = np.arange(len(entries.keys)).repeat(np.diff(found.starts)) * width + found.at
    cells = len(entries.keys) * width
    of_cell = np.full(cells if cells <= CELLS else 0, -1, dtype=np.int32)  # a table is faster than a search
    if len(of_cell):
        of_cell[code] = np.arange(len(code))
    place = np.full(len(scope.rows), -1)
    place[found.touched] = np.arange(width)
    place = place[rows.row]
    counts = np.diff(rows.starts)
    for (low, high), part in _parts(scope, entries, found, np.arange(len(scope.sub))):
        request = scope.request[low:high]
        _, _, frequency, weight, mean = _weights(scope, found, part, request, bm25)
        most = shares(part.sub, high - low)
        weight = np.where(frequency > 0, weight, 0.0)
        reach[low:high] = np.bincount(part.sub, weights=weight, minlength=high - low)
        for first, last in slabs(counts[low + part.sub], PAIRS):
            sub = part.sub[first:last]
            of, cell = spread(rows.starts[low + sub], counts[low + sub])
            known = place[cell] >= 0  # the row contains some key of the scope
            of, cell = of[known], cell[known]
            wanted = part.key[first:last][of] * width + place[cell]
            at = of_cell[wanted] if len(of_cell) else np.minimum(code.searchsorted(wanted), len(code) - 1)
            hit = ((at >= 0) & (code[at] == wanted)).nonzero()[0]
            of, cell, at = of[hit], cell[hit], at[hit]
            length = index.length[scope.rows[rows.row[cell]]]
            share = weight[first:last][of] * bm25.saturation(found.frequency[at], length, mean[sub][of])
            score += np.bincount(cell, weights=quantise(capped(share, sub, most, of)), minlength=len(score))
    return EntryScores(score, reach)


def _weights(
    scope: ScopeGroup, found: _Postings, entries: Entries, request: Int, bm25: Bm25
) -> tuple[Bool, Int, Int, Float, Float]:
    """For some profiles, each of one request: which touched rows are open under each clock, the clock of each profile,
    the number of rows with each entry's key and its weight, and the mean length of each profile's rows.
    """
    clock, of_request = scope.tables.clock
    clocks, at_clock = distinct_numbers(of_request[request])
    open_ = clock.grid(scope.tables.row_index, clocks, scope.rows[found.touched]) & ~scope.withheld[found.touched]
    frequency = _frequencies(found, open_, at_clock[entries.sub], entries.key)
    count, length = (values[request] for values in scope.tables.statistics)
    weight = entries.weight * bm25.idf(frequency, count[entries.sub])
    mean = np.divide(length, count, out=np.zeros(len(request)), where=count > 0)
    return open_, at_clock, frequency, weight, mean


def _frequencies(found: _Postings, open_: Bool, clock: Int, key: Int) -> Int:
    """The number of admissible rows with each entry's key, under the entry's clock."""
    keys = len(found.starts) - 1
    distinct, inverse = distinct_numbers(clock * keys + key)
    clock, key = np.divmod(distinct, keys)
    counts = found.starts[key + 1] - found.starts[key]
    frequency = np.zeros(len(distinct), dtype=np.int64)
    flat = open_.reshape(-1)
    for low, high in slabs(counts, PAIRS):
        of, at = spread(found.starts[key[low:high]], counts[low:high])
        counted = flat[clock[low:high][of] * open_.shape[1] + found.at[at]]
        frequency[low:high] = np.bincount(of[counted], minlength=high - low)
    return frequency[inverse]


def _accumulate(
    found: _Postings, entries: Entries, weight: Float, saturate: tuple[Bm25, Int, Float] | None, subs: int
) -> tuple[Float, Bool, Bool]:
    """Per (sub-query, touched row): the score, whether an entry matched it, and whether one without `hop` did."""
    width = len(found.touched)
    scores, matched = np.zeros(subs * width), np.zeros(subs * width, dtype=bool)
    direct = matched if entries.hop is None else np.zeros(subs * width, dtype=bool)
    counts = found.starts[entries.key + 1] - found.starts[entries.key]
    most = shares(entries.sub, subs)
    for low, high in slabs(counts, PAIRS):
        of, at = spread(found.starts[entries.key[low:high]], counts[low:high])
        sub = entries.sub[low:high]
        touched = found.at[at]
        part = weight[low:high][of]
        if saturate is not None:
            bm25, length, mean = saturate
            part = part * bm25.saturation(found.frequency[at], length[touched], mean[sub][of])
        part = capped(part, sub, most, of)
        first = int(sub[0]) * width
        cell = (sub * width)[of] + touched - first
        span = (int(sub[-1]) + 1) * width - first
        scores[first : first + span] += np.bincount(cell, weights=quantise(part), minlength=span)
        matched[cell + first] = True
        if entries.hop is not None:
            direct[cell[~entries.hop[low:high][of]] + first] = True
    shape = (subs, width)
    return scores.reshape(shape), matched.reshape(shape), direct.reshape(shape)


def shares(sub: Int, subs: int) -> Float:
    """The maximum that one look-up may add to a score of each sub-query: its equal share of `EXACT_BELOW`.

    No weight bounds a contribution (a question may repeat a word a million times), and a sum beyond `EXACT_BELOW` would
    depend on its order. The cap follows from the sub-query alone.
    """
    return EXACT_BELOW / np.maximum(np.bincount(sub, minlength=subs), 1)


def capped(part: Float, sub: Int, most: Float, of: Int | None = None) -> Float:
    """Contributions, each capped at its sub-query's share; `of` is the entry of each if they are per posting."""
    if not len(part) or part.max() <= most[sub].min():  # nearly always: the smallest share is a bound for all
        return part
    return np.minimum(part, most[sub] if of is None else most[sub][of])
