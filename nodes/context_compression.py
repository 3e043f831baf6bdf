"""Context compression: the forms in which a source may be shown, always with a way back to the original.

Reads: a turn with its ordered sources, counters. Gives `compressed`, the same: of each a short form, and the whole text
where the short form is not all of it.

Note: a short form is a projection and replaces nothing: the log and the artifacts stay unchanged. The user's words are
whole as far as they have room; else both ends, or a reference, with a warning. Rules are whole sections, or references.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import pyarrow as pa

from .blocks.token_counting import Counters
from .turns.fitting import BEGINNING, costs_of_frame, input_limit, tokens_of, words_room
from .turns.frame import bullet
from .turns.reading import Row, TurnSources
from .turns.words import REQUIRED_PARTS

LEAST_RULES = 100
"""Tokens of repository rules that even a small input has: rules are a required part (S3.35), and a section needs some."""


def compressed(ordering: TurnSources, counters: Counters) -> TurnSources:
    """Of every source that passed the gates `form` (full, excerpt, summary or reference; `none` for the others) with its text
    `short`; `longer`, which is `whole` or not; `summary_id`, if `short` replaces the text; and `original_ref`, where the
    original is.
    """
    counter = counters.get(ordering.turn["tokenizer"])
    return ordering.adding(_formed(ordering, tokens_of(map(_required_text, ordering.sources), counter), counter))


def _required_text(source: Row) -> str | None:
    """A text that every input has, as it is counted to find how much room is left for the user's words."""
    if source["part"] not in REQUIRED_PARTS or source["source_id"] == "words":
        return None
    return bullet(f"{source['heading'] or ''}\n{source['text']}")


def _formed(given: TurnSources, tokens: list[int], counter: Any) -> list[dict[str, Any]]:
    sources = given.sources
    cut = _long_rules(given, tokens)
    others = sum(
        tokens[n]
        for n, each in enumerate(sources)
        if each["part"] in ("rules", "state") and n not in cut and not each["decided_by"]
    )
    words, made = _Words(given.turn, others, counter), list[dict[str, Any]]()
    for n, source in enumerate(sources):
        if source["source_id"] == "words":
            one = words.earlier(source)
        elif source["part"] == "user_goal" and not source["decided_by"]:
            one = words.whole(source["text"], tokens[n], source["reference"])
        else:
            one = _forms(source, n in cut, given.phase.full_characters)
        replaces = one.form in ("excerpt", "summary")
        named = f"sum-{hashlib.sha256((one.short or '').encode()).hexdigest()[:16]}" if replaces else None
        original = one.original or (None if one.form in ("full", "none") else source["reference"])
        made.append({**one._asdict(), "summary_id": named, "original_ref": original})
    return made


class _Form(NamedTuple):
    """The short form of a source with its text, and a longer text, which is `whole` or not; `original`: where the rest of
    the longer one is.
    """

    form: str
    short: str | None = None
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
        begun, _, end = source["reference"].removeprefix("log:").partition("-")
        costs, shown, cut = self._cost(source["items"]), list[str](), list[str]()
        left = None if source["all"] else f"log:{begun}-{end}"
        for item, cost, (seq, id_) in reversed(list(zip(source["items"], costs, source["events"], strict=True))):
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


def _forms(source: Row, cut: bool, most: int) -> _Form:
    """The forms of another source; `cut`: it becomes a reference."""
    text = source["text"]
    if source["decided_by"]:
        return _Form("none")
    if source["referenced"] or cut:
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


def _long_rules(given: TurnSources, tokens: list[int]) -> set[int]:
    """Sections of repository rules beyond their share: those without a duty word first, then the others, the last first."""
    limits = dict(each.partition("=")[::2] for each in given.turn["limits"])
    share = max(int(input_limit(given.turn) * given.phase.rules), LEAST_RULES)
    room = min(share, int(limits.get("rules", share)))
    mine = [
        n for n, each in enumerate(given.sources)
        if each["source_kind"] == "repository_instructions" and not each["decided_by"]
    ]  # fmt: skip
    taken, found = sum(tokens[n] for n in mine), set[int]()
    for n in sorted(mine, key=lambda n: (given.sources[n]["of"]["duty"], -n)):
        if taken <= room:
            break
        taken -= tokens[n]
        found.add(n)
    return found
