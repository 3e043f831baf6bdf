"""Which items of a request fit its budget, and how much of each: greedily by rank.

Reads items with their texts, worst-case frames and limits. Gives `fit`: per item the slice that is kept, the order in
which it was chosen and the limit that bound.

Policy `statement/1`: best item first, each up to its cap. An item that does not fit is cut at a line end, if at least a
quarter of the text that it may show remains or nothing was chosen before; else it is dropped, and the next, possibly
smaller, item is tried. A cut keeps the start of an item, unless that would cut its leading row short or miss a log's
first error line: then it starts there (in a log two lines above). A cap keeps the passage of whole statements that
covers most of the query (see `passages`).

Under automatic detail an item is shown in full as long as outlines of the items behind it still fit, or half of the
budget is left for them. The first item for which that fails is cut to the remaining room, and all items behind it are
outlines: nothing is cut where everything fits, and a small budget is not spent on outlines alone.

A conflict set is shown whole or not at all (S0.111): where a member has no room, the request is filled again without the set.

Note: costs are those of the rendering, margins and fences included, and everything not yet known (nonce, reference,
label number, notes) is reserved at its worst case. So no limit is exceeded, however small. An item is measured when it
comes up, together with those that may be shown beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from ..rendering import BARE_FRAME, BRIEF_TOKENS, CUT_MARK, FRAME, GROUPS
from .item_rendering import Look
from .line_units import Measured, Units
from .passages import AskedWords, Cuts, best_passage
from .token_counting import TokenCounter

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
ERROR_LINE = re.compile(
    r"^E   |\b[A-Z]\w*(Error|Exception|Failure)\b|\b(FAILED|FAIL|ERROR|FATAL|panic|Traceback)\b|●|✕|✗".encode()
)
"""An error line; a cut log keeps the first of them."""
_LOG_KINDS = ("test-log", "tool-output", "session-event")


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


def _together(budget: Budget) -> int:
    return max(RANKS, budget.max_items)


def tried_at_most(budget: Budget) -> int:
    """How many items are tried."""
    return ROUNDS * _together(budget)


class Wanted(NamedTuple):
    """An item that wants to be shown: its kind, conflict set and text, the bytes of the text that its leading row has,
    and the levels of its lines, see EVIDENCE."""

    kind: str
    dispute: str | None
    text: str
    lead: tuple[int, int]
    levels: Sequence[int]


class Choice(NamedTuple):
    """`number` in order of choice (0 = dropped), bytes kept, line breaks before, inside and after, `bound` code."""

    number: int = 0
    start: int = 0
    end: int = 0
    before: int = 0
    inside: int = 0
    after: int = 0
    bound: int = -1


class Prices:
    """What printed texts cost under a counter, in tokens and characters; and the parts of every block."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        printed = (FRAME, BARE_FRAME, CUT_MARK, *[f"{name}\n" for name in GROUPS.values()])
        self.frame, self.bare, self.mark, *headings = zip(self.tokens(printed), map(len, printed), strict=True)
        self.headings = dict(zip(GROUPS, headings, strict=True))

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        return self.counter.count(pa.array(texts, pa.large_string())).tolist()


@dataclass
class Fitting:
    """A request: its first items, in order (see `tried_at_most`), and the conflict sets of those behind them; `frames`,
    what is printed around the text of an item in the worst case (one text or more, of which the longest counts); its
    limits, its look and what it asks for."""

    items: Sequence[Wanted]
    sets_behind: Collection[str]
    frames: Callable[[int], list[str]]
    budget: Budget
    look: Look
    prices: Prices
    asked: AskedWords
    measured: dict[int, _Item] = field(default_factory=dict)

    def fit(self) -> tuple[list[Choice], int]:
        """What is shown of each item, with no conflict set in part, and the limit that bound those behind them."""
        gone: dict[int, Choice] = {}
        while True:
            found, behind = self._filled(gone)
            parted = self.parted(found)
            gone |= {n: Choice(bound=DISPUTE if found[n].number else found[n].bound) for n in parted}
            if not parted:
                return found, behind

    def parted(self, found: Sequence[Choice]) -> list[int]:
        """The members of conflict sets that are only partly chosen."""
        disputed = [n for n, item in enumerate(self.items) if item.dispute is not None]
        shown = {self.items[n].dispute for n in disputed if found[n].number}
        dropped = {self.items[n].dispute for n in disputed if not found[n].number}.union(self.sets_behind)
        return [n for n in disputed if self.items[n].dispute in shown & dropped]

    def first(self) -> range:
        """The items that are measured first."""
        return range(min(_together(self.budget), len(self.items)))

    def _filled(self, gone: dict[int, Choice]) -> tuple[list[Choice], int]:
        """Items chosen by rank alone, without those that are `gone`."""
        room, window = _Room(self), self.first()
        found = [gone.get(n, Choice()) for n in range(len(self.items))]
        while window and room.is_open([item.dispute for item in self.items[window.start :]]):
            asked = [n for n in window if n not in gone]
            _measure([(self, n) for n in asked], self.prices)
            caps = room.caps({n: self.measured[n] for n in asked})
            for n in asked:
                found[n] = room.choice(self.measured[n], *caps[n])
            window = range(window.stop, len(self.items))
        limit = room.exhausted(None)
        behind = TOKENS if limit < 0 else limit
        for n in window:
            found[n] = gone.get(n, Choice(bound=behind))
        return found, behind


