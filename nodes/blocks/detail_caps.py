"""How much of each item's text may be shown: the best in full, the next as outlines, where the detail is automatic.

Reads the costs of each request's items, in the order of their places. Gives `Caps`: the maximum number of tokens of
each item's text, and the limit that binds where a text is longer.

Note: an item is shown in full as long as outlines of the items behind it still fit, or half of the budget is left for
them. The first item for which that fails is cut to the remaining room, and all items behind it are outlines: nothing is
cut where everything fits, and a small budget is not spent on outlines alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..columns.keys import first_of_runs, run_lengths
from .item_costs import AUTO, CHUNK, DETAIL, NO_ROOM, OUTLINE, TOKENS, Budgets

OUTLINE_TOKENS = 80
"""The maximum number of tokens of an outline's text: a signature with its description, or the matching lines."""
CHARS_PER_TOKEN = 4
"""Characters per token, as estimated for cuts."""
FOR_OUTLINES = 2
"""At most one part in this many of the budget is reserved for outlines."""

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Caps:
    """Per item the maximum tokens of its text, and the code of the limit that binds where the text is longer."""

    tokens: Int
    bound: Int


@dataclass(frozen=True)
class Sizes:
    """The cost of each item, in tokens or in characters: its whole text and its frame; and the request's limit and the
    room left before its first item.
    """

    text: Int
    beside: Int
    limit: Int
    room: Int


def item_caps(asking: Int, rank: Int, tokens: Sizes, chars: Sizes, budgets: Budgets, brief: Bool) -> Caps:
    """The caps of items, sorted by request and rank (from 0).

    `brief` marks the requests that show outlines from here on, and is updated.
    """
    most = budgets.max_chunk_tokens[asking]
    outline = np.minimum(most, OUTLINE_TOKENS)
    cap = np.where((budgets.detail[asking] == OUTLINE) | brief[asking], outline, most)
    counted = (budgets.detail[asking] == AUTO) & ~brief[asking] & (rank < budgets.max_items[asking])
    counted &= tokens.beside < NO_ROOM
    if counted.any():
        free = _free(asking, counted, tokens, most, outline)
        free_chars = _free(asking, counted, chars, most * CHARS_PER_TOKEN, outline * CHARS_PER_TOKEN)
        free = np.minimum(free, free_chars // CHARS_PER_TOKEN)
        last = np.flatnonzero(counted & (np.minimum(tokens.text, most) > free))
        last = last[first_of_runs(asking[last])]
        brief[asking[last]] = True
        cut = np.full(len(brief), len(asking))
        cut[asking[last]] = last
        cap = np.where(np.arange(len(asking)) > cut[asking], outline, cap)
        cap[last] = np.clip(free, outline, most)[last]
    return Caps(cap, np.where(cap == most, CHUNK, np.where(cap > outline, TOKENS, DETAIL)))


def _free(asking: Int, counted: Bool, sizes: Sizes, most: Int, outline: Int) -> Int:
    """The room for each item's text if all items before it are shown in full and those behind it as outlines."""
    full, short = ((sizes.beside + np.minimum(sizes.text, each)) * counted for each in (most, outline))
    starts = first_of_runs(asking)
    lengths = run_lengths(starts, len(asking))
    behind = np.add.reduceat(short, starts).repeat(lengths) - _running(short, starts, lengths)
    waiting = np.minimum(behind, sizes.limit[asking] // FOR_OUTLINES)
    return sizes.room[asking] - waiting - (_running(full, starts, lengths) - full) - sizes.beside


def _running(values: Int, starts: Int, lengths: Int) -> Int:
    """The running sum of the values within each run, inclusive."""
    sums = values.cumsum()
    return sums - (sums[starts] - values[starts]).repeat(lengths)
