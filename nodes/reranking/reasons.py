"""Why a row was selected, in a few words (S0.60): the strongest of its contributions, or what kind of source it is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import constants, first_that_holds, flat, positions
from ..vocabulary import EVIDENCE_KINDS, FEEDBACK_TERMS

_RECENT, _AUTHORITATIVE = 0.5, 0.6
_WORDS = ("lexical", "lexical_feedback", "file", "passages")
"""Score classes of words."""
_MEANING = ("semantic", "semantic_feedback", "outlines")
"""Score classes of meaning."""

Float = NDArray[np.float64]
Rows = dict[str, pa.Array]


def source_signal(rows: Rows, authority: Float, recency: Float) -> pa.Array:
    """What kind of source it is, in the words of S0.60."""
    kind = _by_word(rows["evidence_kind"], EVIDENCE_KINDS.values)
    origin = _by_word(rows["origin_class"], ("workspace", "user-preference"))
    state = _by_word(rows["lifecycle"], ("verified", "deprecated", "expired"))
    recent = recency >= _RECENT
    rules = (
        (kind["code"] & origin["workspace"], "current workspace file"),
        (kind["code"], "code"),
        (kind["rule"] & origin["user-preference"], "preference of the user"),
        (kind["rule"] & state["verified"], "verified project rule"),
        (kind["rule"], "rule"),
        (kind["decision-record"] & (authority >= _AUTHORITATIVE), "high authority decision record"),
        (kind["decision-record"], "decision record"),
        (kind["test-log"] & recent, "recent test log"),
        (kind["test-log"], "earlier test log"),
        (kind["session-event"] & recent, "recent session observation"),
        (kind["session-event"], "earlier session observation"),
        (kind["memory"] & state["verified"], "verified memory"),
        (kind["memory"] & state["deprecated"], "deprecated memory"),
        (kind["memory"] & state["expired"], "expired memory"),
        (kind["memory"], "unverified memory"),
        (kind["structured-fact"], "recorded fact"),
        (kind["tool-output"], "tool output"),
    )
    return first_that_holds(rules, "project document", len(recency))


def _by_word(column: pa.Array, words: tuple[str, ...]) -> dict[str, NDArray[np.bool_]]:
    """Where a column holds each of some words."""
    place = positions(column, constants(words))
    return {word: place == number for number, word in enumerate(words)}


def reasons(score_terms: pa.Table, contributions: dict[str, Float]) -> pa.Array:
    """A hit anchor first; else the strongest of: close in meaning, matching words, read as an answer, the role's reason,
    the kind of source.
    """
    source = (
        contributions["authority"] + contributions["recency"] + contributions["actionability"] + contributions["scope"]
    )
    semantic = np.sum([contributions[name] for name in _MEANING], axis=0)
    lexical = np.sum([contributions[name] for name in _WORDS], axis=0)
    role = contributions["vocabulary"] + contributions["metadata"]
    read = contributions["cross_encoder"]
    rules = (
        ((read > semantic) & (read > lexical) & (read > source), "reads as an answer"),
        ((semantic >= lexical) & (semantic > source), "close in meaning"),
        (lexical > source, "matched the words"),
    )
    strongest = first_that_holds(rules, "", len(source))
    words = pc.if_else(pc.equal(strongest, ""), flat(score_terms["source_signal"]), strongest)
    others = ("semantic", "lexical", *FEEDBACK_TERMS, "authority", "recency", "actionability", "scope", "cross_encoder")
    if role.any():
        preferred = role > np.max([contributions[name] for name in others], axis=0, initial=0.0)
        words = pc.coalesce(pc.if_else(pa.array(preferred), flat(score_terms["role_signal"]), None), words)
    anchored = contributions["anchor"] > 0
    if anchored.any():
        words = pc.coalesce(pc.if_else(pa.array(anchored), flat(score_terms["anchor_signal"]), None), words)
    return words
