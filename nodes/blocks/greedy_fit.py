"""Which items fit a budget, and how much of each: greedily by rank.

Reads items with their texts, worst-case frames and limits. Gives `Fit`: per item the slice that is kept, the order in
which it was chosen and the limit that bound.

Policy `statement/1`: best item first, each up to its cap. An item that does not fit is cut at a line end, if at least a
quarter of the text that it may show remains or nothing was chosen before; else it is dropped, and the next, possibly
smaller, item is tried. A cut keeps the start of an item, unless that would cut its leading row short or miss a log's
first error line: then it starts there (in a log two lines above). A cap keeps the passage of whole statements that
covers most of the query (see `passages` and `statements`).

Under automatic detail an item is shown in full as long as outlines of the items behind it still fit, or half of the
budget is left for them. The first item for which that fails is cut to the remaining room, and all items behind it are
outlines: nothing is cut where everything fits, and a small budget is not spent on outlines alone.

A conflict set is shown whole or not at all (S0.111): where a member has no room, the request is filled again without the set.

Note: costs are those of the rendering, margins and fences included, and everything not yet known (nonce, reference,
label number, notes) is reserved at its worst case. So no limit is exceeded, however small. Texts and frames are
measured for all requests together; who is chosen is a plain loop per request.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise
from operator import add, sub
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import constants
from ..rendering import BARE_FRAME, BRIEF_TOKENS, CUT_MARK, FRAME, GROUPS
from .item_rendering import Look
from .item_texts import ItemTexts
from .line_units import Units, focus_units, units_of
from .passages import NO_TERMS, RequestTerms, best_windows
from .statements import Cuts
from .token_counting import Counters

BOUNDS = ("max_items", "max_tokens", "max_chars", "max_chunk_tokens", "conflict_set", "detail")
"""Names of the limits that may bind an item, by code; -1 = none. An item bound by `conflict_set` fits, but its rivals
do not; one bound by `detail` is an outline."""
ITEMS, TOKENS, CHARS, CHUNK, DISPUTE, DETAIL = range(6)
LEAST_TOKENS, LEAST_CHARS = 16, 40
"""Hardly any item is smaller than this, label and fence included; a request with less room left is finished."""
LEAST_SHARE = 4
"""A cut item keeps at least one part in this many of the text that it may show."""
OUTLINE_TOKENS, OUTLINE_SHARE = 80, 25
"""The text of an outline has at most this many tokens, or one part in `OUTLINE_SHARE` of the budget if that is more."""
CHARS_PER_TOKEN = 4
"""Characters per token, as estimated for cuts."""
FOR_OUTLINES = 2
"""At most one part in this many of the budget is reserved for outlines."""
RANKS = 8
"""At least so many items are measured together, and at least as many as may be shown: how much of an item is shown under
automatic detail depends on all items that may be shown with it."""
ROUNDS = 2
"""Where the first of these do not fill the block, so many times as many are tried: what is ranked below them is not worth
the little room that they leave."""
_LOG_KINDS = ("test-log", "tool-output", "session-event")

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


class Budget(NamedTuple):
    """The limits of a request, and its counter's name."""

    max_items: int
    max_tokens: int
    max_chars: int
    max_chunk_tokens: int
    detail: str
    counter: str


def budgets_of(contracts: pa.Table) -> list[Budget]:
    """The limits of contracts; excerpts of a model-brief are short in any case."""
    names = ("max_items", "max_tokens", "max_chars", "max_chunk_tokens", "detail", "tokenizer")
    budgets = [Budget(*values) for values in zip(*(contracts[name].to_pylist() for name in names), strict=True)]
    shapes = contracts["output_shape"].to_pylist()
    return [
        one._replace(max_chunk_tokens=min(one.max_chunk_tokens, BRIEF_TOKENS)) if shape == "model-brief" else one
        for one, shape in zip(budgets, shapes, strict=True)
    ]


