"""Compares values in texts with fields of records: values that agree, that differ, and that no record has (S1.29).

Reads a text and the fields of structured records. Gives a `Finding` per value.

A value is compared with a field of its kind that is named by its line or the section above it: "The engagement fee is
$50,000" names `fee`. The records are those that the text is about, by id or by a folder of its path; one that the line
itself names comes first. Nothing is corrected here: a finding proposes the canonical value (C27).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from ..text.references import References, named_records
from .fact_values import Value, values_in, whole_value

_WORST_FIRST = ("mismatch", "stale_sot", "match", "unknown_key", "unread")
_SYNONYMS = {"due": ("deadline",), "deadline": ("due",)}
_COMMON = frozenset({"date", "amount", "value", "total"})
"""Words that do not name a field by themselves: `due_date` is named by "due", `date` only by "date"."""
_BEFORE, _APART = ("", *" \t(:=~"), re.compile(r"(?!,\d| (?i:thousand|million|billion)\b)(?:[\s,;:)%.]|$)")
"""What comes before a plain number, and after an amount."""
_WORD_AND_NUMBER, _NUMBER = re.compile(r"\w+-\d{1,9}"), re.compile(r"-\d+$")


class Fact(NamedTuple):
    """A field of a record: its row, the record, how texts name the record, what it states and where."""

    row: int
    record: str
    entity: str
    field: str
    value: str
    stale: bool
    locator: str

    @property
    def key(self) -> str:
        return f"i:{self.entity.lower()}"


class Finding(NamedTuple):
    """What the records say of a value, and the field compared with."""

    value: str
    kind: str
    """id, date, money or number"""
    finding: str
    """match, mismatch, unknown_key, stale_sot or unread"""
    fact: Fact | None
    start: int
    """Its first place in the text, in characters."""


class _Claim(NamedTuple):
    """A value that a text states, its place and its words, and those of its line."""

    value: Value
    start: int
    words: str
    line: int
    context: str


class _Pair(NamedTuple):
    """A value and a field of its kind that is named by its line: whether they agree, whether the field itself contains
    the value, and whether the line names the record."""

    fact: Fact
    same: bool
    keyed: bool
    own_line: bool

    @property
    def order(self) -> tuple[int, int]:
        """An id agrees with its record as a whole; the field to name is the one that contains it."""
        rank = (0 if self.keyed else 1) if self.same else 2 if self.own_line else 3
        return rank, self.fact.row


def facts_by_request(facts: pa.Table) -> dict[str, list[Fact]]:
    """The rows of STRUCTURED_FACTS that each request was admitted for; a record's rows are adjacent."""
    found: dict[str, list[Fact]] = defaultdict(list)
    names = ("request_id", "evidence_id", "entity", "field", "value", "stale", "locator")
    for row, (request, *fact) in enumerate(zip(*(facts[name].to_pylist() for name in names), strict=True)):
        found[request].append(Fact(row, *fact))
    return found


def findings(
    text: str, path: str | None, section: str | None, facts: list[Fact], *, all_records: bool = False
) -> list[Finding]:
    """The findings of a text, by value. With `all_records`, a text that names no record is compared with every record: an
    answer need not name one. If several have the field, a value can then agree with one, but is not reported to differ
    from any.
    """
    lines = text.split("\n")
    claims = _claims(lines, section or "")
    if not claims:
        return []
    of_text = _keys(named_records(pa.array([path], pa.string()), pa.array([text], pa.large_string())))[0]
    of_line = _keys(named_records(pa.nulls(len(lines), pa.string()), pa.array(lines, pa.large_string())))
    worst: dict[str, tuple[int, int, str, int]] = {}
    by_row = {fact.row: fact for fact in facts}
    for one, finding, fact in _checked(claims, facts, of_text, of_line, all_records):
        rank = _WORST_FIRST.index(finding), fact, one.value.kind, one.start
        worst[one.words] = min(worst.get(one.words, rank), rank)
    return [
        Finding(value, kind, _WORST_FIRST[place], by_row.get(fact), start)
        for value, (place, fact, kind, start) in sorted(worst.items())
    ]


def _claims(lines: Sequence[str], section: str) -> list[_Claim]:
    """The ids, dates and amounts of some lines. A number with a unit, or with a comma that may end the units, is none."""
    claims, at = [], 0
    for number, line in enumerate(lines):
        for value in values_in(line):
            before, after = line[: value.start][-1:], line[value.end :]
            amount = value.kind in ("money", "number")
            parted = _APART.match(after) and (value.kind == "money" or before in _BEFORE)
            if value.kind in ("id", "date") or (amount and parted):
                words = line[value.start : value.end]
                claims.append(_Claim(value, at + value.start, words, number, f"{section} {line}"))
        at += len(line) + 1
    return claims


