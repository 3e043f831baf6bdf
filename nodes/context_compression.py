"""Context compression: the forms in which a source may be shown, always with a way back to the original.

Reads: sources, selection, turns, states, phases, rules, counters. Gives `compressed`, beside the sources: a
short form, and the whole text where the short form is not all of it.

Note: a short form is a projection and replaces nothing: the log and the artifacts stay unchanged. The user's words are
never shortened: they are whole, or a reference with a warning. Rules are whole sections, or references.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .blocks.token_counting import Counters
from .context_tables import (
    COMPRESSED,
    Compressed,
    ContextSources,
    ContextTurns,
    PhasePolicies,
    RuleTexts,
    Selection,
    TurnStates,
)
from .turns.fitting import input_limit, tokens_of, words_room
from .turns.reading import beside, with_sources

Row = Mapping[str, Any]

LEAST_RULES = 100
"""Tokens of repository rules that even a small input has: rules are a required part (S3.35), and a section needs some."""
BEGINNING = 1_200
"""Characters of goal, constraint and latest message that every input shows: some 200 words, enough to state a task."""


def compressed(
    context_sources: ContextSources,
    selection: Selection,
    context_turns: ContextTurns,
    turn_states: TurnStates,
    phase_policies: PhasePolicies,
    rule_texts: RuleTexts,
    counters: Counters,
) -> Compressed:
    """The forms of every source that passed the gates; `none` for the others."""
    sources, chosen = context_sources.to_pylist(), selection.to_pylist()
    phases = {phase["phase"]: phase for phase in phase_policies.to_pylist()}
    duty = rule_texts["duty"].to_pylist()
    texts = [
        each["text"] if each["part"] in ("user_goal", "rules") and each["source_id"] != "words" else None
        for each in sources
    ]
    tokens = tokens_of(texts, context_sources["input_id"].to_pylist(), context_turns, counters)
    made: list[tuple[str, str | None, str | None]] = []
    messages = [
        (each["input_id"], item) for each in sources if each["source_id"] == "words" for item in _items(each["text"])
    ]
    cost = iter(
        tokens_of([item for _, item in messages], [id_ for id_, _ in messages], context_turns, counters).tolist()
    )
    turns = with_sources(context_turns, context_sources)
    for (turn, part), state in zip(turns, turn_states["phase"].to_pylist(), strict=True):
        mine, own, count, phase = sources[part], chosen[part], tokens[part], phases[state]
        cut, room = _long_words(mine, own, count, turn)
        cut |= dict.fromkeys(_long_rules(mine, own, count, turn, phase["rules"], duty), 0)
        made += [
            _messages(source["text"], cost, room)
            if source["source_id"] == "words"
            else _forms(source, decision, cut.get(n), phase["full_characters"])
            for n, (source, decision) in enumerate(zip(mine, own, strict=True))
        ]
    forms, short, longer = ([each[n] for each in made] for n in range(3))
    named = [
        f"sum-{hashlib.sha256((text or '').encode()).hexdigest()[:16]}" if form in ("excerpt", "summary") else None
        for form, text, _ in made
    ]
    kept = ("full", "none")
    original = [None if form in kept else each["reference"] for form, each in zip(forms, sources, strict=True)]
    return beside(COMPRESSED, context_sources, form=forms, text=short, longer=longer, summary_id=named, original_ref=original)  # fmt: skip


def _forms(source: Row, decision: Row, cut: int | None, most: int) -> tuple[str, str | None, str | None]:
    """The form, its text, and the whole text if that is longer. `cut`: the characters to which it is cut; 0 = a reference."""
    text = source["text"]
    if decision["decided_by"]:
        return "none", None, None
    if cut:
        return "excerpt", text[:cut], None
    if decision["referenced"] or cut is not None:
        return "reference", None, None
    if source["source_kind"] not in ("latest_observation", "recent_tail", "file_content"):
        return "full", text, None
    if text is None:  # the event may state a part, and where the rest is
        told = source["excerpt"] or source["summary"]
        return ("excerpt" if source["excerpt"] else "summary") if told else "full", told, None
    tail, excerpt = source["source_kind"] == "recent_tail", source["excerpt"]
    excerpt = excerpt if excerpt and len(excerpt) < len(text) else None
    first = excerpt and source["source_kind"] == "latest_observation"  # its key part is in every input with room for it
    if not first and len(text) <= (most // 2 if tail else most):
        return "full", text, None
    if tail and source["summary"]:
        return "summary", source["summary"], text
    return "excerpt", excerpt or f"{text[: most // 2].rstrip()}\n[...]\n{text[-most // 2 :].lstrip()}", text


def _items(text: str) -> list[str]:
    """The messages of a source of words, each with its margin, after the line that says where all of them are."""
    return re.split(r"(?m)^(?=- )", text)[1:]


def _messages(text: str, cost: Iterator[int], room: int) -> tuple[str, str | None, str | None]:
    """The forms of the user's earlier messages: the line that says where they are, and with it the newest that fit."""
    where, *said = _items(text)
    next(cost)
    kept: list[str] = []
    for item, tokens in reversed([(item, next(cost)) for item in said]):
        if tokens <= room:
            kept.insert(0, item)
            room -= tokens
    return "excerpt" if said else "full", where, "".join([where, *kept]) if kept else None


def _long_words(sources: list[Row], chosen: list[Row], tokens: np.ndarray, turn: Row) -> tuple[dict[int, int], int]:
    """Of goal, constraints and the latest message those that have no room, with the characters to which they are cut, and
    the room that is left for earlier messages.
    """
    room = words_room(turn)
    found: dict[int, int] = {}
    for n, each in enumerate(sources):
        text = each["text"]
        if chosen[n]["decided_by"] or each["source_id"] == "words" or each["part"] != "user_goal" or not text:
            continue
        fits = tokens[n] <= room or len(text) <= BEGINNING
        if not fits:
            found[n] = BEGINNING
        room -= min(int(tokens[n]) if fits else int(tokens[n] * BEGINNING / len(text)), room)
    return found, room


def _long_rules(
    sources: list[Row], chosen: list[Row], tokens: np.ndarray, turn: Row, share: float, duty: list[bool]
) -> set[int]:
    """Sections of repository rules beyond their share: those without a duty word first, then the others, the last first."""
    limits = dict(each.partition("=")[::2] for each in turn["limits"])
    room = min(max(int(input_limit(turn) * share), LEAST_RULES), int(limits.get("rules", 2**31)))
    mine = [
        n
        for n, each in enumerate(sources)
        if each["source_kind"] == "repository_instructions" and not chosen[n]["decided_by"]
    ]
    taken = int(sum(tokens[n] for n in mine))
    found = set()
    key: Callable[[int], tuple[bool, int]] = lambda n: (duty[sources[n]["row"]], -n)  # noqa: E731
    for n in sorted(mine, key=key):
        if taken <= room:
            break
        taken -= int(tokens[n])
        found.add(n)
    return found
