"""Conflicts: a rule of one scope forbids what a rule of another scope requires. Each pair is reported once (S3.47).

Gives: `conflicts`, sources that name both rules.

Note: conflicts are not resolved here. The input shows both rules as written; this reports that they may disagree, with
their places. The test compares topics and negations, not meaning: "never commit without asking" agrees with "ask before
each commit".
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import among, codes_of, distinct_rows, flat, integers, rank_within
from ..columns.ragged import spread, starts_of
from .duties import TOPIC_WORDS, sentences
from .joining import joined
from .session_sources import named_id, rows

__all__ = ["conflicts"]

Int = NDArray[np.int64]

_FORBIDS = re.compile(r"(?i)\b(?:never|not|don't|avoid|without|no)\b")
"""Negations in a sentence of a rule."""
_NO = r"\b(?:never|not|don't|avoid|no)\b"
_ONLY_WITH = re.compile(
    rf"(?i)(?P<act>(?:(?!{_NO}|\bwithout\b).)*{_NO}(?:(?!{_NO}|[;:]|,\s*and\b|\bbut\b).)*?)"
    rf"\b(?P<how>without|unless|until|before)\b(?P<needs>(?:(?!{_NO}|\bwithout\b|[;:]).)*)",
    re.DOTALL,
)
"""A sentence that forbids something only until a condition is met."""
_BEFORE = re.compile(r"(?i)\bbefore\s+(?:(?:each|every|any|you|we|the|a|an|your|making|creating)\s+)*")
_WORD = re.compile(r"[a-z]+")
_MINOR = frozenset((
    "a", "all", "an", "and", "any", "are", "be", "been", "being", "by", "do", "explicit", "explicitly", "first", "for", "from", "had", "has", "have", "i", "in", "is", "it", "me", "my",
    "of", "on", "our", "prior", "that", "the", "them", "they", "this", "to", "us", "was", "we", "with", "you", "your",
))  # fmt: skip
"""Words that do not indicate the subject of a sentence."""
_PART = re.compile(r"(?i)[;:]|\bbut\b")
"""Marks and words between parts of a sentence that ask for acts independently."""
_THEN = re.compile(r"(?i)[,\s]*(?:\band\s+)?\bthen\b")
_WHEN = re.compile(r"(?i)(?<!even )(?<!except )(?<!also )\b(?:when(?:ever)?|if|after|once|with|upon|on)\b")
"""Words before the condition of an act."""
_JOINS = re.compile(r"(?i),|\b(?:and|then)\b")
"""Marks and words between two acts, of which a condition beside one may not hold for the other."""
_OR = re.compile(r"(?i)\b(?:or(?: (?:else|at least))?|as well as|plus)(?: only)?\s*\Z")
"""The end of what comes before a condition that is one of several."""
_VERBS_ONLY = re.compile(
    r"(?i)\W*(?:(?:always|please) )*\w+(?:(?: (?:and|or) \w+)+|(?:, \w+)+,? (?:and|or) \w+) only\s*"
)
"""Verbs that share the condition that follows."""
_APPROVAL = re.compile(r"ask|approv|permi|consent|confirm|request")
_ENDING = re.compile(r"(?:(?<=([^s]))\1ing|ing|ed|es|e|(?<!s)s)\Z")
MOST = 6
"""Most pairs that an input reports."""
QUOTED = 160
"""Most characters of a sentence in the report of a pair."""
LONG_SENTENCE = 600
"""Longest sentence that is split at its condition."""
_STRAIGHT = str.maketrans({"\u2019": "'", "\u2018": "'"})
_TEXT = pa.large_string()
_KINDS = ("system_rules", "repository_instructions", "user_goal", "active_constraint")


class _Statement(NamedTuple):
    """A sentence on a topic, and whether it forbids."""

    sentence: str
    forbids: bool
    needs: frozenset[str] = frozenset()
    """The words of the condition that lifts the prohibition."""


def conflicts(sources: pa.Table) -> pa.Table:
    """Pairs of rules, constraints and goals that may disagree, as sources, by turn and topic."""
    mine = among(sources["source_kind"], _KINDS) & among(sources["standing"], ("instruction",))
    some = sources.filter(pa.array(mine)).combine_chunks()
    text = flat(some["text"]).dictionary_encode()
    sentence_lists = [
        [each.translate(_STRAIGHT) for each in sentences(one or "")] for one in text.dictionary.to_pylist()
    ]
    at = pa.array(np.asarray(pc.fill_null(text.indices, 0)).astype(np.int64))
    turn, scope, where = integers(some["turn"]), codes_of([_scope(some)]), _where(some)
    made: list[pa.Table] = []
    for topic, words in TOPIC_WORDS.items():
        statements = [[_statement(each, words) for each in one if words.search(each)] for one in sentence_lists]
        found: list[tuple[Int, Int, pa.Array, pa.Array]] = []
        for needs in sorted({each.needs for one in statements for each in one if each.forbids}, key=sorted):
            never = [
                next((each.sentence for each in one if each.forbids and each.needs == needs), None)
                for one in statements
            ]
            always = [next((each.sentence for each in one if _asks(each, words, needs)), None) for one in statements]
            sides = [pa.array(side, _TEXT).take(at) for side in (never, always)]
            one, other = _opposed(turn, scope, *sides)
            found.append((one, other, sides[0].take(pa.array(one)), sides[1].take(pa.array(other))))
        if sum(len(one) for one, *_ in found):
            one, other = (np.concatenate([each[side] for each in found]) for side in (0, 1))
            never, always = (pa.concat_arrays([each[side] for each in found]) for side in (2, 3))
            first = np.sort(distinct_rows(turn[one], scope[one], scope[other])[0])
            quoted = [each.take(pa.array(first)) for each in (never, always)]
            made.append(_pairs(some, topic, (one[first], quoted[0]), (other[first], quoted[1]), where))
    if not made:
        return sources.slice(0, 0)
    pairs = pa.concat_tables(made).combine_chunks()
    order = np.argsort(integers(pairs["turn"]), kind="stable")
    kept = order[rank_within(integers(pairs["turn"])[order]) < MOST]
    return pairs.take(pa.array(kept))


def _opposed(turn: Int, scope: Int, never: pa.Array, always: pa.Array) -> tuple[Int, Int]:
    """Pairs of sources of one turn and two scopes: the first source of each scope that forbids and that asks."""
    sides = []
    for side in (never, always):
        row = np.flatnonzero(np.asarray(side.is_valid()))
        sides.append(row[np.sort(distinct_rows(turn[row], scope[row])[0])])
    forbidding, asking = sides
    order = np.argsort(turn[asking], kind="stable")
    low, high = (turn[asking][order].searchsorted(turn[forbidding], side=side) for side in ("left", "right"))
    which, place = spread(low, high - low)
    one, other = forbidding[which], asking[order][place]
    apart = scope[one] != scope[other]
    return one[apart], other[apart]


def _pairs(
    some: pa.Table, topic: str, one: tuple[Int, pa.Array], other: tuple[Int, pa.Array], where: pa.Array
) -> pa.Table:
    ids = flat(some["source_id"])
    at = [pa.array(each[0]) for each in (one, other)]
    quoted = [
        joined(where.take(row), ' says "', pc.utf8_slice_codeunits(words, 0, QUOTED), '"')
        for row, (_, words) in zip(at, (one, other), strict=True)
    ]
    both = np.stack([one[0], other[0]], axis=1).ravel()
    starts = pa.array(starts_of(np.full(len(one[0]), 2)), pa.int32())
    return rows(
        integers(some["turn"])[one[0]],
        source_id=named_id("conflict", pa.repeat(topic, len(one[0])), *(ids.take(row) for row in at)),
        source_kind="rule_conflict",
        part="rules",
        content_class="rule",
        standing="instruction",
        required=True,
        heading=f"May disagree about {topic}",
        text=joined(quoted[0], "; ", quoted[1]),
        reference=joined(*(flat(some["reference"]).take(row).cast(_TEXT) for row in at), between=" and ", skip_nulls=True),
        row=-1,
        about=pa.ListArray.from_arrays(starts, ids.take(pa.array(both)).cast(pa.string())),
    )  # fmt: skip


def _statement(sentence: str, words: re.Pattern[str]) -> _Statement:
    """Whether a sentence forbids the topic or asks for it: "never X without Y" forbids X only without Y, and asks for Y."""
    only = _ONLY_WITH.fullmatch(sentence) if len(sentence) <= LONG_SENTENCE else None
    if only is None:
        return _Statement(sentence, bool(_FORBIDS.search(sentence)))
    if words.search(only["act"]):
        return _Statement(sentence, True, _stems(only["needs"]))
    asks = only["how"].lower() == "without" and "," not in only["needs"] and words.search(only["needs"])
    return _Statement(sentence, not asks)


def _asks(statement: _Statement, words: re.Pattern[str], needs: frozenset[str]) -> bool:
    """Whether a sentence asks for an act that is forbidden until `needs`.

    It does not if it only asks for a step before the act, or for the act after `needs` has been met.
    """
    if statement.forbids or not needs:
        return not statement.forbids
    text = statement.sentence
    named = ((each, words.match(text, each.end())) for each in _BEFORE.finditer(text))
    rest = next((text[: before.start()] + text[topic.end() :] for before, topic in named if topic), text)
    if not words.search(rest):
        return False
    if len(text) > LONG_SENTENCE or not needs <= _stems(text):
        return True
    return bool(words.search(";".join(part for part in _PART.split(text) if not _agrees(part, words, needs))))


def _agrees(part: str, words: re.Pattern[str], needs: frozenset[str]) -> bool:
    """Whether a part of a sentence asks for an act only after `needs`: after it, then the act, or it before the act."""
    for when in _WHEN.finditer(part):
        act, condition = part[: when.start()], part[when.end() :]
        if _stems(act) <= _ADDS_NOTHING:
            condition, _, act = condition.partition(",")
            if _same(condition, needs) and "," not in act:
                return True
        elif _of_all(act) and _same(condition, needs):
            return True
    then = _THEN.search(part)
    if then is not None:
        return _same(part[: then.start()], needs)
    for before in _BEFORE.finditer(part):
        acts, ahead = part[before.end() :], part[: before.start()]
        if words.match(acts) and ("," not in acts or " or " in acts) and _same(ahead, needs):
            return True
        acts, _, step = acts.partition(",")
        if words.match(acts) and _stems(ahead) <= _ADDS_NOTHING and "," not in step and _same(step, needs):
            return True
    return False


def _of_all(act: str) -> bool:
    """Whether the condition behind an act holds for all of it: for one act, or for a list of verbs with `only`."""
    return not _OR.search(act) and (not _JOINS.search(act) or _VERBS_ONLY.fullmatch(act) is not None)


def _same(condition: str, needs: frozenset[str]) -> bool:
    """Whether the words of a condition are those of `needs`, and nothing else."""
    required = needs - _ADDS_NOTHING
    return bool(required) and _stems(condition) - _ADDS_NOTHING == required


def _stems(text: str) -> frozenset[str]:
    """The significant words of a text without their endings; words for an approval are all the same."""
    some = (each for each in _WORD.findall(text.lower()) if each not in _MINOR)
    return frozenset("ask" if _APPROVAL.match(each) else _ENDING.sub("", each) for each in some)


_ADDS_NOTHING = _stems(
    "always must should need please make sure ensure get obtain wait only user's maintainer owner human"
)
"""Words that do not change a condition."""


def _scope(sources: pa.Table) -> pa.Array:
    """The scope of each rule: its file, the system, all repositories, or the user."""
    heading = pc.fill_null(flat(sources["heading"]), "").cast(_TEXT)
    rule = pc.replace_substring_regex(heading, pattern=r"(?i)^(system|global|repo)\w* rule\b.*", replacement=r"\1 rule")
    named = pc.match_substring_regex(rule, r"(?i)^(system|global|repo) rule$")
    own = pc.if_else(pc.equal(flat(sources["source_kind"]), "system_rules"), "system rule", "user")
    return pc.coalesce(flat(sources["path"]).cast(_TEXT), pc.if_else(named, pc.utf8_lower(rule), own))


def _where(sources: pa.Table) -> pa.Array:
    """The place of each: file and line, or speaker and event."""
    kind, heading = flat(sources["source_kind"]), flat(sources["heading"]).cast(_TEXT)
    rule = pc.coalesce(heading, pc.if_else(pc.equal(kind, "system_rules"), "system rule", None).cast(_TEXT))
    label = joined(pc.fill_null(heading, "User goal"), " (", flat(sources["reference"]).cast(_TEXT), ")")
    return pc.if_else(pc.is_in(kind, value_set=pa.array(["system_rules", "repository_instructions"])), rule, label)
