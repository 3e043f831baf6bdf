"""Which items of a request fit its budget, and how much of each: greedily by rank.

Reads items with their texts and limits. Gives `Fitting.fit`: per item the slice that is kept, the order in which it was
chosen and the limit that bound; and `measure`, which counts what the items of many requests cost.

Policy `statement/1`: best item first, each up to its cap. An item that does not fit is cut between statements to the
passage that covers most of the query (see `passages`), if at least a quarter of the text that it may show remains or
nothing was chosen before; else it is dropped, and the next, possibly smaller, item is tried.

Under automatic detail an item is shown in full as long as outlines of the items behind it still fit, or half of the
budget is left for them. The first item for which that fails is cut to the remaining room, and all items behind it are
outlines: nothing is cut where everything fits, and a small budget is not spent on outlines alone.

A conflict set is shown whole or not at all (S0.111): where a member has no room, the request is filled again without the set.

Note: costs are those of the rendering, margins and fences included, and everything not yet known (nonce, reference,
label number, notes) is reserved at its worst case. So no limit is exceeded, however small.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

import pyarrow as pa

from .item_texts import ItemText, Part
from .line_units import Units
from .masking import Span
from .passages import AskedWords, Limits, best_passage
from .rendering import (
    BARE_FRAME,
    BRIEF_TOKENS,
    CUT_MARK,
    FRAME,
    GROUPS,
    Item,
    Look,
    ambiguous_paths,
    lines_of,
    rendered,
    shared_day,
)
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
ERROR_LINE = re.compile(
    r"^E   |\b[A-Z]\w*(Error|Exception|Failure)\b|\b(FAILED|FAIL|ERROR|FATAL|panic|Traceback)\b|●|✕|✗".encode(),
    re.MULTILINE,
)
"""An error line; a cut log keeps the first of them."""
_LOG_KINDS = ("test-log", "tool-output", "session-event")


class Budget(NamedTuple):
    """The limits of a request and the name of its counter: columns of its contract."""

    max_items: int
    max_tokens: int
    max_chars: int
    max_chunk_tokens: int
    detail: str
    tokenizer: str


class Wanted(NamedTuple):
    """An item that wants to be shown, as it is printed with the longest label, line number and notes possible, and its text
    with the levels of the lines (see EVIDENCE) and the section of each of its members, of which the item has the first."""

    item: Item
    dispute: str | None
    happened: int
    text: ItemText
    levels: list[int]
    sections: list[str | None]

    @property
    def is_log(self) -> bool:
        """Whether a cut keeps the first error line."""
        return self.item.kind in _LOG_KINDS


class Choice(NamedTuple):
    """`number` in order of choice (0 = dropped), the bytes kept, and the code in `BOUNDS` of the limit that bound."""

    number: int = 0
    start: int = 0
    end: int = 0
    bound: int = -1


class Shown(NamedTuple):
    """What a block shows of item `n` of its request: the item as it is printed, the part of its text, the members in it, the
    bytes of it that are masked, and the end of the bytes of the document."""

    n: int
    item: Item
    part: Part
    members: list[int]
    masked: list[Span]
    byte_end: int | None


class Cost(NamedTuple):
    """Tokens and characters."""

    tokens: int
    chars: int


class Fitting:
    """A request: its items, in order, its limits, its look and what it asks for; and, once measured, the costs of its items."""

    frame: Cost
    mark: Cost
    headings: dict[str, Cost]
    beside: list[Cost]
    """What is printed around the text of each item."""

    def __init__(self, items: list[Wanted], budget: Budget, look: Look, asked: AskedWords) -> None:
        if look.shape == "model-brief":  # its excerpts are short in any case
            budget = budget._replace(max_chunk_tokens=min(budget.max_chunk_tokens, BRIEF_TOKENS))
        self.items, self.budget, self.look, self.asked = items, budget, look, asked
        printed = [one.item for one in items]
        self._dated, self._ambiguous = shared_day(printed) is None, ambiguous_paths(printed)
        texts = [one.text.text if look.fenced else "" for one in items]
        self.units = Units(texts, [one.levels for one in items])

    @cached_property
    def hits(self) -> list[tuple[int, int, int]]:
        """Where its items contain what it asks for."""
        return self.asked.hits(self.units)

    def frames(self, wanted: Wanted) -> list[str]:
        """What is printed around an item; the longest counts.

        Any member may be the first shown, which names the section: there is a text for each. What a cut says of itself
        is counted where it is made.
        """
        item, sourced = wanted.item, wanted.item.path in self._ambiguous
        ways = [item, *[item._replace(section=section) for section in {*wanted.sections} - {item.section}]]
        lines = [lines_of(one, self.look, dated=self._dated, sourced=sourced) for one in ways]
        return [one.head + one.foot for one in lines]

    def fit(self, counters: Counters) -> list[Choice]:
        """What is shown of each item. While a counter that is not additive finds the block too long, its last item is
        dropped, and that item's rivals.
        """
        found, counter = self._fit(), counters.get(self.budget.tokenizer)
        while not counter.additive and any(choice.number for choice in found):
            shown = self.shown(found)
            block, _ = rendered([one.item for one in shown], [one.part.text for one in shown], self.look)
            if counter.count(pa.array([block], pa.large_string()))[0] <= self.budget.max_tokens:
                break
            found[max(range(len(found)), key=lambda n: found[n].number)] = Choice(bound=TOKENS)
            for rival in self.parted(found):
                if found[rival].number:
                    found[rival] = Choice(bound=DISPUTE)
        return found

    def _fit(self) -> list[Choice]:
        """What is shown of each item, with no conflict set in part."""
        gone: dict[int, Choice] = {}
        while True:
            room = _Room(self)
            caps = self._caps([n for n in range(len(self.items)) if n not in gone])
            found = [gone[n] if n in gone else room.choice(n, *caps[n]) for n in range(len(self.items))]
            parted = self.parted(found)
            gone |= {n: Choice(bound=DISPUTE if found[n].number else found[n].bound) for n in parted}
            if not parted:
                return found

    def parted(self, found: Sequence[Choice]) -> list[int]:
        """The members of conflict sets that are only partly chosen."""
        disputed = [n for n, item in enumerate(self.items) if item.dispute is not None]
        shown = {self.items[n].dispute for n in disputed if found[n].number}
        dropped = {self.items[n].dispute for n in disputed if not found[n].number}
        return [n for n in disputed if self.items[n].dispute in shown & dropped]

    def shown(self, found: Sequence[Choice]) -> list[Shown]:
        """The chosen items in the order of their block: newest first where the contract requires it, else as chosen.

        A model-brief is ordered by group, then in this order within each group.
        """
        groups = list(GROUPS) if self.look.shape == "model-brief" else None

        def key(n: int) -> tuple[int, int, int]:
            wanted = self.items[n]
            return groups.index(wanted.item.kind) if groups else 0, -wanted.happened, found[n].number

        order = sorted([n for n, choice in enumerate(found) if choice.number], key=key)
        members = Counter([self.items[n].dispute for n in order])
        return [self._shown(n, found[n], members[self.items[n].dispute] == 1) for n in order]

    def _shown(self, n: int, choice: Choice, alone: bool) -> Shown:
        """An item as it is shown; whether it is the only one of its dispute, if it has one."""
        item, dispute, _, text, _, sections = self.items[n]
        number, start, end, bound = choice
        part = text.part(start, end)
        if not self.look.fenced:
            part = part._replace(text="", last=text.line_end)
        cut_form = item.form if item.form != "full" or bound < 0 else "outline" if bound == DETAIL else "excerpt"
        printed = item._replace(
            form=cut_form, conflict_note=alone and dispute is not None, number=number, first=part.first, last=part.last,
            section=sections[text.member(start)], above=part.above, below=part.below, cut=bound >= 0,
        )  # fmt: skip
        clipped = [(max(low, start) - start, min(high, end) - start) for low, high in text.covered]
        byte_end = None if part.byte_start is None else part.byte_start + end - start
        masked = [span for span in clipped if span[0] < span[1]]
        return Shown(n, printed, part, text.within(start, end), masked, byte_end)

    def _caps(self, asked: Sequence[int]) -> dict[int, tuple[int, int]]:
        """The maximum tokens of each item's text, and the limit that binds where the text is longer."""
        budget, most = self.budget, self.budget.max_chunk_tokens
        limit = min(budget.max_tokens, budget.max_chars // CHARS_PER_TOKEN)
        outline = min(most, max(OUTLINE_TOKENS, limit // OUTLINE_SHARE))
        caps = dict.fromkeys(asked, outline if budget.detail == "outline" else most)
        if budget.detail == "auto":
            units, room = self.units, limit - self.frame.tokens
            counted = [n for n in asked if n < budget.max_items]
            sizes = [units.tokens[units.closing[n]] - units.tokens[units.first[n]] for n in counted]
            # What outlines of all items take, those before each of them shown in full.
            outlined = [self.beside[n].tokens + min(size, outline) for n, size in zip(counted, sizes, strict=True)]
            behind = sum(outlined)
            for n, size, short in zip(counted, sizes, outlined, strict=True):
                beside = self.beside[n].tokens
                behind -= short
                left = room - min(behind, limit // FOR_OUTLINES) - beside
                if min(size, most) > left:
                    caps |= {other: outline for other in asked if other > n}
                    caps[n] = min(max(left, outline), most)
                    break
                room -= beside + min(size, most)
        return {n: (cap, CHUNK if cap == most else TOKENS if cap > outline else DETAIL) for n, cap in caps.items()}


def measure(requests: Sequence[Fitting], counters: Counters) -> None:
    """Count what the items of some requests cost, with one call of each counter."""
    always = (FRAME, BARE_FRAME, CUT_MARK, *[f"{name}\n" for name in GROUPS.values()])
    for name in {request.budget.tokenizer for request in requests}:
        own = [request for request in requests if request.budget.tokenizer == name]
        frames = [[one.frames(item) for item in one.items] for one in own]
        printed = [[*chain.from_iterable(ways), *one.units.printed] for ways, one in zip(frames, own, strict=True)]
        every = pa.array([*always, *chain.from_iterable(printed)], pa.large_string())
        tokens = iter(counters.get(name).count(every).tolist())
        frame, bare, mark, *headings = map(Cost, islice(tokens, len(always)), map(len, always))
        for one, every_way in zip(own, frames, strict=True):
            one.frame, one.mark = frame if one.look.fenced else bare, mark
            one.headings = dict(zip(GROUPS, headings, strict=True)) if one.look.shape == "model-brief" else {}
            one.beside = [Cost(max(islice(tokens, len(ways))), max(map(len, ways))) for ways in every_way]
            one.units.count(list(islice(tokens, len(one.units.printed))))


class _Room:
    """What a request has left of its budget."""

    def __init__(self, request: Fitting) -> None:
        self._request, self._units = request, request.units
        self._tokens = request.budget.max_tokens - request.frame.tokens
        self._chars = request.budget.max_chars - request.frame.chars
        self._chosen = 0
        self._places = 0
        """What counts for `max_items`: members of a conflict set use one place together."""
        self._open_set: str | None = None
        """The conflict set of the item chosen last."""
        self._kinds: set[str] = set()

    def exhausted(self, dispute: str | None) -> int:
        """The limit that leaves no room for an item, whatever its size; -1 = none."""
        if self._places >= self._request.budget.max_items and (dispute is None or dispute != self._open_set):
            return ITEMS
        return TOKENS if self._tokens < LEAST_TOKENS else CHARS if self._chars < LEAST_CHARS else -1

    def choice(self, n: int, cap: int, cap_bound: int) -> Choice:
        """An item, cut if need be, if it fits; else the limit that leaves no room for it."""
        request, units = self._request, self._units
        item, beside, mark = request.items[n], request.beside[n], request.mark
        limit = self.exhausted(item.dispute)
        if limit >= 0:
            return Choice(bound=limit)
        kind = item.item.kind
        heading = Cost(0, 0) if kind in self._kinds else request.headings.get(kind, Cost(0, 0))
        left_tokens = self._tokens - beside.tokens - heading.tokens
        left_chars = self._chars - beside.chars - heading.chars
        if left_tokens < 0 or left_chars < 0:
            return Choice(bound=TOKENS if left_tokens < 0 else CHARS)
        opening, closing = units.first[n], units.closing[n]
        start, end = opening, closing
        tokens, chars = units.cost(opening, closing)
        whole, bound = tokens, -1
        if tokens > cap or tokens > left_tokens or chars > left_chars:
            most = min(left_tokens, request.budget.max_chunk_tokens) - mark.tokens
            limits = Limits(min(cap - mark.tokens, most), left_chars - mark.chars, most)
            start, end = best_passage(units, opening, closing, self._focus(n), item.is_log, limits, request.hits)
            tokens, chars = units.cost(start, end)
            by_tokens, by_chars = units.reach(start, closing, limits.tokens, limits.chars)
            bound = CHARS if by_chars < by_tokens else cap_bound if cap <= left_tokens else TOKENS
            little = LEAST_SHARE * tokens < min(whole, cap) and bound in (TOKENS, CHARS)
            if end == start or (little and self._chosen):
                return Choice(bound=bound)
            if (start, end) == (opening, closing):  # a single unit may be longer than the cap
                bound = -1
            else:
                tokens, chars = tokens + mark.tokens, chars + mark.chars
        elif closing == opening and request.look.fenced:
            return Choice(bound=cap_bound)
        self._chosen += 1
        self._places += item.dispute is None or item.dispute != self._open_set
        self._open_set = item.dispute
        self._kinds.add(kind)
        self._tokens, self._chars = left_tokens - tokens, left_chars - chars
        if not request.look.fenced:  # cited as a whole
            return Choice(self._chosen, 0, item.text.size, bound)
        low, first = units.start[opening], units.start[start]
        shown = units.data[first : units.start[end]].removesuffix(b"\n").removesuffix(b"\r")
        return Choice(self._chosen, first - low, first - low + len(shown), bound)

    def _focus(self, n: int) -> tuple[int, int]:
        """The first and last unit that a cut should keep: a log's first error line, else the leading row."""
        item, units = self._request.items[n], self._units
        low, high = units.start[units.first[n]], units.start[units.closing[n]]
        wrong = ERROR_LINE.search(units.data, low, high) if item.is_log else None
        first, end = wrong.span() if wrong else (low + item.text.lead[0], low + max(item.text.lead[1], 1))
        return units.at(first), units.at(end - 1)
