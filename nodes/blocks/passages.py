"""Which passage of an item a cut keeps: the one that covers most of the query, not necessarily the head.

Reads units of texts and the terms of each request with their weights. Gives `best_windows`, the units that are kept.

Note: words are compared by their first five letters, since terms are stems and texts are not. That is enough to choose
between the passages of one item, and affects nothing else. A cut keeps the head of an item unless another passage
covers clearly more; a log keeps its first error line; and of neighbors joined into one item, the passage lies in the
row that was ranked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.array_bytes import offsets_and_bytes
from ..columns.keys import NOWHERE, constants, distinct_rows, first_of_runs, flat, places_of, positions
from ..columns.numbers import RESOLUTION, quantise
from ..columns.ragged import Ragged, expand_ranges, slabs, spread, starts_of
from .line_units import Units
from .statements import Cuts

__all__ = ["NO_TERMS", "RequestTerms", "adds_terms", "best_windows", "matched_terms", "reach"]

PREFIX = 5
"""Letters of a word that are compared."""
_IDEOGRAPH = 6
"""Bytes of two adjacent ideographs, which form a term."""
BYTES_AT_ONCE = 1 << 17
"""Bytes whose words are looked up at once: intermediate arrays stay in the processor's cache."""
_WIDE = 1 << 40
"""More characters than any text has."""