@dataclass(frozen=True)
class Wanted:
    """The items that want to be shown, sorted by request and place: those of each request, and the kind of each item,
    its conflict set (-1 = none) and its text; and the limits and looks of the requests.

    `frames` returns, for some items, what is printed around the text of each in the worst case: one text or more, of
    which the longest counts.
    """

    items: list[range]
    kind: list[str]
    dispute: list[int]
    texts: ItemTexts
    frames: Callable[[list[int]], list[list[str]]]
    budgets: list[Budget]
    looks: list[Look]

    @cached_property
    def log(self) -> Bool:
        """Which items are logs."""
        return np.array([kind in _LOG_KINDS for kind in self.kind], dtype=bool)

    @cached_property
    def counters(self) -> list[str]:
        """The names of the counters of all requests."""
        return list(dict.fromkeys(one.counter for one in self.budgets))

    @cached_property
    def counter(self) -> Int:
        """The counter of each request, as a position in `counters`."""
        return np.array([self.counters.index(one.counter) for one in self.budgets], np.int64)


@dataclass
class Fit:
    """Per item: `number` in order of choice (0 = dropped), bytes kept, line breaks before, inside and after, `bound`
    code."""

    number: list[int]
    start: list[int]
    end: list[int]
    before: list[int]
    inside: list[int]
    after: list[int]
    bound: list[int]

    @classmethod
    def empty(cls, items: int) -> Fit:
        """No item chosen."""
        return cls(*[[0] * items for _ in range(6)], bound=[-1] * items)

    def drop(self, item: int, bound: int = -1) -> None:
        """Choose an item no more."""
        self.number[item] = self.start[item] = self.end[item] = 0
        self.before[item] = self.inside[item] = self.after[item] = 0
        self.bound[item] = bound


@dataclass
class _Room:
    """What a request has used of its budget so far, and its untried items: from `next` to `stop`."""

    request: int
    budget: Budget
    first: int
    stop: int
    tokens: int
    chars: int
    fenced: bool
    """Whether its items have texts."""
    mark: int
    """Tokens of the line that tells of a cut."""
    headings: dict[str, tuple[int, int]]
    """Tokens and characters of the heading of each kind; empty where nothing has a heading."""
    next: int
    count: int = 0
    """Items chosen."""
    places: int = 0
    """Their share of `max_items`: members of a conflict set use one place together."""
    open_set: int = -1
    """The conflict set of the item chosen last."""
    kinds: set[str] = field(default_factory=set)
    brief: bool = False
    """Whether all further items are outlines."""

    @property
    def left(self) -> tuple[int, int]:
        """Tokens and characters left."""
        return self.budget.max_tokens - self.tokens, self.budget.max_chars - self.chars

    def takes(self, tokens: int, chars: int) -> bool:
        """Whether so much is left."""
        return self.budget.max_tokens - self.tokens >= tokens and self.budget.max_chars - self.chars >= chars

    def heading(self, kind: str) -> tuple[int, int]:
        """What the heading of an item costs: tokens and characters."""
        return (0, 0) if kind in self.kinds else self.headings.get(kind, (0, 0))

    def joins(self, dispute: int) -> bool:
        """Whether an item belongs to the conflict set that was chosen last, and so uses no place of its own."""
        return dispute >= 0 and dispute == self.open_set

    def exhausted(self, dispute: int) -> int:
        """The limit that leaves no room for an item, whatever its size; -1 = none."""
        if self.places >= self.budget.max_items and not self.joins(dispute):
            return ITEMS
        tokens, chars = self.left
        return TOKENS if tokens < LEAST_TOKENS else CHARS if chars < LEAST_CHARS else -1

    def refuses(self, dispute: int, kind: str, tokens: int, chars: int) -> int:
        """The limit that leaves no room for an item, by what is printed around its text; -1 = none."""
        limit = self.exhausted(dispute)
        if limit < 0:
            more_tokens, more_chars = self.heading(kind) if self.headings else (0, 0)
            if self.budget.max_tokens - self.tokens < tokens + more_tokens:
                return TOKENS
            if self.budget.max_chars - self.chars < chars + more_chars:
                return CHARS
        return limit


class _Part(NamedTuple):
    """The text of an item: its number, its units, those within its cap, and the costs of both.

    The cost of the part within the cap includes the line that tells of a cut. `first` and `last` are the focus (see
    `focus_units`).
    """

    text: int
    opening: int
    closing: int
    first: int
    last: int
    whole_tokens: int
    start: int
    stop: int
    tokens: int
    chars: int
    cap: int
    cap_bound: int


