"""Fits sources into inputs: many turns at once, one source of each at a time.

Gives: `input_limits`, `part_limits`, `required`, `tokens_of`, and `fill`, which takes whole bodies in the order of
keeping, first within the shares of the parts, then from the remaining tokens, and last references to the sources that
had no room.

Note: a heading and a fence cost tokens too, charged to the first source under them. A share is not a reservation:
tokens that one part leaves go to the parts that are cut last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..blocks.token_counting import Counters
from ..columns.keys import among, flat, integers, rank_within, truth
from ..columns.ragged import Ragged
from .frame import FENCES, GROUPS, PLACE, STYLES, counted, frame_costs
from .words import LOWEST, REQUIRED_PARTS

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

UNLIMITED = np.iinfo(np.int64).max // 4
NOTHING, BODY, FALLBACK, QUOTED = 0, 1, 2, 3
FORMS_SHOWN = ("none", "body", "fallback", "quoted")
"""Their names: no line, its own body, a reference in its place, or no line because another source quotes it."""
_FENCE_OF = np.array([FENCES.index(g.fence) if g.fence else -1 for g in GROUPS])


def input_limits(turns: pa.Table) -> Int:
    """Most tokens that the input of each turn may have."""
    return np.maximum(integers(turns["max_tokens"]) - integers(turns["reserved_output_tokens"]), 0)


def required(sources: pa.Table, ordering: pa.Table) -> Bool:
    """The sources without which there is no input: rules, goal, state, constraints."""
    return _of_required_parts(sources) & ~on_demand(sources, ordering)


def on_demand(sources: pa.Table, ordering: pa.Table) -> Bool:
    """Rules for other work, which the input only names."""
    return _of_required_parts(sources) & (integers(ordering["level"]) == LOWEST)


def _of_required_parts(sources: pa.Table) -> Bool:
    return among(sources["part"], REQUIRED_PARTS) & truth(sources["required"])


def part_limits(turns: pa.Table, part: str) -> Int:
    """The hard limit of a part in each turn, where its `limits` name one."""
    lists = Ragged.of(turns["limits"])
    prefix = f"{part}="
    known = [
        int(text.removeprefix(prefix)) if text.startswith(prefix) else UNLIMITED
        for text in lists.vocabulary.to_pylist()
    ]
    found = np.full(turns.num_rows, UNLIMITED, dtype=np.int64)
    np.minimum.at(found, lists.rows, np.array([*known, UNLIMITED], dtype=np.int64)[lists.codes])
    return found


def tokens_of(texts: pa.Array, turn: Int, turns: pa.Table, counters: Counters) -> Int:
    """Tokens of each text under the counter of its turn; each distinct text is counted once."""
    if not len(turn):
        return np.zeros(0, dtype=np.int64)
    names = flat(turns["tokenizer"]).dictionary_encode()
    which = np.asarray(names.indices).astype(np.int64)[turn]
    encoded = flat(texts).cast(pa.large_string()).fill_null("").dictionary_encode()
    text = np.asarray(encoded.indices).astype(np.int64)
    width = len(names.dictionary)
    pairs, place = np.unique(text * width + which, return_inverse=True)
    cost = counters.count(
        counted(encoded.dictionary.take(pa.array(pairs // width))), names.dictionary.to_pylist(), pairs % width
    )
    return cost[place]


@dataclass(frozen=True)
class Candidates:
    """Sources that may be shown, sorted by turn and order of keeping."""

    turn: Int
    group: Int
    part: Int
    required: Bool
    body: Int
    """Tokens of the body."""
    fallback: Int
    """Tokens of the reference that may replace it; -1 where there is none."""
    last: Bool
    """Shown only in room that all others leave."""


@dataclass(frozen=True)
class Frames:
    """Tokens of headings and fences, by turn."""

    heading: Int
    """[turns, groups]"""
    fence: Int
    """[turns, fences]"""

    @classmethod
    def of(cls, turns: pa.Table, counters: Counters) -> Frames:
        """Counts them with the counter of each turn."""
        style = np.asarray(pc.index_in(flat(turns["fences"]), value_set=pa.array(STYLES))).astype(np.int64)
        made = []
        for place in (0, 1):
            lines = [frame_costs(name)[place] for name in STYLES]
            per = len(lines[0])
            texts = pa.array([line for each in lines for line in each], pa.large_string())
            rows = (style[:, None] * per + np.arange(per)).reshape(-1)
            cost = tokens_of(texts.take(pa.array(rows)), np.repeat(np.arange(len(style)), per), turns, counters)
            made.append(cost.reshape(len(style), per))
        return cls(*made)


@dataclass
class Filled:
    """The shown form of each candidate, and the tokens used by each turn; `failed`: the required sources do not fit."""

    shown: Int
    used: Int
    failed: Bool
    share: Int
    """[turns, parts]: the tokens that each part had in the first pass."""


def fill(some: Candidates, frames: Frames, limit: Int, hard: Int, shares: NDArray[np.float64]) -> Filled:
    """Fill every turn up to its limit. `hard` and `shares` [turns, parts]: limits of parts, shares by phase."""
    turns = len(limit)
    state = _State(some, frames, turns)
    for index in state.columns(some.required):
        state.take(index, some.body[index], BODY)
    failed = state.used > limit
    room = np.where(failed, 0, limit - state.used)
    total = np.maximum(shares.sum(axis=1), 1e-9)
    share = np.minimum(np.floor(room[:, None] * shares / total[:, None]).astype(np.int64), hard)
    elastic = ~some.required & ~some.last & ~failed[some.turn]
    if not _all_fit(state, some, elastic, limit, share):
        for index in state.columns(elastic):
            state.take_if_room(index, some.body[index], BODY, limit, share)
    for index in state.columns(elastic & (state.shown == NOTHING)):
        state.take_if_room(index, some.body[index], BODY, limit, hard)
    for index in state.columns(elastic & (state.shown == NOTHING) & (some.fallback >= 0)):
        state.take_if_room(index, some.fallback[index], FALLBACK, limit, hard)
    for index in state.columns(some.last & ~failed[some.turn]):
        state.take_if_room(index, some.body[index], BODY, limit, hard)
    state.shown[failed[some.turn]] = NOTHING
    return Filled(state.shown, state.used, failed, share)


def _all_fit(state: _State, some: Candidates, elastic: Bool, limit: Int, share: Int) -> bool:
    """Whether everything fits regardless of the shares: then the second pass takes all of it."""
    cost = np.bincount(some.turn[elastic], weights=some.body[elastic], minlength=len(limit))
    frame = state.frames.heading.sum(axis=1) + state.frames.fence.sum(axis=1)
    return bool((state.used + cost + frame <= limit).all())


class _State:
    """What is shown so far in every turn, with the tokens used."""

    def __init__(self, some: Candidates, frames: Frames, turns: int) -> None:
        self.some, self.frames = some, frames
        self.shown = np.full(len(some.turn), NOTHING, dtype=np.int64)
        self.used = np.zeros(turns, dtype=np.int64)
        self.parts = np.zeros((turns, int(some.part.max(initial=0)) + 1), dtype=np.int64)
        self.groups = np.zeros((turns, len(GROUPS)), dtype=bool)
        self.fences = np.zeros((turns, len(FENCES) + 1), dtype=bool)
        self.fences[:, -1] = True  # groups without a fence count as having an open one

    def columns(self, mask: Bool) -> list[Int]:
        """The candidates selected by a mask: the first of every turn, then the second of every turn, and so on."""
        index = np.flatnonzero(mask)
        rank = rank_within(self.some.turn[index])
        order = np.argsort(rank, kind="stable")
        return np.split(index[order], np.cumsum(np.bincount(rank))[:-1]) if len(index) else []

    def cost(self, index: Int, group: Int, body: Int) -> Int:
        """Tokens of bodies, including the heading and the fence that they open."""
        turn, fence = self.some.turn[index], _FENCE_OF[group]
        heading = np.where(self.groups[turn, group], 0, self.frames.heading[turn, group])
        return body + heading + np.where(self.fences[turn, fence], 0, self.frames.fence[turn, fence])

    def group(self, index: Int, how: int) -> Int:
        """The groups of candidates; all references share one."""
        return self.some.group[index] if how == BODY else np.full(len(index), PLACE["references"])

    def take(self, index: Int, body: Int, how: int) -> None:
        """Show these candidates, at most one per turn."""
        turn, group = self.some.turn[index], self.group(index, how)
        self.used[turn] += self.cost(index, group, body)
        self.parts[turn, self.some.part[index]] += body
        self.groups[turn, group] = True
        self.fences[turn, _FENCE_OF[group]] = True
        self.shown[index] = how

    def take_if_room(self, index: Int, body: Int, how: int, limit: Int, parts: Int) -> None:
        """Show the candidates that fit into the remaining tokens of their turn and part."""
        turn, part = self.some.turn[index], self.some.part[index]
        fits = self.used[turn] + self.cost(index, self.group(index, how), body) <= limit[turn]
        fits &= self.parts[turn, part] + body <= parts[turn, part]
        self.take(index[fits], body[fits], how)