_KIND = np.zeros(256, dtype=np.uint8)
_SEPARATOR, _DIGIT, _UPPER, _LOWER, _MARK = range(5)
_KIND[list(b"0123456789")] = _DIGIT
_KIND[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")] = _UPPER
_KIND[list(b"abcdefghijklmnopqrstuvwxyz")] = _LOWER
_KIND[128:] = _LOWER
_KIND[0xE3:0xEA] = _MARK  # the first byte of an ideograph or kana
_SMALL = np.arange(256, dtype=np.uint8)
_SMALL[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")] += 32
_EDGE = 5
"""The number of kinds of bytes; also the kind that precedes the first byte of a text."""


def _marks() -> NDArray[np.uint8]:
    """The role of each pair of kinds of bytes, by `_EDGE` times the first plus the second: `_START` of a word, `_STOP`
    after one, or 0.
    """
    before, kind = np.indices((_EDGE + 1, _EDGE))
    starts = (before % _EDGE == _SEPARATOR) | ((kind == _UPPER) & (before != _UPPER)) | (kind == _MARK)
    stops = (before == _EDGE) | ((kind == _SEPARATOR) & (before != _SEPARATOR))
    return np.where(starts & (kind != _SEPARATOR), _START, np.where(stops, _STOP, 0)).astype(np.uint8).reshape(-1)


_STOP, _START = 1, 2
_KINDS, _SMALLER, _MARKS = (table.tobytes().ljust(256) for table in (_KIND, _SMALL, _marks()))
"""The same as tables of `bytes.translate`, several times as fast as a look-up by index."""
_SHORT_ENDINGS = {4: ("s", "e", "i", "*"), 3: ("s", "es", "ed", "er", "in", "*e", "*i")}
"""Endings of words whose stem is shorter than the compared prefix; `*` repeats the last letter."""

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class RequestTerms:
    """The query terms of each request: `keys`, the distinct word keys, ascending; `codes`, request * len(keys) + place
    of the key, ascending; `literals`, the texts and names that are asked for as they are written, with their requests;
    and the weight of each code and each literal."""

    keys: Int
    codes: Int
    weights: Float
    literals: tuple[tuple[int, bytes], ...] = ()

    @classmethod
    def of(cls, terms: pa.Table, requests: pa.ChunkedArray | pa.Array) -> RequestTerms:
        """From MATCH_TERMS; `requests` are the ids of the requests in the order of their numbers."""
        if not terms.num_rows:
            return NO_TERMS
        encoded = flat(terms["term"]).dictionary_encode()
        words = Ragged(encoded.dictionary, np.arange(len(encoded.dictionary)), np.arange(len(encoded.dictionary) + 1))
        size = pc.utf8_length(words.vocabulary)
        whole = pc.and_(pc.greater(size, PREFIX), pc.equal(size, pc.binary_length(words.vocabulary)))
        forms = words.in_two_ways(np.asarray(whole), _prefixes, _forms)
        starts = forms.starts
        offsets, data = offsets_and_bytes(forms.vocabulary.cast(pa.large_string()).take(pa.array(forms.codes)))
        keys = _keys(data, offsets[:-1], np.diff(offsets))
        code = np.asarray(encoded.indices).astype(np.int64)
        counts = np.diff(starts)[code]
        distinct, key = np.unique(keys[expand_ranges(starts[code], counts)], return_inverse=True)
        request = positions(terms["request_id"], requests).repeat(counts)
        weight = quantise(terms["weight"].to_numpy()).repeat(counts)
        codes = request * len(distinct) + key
        order = np.lexsort((-weight, codes))
        order = order[first_of_runs(codes[order])]
        order = order[request[order] >= 0]
        return cls(distinct, codes[order], weight[order])

    def quoting(self, anchors: pa.Table, requests: pa.ChunkedArray | pa.Array) -> RequestTerms:
        """With the literals and identifiers among ANCHORS; each weighs twice as much as all words of its request."""
        some = anchors.filter(pc.is_in(anchors["kind"], value_set=constants(("literal", "identifier"))))
        owner = positions(some["request_id"], requests)
        texts = [text.encode() for text in some["value"].to_pylist()]
        words = np.bincount(self.codes // max(len(self.keys), 1), self.weights, minlength=len(requests))
        weights = np.concatenate((self.weights, 2 * words[owner]))
        return replace(self, literals=tuple(zip(owner.tolist(), texts, strict=True)), weights=weights)


NO_TERMS = RequestTerms(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def matched_terms(texts: pa.LargeStringArray, asking: Int, terms: RequestTerms) -> tuple[Int, Int]:
    """The distinct pairs of a text and a term of its request that it contains: the numbers of both, ascending."""
    offsets, data = offsets_and_bytes(texts)
    text, _, key = _keyed(offsets[:-1], offsets[1:], data, terms)
    hit, found = _asked(key, asking[text], terms)
    return np.divmod(np.unique(text[hit] * len(terms.codes) + found), max(len(terms.codes), 1))


def adds_terms(text: Int, term: Int, rows: Int, beside: Int) -> Bool:
    """Whether each text of `rows` contains a term that the one of `beside` lacks, by the pairs of `matched_terms`."""
    width = int(term.max(initial=0)) + 1
    pairs = text * width + term
    starts = np.searchsorted(text, rows), np.searchsorted(text, rows, side="right")
    counts = starts[1] - starts[0]
    new = ~np.isin(beside.repeat(counts) * width + term[expand_ranges(starts[0], counts)], pairs)
    return np.bincount(np.arange(len(rows)).repeat(counts), weights=new, minlength=len(rows)) > 0


def best_windows(
    units: Units,
    cuts: Cuts,
    opening: Int,
    closing: Int,
    focus: tuple[Int, Int],
    log: Bool,
    limits: tuple[Int, Int],
    asking: Int,
    terms: RequestTerms,
) -> tuple[Int, Int]:
    """The units [first, end) kept of items that cost more than the first of `limits`, elementwise: whole statements.

    One unit is kept even if it costs more, up to the second of `limits`.
    """
    first, last = focus
    tokens, most = limits
    end = reach(units, opening, closing, tokens, most)
    missed = (end < closing) & (end <= last) & (first > opening)
    start = np.where(missed, np.maximum(first - 2 * log, opening), opening)
    end = np.where(missed, reach(units, start, closing, tokens, most), end)
    some = np.flatnonzero(~log & (end < closing))
    end[some] = cuts.ends(start[some], end[some])
    if not len(some) or not len(terms.keys):
        return start, end
    hits = _occurrences(units, opening[some], closing[some], asking[some], terms)
    dull = cuts.dull
    counts = np.maximum(np.maximum(last, start)[some] + 1 - start[some], 1)
    item, begins = np.arange(len(some)).repeat(counts), expand_ranges(start[some], counts)
    free = np.flatnonzero(cuts.begin[begins] | (begins == start[some][item]))
    item, begins = item[free], begins[free]
    ends = reach(units, begins, closing[some][item], tokens[some][item], most[some][item])
    ends = np.where(ends < closing[some][item], cuts.ends(begins, ends), ends)
    for number, (at, low, high) in enumerate(zip(some.tolist(), *_edges(item, len(some)), strict=True)):
        unit, before, weight = hits.of(number, dull)
        begin, stop = begins[low:high, None], ends[low:high, None]
        gain = ((unit >= begin) & (unit < stop) & (before < begin)) @ weight
        part = units.part[begins[low:high]]
        best = int((2 * gain + ~part).argmax())
        # Within a line, what is asked for is in the middle.
        same = int(np.append((gain[best:] == gain[best]) & part[best:], False).argmin())
        best += max(same - 1, 0) // 2
        if gain[best] > gain[0]:  # else the head
            start[at], end[at] = begins[low + best], ends[low + best]
    return start, end


def _edges(of: Int, count: int) -> tuple[list[int], list[int]]:
    """Where the entries of each of `count` items begin and end; `of` ascends."""
    edges = of.searchsorted(np.arange(count + 1)).tolist()
    return edges[:-1], edges[1:]


def reach(units: Units, start: Int, closing: Int, tokens: Int, most: Int) -> Int:
    """The end of the units from each on that fit into `tokens`: at least the unit itself, if `most` allows it."""
    end, _ = units.fitting(start, closing, tokens, np.full(len(start), _WIDE))
    one = np.minimum(start + 1, closing)
    return np.where((end <= start) & (units.cost(start, one)[0] <= most), one, end)


@dataclass(frozen=True)
class _Occurrences:
    """The terms in the texts of items, by item, term and unit: a term counts once in a unit."""

    item: Int
    term: Int
    unit: Int
    weight: Int
    """In multiples of `RESOLUTION`, since sums of integers do not depend on their order."""

    def of(self, item: int, dull: Bool) -> tuple[Int, Int, Int]:
        """Of one item, without the `dull` units: the units, the unit of the same term before each or -1, the weights."""
        low, high = self.item.searchsorted((item, item + 1))
        kept = low + np.flatnonzero(~dull[self.unit[low:high]])
        term, unit = self.term[kept], self.unit[kept]
        before = np.full(len(unit), -1)
        before[1:] = np.where(term[1:] == term[:-1], unit[:-1], -1)
        return unit, before, self.weight[kept]


def _occurrences(units: Units, opening: Int, closing: Int, asking: Int, terms: RequestTerms) -> _Occurrences:
    """The terms of each item's request in its units [`opening`, `closing`)."""
    # A text that answers several requests is read once.
    one, text = distinct_rows(opening, closing)
    bounds, data = offsets_and_bytes(units.every)
    of_text, start, key = _keyed(bounds[opening[one]], bounds[closing[one]], data, terms)
    unit = bounds.searchsorted(start, side="right") - 1
    words = of_text.searchsorted(np.arange(len(one) + 1))
    item, at = spread(words[text], np.diff(words)[text])
    hit, found = _asked(key[at], asking[item], terms)
    parts = [np.stack([item[hit], found, unit[at[hit]]])]
    for term, (request, literal) in enumerate(terms.literals, len(terms.codes)):
        whole = _whole(literal)
        for number in np.flatnonzero(asking == request).tolist():
            low, high = bounds[[opening[number], closing[number]]].tolist()
            at = [match.start() for match in whole.finditer(data[low:high].tobytes())]
            place = bounds.searchsorted(low + np.array(at, np.int64), side="right") - 1
            parts.append(np.stack([np.full(len(at), number), np.full(len(at), term), place]))
    owner, term, place = np.unique(np.concatenate(parts, axis=1), axis=1)
    return _Occurrences(owner, term, place, np.rint(terms.weights[term] / RESOLUTION).astype(np.int64))


def _whole(literal: bytes) -> re.Pattern[bytes]:
    """A pattern for a literal that neither begins nor ends inside of a word."""
    begins, ends = (re.match(rb"\w", edge) is not None for edge in (literal[:1], literal[-1:]))
    return re.compile((rb"(?<!\w)" if begins else b"") + re.escape(literal) + (rb"(?!\w)" if ends else b""))


def _keyed(low: Int, high: Int, data: NDArray[np.uint8], terms: RequestTerms) -> tuple[Int, Int, Int]:
    """The words of texts whose keys some request asks for: text, ascending, where the word starts, and place of the key.

    Text `i` is `data[low[i]:high[i]]`.
    """
    sizes = high - low
    parts = [(NOWHERE, NOWHERE, NOWHERE)]
    for first, end in slabs(sizes, BYTES_AT_ONCE):
        edges = starts_of(sizes[first:end])
        part = data[expand_ranges(low[first:end], sizes[first:end])]
        start, length = _words(part, edges)
        key = _keys(part, start, length)
        place = places_of(key, terms.keys)
        same = place >= 0
        text = edges.searchsorted(start[same], side="right") - 1
        parts.append((text + first, start[same] + (low[first:end] - edges[:-1])[text], place[same]))
    text, start, place = map(np.concatenate, zip(*parts, strict=True))
    return text, start, place


def _asked(key: Int, asking: Int, terms: RequestTerms) -> tuple[Int, Int]:
    """Which keys are terms of their request, and the place of each such term in `terms.codes`."""
    code = asking * len(terms.keys) + key
    found = places_of(code, terms.codes)
    hit = np.flatnonzero(found >= 0)
    return hit, found[hit]


def _words(data: NDArray[np.uint8], bounds: Int) -> tuple[Int, Int]:
    """Where words and humps of identifiers start, and how much of each is compared; none crosses one of `bounds`."""
    kind = _translated(data, _KINDS)
    pair = kind.copy()
    pair[1:] += _EDGE * kind[:-1]
    inside = bounds[bounds < len(data)]
    pair[inside] = _EDGE * _EDGE + kind[inside]
    mark = _translated(pair, _MARKS)
    ends = np.flatnonzero(mark > 0)
    first = np.flatnonzero(mark[ends] == _START)
    begin = ends[first]
    length = np.append(ends, len(data))[first + 1] - begin
    length = np.minimum(length, PREFIX)
    pair = np.flatnonzero(kind[begin] == _MARK)
    if len(pair):
        left = bounds[bounds.searchsorted(begin[pair], "right")] - begin[pair]
        length[pair] = np.minimum(_IDEOGRAPH, left)
    return begin, length


def _translated(data: NDArray[np.uint8], table: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data.tobytes().translate(table), np.uint8)


def _keys(data: NDArray[np.uint8], start: Int, length: Int) -> Int:
    """The first bytes of each word in lower case, as one number."""
    padded = np.zeros(len(data) + 8, dtype=np.uint8)
    padded[: len(data)] = _translated(data, _SMALLER)
    eight = np.ndarray(len(data) + 1, dtype=">u8", buffer=padded.data, strides=(1,))
    return (eight[start].astype(np.uint64) >> (8 * (8 - length)).astype(np.uint64)).astype(np.int64)


def _prefixes(terms: pa.Array) -> Ragged:
    """`_forms` for terms of more than `PREFIX` plain letters."""
    return Ragged.of(pc.utf8_slice_codeunits(terms, 0, PREFIX))


def _forms(term: str) -> list[str]:
    """The prefixes of the words of a term; a term of few letters has several."""
    if not term.isascii():
        return [term[:2] if len(term.encode()) >= _IDEOGRAPH else term]
    if len(term) >= PREFIX:
        return [term[:PREFIX], *([f"{term[:-1]}y"] if len(term) == PREFIX and term.endswith("i") else [])]
    return [term, *(f"{term}{ending.replace('*', term[-1])}" for ending in _SHORT_ENDINGS.get(len(term), ()))]
