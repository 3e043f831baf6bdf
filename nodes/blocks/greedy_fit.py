"""Which items fit a budget, and how much of each: greedily by rank, for all requests of a shard at once.

Reads items with their texts, pieces and limits. Gives `Fit`: per item the slice that is kept, the order in which it was
chosen and the limit that bound.

Policy `statement/1`: best item first, each up to its cap (see `detail_caps`). An item that does not fit is cut at a line
end, if at least a quarter of the text that it may show remains or nothing was chosen before; else it is dropped, and
the next, possibly smaller, item is tried. A cut keeps the start of an item, unless that would cut its leading row short
or miss a log's first error line: then it starts there (in a log two lines above). A cap keeps the passage that covers
most of the query (see `passages`); an outline of code begins at the signature around it (see `signatures`).

A conflict set is shown whole or not at all (S0.111): where a member has no room, the request is filled again without the set.

Note: costs are those of the rendering, margins and fences included, and everything not yet known (nonce, reference,
label number, notes) is reserved at its worst case. So no limit is exceeded, however small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import constants, first_of_runs, run_lengths
from ..columns.ragged import expand_ranges
from ..rendering import BARE_FRAME, CUT_MARK, FRAME
from .detail_caps import Caps, Sizes, item_caps
from .item_costs import AUTO, CHARS, CHUNK, DETAIL, DISPUTE, ITEMS, NO_ROOM, TOKENS, Budgets, Costs
from .item_texts import ItemTexts
from .line_units import Units, focus_units, units_of
from .passages import NO_TERMS, RequestTerms, best_windows, context
from .statements import Cuts
from .token_counting import Counters

LEAST_TOKENS, LEAST_CHARS = 16, 40
"""Hardly any item is smaller than this, label and fence included; a request with less room left is finished."""
LEAST_SHARE = 4
"""A cut item keeps at least one part in this many of the text that it may show."""
_UNREAD = np.iinfo(np.int64).min
RANKS_FIRST = 8
"""Ranks whose texts are measured together at first; later rounds measure four times as many each, only for requests
that still have room."""

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Fit:
    """Per item: `number` in order of choice (0 = dropped), bytes kept, line breaks before, inside and after, `bound`
    code."""

    number: Int
    start: Int
    end: Int
    before: Int
    inside: Int
    after: Int
    bound: Int


class _Progress:
    """The budget used by each request, and the outcome of each item.

    `count` is the number of items chosen, `places` their share of `max_items`, `open_set` the conflict set of the item
    chosen last (-1 = none); `dispute` is the conflict set of each item.
    """

    def __init__(self, frame_tokens: Int, frame_chars: Int, mark: Int, groups: int, dispute: Int) -> None:
        items = len(dispute)
        self.mark = mark
        """Tokens of the line that tells of a cut, per request."""
        self.dispute = dispute
        self.places = np.zeros(len(frame_tokens), dtype=np.int64)
        self.open_set = np.full(len(frame_tokens), -1, dtype=np.int64)
        self.tokens = frame_tokens.copy()
        self.chars = frame_chars.astype(np.int64)
        self.count = np.zeros(len(frame_tokens), dtype=np.int64)
        self.seen = np.zeros((len(frame_tokens), groups), dtype=bool)
        self.number, self.start, self.end = (np.zeros(items, np.int64) for _ in range(3))
        self.before, self.inside, self.after = (np.zeros(items, np.int64) for _ in range(3))
        self.bound = np.full(items, -1, dtype=np.int64)
        self.brief = np.zeros(len(frame_tokens), dtype=bool)
        """Requests whose next items are outlines."""

    def keep(self, item: Int, units: Units, whole: tuple[Int, Int], start: Int, end: Int) -> None:
        """Record the units [start, end) of each item, which has the units `whole`."""
        filled = end > start
        i, start, end = item[filled], start[filled], end[filled] - 1
        opening, closing = (edge[filled] for edge in whole)
        self.start[i], self.end[i] = units.start[start], units.end[end]
        self.before[i] = units.line[start] - units.line[opening]
        self.inside[i] = units.line[end] - units.line[start]
        self.after[i] = units.line[closing - 1] - units.line[end]

    def joins(self, item: Int, request: Int) -> Bool:
        """Whether each item belongs to the conflict set that was chosen last, and so uses no place of its own."""
        return (self.dispute[item] >= 0) & (self.dispute[item] == self.open_set[request])

    def fit(self) -> Fit:
        return Fit(self.number, self.start, self.end, self.before, self.inside, self.after, self.bound)


def fit(
    owner: Int,
    dispute: Int,
    texts: ItemTexts,
    costs: Costs,
    budgets: Budgets,
    counters: Counters,
    terms: RequestTerms = NO_TERMS,
) -> Fit:
    """The items that fit, with no conflict set in part; items are sorted by request and place, `owner` is the request
    of each and `dispute` its conflict set (-1 = none). A cut keeps the passage with most of the request's `terms`.
    """
    result = _filled(owner, dispute, texts, costs, budgets, counters, terms)
    bound = np.full(len(owner), -1, dtype=np.int64)
    while (parted := parted_sets(result.number, dispute)).any():
        bound[parted] = np.where(result.number[parted] > 0, DISPUTE, result.bound[parted])
        costs = replace(costs, tokens=np.where(bound >= 0, NO_ROOM, costs.tokens))
        result = _filled(owner, dispute, texts, costs, budgets, counters, terms)
    return replace(result, bound=np.where(bound >= 0, bound, result.bound))


def parted_sets(number: Int, dispute: Int) -> Bool:
    """The members of conflict sets that are only partly chosen."""
    size = int(dispute.max(initial=-1)) + 2
    all_, chosen = (np.bincount(each + 1, minlength=size) for each in (dispute, dispute[number > 0]))
    return ((chosen > 0) & (chosen < all_))[dispute + 1] & (dispute >= 0)


def _filled(
    owner: Int, dispute: Int, texts: ItemTexts, costs: Costs, budgets: Budgets, counters: Counters, terms: RequestTerms
) -> Fit:
    """The items that fit, by rank alone."""
    requests = len(budgets.which)
    items = np.bincount(owner, minlength=requests)
    first = items.cumsum() - items
    frames = (FRAME, BARE_FRAME, CUT_MARK)
    tokens = [counters.get(name).count(constants(frames, pa.large_string())) for name in budgets.names]
    fenced, bare, mark = np.array(tokens, dtype=np.int64)[budgets.which].T
    frame_tokens, frame_chars = (np.where(budgets.fenced, *each) for each in ((fenced, bare), map(len, frames[:2])))
    done = _Progress(frame_tokens, frame_chars, mark, int(costs.group.max(initial=0)) + 1, dispute)
    headed = bool(costs.heading_chars.any())
    low, most = 0, int(items.max(initial=0))
    # How much of an item is shown under automatic detail depends on all items that may be shown with it.
    ranks = max(RANKS_FIRST, int(np.minimum(budgets.max_items, items)[budgets.detail == AUTO].max(initial=0)))
    while low < most:
        live = _with_room(done, first + low, np.maximum(items - low, 0), owner, costs, budgets)
        if not len(live):
            break
        among = expand_ranges(first[live] + low, np.minimum(items[live] - low, ranks))
        trial = _tried(among, owner, texts, done, costs, budgets, counters)
        asking = owner[among]
        sizes = (
            Sizes(trial.whole_tokens, costs.tokens[among], budgets.max_tokens, budgets.max_tokens - done.tokens),
            Sizes(trial.whole_chars, costs.chars[among], budgets.max_chars, budgets.max_chars - done.chars),
        )
        caps = item_caps(asking, among - first[asking], *sizes, budgets, done.brief)
        trial = _cut(trial, asking, caps, done.mark, budgets, terms, costs.log[among])
        left = np.arange(len(among))
        while len(left):
            left = run_that_fits(done, owner[among[left]], left, trial, costs, budgets, headed)
            left = _round(done, owner[among[left]], left, trial, costs, budgets) if len(left) else left
        low, ranks = low + ranks, 4 * ranks
    return done.fit()


def _with_room(done: _Progress, first: Int, count: Int, owner: Int, costs: Costs, budgets: Budgets) -> Int:
    """The requests for which an untried item may still fit; the remaining items of the others are settled unread.

    Room only shrinks, so where no item's frame fits now, none ever will. `first` and `count` locate the remaining items
    of each request.
    """
    rest = expand_ranges(first, count)
    asking = owner[rest]
    exhausted = _exhausted(done, budgets, rest, asking)
    fresh = ~done.seen[asking, costs.group[rest]]
    room_tokens = (budgets.max_tokens - done.tokens)[asking] - costs.tokens[rest]
    room_chars = (budgets.max_chars - done.chars)[asking] - costs.chars[rest]
    room = (room_tokens >= 0) & (room_chars >= 0) & (exhausted < 0)
    live = np.bincount(asking[room], minlength=len(count)) > 0
    over = ~live[asking]
    # The binding limit is computed with the heading reserved, as in a round.
    room_tokens -= fresh * costs.heading_tokens[rest]
    limit = np.where((room_tokens >= 0) & (room_chars - fresh * costs.heading_chars[rest] < 0), CHARS, TOKENS)
    limit = np.where(exhausted >= 0, exhausted, limit)
    done.bound[rest[over]] = limit[over]
    return live.nonzero()[0]


@dataclass(frozen=True)
class _Trial:
    """The items tried together: each one's number, that of its text, its first unit and the one after its last, the cost
    of its whole text, and its focus (see `focus_units`); of the part within its cap, the units [`start`, `end`) and their cost.
    """

    item: Int
    text: Int
    units: Units
    cuts: Cuts
    opening: Int
    closing: Int
    whole_tokens: Int
    whole_chars: Int
    focus: tuple[Int, Int]
    caps: Caps
    start: Int
    end: Int
    tokens: Int
    chars: Int

    @property
    def whole(self) -> Bool:
        """Whether the cap admits the whole text."""
        return (self.start == self.opening) & (self.end == self.closing)

    def cost(self, index: Int, start: Int, end: Int, mark: Int) -> tuple[Int, Int]:
        """Tokens and characters of the units [start, end) of the items at `index`, with a line for what is cut."""
        tokens, chars = self.units.cost(start, end)
        cut = (start > self.opening[index]) | (end < self.closing[index])
        return tokens + mark * cut, chars + len(CUT_MARK) * cut

    def much(self, index: Int, tokens: Int) -> Bool:
        """Whether these tokens are a large enough share of the items at `index`; a whole outline always is."""
        shown = np.minimum(self.whole_tokens[index], self.caps.tokens[index])
        return (LEAST_SHARE * tokens >= shown) | ((self.caps.bound[index] == DETAIL) & (tokens == self.tokens[index]))


def _tried(
    item: Int, owner: Int, texts: ItemTexts, done: _Progress, costs: Costs, budgets: Budgets, counters: Counters
) -> _Trial:
    """Measure items: each distinct text once per counter, however many requests share it.

    If not even the frame of the text fits, the text is not read: it counts as empty, and is not chosen.
    """
    asking = owner[item]
    room = budgets.max_tokens[asking] - done.tokens[asking] >= costs.tokens[item]
    room &= budgets.max_chars[asking] - done.chars[asking] >= costs.chars[item]
    key = np.where(room, texts.same[item] * len(budgets.names) + budgets.which[asking], _UNREAD)
    key, one, place = np.unique(key, return_index=True, return_inverse=True)
    read = key != _UNREAD
    distinct = item[one]
    if read.all():
        text = texts.text.take(pa.array(distinct))
    else:
        text = pc.fill_null(texts.text.take(pa.array(distinct, mask=~read)), "")
    units = units_of(text, counters, budgets.names, budgets.which[owner[distinct]])
    lead_start, lead_end = (np.where(read, edge[distinct], 0) for edge in (texts.lead_start, texts.lead_end))
    first, last = focus_units(units, costs.log[distinct], lead_start, lead_end)
    opening = units.first[place]
    # Blank lines at the end are not shown.
    closing = np.maximum(units.solid.searchsorted(units.solid[units.first[1:]]), units.first[:-1])[place]
    closing = np.where(costs.fenced[item], closing, opening)
    cost = units.cost(opening, closing)
    caps = Caps(cost[0], np.full(len(item), CHUNK))
    one = np.full(len(units.first) - 1, 0)
    one[place] = item
    cuts = Cuts(units, costs.code[one], costs.log[one])
    return _Trial(
        item, place, units, cuts, opening, closing, *cost, (first[place], last[place]), caps, opening, closing, *cost
    )


def _cut(
    trial: _Trial, asking: Int, caps: Caps, mark: Int, budgets: Budgets, terms: RequestTerms, logs: Bool
) -> _Trial:
    """Cut each text to its cap: the passage of whole statements that covers most of the query."""
    long = np.flatnonzero(trial.whole_tokens > caps.tokens)
    if not len(long):
        return replace(trial, caps=caps)
    start, end = trial.opening.copy(), trial.closing.copy()
    focus = (trial.focus[0][long], trial.focus[1][long])
    room = np.maximum(caps.tokens - mark[asking], 1)
    trial.cuts.read(trial.text[long], start[long], end[long])
    start[long], end[long] = best_windows(
        trial.units, trial.cuts, start[long], end[long], focus, logs[long],
        (room[long], budgets.max_chunk_tokens[asking[long]]), asking[long], terms,
    )  # fmt: skip
    tokens, chars = trial.cost(np.arange(len(start)), start, end, mark[asking])
    caps = replace(caps, tokens=np.maximum(caps.tokens, tokens))
    return replace(trial, caps=caps, start=start, end=end, tokens=tokens, chars=chars)


def _exhausted(done: _Progress, budgets: Budgets, item: Int, requests: Int) -> Int:
    """The limit that leaves no room for each item, whatever its size; -1 = none. `requests` is the request of each."""
    limit = np.where(budgets.max_chars[requests] - done.chars[requests] < LEAST_CHARS, CHARS, -1)
    limit = np.where(budgets.max_tokens[requests] - done.tokens[requests] < LEAST_TOKENS, TOKENS, limit)
    full = (done.places[requests] >= budgets.max_items[requests]) & ~done.joins(item, requests)
    return np.where(full, ITEMS, limit)


def run_that_fits(
    done: _Progress, asking: Int, left: Int, trial: _Trial, costs: Costs, budgets: Budgets, headed: bool
) -> Int:
    """Choose the leading items of each request that fit, up to their caps, and return the rest of `left`.

    Their costs add up, so a running sum gives for all of them at once what `_round` would find one by one. `headed` is
    true if some item has a heading.
    """
    item = trial.item[left]
    group = costs.group[item]
    beside_tokens, beside_chars = costs.tokens[item], costs.chars[item]
    if headed:
        fresh = np.zeros(len(item), dtype=bool)
        fresh[np.unique(asking * done.seen.shape[1] + group, return_index=True)[1]] = True
        fresh &= ~done.seen[asking, group]
        beside_tokens = beside_tokens + fresh * costs.heading_tokens[item]
        beside_chars = beside_chars + fresh * costs.heading_chars[item]
    text_tokens, text_chars = trial.tokens[left], trial.chars[left]
    tokens, chars = beside_tokens + text_tokens, beside_chars + text_chars
    starts = first_of_runs(asking)
    lengths = run_lengths(starts, len(item))
    place = np.arange(len(item)) - starts.repeat(lengths)
    room_tokens = (budgets.max_tokens - done.tokens)[asking] - _before(tokens, starts, lengths)
    room_chars = (budgets.max_chars - done.chars)[asking] - _before(chars, starts, lengths)
    fits = (room_tokens >= np.maximum(tokens, LEAST_TOKENS)) & (room_chars >= np.maximum(chars, LEAST_CHARS))
    own = np.ones(len(item), dtype=np.int64)
    own[1:] -= (done.dispute[item[1:]] >= 0) & (done.dispute[item[1:]] == done.dispute[item[:-1]])
    own[starts] = ~done.joins(item[starts], asking[starts])
    fits &= own + _before(own, starts, lengths) <= (budgets.max_items - done.places)[asking]
    whole, solid = trial.whole[left], trial.units.solid
    fits &= ~costs.fenced[item] | (trial.end > trial.start)[left]
    much = trial.much(left, text_tokens) | ((done.count[asking] == 0) & (place == 0))
    fits &= whole | (much & (solid[trial.end[left]] > solid[trial.start[left]]))
    fits &= _before(~fits, starts, lengths) == 0

    i, r = item[fits], asking[fits]
    if not len(i):
        return left
    done.number[i] = done.count[r] + place[fits] + 1
    for used, cost in ((done.count, np.ones_like(own)), (done.places, own), (done.tokens, tokens), (done.chars, chars)):
        used += np.bincount(r, weights=cost[fits], minlength=len(used)).astype(np.int64)
    done.seen[r, group[fits]] = True
    done.bound[i] = np.where(whole, -1, trial.caps.bound[left])[fits]
    last = np.append(first_of_runs(r)[1:], len(r)) - 1
    done.open_set[r[last]] = done.dispute[i[last]]
    opening, closing, start, end = (edge[left[fits]] for edge in (trial.opening, trial.closing, trial.start, trial.end))
    done.keep(i, trial.units, (opening, closing), start, end)
    return left[~fits]


def _before(values: NDArray[np.generic], starts: Int, lengths: Int) -> Int:
    """The running sum of the values within each run, exclusive."""
    sums = values.cumsum() - values
    return sums - sums[starts].repeat(lengths)


def _round(done: _Progress, asking: Int, left: Int, trial: _Trial, costs: Costs, budgets: Budgets) -> Int:
    """Choose the first item of each request that fits, settle those before it, and return the rest of `left`.

    Room only shrinks, so an item that does not fit now would not fit later: trying all at once equals trying in turn.
    """
    item, units = trial.item[left], trial.units
    fresh = ~done.seen[asking, costs.group[item]]
    beside_tokens = costs.tokens[item] + fresh * costs.heading_tokens[item]
    beside_chars = costs.chars[item] + fresh * costs.heading_chars[item]
    room_tokens = budgets.max_tokens[asking] - done.tokens[asking] - beside_tokens
    room_chars = budgets.max_chars[asking] - done.chars[asking] - beside_chars
    cap, fenced = trial.caps.tokens[left], costs.fenced[item]

    opening, closing, start, stop = (edge[left] for edge in (trial.opening, trial.closing, trial.start, trial.end))
    mark = done.mark[asking]
    whole_tokens, whole_chars = trial.tokens[left], trial.chars[left]
    fits = (np.minimum(room_tokens, cap) >= whole_tokens) & (room_chars >= whole_chars)
    tokens, chars = np.minimum(room_tokens, cap) - mark, room_chars - len(CUT_MARK)
    by_tokens, by_chars = units.fitting(start, stop, tokens, chars)
    end = np.minimum(by_tokens, by_chars)
    first, last = (bound[left] for bound in trial.focus)
    if (missed := ~fits & (end < stop) & (end <= last) & (first > start)).any():
        start = np.where(missed, context(units, first, start, costs.log[item]), start)
        by_tokens, by_chars = units.fitting(start, np.where(missed, closing, stop), tokens, chars)
        end = np.minimum(by_tokens, by_chars)
    cut = np.flatnonzero(~fits & (end < closing) & (end > start))
    trial.cuts.read(trial.text[left[cut]], opening[cut], closing[cut])
    end[cut] = trial.cuts.last_end(end[cut], start[cut])
    end = np.where(fits, stop, end)

    whole = (start == opening) & (end == closing)
    whole_cap = ~trial.whole[left] & (start == trial.start[left])
    used_tokens, used_chars = trial.cost(left, start, end, mark)
    much = trial.much(left, units.cost(start, end)[0]) | (done.count[asking] == 0)
    worth = whole | (much & (units.solid[end] > units.solid[start]))
    text = ~fenced | (closing > opening)
    joins = done.joins(item, asking)
    exhausted = _exhausted(done, budgets, item, asking)
    chosen = (exhausted < 0) & (room_tokens >= 0) & (room_chars >= 0) & worth & text
    capped = (cap < room_tokens) | (whole_cap & (end == stop))
    limit = np.where(by_chars < by_tokens, CHARS, np.where(capped, trial.caps.bound[left], TOKENS))
    limit = np.where((room_tokens >= 0) & (room_chars < 0), CHARS, limit)
    limit = np.where(exhausted >= 0, exhausted, limit)

    place = np.arange(len(item))
    hits = chosen.nonzero()[0]
    lead = hits[first_of_runs(asking[hits])]
    reach = np.full(len(done.count), len(item))
    reach[asking[lead]] = lead
    before = place < reach[asking]
    done.bound[item[before]] = limit[before]

    r, i = asking[lead], item[lead]
    done.bound[i] = np.where(whole[lead], -1, limit[lead])
    done.count[r] += 1
    done.places[r] += ~joins[lead]
    done.open_set[r] = done.dispute[i]
    done.tokens[r] += (beside_tokens + used_tokens)[lead]
    done.chars[r] += (beside_chars + used_chars)[lead]
    done.seen[r, costs.group[i]] = True
    done.number[i] = done.count[r]
    done.keep(i, units, (opening[lead], closing[lead]), start[lead], end[lead])
    return left[place > reach[asking]]
