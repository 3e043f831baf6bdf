"""Fits sources into one input: whole bodies in the order of keeping, first within the shares of the parts, then from the
tokens that are left, then longer forms, and last references.

Gives: `input_limit`, `words_room`, `tokens_of`, `fill`, `shown_texts`.

Note: a heading and a fence cost tokens too, charged to the first source under them. A share is not a reservation:
tokens that one part leaves go to the parts that are cut last. It does not keep out the short form of the latest
observation, which comes before everything retrieved (S3.35).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..blocks.token_counting import TokenCounter
from .frame import FENCES, GROUPS, PLACE, assemble, counted, frame_costs
from .reading import Row, Rows

UNLIMITED = 2**62
WORDS_SHARE = 0.4
"""Most of the target of an input that the user's own words take."""
BEGINNING = 1_200
"""Characters of a long message of the user that are shown, both ends: some 200 words, enough to state a task."""
NONE, BODY, LONGER, FALLBACK = "none", "body", "lengthened", "fallback"


def input_limit(turn: Mapping[str, Any]) -> int:
    """Most tokens that the input of a turn may have."""
    return max(turn["max_tokens"] - turn["reserved_output_tokens"], 0)


def words_room(turn: Mapping[str, Any]) -> int:
    """Most tokens that the user's own words may have."""
    return min(turn["user_words_tokens"], int(min(turn["target_tokens"], input_limit(turn)) * WORDS_SHARE))


def tokens_of(texts: Iterable[str | None], counter: TokenCounter) -> list[int]:
    """Tokens of each text; 0 where there is none."""
    return counter.count(pa.array([counted(text) if text else None for text in texts], pa.large_string())).tolist()


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


def fill(some: Rows, order: Sequence[int], room: Room, headings: Sequence[int], fences: Sequence[int]) -> Filled:
    """Fill one input. Of each source of `some`: `counts`, its part for the budget, and the tokens of its forms, -1 where it
    lacks one. `order`: the sources in the order of keeping. The short forms of the required are taken whether or not they fit,
    their longer forms before anything else.
    """
    shown, opened = [NONE] * len(some), set[int | str]()
    spent = dict.fromkeys([*room.shares, *room.hard, *(each["counts"] for each in some)], 0)
    used = 0

    def frame(section: int) -> int:
        """Tokens of the heading and the fence that a source would open."""
        fence = GROUPS[section].fence
        own = 0 if section in opened else headings[section]
        return own + (0 if not fence or fence in opened else fences[FENCES.index(fence)])

    def take(n: int, tokens: int, section: int, form: str) -> None:
        nonlocal used
        used += tokens + frame(section)
        opened.update((section, GROUPS[section].fence))
        spent[some[n]["counts"]] += tokens
        shown[n] = form

    def lengthen(n: int, most: int) -> None:
        nonlocal used
        one, more = some[n], some[n]["lengthened"] - some[n]["body"]
        if (
            shown[n] == BODY
            and one["lengthened"] > 0
            and used + more <= room.target
            and spent[one["counts"]] + more <= most
        ):
            used += more
            spent[one["counts"]] += more
            shown[n] = LONGER

    required = [n for n in order if some[n]["required"] and some[n]["body"] >= 0]
    for n in required:
        take(n, some[n]["body"], some[n]["section"], BODY)
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
            if one["required"] or one["body"] < 0 or shown[n] != NONE:
                continue
            first = one["counts"] == "latest_observation" and not spent[one["counts"]]
            most = (hard if first else parts).get(one["counts"], UNLIMITED)
            if used + one["body"] + frame(one["section"]) <= room.target and spent[one["counts"]] + one["body"] <= most:
                take(n, one["body"], one["section"], BODY)
        for n in order:
            lengthen(n, parts.get(some[n]["counts"], UNLIMITED))
    for n in order:
        one = some[n]
        if (
            shown[n] == NONE
            and one["fallback"] >= 0
            and used + one["fallback"] + frame(PLACE["references"]) <= room.target
        ):
            take(n, one["fallback"], PLACE["references"], FALLBACK)
    return Filled(shown, used, False, share)


def costs_of_frame(style: str, counter: TokenCounter) -> tuple[list[int], list[int]]:
    """Tokens of each heading and each fence in a style."""
    headings, fences = frame_costs(style)
    return tokens_of(headings, counter), tokens_of(fences, counter)


def shown_texts(sources: Iterable[Row], style: str) -> tuple[str, str]:
    """Both messages from the sources that an input shows, each with its section, place and lines, with a NUL in place of the
    nonce.
    """
    shown = sorted((row for row in sources if row["place"] >= 0), key=lambda row: (row["section"], row["place"]))
    return assemble(((row["section"], row["lines"]) for row in shown), style)
