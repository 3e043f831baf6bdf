"""Sentences of an answer against records of keys and values among its evidence.

Reads a sentence and the visible texts of structured facts, one `key: value` per line. Gives contradictions: the sentence
speaks of the key, gives it a value of the same kind, and the record has another.

Note: a sentence that names a key without a value claims nothing, and several records may
have one key. A record is meant if the sentence cites it or names what it is about, or if no other record has the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .answer_claims import Span
from .answer_values import values_in

__all__ = ["contradictions"]

_PAIR = re.compile(r"(?m)^\s*[\"']?(?P<key>[^\W\d][\w .-]{0,60}?)[\"']?\s*[:=]\s*(?P<value>\S.*?)[\s,]*$")
_LINK = r"(?:\s+(?:field|value))?(?:\s*[:=]\s*|\s+(?:is|was|are|were|of|has been|equals|becomes)\s+(?:now\s+|set\s+to\s+)?|\s+)[\"'`\u201c]?"
_WORDS_LINK = r"(?:\s*[:=]\s*|\s+(?:is|was|equals)\s+)[\"'`\u201c]?"


def contradictions(sentence: Span, records: Sequence[tuple[str, str]]) -> Iterator[tuple[str, tuple[int, int], str]]:
    """Label of the record, place in the answer and the recorded value, for every value that differs."""
    told = [
        (label, text, {_key(m["key"]): m["value"].strip("\"'") for m in _PAIR.finditer(text)})
        for label, text in records
    ]
    for label, text, pairs in told:
        for key, value in pairs.items():
            same_key = [other for other, _, theirs in told if key in theirs]
            about = label in sentence.labels or _is_about(sentence.text, pairs, key)
            if len(same_key) > 1 and not about:
                continue
            if place := _other_value(sentence, key, value, text):
                yield label, place, value


def _other_value(sentence: Span, key: str, value: str, text: str) -> tuple[int, int] | None:
    """Where the sentence gives the key another value than the record, if it does."""
    spoken = re.search(rf"(?i)(?<!\w){re.escape(key).replace(chr(92) + ' ', '[ _-]')}(?!\w)", sentence.text)
    if not spoken:
        return None
    recorded = list(values_in(value))
    if recorded:
        said = [v for v in values_in(sentence.text) if v.kind == recorded[0].kind]
        elsewhere = {v.canonical for v in values_in(text)} - {v.canonical for v in recorded}
        said = [v for v in said if v.canonical not in elsewhere]
        if not said or {v.canonical for v in said} & {v.canonical for v in recorded}:
            return None
        nearest = min(said, key=lambda v: abs(v.start - spoken.end()))
        return sentence.start + nearest.start, sentence.start + nearest.end
    words = re.compile(_WORDS_LINK + rf"(?P<said>[\w-]+(?:\s+[\w-]+){{0,{max(len(value.split()) - 1, 0)}}})")
    given = words.match(sentence.text, spoken.end())
    if not given or given["said"].casefold().startswith(("not", "no ", "the ", "a ")):
        return None
    if _words(given["said"]) == _words(value)[: len(_words(given["said"]))]:
        return None
    return sentence.start + given.start("said"), sentence.start + given.end("said")


def _is_about(sentence: str, pairs: dict[str, str], key: str) -> bool:
    """Whether the sentence names the record by the value of another of its keys."""
    lowered = sentence.casefold()
    return any(k != key and len(v) > 2 and v.casefold() in lowered for k, v in pairs.items())


def _key(name: str) -> str:
    return " ".join(re.split(r"[ _-]+", name.strip())).casefold()


def _words(text: str) -> list[str]:
    return re.findall(r"[\w-]+", text.casefold())