class _Tried(NamedTuple):
    """Texts that are tried together, by item, with their units and where they may be cut."""

    parts: dict[int, _Part]
    units: Units
    cuts: Cuts


def fit(wanted: Wanted, counters: Counters, terms: RequestTerms = NO_TERMS) -> Fit:
    """The items that fit, with no conflict set in part. A cut keeps the passage with most of the request's `terms`."""
    found = Fit.empty(len(wanted.kind))
    gone: set[int] = set()
    asking = range(len(wanted.items))
    while asking:
        _fill(asking, gone, found, wanted, counters, terms)
        parted = {n: some for n in asking if (some := parted_sets(wanted.items[n], found.number, wanted.dispute))}
        for request, some in parted.items():
            gone.update(some)
            for item in wanted.items[request]:
                if item in some:
                    found.drop(item, DISPUTE if found.number[item] else found.bound[item])
                elif item not in gone:
                    found.drop(item)
        asking = list(parted)
    return found


def parted_sets(items: range, number: Sequence[int], dispute: Sequence[int]) -> list[int]:
    """The members of conflict sets that are only partly chosen, among the items of a request."""
    chosen: dict[int, set[bool]] = {}
    for item in items:
        if dispute[item] >= 0:
            chosen.setdefault(dispute[item], set()).add(number[item] > 0)
    return [item for item in items if dispute[item] >= 0 and len(chosen[dispute[item]]) > 1]


def _fill(
    asking: Sequence[int], gone: set[int], found: Fit, wanted: Wanted, counters: Counters, terms: RequestTerms
) -> None:
    """Choose items of some requests by rank alone, without those that are `gone`."""
    rooms = list(_rooms(asking, wanted, counters))
    for _ in range(ROUNDS):
        live = [one for one in rooms if _open(one, wanted)]
        if not live:
            break
        asked: dict[int, _Room] = {}
        for one in live:
            among = range(one.next, min(one.next + max(RANKS, one.budget.max_items), one.stop))
            asked |= {item: one for item in among if item not in gone}
            one.next = among.stop
        beside = _beside(asked, wanted, counters)
        # If not even the frame of a text fits, the text is not read, and not chosen.
        read = [item for item, one in asked.items() if one.takes(*beside[item])]
        tried = _tried(read, asked, beside, wanted, counters, terms) if read else None
        for item, one in asked.items():
            limit = one.refuses(wanted.dispute[item], wanted.kind[item], *beside[item])
            if limit >= 0 or tried is None:
                found.bound[item] = limit
            else:
                _choose(one, item, beside[item], tried, found, wanted)
    for one in rooms:
        limit = one.exhausted(-1)
        for item in range(one.next, one.stop):
            if item not in gone:
                found.bound[item] = TOKENS if limit < 0 else limit


def _rooms(asking: Sequence[int], wanted: Wanted, counters: Counters) -> Iterator[_Room]:
    """The requests before any item is chosen: only the frame of the block is used."""
    printed = (FRAME, BARE_FRAME, CUT_MARK, *[f"{name}\n" for name in GROUPS.values()])
    sizes = {
        name: counters.get(name).count(constants(printed, pa.large_string())).tolist()
        for name in {wanted.budgets[request].counter for request in asking}
    }
    for request in asking:
        budget, look, items = wanted.budgets[request], wanted.looks[request], wanted.items[request]
        full, bare, mark, *named = sizes[budget.counter]
        tokens, chars = (full, len(FRAME)) if look.fenced else (bare, len(BARE_FRAME))
        costs = zip(named, map(len, printed[3:]), strict=True) if look.shape == "model-brief" else ()
        headings = dict(zip(GROUPS, costs, strict=False))
        yield _Room(request, budget, items.start, items.stop, tokens, chars, look.fenced, mark, headings, items.start)


def _open(room: _Room, wanted: Wanted) -> bool:
    """Whether some untried item may still fit."""
    if room.next < room.stop and room.exhausted(-1) < 0:
        return True
    return room.exhausted(room.open_set) < 0 and room.open_set in wanted.dispute[room.next : room.stop]


