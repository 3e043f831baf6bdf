"""Fits sources into one input: whole bodies in the order of keeping, first within the shares of the parts, then from the
tokens that are left, then longer forms, and last references.

Gives: `input_limit`, `words_room`, `tokens_of`, `Candidate`, `fill`, `shown_texts`.

Note: a heading and a fence cost tokens too, charged to the first source under them. A share is not a reservation:
tokens that one part leaves go to the parts that are cut last. It does not keep out the short form of the latest
observation, which comes before everything retrieved (S3.35).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..blocks.token_counting import Counters
from .frame import FENCES, GROUPS, PLACE, assemble, counted, frame_costs
from .words import REQUIRED_PARTS

__all__ = ["Candidate", "Room", "fill", "input_limit", "is_required", "shown_texts", "tokens_of", "words_room"]

UNLIMITED = 2**62
WORDS_SHARE = 0.4
"""Most of the target of an input that the user's own words take."""
BEGINNING = 1_200
"""Characters of a long message of the user that are shown, both ends: some 200 words, enough to state a task."""
NONE, BODY, LONGER, FALLBACK = "none", "body", "longer", "fallback"


def input_limit(turn: Mapping[str, Any]) -> int:
    """Most tokens that the input of a turn may have."""
    return max(turn["max_tokens"] - turn["reserved_output_tokens"], 0)


def words_room(turn: Mapping[str, Any]) -> int:
    """Most tokens that the user's own words may have."""
    return min(turn["user_words_tokens"], int(min(turn["target_tokens"], input_limit(turn)) * WORDS_SHARE))


def tokens_of(
    texts: Sequence[str | None], input_ids: Sequence[str], turns: pa.Table, counters: Counters
) -> NDArray[np.int64]:
    """Tokens of each text under the counter of its input; each distinct text is counted once."""
    names = dict(zip(*(turns[name].to_pylist() for name in ("input_id", "tokenizer")), strict=True))
    which = sorted(set(names.values()))
    index: dict[tuple[str, int], int] = {}
    place = np.array([
        index.setdefault((text, which.index(names[id_])), len(index)) if text else -1 for text, id_ in zip(texts, input_ids, strict=True)
    ], dtype=np.int64)  # fmt: skip
    if not index:
        return np.zeros(len(texts), dtype=np.int64)
    distinct = pa.array([counted(text) for text, _ in index], pa.large_string())
    cost = counters.count(distinct, which, np.array([number for _, number in index], dtype=np.int64))
    return np.where(place < 0, 0, np.append(cost, 0)[place])


def is_required(source: Mapping[str, Any], line: Mapping[str, Any]) -> bool:
    """Whether every input has a source, at least its short form: rules, goal, constraints, messages and state."""
    return source["part"] in REQUIRED_PARTS and 0 <= line["section"] < PLACE["observation"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A source that may be shown. Tokens are those of its lines; -1 where it lacks a form."""

    section: int
    part: str
    required: bool
    body: int
    longer: int
    fallback: int


@dataclass(frozen=True, slots=True)
class Room:
    """What an input may hold: all of it, what is filled by worth, and each part's share and hard limit."""

    limit: int
    target: int
    shares: Mapping[str, float]
    hard: Mapping[str, int]


@dataclass
class Filled:
    """The shown form of each candidate, the tokens of all, the limit of each part; `failed`: the required, counted whole, do not fit."""

    shown: list[str]
    used: int
    failed: bool
    part_limits: dict[str, int]


class _Frame:
    """Tokens of headings and fences that are not open yet."""

    def __init__(self, headings: Sequence[int], fences: Sequence[int]) -> None:
        self.headings, self.fences = headings, fences
        self.open: set[str] = set()

    def cost(self, section: int) -> int:
        group = GROUPS[section]
        own = 0 if f"heading {section}" in self.open else self.headings[section]
        return own + (0 if not group.fence or group.fence in self.open else self.fences[FENCES.index(group.fence)])

    def enter(self, section: int) -> None:
        self.open |= {f"heading {section}", GROUPS[section].fence}


def fill(
    some: Sequence[Candidate], order: Sequence[int], room: Room, headings: Sequence[int], fences: Sequence[int]
) -> Filled:
    """Fill one input. `order`: the candidates in the order of keeping. The short forms of the required are taken whether or not
    they fit, their longer forms before anything else.
    """
    frame, shown = _Frame(headings, fences), [NONE] * len(some)
    spent = dict.fromkeys([*room.shares, *room.hard, *(each.part for each in some)], 0)
    used = 0

    def take(n: int, tokens: int, section: int, form: str) -> None:
        nonlocal used
        used += tokens + frame.cost(section)
        frame.enter(section)
        spent[some[n].part] += tokens
        shown[n] = form

    def lengthen(n: int, most: int) -> None:
        nonlocal used
        one, more = some[n], some[n].longer - some[n].body
        if shown[n] == BODY and one.longer > 0 and used + more <= room.target and spent[one.part] + more <= most:
            used += more
            spent[one.part] += more
            shown[n] = LONGER

    required = [n for n in order if some[n].required and some[n].body >= 0]
    for n in required:
        take(n, some[n].body, some[n].section, BODY)
    for n in required:
        lengthen(n, UNLIMITED)
    left = max(room.limit - used, 0)
    total = max(sum(room.shares.values()), 1e-9)
    hard = {part: most for part, most in room.hard.items() if part in room.shares}  # of a required part it cuts nothing
    share = {part: min(int(left * each / total), hard.get(part, UNLIMITED)) for part, each in room.shares.items()}
    if used > room.limit:
        return Filled(shown, used, False, share)
    for parts in (share, hard):
        for n in order:
            one = some[n]
            if one.required or one.body < 0 or shown[n] != NONE:
                continue
            first = one.part == "latest_observation" and not spent[one.part]
            most = (hard if first else parts).get(one.part, UNLIMITED)
            if used + one.body + frame.cost(one.section) <= room.target and spent[one.part] + one.body <= most:
                take(n, one.body, one.section, BODY)
        for n in order:
            lengthen(n, parts.get(some[n].part, UNLIMITED))
    for n in order:
        one = some[n]
        if (
            shown[n] == NONE
            and one.fallback >= 0
            and used + one.fallback + frame.cost(PLACE["references"]) <= room.target
        ):
            take(n, one.fallback, PLACE["references"], FALLBACK)
    return Filled(shown, used, False, share)


def costs_of_frame(style: str, counter: Any) -> tuple[list[int], list[int]]:
    """Tokens of each heading and each fence in a style."""
    return tuple(  # type: ignore[return-value]
        counter.count(pa.array([counted(line) for line in lines], pa.large_string())).tolist()
        for lines in frame_costs(style)
    )


def shown_texts(
    shown: Sequence[str], isolated: Sequence[Mapping[str, Any]], ordering: Sequence[Mapping[str, Any]], style: str
) -> tuple[str, str]:
    """Both messages from the form in which an input shows each source, with a NUL in place of the nonce."""
    bodies = [
        (PLACE["references"] if form == FALLBACK else lines["section"], order["place"], lines[form])
        for form, lines, order in zip(shown, isolated, ordering, strict=True)
        if form != NONE
    ]
    return assemble(((section, body) for section, _, body in sorted(bodies, key=lambda each: each[:2])), style)