def measure_first(requests: Sequence[Fitting]) -> None:
    """Measure the first items of some requests, with one call of each counter."""
    for prices in {request.prices for request in requests}:
        _measure([(request, n) for request in requests if request.prices is prices for n in request.first()], prices)


def _measure(items: Iterable[tuple[Fitting, int]], prices: Prices) -> None:
    """Count items that were not counted before, all with one call of the counter."""
    new = [(request, n) for request, n in items if n not in request.measured]
    frames = [request.frames(n) for request, n in new]
    units = [Units(request.items[n].text if request.look.fenced else "") for request, n in new]
    printed = [*(frame for ways in frames for frame in ways), *(text for own in units for text in own.printed)]
    tokens = iter(prices.tokens(printed) if printed else ())
    beside = [(max(islice(tokens, len(ways))), max(map(len, ways))) for ways in frames]
    for (request, n), own, frame in zip(new, units, beside, strict=True):
        request.measured[n] = _Item.of(request.items[n], Measured(own, list(islice(tokens, len(own.size)))), frame)


class _Item(NamedTuple):
    """A measured item: tokens and characters of what is printed around its text, the text up to its last line that is
    not blank, and what that costs."""

    wanted: Wanted
    beside: tuple[int, int]
    text: Measured
    closing: int
    whole: tuple[int, int]

    @classmethod
    def of(cls, wanted: Wanted, text: Measured, beside: tuple[int, int]) -> _Item:
        closing = text.units.without_blank(0, len(text.units.size))
        return cls(wanted, beside, text, closing, text.cost(0, closing))

    @property
    def is_log(self) -> bool:
        """Whether a cut keeps the first error line."""
        return self.wanted.kind in _LOG_KINDS

    def focus(self) -> tuple[int, int]:
        """The first and last unit that a cut should keep: a log's first error line, else the leading row."""
        units = self.text.units
        for unit in range(len(units.size)) if self.is_log else ():
            if ERROR_LINE.search(units.bytes_of(unit)):
                return unit, unit
        start, end = self.wanted.lead
        return units.at(start), units.at(max(end, 1) - 1)


