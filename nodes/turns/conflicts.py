"""Rules of different scopes of which one forbids what another asks for: each pair is reported once, by name (S3.47).

Gives: `conflicts`, sources that name both rules, and `FORBIDS`.

Note: nothing is settled here. The input shows both rules as they are written; this reports that they
may disagree, with their places. Whether they do is decided by topic and by a word of negation, not by meaning.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import among, codes_of, distinct_rows, flat, integers, rank_within
from ..columns.ragged import spread, starts_of
from .duties import TOPIC_WORDS, sentences
from .joining import joined
from .session_sources import named_id, rows

__all__ = ["FORBIDS", "conflicts", "straight"]

Int = NDArray[np.int64]

FORBIDS = re.compile(r"(?i)\b(?:never|not|don't|avoid|without|no)\b")
"""What turns a sentence of a rule into its opposite."""
MOST = 6
"""Most pairs that an input names."""
QUOTED = 160
"""Characters of a sentence that a pair shows."""
_STRAIGHT = str.maketrans({"\u2019": "'", "\u2018": "'"})
_TEXT = pa.large_string()
_KINDS = ("system_rules", "repository_instructions", "user_goal", "active_constraint")


def straight(text: str) -> str:
    """A text with straight apostrophes."""
    return text.translate(_STRAIGHT)


def conflicts(sources: pa.Table) -> pa.Table:
    """Pairs of rules, constraints and goals that may disagree, as sources, by turn and topic."""
    mine = among(sources["source_kind"], _KINDS) & among(sources["standing"], ("instruction",))
    some = sources.filter(pa.array(mine)).combine_chunks()
    text = flat(some["text"]).dictionary_encode()
    said = [[straight(each) for each in sentences(one or "")] for one in text.dictionary.to_pylist()]
    at = np.asarray(pc.fill_null(text.indices, 0)).astype(np.int64)
    turn, scope, where = integers(some["turn"]), codes_of([_scope(some)]), _where(some)
    made: list[pa.Table] = []
    for topic, words in TOPIC_WORDS.items():
        sides = []
        for forbids in (True, False):
            told = pa.array([_first(one, words, forbids) for one in said], _TEXT).take(pa.array(at))
            row = np.flatnonzero(np.asarray(told.is_valid()))
            row = row[np.sort(distinct_rows(turn[row], scope[row])[0])]
            sides.append((row, told))
        (forbidding, never), (asking, always) = sides
        order = np.argsort(turn[asking], kind="stable")
        low, high = (turn[asking][order].searchsorted(turn[forbidding], side=side) for side in ("left", "right"))
        which, place = spread(low, high - low)
        one, other = forbidding[which], asking[order][place]
        apart = scope[one] != scope[other]
        if apart.any():
            made.append(_pairs(some, topic, (one[apart], never), (other[apart], always), where))
    if not made:
        return sources.slice(0, 0)
    pairs = pa.concat_tables(made).combine_chunks()
    order = np.argsort(integers(pairs["turn"]), kind="stable")
    kept = order[rank_within(integers(pairs["turn"])[order]) < MOST]
    return pairs.take(pa.array(kept))


def _pairs(
    some: pa.Table, topic: str, one: tuple[Int, pa.Array], other: tuple[Int, pa.Array], where: pa.Array
) -> pa.Table:
    ids = flat(some["source_id"])
    at = [pa.array(each[0]) for each in (one, other)]
    quoted = [
        joined(where.take(row), ' says "', pc.utf8_slice_codeunits(words.take(row), 0, QUOTED), '"')
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


def _first(said: list[str], words: re.Pattern[str], forbids: bool) -> str | None:
    """The first sentence that speaks of a topic and forbids, or asks."""
    return next((each for each in said if words.search(each) and bool(FORBIDS.search(each)) == forbids), None)


def _scope(sources: pa.Table) -> pa.Array:
    """Whose rule each is: a file's, the system's, that of all repositories, the user's."""
    heading = pc.fill_null(flat(sources["heading"]), "").cast(_TEXT)
    rule = pc.replace_substring_regex(heading, pattern=r"(?i)^(system|global|repo)\w* rule\b.*", replacement=r"\1 rule")
    named = pc.match_substring_regex(rule, r"(?i)^(system|global|repo) rule$")
    own = pc.if_else(pc.equal(flat(sources["source_kind"]), "system_rules"), "system rule", "user")
    return pc.coalesce(flat(sources["path"]).cast(_TEXT), pc.if_else(named, pc.utf8_lower(rule), own))


def _where(sources: pa.Table) -> pa.Array:
    """The place of each: file and line, or who said it in which event."""
    kind, heading = flat(sources["source_kind"]), flat(sources["heading"]).cast(_TEXT)
    rule = pc.coalesce(heading, pc.if_else(pc.equal(kind, "system_rules"), "system rule", None).cast(_TEXT))
    told = joined(pc.fill_null(heading, "User goal"), " (", flat(sources["reference"]).cast(_TEXT), ")")
    return pc.if_else(pc.is_in(kind, value_set=pa.array(["system_rules", "repository_instructions"])), rule, told)
