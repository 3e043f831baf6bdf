"""A role's words in texts: the rows that contain them, and the words they add to a query.

Reads texts and rows of ROLE_POLICIES and ROLE_RULES. Gives `spoken` (texts as lower case words), `saying` (texts with a
phrase), `drifting` (texts about an anti-goal) and `expansion` (words a role adds to a query).

Note: a phrase matches at the start of words, so that `token` finds `tokens`, while a word of three letters or less must
match as a whole: `ci` does not match `city`. Scripts without spaces match anywhere.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.kept import rows_by
from ..columns.keys import flat, offsets_and_bytes
from .text_analysis import STOPWORDS

EXPANSION_WEIGHT = 0.25
"""The weight of a word added by a role, relative to a word of the query."""
DRIFT_SHARE = 0.5
"""Minimum share of an anti-goal's words for a text to count as about it."""

_SIGNS, _ASCII_SIGNS = r"[^\p{L}\p{M}\p{N}]+", r"[^A-Za-z0-9]+"
_SHORT = 3
"""Words of at most this many letters must match as a whole."""
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"

Bool = NDArray[np.bool_]


def spoken(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Each text as its lower case words, surrounded by spaces; a null text has no words."""
    lowered = pc.utf8_lower(pc.utf8_normalize(pc.fill_null(flat(texts).cast(pa.large_string()), ""), form="NFKC"))
    words = words_apart(lowered)
    space = pa.scalar(" ", pa.large_string())
    return pc.binary_join_element_wise(space, words, space, pa.scalar("", pa.large_string()))


def words_apart(texts: pa.Array) -> pa.Array:
    """Each text as its words, separated by one space: all characters but letters, marks and digits are dropped.

    RE2 takes longer to compile the Unicode classes than to scan a page, so ASCII texts use a simpler pattern.
    """
    signs = _SIGNS if offsets_and_bytes(texts)[1].max(initial=0) > 127 else _ASCII_SIGNS
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, pattern=signs, replacement=" "))


def saying(texts: pa.Array, phrase: str) -> Bool:
    """Which of some `spoken` texts contain a phrase; a phrase without words is in none."""
    pattern = _pattern(phrase)
    if not pattern:
        return np.zeros(len(texts), dtype=bool)
    return np.asarray(pc.match_substring(texts, pattern=pattern))


def drifting(texts: pa.Array, anti_goal: str) -> Bool:
    """Which of some `spoken` texts contain at least half of an anti-goal's words."""
    words = content_words(anti_goal)
    hits = sum((saying(texts, word).astype(np.int64) for word in words), np.zeros(len(texts), dtype=np.int64))
    return (hits >= DRIFT_SHARE * len(words)) & (hits > 0)


@lru_cache(maxsize=1024)
def content_words(sentence: str) -> tuple[str, ...]:
    """The distinct content words of a sentence, in order."""
    words = spoken(pa.array([sentence]))[0].as_py().split()
    return tuple(dict.fromkeys(word for word in words if len(word) > _SHORT and word not in STOPWORDS))


def expansion(text: str, role: str | None, role_policies: pa.Table, role_rules: pa.Table) -> str | None:
    """The words that a role adds to a query: its preferred terms, and synonyms of the query's words; None if none."""
    policy = rows_by(role_policies, "role").get(role)
    if policy is None:
        return None
    rules = role_rules.filter(pc.equal(role_rules["rule"], "synonym")).select(["role", "pattern", "words"]).to_pylist()
    words, said = [*policy["preferred_terms"]], spoken(pa.array([text]))
    for rule in rules:
        words += rule["words"] if rule["role"] == role and saying(said, rule["pattern"])[0] else ()
    return " ".join(" ".join(words).split()) or None


@lru_cache(maxsize=4096)
def _pattern(phrase: str) -> str:
    """The substring to search in a `spoken` text; empty if the phrase has no words."""
    text = spoken(pa.array([phrase]))[0].as_py()
    words = text.split()
    if not words:
        return ""
    if pc.match_substring_regex(pa.scalar(words[0][0]), _UNSPACED).as_py():
        return text.strip()
    return text if len(words[-1]) <= _SHORT else text.rstrip()