class _Room:
    """What a request has used of its budget so far."""

    def __init__(self, request: Fitting) -> None:
        self._budget, self._prices, self._asked = request.budget, request.prices, request.asked
        self._fenced = request.look.fenced
        tokens, chars = request.prices.frame if self._fenced else request.prices.bare
        self._left_tokens, self._left_chars = self._budget.max_tokens - tokens, self._budget.max_chars - chars
        self._headings = request.prices.headings if request.look.shape == "model-brief" else {}
        self._chosen = 0
        self._places = 0
        """What counts for `max_items`: members of a conflict set use one place together."""
        self._open_set: str | None = None
        """The conflict set of the item chosen last."""
        self._brief = False
        """Whether all further items are outlines."""
        self._kinds: set[str] = set()

    def exhausted(self, dispute: str | None) -> int:
        """The limit that leaves no room for an item, whatever its size; -1 = none."""
        if self._places >= self._budget.max_items and not self._joins(dispute):
            return ITEMS
        return TOKENS if self._left_tokens < LEAST_TOKENS else CHARS if self._left_chars < LEAST_CHARS else -1

    def is_open(self, sets: Sequence[str | None]) -> bool:
        """Whether some of the items of these conflict sets may still fit."""
        return self.exhausted(None) < 0 or (self._open_set in sets and self.exhausted(self._open_set) < 0)

    def caps(self, items: dict[int, _Item]) -> dict[int, tuple[int, int]]:
        """The maximum tokens of each item's text, and the limit that binds where the text is longer."""
        budget, most = self._budget, self._budget.max_chunk_tokens
        limits = budget.max_tokens, budget.max_chars
        outline = min(most, max(OUTLINE_TOKENS, min(limits[0], limits[1] // CHARS_PER_TOKEN) // OUTLINE_SHARE))
        caps = dict.fromkeys(items, outline if budget.detail == "outline" or self._brief else most)
        if budget.detail == "auto" and not self._brief:
            counted = [n for n in items if n < budget.max_items]
            free = [
                _free([(items[n].beside[unit], items[n].whole[unit]) for n in counted], most * per, outline * per, limit, left)
                for unit, (per, limit, left) in enumerate(zip((1, CHARS_PER_TOKEN), limits, (self._left_tokens, self._left_chars), strict=True))
            ]  # fmt: skip
            for n, tokens, chars in zip(counted, *free, strict=True):
                left = min(tokens, chars // CHARS_PER_TOKEN)
                if min(items[n].whole[0], most) > left:
                    self._brief = True
                    caps |= {other: outline for other in items if other > n}
                    caps[n] = min(max(left, outline), most)
                    break
        return {n: (cap, CHUNK if cap == most else TOKENS if cap > outline else DETAIL) for n, cap in caps.items()}

    def choice(self, item: _Item, cap: int, cap_bound: int) -> Choice:
        """An item, cut if need be, if it fits; else the limit that leaves no room for it."""
        wanted, text, closing, mark = item.wanted, item.text, item.closing, self._prices.mark
        limit = self.exhausted(wanted.dispute)
        if limit >= 0:
            return Choice(bound=limit)
        heading = (0, 0) if wanted.kind in self._kinds else self._headings.get(wanted.kind, (0, 0))
        beside = item.beside[0] + heading[0], item.beside[1] + heading[1]
        left_tokens, left_chars = self._left_tokens - beside[0], self._left_chars - beside[1]
        if left_tokens < 0 or left_chars < 0:
            return Choice(bound=TOKENS if left_tokens < 0 else CHARS)
        cuts, passage = Cuts(text.units, wanted.levels), (0, closing)
        if item.whole[0] > cap:
            most = max(cap - mark[0], 1)
            passage = best_passage(
                text, cuts, closing, item.focus(), item.is_log, most, self._budget.max_chunk_tokens, self._asked
            )

        def cost(start: int, end: int) -> tuple[int, int, int]:
            """Tokens of the text alone; tokens and characters with the line that tells of a cut."""
            tokens, chars = text.cost(start, end)
            cut = start > 0 or end < closing
            return tokens, tokens + mark[0] * cut, chars + mark[1] * cut

        start, end = passage
        _, tokens, chars = cost(start, end)
        cap, shown, scarce = max(cap, tokens), tokens, TOKENS
        fits = min(left_tokens, cap) >= tokens and left_chars >= chars
        if not fits:
            room = min(left_tokens, cap) - mark[0], left_chars - mark[1]
            first, last = item.focus()
            ends = text.tokens.reach(start, end, room[0]), text.chars.reach(start, end, room[1])
            if min(ends) < end and min(ends) <= last and first > start:
                start = max(start, first - 2 * item.is_log)
                ends = text.tokens.reach(start, closing, room[0]), text.chars.reach(start, closing, room[1])
            end = min(ends)
            scarce = CHARS if ends[1] < ends[0] else TOKENS
            if start < end < closing:
                end = cuts.end(start, end)
            shown, tokens, chars = cost(start, end)
        whole = start == 0 and end == closing
        much = LEAST_SHARE * shown >= min(item.whole[0], cap) or (fits and cap_bound == DETAIL) or not self._chosen
        capped = cap < left_tokens or ((start, end) == passage and not whole)
        bound = cap_bound if capped and scarce == TOKENS else scarce
        if (not closing and self._fenced) or not (whole or (much and text.units.without_blank(start, end) > start)):
            return Choice(bound=bound)
        self._chosen += 1
        self._places += not self._joins(wanted.dispute)
        self._open_set = wanted.dispute
        self._kinds.add(wanted.kind)
        self._left_tokens = left_tokens - tokens
        self._left_chars = left_chars - chars
        bound = -1 if whole else bound
        if end <= start:
            return Choice(self._chosen, bound=bound)
        units = text.units
        top, first, last = units.line[start], units.line[end - 1], units.line[closing - 1]
        return Choice(self._chosen, units.start[start], units.end[end - 1], top, first - top, last - first, bound)

    def _joins(self, dispute: str | None) -> bool:
        """Whether an item belongs to the conflict set that was chosen last, and so uses no place of its own."""
        return dispute is not None and dispute == self._open_set


def _free(sizes: list[tuple[int, int]], most: int, outline: int, limit: int, room: int) -> list[int]:
    """The room for each text if all items before it are shown in full and those behind it as outlines.

    `sizes` are what is printed around each text, and the text.
    """
    brief = [beside + min(text, outline) for beside, text in sizes]
    behind, free = sum(brief), []
    for (beside, text), least in zip(sizes, brief, strict=True):
        behind -= least
        free.append(room - min(behind, limit // FOR_OUTLINES) - beside)
        room -= beside + min(text, most)
    return free