def _keys(named: References) -> dict[int, set[str]]:
    """The records that each text names, by their keys."""
    keys: dict[int, set[str]] = defaultdict(set)
    for row, key in named:
        keys[row].add(key)
    return keys


def _checked(
    claims: list[_Claim], facts: list[Fact], named: set[str], of_line: dict[int, set[str]], all_records: bool
) -> Iterator[tuple[_Claim, str, int]]:
    """The values of a text that are checked, with finding and row of the fact.

    Args:
        claims: the values.
        facts: the fields of all records of the request.
        named: the keys of the records that the text names.
        of_line: those that each line names.
        all_records: see `findings`.
    """
    entities = {fact.entity.upper() for fact in facts}
    foreign = [one for one in claims if one.value.kind == "id" and _is_foreign(one.words, entities)]
    # The values on a line with an id that has no record are not claims about another record.
    elsewhere = {one.line for one in foreign}
    about = [fact for fact in facts if fact.key in named]
    silent = all_records and not about and not foreign
    pairs = [_pairs(one, facts if silent else about, of_line[one.line]) for one in claims]
    pairs = [
        [pair for pair in own if pair.own_line or one.line not in elsewhere]
        for one, own in zip(claims, pairs, strict=True)
    ]
    # Where one value of a line agrees with a field, the line's other values of that kind are not about it.
    agreed = {
        (one.line, one.value.kind, pair.fact.row)
        for one, own in zip(claims, pairs, strict=True)
        for pair in own
        if pair.same
    }
    for one, own in zip(claims, pairs, strict=True):
        kind = one.value.kind
        left = [pair for pair in own if pair.same or (one.line, kind, pair.fact.row) not in agreed]
        # With several records, a text that names none of them cannot contradict one of them: it agrees, or is not checked.
        guessed = silent and len({pair.fact.record for pair in left}) > 1
        left = [pair for pair in left if pair.same or not (guessed or one.line in elsewhere)]
        if left:
            best = min(left, key=lambda pair: pair.order)
            yield one, ("stale_sot" if best.fact.stale else "match") if best.same else "mismatch", best.fact.row
        elif not one.value.read:
            yield one, "unread", -1  # `03/04/2025` is in March or in April
        elif kind == "id" and one not in foreign and one.words.upper() not in entities:
            continue  # a word that has the form of an id
        elif kind != "number":  # a plain number without a named field is not a fact of a record
            yield one, "unknown_key", -1


def _is_foreign(value: str, entities: set[str]) -> bool:
    """Whether an id is that of no record; in lower case only with the prefix of one: `utf-8` has the form of `eng-001`."""
    upper = value.upper()
    if upper in entities or upper == value or not _WORD_AND_NUMBER.fullmatch(value):
        return upper not in entities
    return _NUMBER.sub("", upper) in {_NUMBER.sub("", entity) for entity in entities}


def _pairs(one: _Claim, facts: list[Fact], own_line: set[str]) -> list[_Pair]:
    """The fields that a value is compared with. An id is compared with the record's own key."""
    pairs, mine = [], one.value
    for fact in facts if mine.read else ():
        if mine.kind == "id":
            if fact.entity.lower() == mine.canonical:
                keyed = fact.value.strip().lower() == mine.canonical
                pairs.append(_Pair(fact, True, keyed, fact.key in own_line))
        elif names_field(one.context, fact.field) and (theirs := _comparable(fact.value, mine)):
            same = theirs.canonical == mine.canonical
            same &= theirs.currency == mine.currency or not (theirs.currency and mine.currency)
            pairs.append(_Pair(fact, same, same, fact.key in own_line))
    return pairs


def _comparable(text: str, mine: Value) -> Value | None:
    """The value of a field, if it is a date as this one is, or an amount as this one is."""
    theirs = whole_value(text.strip().removesuffix("%"))
    kinds = ("date",) if mine.kind == "date" else ("money", "number")
    return theirs if theirs and theirs.read and theirs.kind in kinds else None


def names_field(line: str, field: str) -> bool:
    """Whether a line names a field: all its distinctive words, or synonyms of them."""
    words = _words(field)
    said = _words(line)
    wanted = [word for word in words if word not in _COMMON] or words
    return bool(wanted) and all({word, *_SYNONYMS.get(word, ())} & said for word in wanted)


@lru_cache(maxsize=4096)
def _words(line: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d_]+", line.lower()))