def _beside(asked: dict[int, _Room], wanted: Wanted, counters: Counters) -> dict[int, tuple[int, int]]:
    """Tokens and characters of what is printed around the text of each item, in the worst case."""
    frames = wanted.frames(list(asked))
    which = wanted.counter[[room.request for room, some in zip(asked.values(), frames, strict=True) for _ in some]]
    every = pa.array([frame for some in frames for frame in some], pa.large_string())
    tokens = iter(counters.count(every, wanted.counters, which).tolist())
    return {
        item: (max([next(tokens) for _ in some]), max([len(frame) for frame in some]))
        for item, some in zip(asked, frames, strict=True)
    }


def _tried(
    read: list[int],
    asked: dict[int, _Room],
    beside: dict[int, tuple[int, int]],
    wanted: Wanted,
    counters: Counters,
    terms: RequestTerms,
) -> _Tried:
    """The texts of some items, measured and cut to their caps. Each distinct text is measured once per counter, however
    many requests share it.
    """
    item, request = np.array(read, np.int64), np.array([asked[item].request for item in read], np.int64)
    texts, which, logs = wanted.texts, wanted.counter[request], wanted.log[item]
    _, one, text = np.unique(texts.same[item] * len(wanted.counters) + which, return_index=True, return_inverse=True)
    distinct = item[one]
    units = units_of(texts.text.take(pa.array(distinct)), counters, wanted.counters, which[one])
    cuts = Cuts(units, texts, distinct)
    first, last = (
        unit[text] for unit in focus_units(units, logs[one], texts.lead_start[distinct], texts.lead_end[distinct])
    )
    opening = units.first[text]
    # Blank lines at the end are not shown.
    closing = np.maximum(units.solid.searchsorted(units.solid[units.first[1:]]), units.first[:-1])[text]
    closing = np.where([wanted.looks[n].fenced for n in request.tolist()], closing, opening)
    whole_tokens, whole_chars = units.cost(opening, closing)

    whole = dict(zip(read, zip(whole_tokens.tolist(), whole_chars.tolist(), strict=True), strict=True))
    caps: dict[int, tuple[int, int]] = {}
    for room, own in groupby(asked, key=asked.__getitem__):
        caps |= _caps(room, {item: (*beside[item], *whole.get(item, (0, 0))) for item in own})
    cap = np.array([caps[item][0] for item in read], np.int64)
    mark, most = np.array([(asked[item].mark, asked[item].budget.max_chunk_tokens) for item in read], np.int64).T
    start, stop = opening.copy(), closing.copy()
    long = np.flatnonzero(whole_tokens > cap)
    if len(long):
        start[long], stop[long] = best_windows(
            units, cuts, start[long], stop[long], (first[long], last[long]), logs[long],
            (np.maximum(cap - mark, 1)[long], most[long]), request[long], terms,
        )  # fmt: skip
    tokens, chars = units.cost(start, stop)
    cut = (start > opening) | (stop < closing)
    tokens, chars = tokens + mark * cut, chars + len(CUT_MARK) * cut
    columns = (text, opening, closing, first, last, whole_tokens, start, stop, tokens, chars, np.maximum(cap, tokens))
    numbers = zip(*[column.tolist() for column in columns], strict=True)
    return _Tried(
        {item: _Part._make((*own, caps[item][1])) for item, own in zip(read, numbers, strict=True)}, units, cuts
    )


