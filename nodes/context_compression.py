"""Context compression: the forms in which a source may be shown, always with a way back to the original.

Reads: sources, selection, turns, states, phases, rules, counters. Gives `compressed`, beside the sources: a
short form, and the whole text where the short form is not all of it.

Note: a short form is a projection and replaces nothing: the log and the artifacts stay unchanged. The user's words are
whole as far as they have room; else both ends, or a reference, with a warning. Rules are whole sections, or references.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

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
from .turns.fitting import BEGINNING, costs_of_frame, input_limit, tokens_of, words_room
from .turns.frame import bullet
from .turns.reading import beside, with_sources
from .turns.words import REQUIRED_PARTS

Row = Mapping[str, Any]

LEAST_RULES = 100
"""Tokens of repository rules that even a small input has: rules are a required part (S3.35), and a section needs some."""


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
        bullet(f"{each['heading'] or ''}\n{each['text']}")
        if each["part"] in REQUIRED_PARTS and each["source_id"] != "words"
        else None
        for each in sources
    ]
    tokens = tokens_of(texts, context_sources["input_id"].to_pylist(), context_turns, counters)
    made: list[_Form] = []
    turns = with_sources(context_turns, context_sources)
    for (turn, part), state in zip(turns, turn_states["phase"].to_pylist(), strict=True):
        mine, own, count, phase = sources[part], chosen[part], tokens[part], phases[state]
        cut = _long_rules(mine, own, count, turn, phase["rules"], duty)
        others = sum(
            int(count[n]) for n, each in enumerate(mine)
            if each["part"] in ("rules", "state") and n not in cut and not own[n]["decided_by"]
        )  # fmt: skip
        words = _Words(turn, others, counters.get(turn["tokenizer"]))
        made += [
            words.earlier(source)
            if source["source_id"] == "words"
            else words.whole(source["text"], int(tokens), source["reference"])
            if source["part"] == "user_goal" and not decision["decided_by"]
            else _forms(source, decision, n in cut, phase["full_characters"])
            for n, (source, decision, tokens) in enumerate(zip(mine, own, count, strict=True))
        ]
    named = [
        f"sum-{hashlib.sha256((each.text or '').encode()).hexdigest()[:16]}"
        if each.form in ("excerpt", "summary")
        else None
        for each in made
    ]
    original = [
        each.original or (None if each.form in ("full", "none") else source["reference"])
        for each, source in zip(made, sources, strict=True)
    ]
    columns = {name: [getattr(each, name) for each in made] for name in ("form", "text", "longer", "whole")}
    return beside(COMPRESSED, context_sources, summary_id=named, original_ref=original, **columns)


class _Form(NamedTuple):
    """The short form of a source with its text, and a longer text, which is `whole` or not; `original`: where the rest of
    the longer one is.
    """

    form: str
    text: str | None = None
    longer: str | None = None
    whole: bool = True
    original: str | None = None


class _Words:
    """The user's words in the order of the sources: goal and constraints first, then the newest messages."""

    def __init__(self, turn: Row, others: int, counter: Any) -> None:
        """`others`: tokens of what every input has besides."""
        headings, fences = costs_of_frame(turn["fences"], counter)
        free = min(turn["target_tokens"], input_limit(turn)) - others - sum(headings) - sum(fences)
        self.counter, self.room = counter, max(min(words_room(turn), free), 0)

    def whole(self, text: str, tokens: int, reference: str) -> _Form:
        """A text that every input has; one that does not fit by its ends, in half of the room that is left."""
        form, most = "full", max(len(text) * self.room // max(2 * tokens, 1), BEGINNING)
        if tokens > self.room and len(text) > most:
            form, text, tokens = "excerpt", _ends(text, most, reference), tokens * most // len(text)
        self.room -= min(tokens, self.room)
        return _Form(form, text)

    def earlier(self, source: Row) -> _Form:
        """The earlier messages: a line that says where they are, or the newest ones that fit, a long one by its ends."""
        items, detail = re.split(r"(?m)^(?=- )", source["text"])[1:], json.loads(source["detail"])
        begun, _, end = source["reference"].removeprefix("log:").partition("-")
        costs, shown, cut = self._cost(items), list[str](), list[str]()
        left = None if detail["all"] else f"log:{begun}-{end}"
        for item, cost, (seq, id_) in reversed(list(zip(items, costs, detail["events"], strict=True))):
            if cost > self.room and len(item) > BEGINNING:
                cut.append(f"event:{id_}")
                item = bullet(_ends(item[2:].replace("\n  ", "\n"), BEGINNING, cut[-1]))
                (cost,) = self._cost([item])
            if cost > self.room:
                left = f"log:{begun}-{seq}"
                break
            shown.insert(0, item)
            self.room -= cost
            left = left and f"log:{begun}-{seq - 1}"
        where = [bullet(f"earlier ones: open {left}")] if left else []
        short, longer = bullet(f"open {source['reference']}"), "".join([*where, *shown]) if shown else None
        return _Form("excerpt", short, longer, not left and not cut, left or next(iter(cut), None))

    def _cost(self, texts: list[str]) -> list[int]:
        return self.counter.count(pa.array(texts, pa.large_string())).tolist()


def _ends(text: str, most: int, reference: str) -> str:
    """Both ends of a text, and where the whole of it is."""
    head, tail = text[: most // 2].rstrip(), text[len(text) - most // 2 :].lstrip()
    return f"{head}\n[... {len(text) - len(head) - len(tail)} characters, open {reference} ...]\n{tail}"


def _forms(source: Row, decision: Row, cut: bool, most: int) -> _Form:
    """The forms of another source; `cut`: it becomes a reference."""
    text = source["text"]
    if decision["decided_by"]:
        return _Form("none")
    if decision["referenced"] or cut:
        return _Form("reference")
    if source["source_kind"] not in ("latest_observation", "recent_tail", "file_content"):
        return _Form("full", text)
    if text is None:  # the event may state a part, and where the rest is
        told = source["excerpt"] or source["summary"]
        return _Form(("excerpt" if source["excerpt"] else "summary") if told else "full", told)
    tail, excerpt = source["source_kind"] == "recent_tail", source["excerpt"]
    excerpt = excerpt if excerpt and len(excerpt) < len(text) else None
    first = excerpt and source["source_kind"] == "latest_observation"  # its key part is in every input with room for it
    if not first and len(text) <= (most // 2 if tail else most):
        return _Form("full", text)
    if tail and source["summary"]:
        return _Form("summary", source["summary"], text)
    return _Form("excerpt", excerpt or f"{text[: most // 2].rstrip()}\n[...]\n{text[-most // 2 :].lstrip()}", text)


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
