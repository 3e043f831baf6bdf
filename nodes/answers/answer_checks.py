"""Compares an answer with the visible bytes of its snapshot, and nothing else: no corpus, no model, no second opinion.

Reads `Shown` items (label, locator, visible text), values of the answer that looked-up records contradict, and its
text. Gives `answer_findings`.

Note: a finding means that the visible bytes do not support a claim, not that it is false. Its purpose is to reveal the
model's knowledge from elsewhere (S0.100, S0.102). Unused evidence is reported, but is not a defect.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..facts.fact_values import Value, values_in
from ..tables import ANSWER_FINDINGS, AnswerFindings
from .answer_claims import Claims, Span, claims_of

_ELLIPSIS = re.compile(r"\s*(?:\[?\.\.\.\]?|\[?\u2026\]?)\s*")
_TRAILING = ".,;:!?"
AnswerFinding = tuple[str, bool, str, str | None, str | None, int, int]


@dataclass(frozen=True)
class Shown:
    """One item as the model saw it: its label, its locator and its visible text."""

    label: str
    locator: str
    text: str
    shown: tuple[int, int] | None = None
    """The first and the last line of the file that the text is, if it has lines."""

    @cached_property
    def words(self) -> str:
        """Locator and text, with every run of white space collapsed to one space."""
        return _spaced(f"{self.locator} {self.text}")

    @cached_property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.text.splitlines()]


def answer_findings(
    items: Sequence[Shown], answer: str, frame: str = "", mismatches: Sequence[tuple[int, str, str]] = ()
) -> AnswerFindings:
    """The defects of an answer and the evidence it leaves unused, by place in the answer.

    `frame` is the rest of the block that contains values: dates and words on its fences. `mismatches` are values of the
    answer, each with its place and the differing value of a record that the contract admits, shown or not.
    """
    claims = claims_of(answer)
    by_label = {item.label: item for item in items}
    contradicted = list(_facts(mismatches))
    partly, places = _lines(claims, items)
    taken = [*(finding[-2:] for finding in contradicted), *places]
    found = [
        *_citations(claims, by_label),
        *_quotes(claims, by_label),
        *(finding for finding in _values(claims, items, answer, frame) if not _overlaps(finding[-2:], taken)),
        *contradicted,
        *partly,
        *_actions(claims, by_label),
        *_unused(claims, by_label),
    ]
    rows = [
        {
            "finding": name, "wrong": wrong, "subject": subject, "label": label, "expected": expected,
            "line": 0 if start == end else answer.count("\n", 0, start) + 1,
            "byte_start": len(answer[:start].encode()), "byte_end": len(answer[:end].encode()),
        }
        for name, wrong, subject, label, expected, start, end in dict.fromkeys(found)
    ]  # fmt: skip
    rows.sort(key=lambda row: tuple(row[name] for name in ANSWER_FINDINGS.order))
    return ANSWER_FINDINGS.from_rows(rows) if rows else ANSWER_FINDINGS.empty()


def _citations(claims: Claims, items: Collection[str]) -> Iterator[AnswerFinding]:
    for cited in claims.citations:
        if cited.text not in items:
            yield "unknown_citation", True, cited.text, cited.text, None, cited.start, cited.end


def _quotes(claims: Claims, items: dict[str, Shown]) -> Iterator[AnswerFinding]:
    """Quotes that are in no visible text, or not in any of those cited with them."""
    for quote in claims.quotes:
        holders = [label for label, item in items.items() if _contains(quote, item)]
        cited = [label for label in quote.labels if label in items]
        label = cited[0] if cited else None
        if not holders:
            yield "changed_quote", True, quote.text, label, None, quote.start, quote.end
        elif cited and not set(holders) & set(cited):
            yield "misattributed_quote", True, quote.text, label, holders[0], quote.start, quote.end


def _contains(quote: Span, item: Shown) -> bool:
    """Whether an item shows a quote: code line by line with one indentation, words in order around ellipses."""
    if quote.code:
        return _has_lines([line.rstrip() for line in quote.text.splitlines()], item.lines)
    place = 0
    for part in filter(None, _ELLIPSIS.split(_spaced(quote.text))):
        options = (item.words.find(part, place), item.words.find(part.rstrip(_TRAILING), place))
        place = next((at + 1 for at in options if at >= 0), 0)
        if not place:
            return False
    return True


def _has_lines(wanted: list[str], lines: list[str]) -> bool:
    while wanted and not wanted[0]:
        wanted = wanted[1:]
    while wanted and not wanted[-1]:
        wanted = wanted[:-1]
    for start in range(len(lines) - len(wanted) + 1):
        same = lines[start : start + len(wanted)]
        if _dedented(same) == _dedented(wanted):
            return True
    # A single line may be part of a longer one.
    return len(wanted) == 1 and any(wanted[0].strip() in line for line in lines)


def _dedented(lines: list[str]) -> list[str]:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    return [line[indent:] for line in lines]


def _values(claims: Claims, items: Sequence[Shown], answer: str, frame: str) -> Iterator[AnswerFinding]:
    texts = [frame, *(f"{item.locator}\n{item.text}" for item in items)]
    known = {_form(value) for text in texts for value in values_in(text)}
    whole = "\n".join(texts).lower()
    for value in claims.values:
        if _form(value) not in known and not (value.kind in ("id", "name") and value.canonical in whole):
            yield "unsupported_value", True, answer[value.start : value.end], None, None, value.start, value.end


def _form(value: Value) -> tuple[str, str]:
    """What two spellings of a value share: an amount may be given with its currency or without."""
    return "number" if value.kind == "money" else value.kind, value.canonical


def _lines(claims: Claims, items: Sequence[Shown]) -> tuple[list[AnswerFinding], list[tuple[int, int]]]:
    """Findings of lines that are shown in part, and the places in the answer of all lines of which any is shown."""
    found, places = list[AnswerFinding](), list[tuple[int, int]]()
    for named in claims.lines:
        place, held = named.place, list[tuple[str, int, int]]()
        for item in items:
            meant = f"/{named.path}#" in f"/{item.locator}" if named.path else item.label in place.labels
            if meant and item.shown and item.shown[0] <= named.last and named.first <= item.shown[1]:
                held.append((item.label, *item.shown))
        if held:
            places.append((place.start, place.end))
        if held and not any(first <= named.first and named.last <= last for _, first, last in held):
            label, first, last = held[0]
            found.append(("partly_shown", False, place.text, label, f"lines {first}-{last}", place.start, place.end))
    return found, places


def _facts(mismatches: Sequence[tuple[int, str, str]]) -> Iterator[AnswerFinding]:
    """Values that a looked-up record contradicts, one per place, the longest: an amount is looked up with its currency and
    without.
    """
    taken: list[tuple[int, int]] = []
    for start, subject, expected in sorted(mismatches, key=lambda one: -len(one[1])):
        if not _overlaps((start, start + len(subject)), taken):
            taken.append((start, start + len(subject)))
            yield "contradicted_fact", True, subject, None, expected, start, start + len(subject)


def _overlaps(place: tuple[int, int], taken: Sequence[tuple[int, int]]) -> bool:
    return any(start < place[1] and place[0] < end for start, end in taken)


def _actions(claims: Claims, items: dict[str, Shown]) -> Iterator[AnswerFinding]:
    """Changed files and commands that no cited item names. Evidence cited anywhere in the answer counts."""
    cited = [items[label] for label in dict.fromkeys(c.text for c in claims.citations) if label in items]
    for action in claims.actions:
        names = _commanded(action.text) if action.code else [action.text.removeprefix("./")]
        if not any(_spaced(action.text) in item.words for item in cited) and not all(
            any(_names(item, name) for item in cited) for name in names
        ):
            yield "unfounded_action", True, action.text, None, None, action.start, action.end


def _commanded(command: str) -> list[str]:
    """The words of a command that the evidence must contain: its program, and every file that it names."""
    words = [word for word in command.split() if word not in {"sudo", "env"} and not re.fullmatch(r"\w+=.*", word)]
    return words[:1] + [word for word in words[1:] if "/" in word or re.fullmatch(r"[\w-]+\.\w{1,5}", word)]


def _names(item: Shown, name: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", item.words))


def _unused(claims: Claims, items: dict[str, Shown]) -> Iterator[AnswerFinding]:
    cited = {span.text for span in claims.citations}
    for label in items:
        if label not in cited:
            yield "unused_evidence", False, label, label, None, 0, 0


def _spaced(text: str) -> str:
    return " ".join(text.split())
