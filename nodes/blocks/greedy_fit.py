"""Which items of a request fit its budget, and how much of each: greedily by rank.

Reads items with their texts and limits. Gives `Fitting.fit`: per item the slice that is kept, the order in which it was
chosen and the limit that bound; and `measure`, which counts what the items of many requests cost.

Policy `statement/2`: best item first, each whole. One that does not fit is cut between statements to the passage that covers
most of the query (see `passages`), if at least `LEAST_TOKENS` of it remain or nothing was chosen before. Of any other the
block says only where it is, so that a reader may open it; up to half of the room is kept for the places of the next
items. Then the next, possibly smaller, item is tried.

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
from .passages import AskedWords, best_passage
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

BOUNDS = ("max_items", "max_tokens", "max_chars", "max_chunk_tokens", "conflict_set")
"""Names of the limits that may bind an item, by code; -1 = none. An item bound by `conflict_set` fits, but its rivals
do not."""
ITEMS, TOKENS, CHARS, CHUNK, DISPUTE = range(5)
LEAST_TOKENS = 60
"""A budget leaves at least so many tokens of a text that it cuts."""
PLACES, TOKENS_PER_PLACE = 3, 400
"""For so many of the next items a text leaves room to say where they are, and for one in so many tokens of a larger budget."""
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
    tokenizer: str


class Wanted(NamedTuple):
    """An item that wants to be shown, as it is printed with the longest label, line number and notes possible, and its text
    with the levels of the lines (see EVIDENCE)."""

    item: Item
    dispute: str | None
    happened: int
    text: ItemText
    levels: list[int]

    @property
    def is_log(self) -> bool:
        """Whether a cut keeps the first error line."""
        return self.item.kind in _LOG_KINDS


class Choice(NamedTuple):
    """`number` in order of choice (0 = dropped), the bytes of its text that are shown, none if only its place is, and the code
    in `BOUNDS` of the limit that bound."""

    number: int = 0
    start: int = 0
    end: int = 0
    bound: int = -1


class Shown(NamedTuple):
    """What a block shows of item `n` of its request: the item as it is printed, the part of its text, the bytes of it
    that are masked, and the end of the bytes of the document."""

    n: int
    item: Item
    part: Part
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

    def around(self, item: Item) -> str:
        """What is printed around an item. What a cut says of itself is counted where it is made."""
        lines = lines_of(item, self.look, dated=self._dated, sourced=item.path in self._ambiguous)
        return lines.head + lines.foot

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
            found = [gone[n] if n in gone else room.choice(n) for n in range(len(self.items))]
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
        """An item as it is shown; whether it is the only one of its dispute, if it has one. A place is that of all its text."""
        item, dispute, _, text, _ = self.items[n]
        number, start, end, bound = choice
        whole, named = "excerpt" if bound >= 0 else "full", start == end
        if named:
            whole, end = "reference", text.size
        part = text.part(start, end)
        if named:
            part = part._replace(text="", last=text.line_end)
        printed = item._replace(
            form=whole if item.form == "full" else item.form, conflict_note=alone and dispute is not None, number=number, first=part.first, last=part.last,
            above=part.above, below=part.below, cut=bound >= 0,
        )  # fmt: skip
        clipped = [(max(low, start) - start, min(high, end) - start) for low, high in text.covered]
        byte_end = None if part.byte_start is None else part.byte_start + end - start
        masked = [span for span in clipped if span[0] < span[1] and not named]
        return Shown(n, printed, part, masked, byte_end)


def measure(requests: Sequence[Fitting], counters: Counters) -> None:
    """Count what the items of some requests cost, with one call of each counter."""
    always = (FRAME, BARE_FRAME, CUT_MARK, *[f"{name}\n" for name in GROUPS.values()])
    for name in {request.budget.tokenizer for request in requests}:
        own = [request for request in requests if request.budget.tokenizer == name]
        around = [[one.around(wanted.item) for wanted in one.items] for one in own]
        printed = [[*texts, *one.units.printed] for texts, one in zip(around, own, strict=True)]
        every = pa.array([*always, *chain.from_iterable(printed)], pa.large_string())
        tokens = iter(counters.get(name).count(every).tolist())
        frame, bare, mark, *headings = map(Cost, islice(tokens, len(always)), map(len, always))
        for one, texts in zip(own, around, strict=True):
            one.frame, one.mark = frame if one.look.fenced else bare, mark
            one.headings = dict(zip(GROUPS, headings, strict=True)) if one.look.shape == "model-brief" else {}
            one.beside = [*map(Cost, islice(tokens, len(texts)), map(len, texts))]
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

    def choice(self, n: int) -> Choice:
        """An item, cut if need be, or its place alone, if it fits; else the limit that leaves no room for it."""
        request, units = self._request, self._units
        item, beside = request.items[n], request.beside[n]
        joins = item.dispute is not None and item.dispute == self._open_set
        if self._places >= request.budget.max_items and not joins:
            return Choice(bound=ITEMS)
        kind = item.item.kind
        heading = Cost(0, 0) if kind in self._kinds else request.headings.get(kind, Cost(0, 0))
        left = Cost(self._tokens - beside.tokens - heading.tokens, self._chars - beside.chars - heading.chars)
        if left.tokens < 0 or left.chars < 0:
            return Choice(bound=TOKENS if left.tokens < 0 else CHARS)
        start, end, bound = self._passage(n, left) if request.look.fenced else (0, 0, -1)
        if start == end and bound >= 0 and item.dispute is not None:
            return Choice(bound=bound)
        tokens, chars = units.cost(start, end)
        if bound >= 0 and start < end:
            tokens, chars = tokens + request.mark.tokens, chars + request.mark.chars
        self._chosen += 1
        self._places += not joins
        self._open_set = item.dispute
        self._kinds.add(kind)
        self._tokens, self._chars = left.tokens - tokens, left.chars - chars
        if start == end:
            return Choice(self._chosen, 0, 0, bound)
        low, first = units.start[units.first[n]], units.start[start]
        shown = units.data[first : units.start[end]].removesuffix(b"\n").removesuffix(b"\r")
        return Choice(self._chosen, first - low, first - low + len(shown), bound)

    def _passage(self, n: int, left: Cost) -> tuple[int, int, int]:
        """The units of an item's text that are shown, and the limit that cuts them; no units where too few have room."""
        request, units = self._request, self._units
        opening, closing = units.first[n], units.closing[n]
        behind = 0
        if self._chosen and request.items[n].dispute is None:
            places = max(PLACES, request.budget.max_tokens // TOKENS_PER_PLACE)
            behind = sum([cost.tokens for cost in request.beside[n + 1 : n + 1 + places]])
        room, most = left.tokens - min(behind, left.tokens // 2), request.budget.max_chunk_tokens
        whole, long = units.cost(opening, closing)
        if opening < closing and whole <= min(room, most) and long <= left.chars:
            return opening, closing, -1
        limits = Cost(min(room, most) - request.mark.tokens, left.chars - request.mark.chars)
        start, end = best_passage(units, opening, closing, self._error(n), limits, request.hits)
        by_tokens, by_chars = units.reach(start, closing, *limits)
        bound = CHARS if by_chars < by_tokens else CHUNK if most <= room else TOKENS
        little = units.cost(start, end)[0] < min(whole, LEAST_TOKENS) and bound != CHUNK
        return start, start if little and self._chosen else end, bound

    def _error(self, n: int) -> int | None:
        """The unit of a log's first error line, else its first; None for any other item."""
        units, opening = self._units, self._units.first[n]
        if not self._request.items[n].is_log:
            return None
        wrong = ERROR_LINE.search(units.data, units.start[opening], units.start[units.closing[n]])
        return units.at(wrong.end() - 1) if wrong else opening