def _caps(room: _Room, sizes: dict[int, tuple[int, int, int, int]]) -> dict[int, tuple[int, int]]:
    """The maximum tokens of each item's text, and the limit that binds where the text is longer.

    `sizes` are tokens and characters around the text of each item, and those of the text.
    """
    budget, most = room.budget, room.budget.max_chunk_tokens
    outline = min(
        most, max(OUTLINE_TOKENS, min(budget.max_tokens, budget.max_chars // CHARS_PER_TOKEN) // OUTLINE_SHARE)
    )
    caps = dict.fromkeys(sizes, outline if budget.detail == "outline" or room.brief else most)
    if budget.detail == "auto" and not room.brief:
        counted = [item for item in sizes if item - room.first < budget.max_items]
        own = [sizes[item] for item in counted]
        left_tokens, left_chars = room.left
        free = _free([(beside, size) for beside, _, size, _ in own], most, outline, budget.max_tokens, left_tokens)
        free_chars = _free(
            [(beside, size) for _, beside, _, size in own],
            most * CHARS_PER_TOKEN, outline * CHARS_PER_TOKEN, budget.max_chars, left_chars,
        )  # fmt: skip
        for item, tokens, chars in zip(counted, free, free_chars, strict=True):
            left = min(tokens, chars // CHARS_PER_TOKEN)
            if min(sizes[item][2], most) > left:
                room.brief = True
                caps |= {other: outline for other in sizes if other > item}
                caps[item] = min(max(left, outline), most)
                break
    return {item: (cap, CHUNK if cap == most else TOKENS if cap > outline else DETAIL) for item, cap in caps.items()}


def _free(sizes: list[tuple[int, int]], most: int, outline: int, limit: int, room: int) -> list[int]:
    """The room for each text if all items before it are shown in full and those behind it as outlines."""
    brief = [beside + min(text, outline) for beside, text in sizes]
    behind, free = sum(brief), []
    for (beside, text), least in zip(sizes, brief, strict=True):
        behind -= least
        free.append(room - min(behind, limit // FOR_OUTLINES) - beside)
        room -= beside + min(text, most)
    return free


def _choose(room: _Room, item: int, beside: tuple[int, int], tried: _Tried, found: Fit, wanted: Wanted) -> None:
    """Choose an item whose frame fits, cut if need be; else note the limit that leaves no room for it."""
    units, cuts, part = tried.units, tried.cuts, tried.parts[item]
    opening, closing, start, end, cap = part.opening, part.closing, part.start, part.stop, part.cap
    dispute, kind = wanted.dispute[item], wanted.kind[item]
    beside_tokens, beside_chars = map(add, beside, room.heading(kind))
    left_tokens, left_chars = map(sub, room.left, (beside_tokens, beside_chars))
    tokens, chars, shown, scarce = part.tokens, part.chars, part.tokens, TOKENS
    if not (fits := min(left_tokens, cap) >= tokens and left_chars >= chars):
        most = min(left_tokens, cap) - room.mark, left_chars - len(CUT_MARK)
        by_tokens, by_chars = _ends(units, start, part.stop, most)
        end = min(by_tokens, by_chars)
        if end < part.stop and end <= part.last and part.first > start:
            start = max(start, part.first - 2 * (kind in _LOG_KINDS))
            by_tokens, by_chars = _ends(units, start, closing, most)
            end = min(by_tokens, by_chars)
        scarce = CHARS if by_chars < by_tokens else TOKENS
        if start < end < closing:
            end = int(cuts.ends(np.array([start]), np.array([end]))[0])
        shown, chars = [int(cost[0]) for cost in units.cost(np.array([start]), np.array([end]))]
        cut = start > opening or end < closing
        tokens, chars = shown + room.mark * cut, chars + len(CUT_MARK) * cut
    whole = start == opening and end == closing
    much = LEAST_SHARE * shown >= min(part.whole_tokens, cap) or (fits and part.cap_bound == DETAIL) or not room.count
    capped = cap < left_tokens or ((start, end) == (part.start, part.stop) and end - start < closing - opening)
    bound = part.cap_bound if capped and scarce == TOKENS else scarce
    if (opening == closing and room.fenced) or not (whole or (much and units.solid[end] > units.solid[start])):
        found.bound[item] = bound
        return
    room.count += 1
    room.places += not room.joins(dispute)
    room.open_set = dispute
    room.kinds.add(kind)
    room.tokens += beside_tokens + tokens
    room.chars += beside_chars + chars
    found.number[item], found.bound[item] = room.count, -1 if whole else bound
    if end > start:
        found.start[item], found.end[item] = int(units.start[start]), int(units.end[end - 1])
        lines = units.line[[opening, start, end - 1, closing - 1]].tolist()
        found.before[item], found.inside[item], found.after[item] = [b - a for a, b in pairwise(lines)]


def _ends(units: Units, start: int, stop: int, most: tuple[int, int]) -> tuple[int, int]:
    """The end unit, exclusive, that fits from unit `start` on: by tokens and by characters."""
    tokens, chars = units.before_tokens[start] + max(most[0], 0), units.before_chars[start] + max(most[1], 0)
    stop = max(start, stop)
    return bisect_right(units.tokens, tokens, start, stop), bisect_right(units.chars, chars, start, stop)
