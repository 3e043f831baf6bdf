"""Why a row was selected, in a few words (S0.60): the strongest of its contributions, or the kind of its source.

The words are those that the score terms declare (`ScoreTerm.reason`, `ScoreTerm.signal`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import constants, first_that_holds, flat, positions
from ..score_terms import TERMS, ScoreTerm, terms_of_plugins
from ..vocabulary import EVIDENCE_KINDS, FILE_TERMS

_RECENT, _AUTHORITATIVE = 0.5, 0.6

Float = NDArray[np.float64]
Rows = dict[str, pa.Array]


def source_signal(rows: Rows, authority: Float, recency: Float) -> pa.Array:
    """The kind of source, in the words of S0.60."""
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
    """Where a column equals each of some words."""
    place = positions(column, constants(words))
    return {word: place == number for number, word in enumerate(words)}


def reasons(
    score_terms: pa.Table, contributions: Mapping[str, Float], of_plugins: Iterable[ScoreTerm] = ()
) -> pa.Array:
    """The strongest anchor that it hits; else the role's reason, where the role counts more than any other term of the
    row; else the reason whose terms contribute most: among equals the kind of source first, then in the order of the
    terms.
    """
    declared = {term.name: term for term in (*TERMS, *of_plugins)}
    terms = [declared.get(name) or ScoreTerm(name, "") for name in contributions]
    groups: dict[str, list[str]] = {"source_signal": []}
    for term in terms:
        of_plugin = f"strong in {term.name}" if terms_of_plugins((term.name,)) else ""
        if why := term.signal or term.reason or of_plugin:
            groups.setdefault(why, []).append(term.name)
    sums = {why: np.sum([contributions[name] for name in names], axis=0) for why, names in groups.items()}
    role, anchored = sums.pop("role_signal"), sums.pop("anchor_signal") > 0
    of_source, *others = sums
    reason = constants((None, *others)).take(pa.array(np.argmax(list(sums.values()), axis=0)))
    words = pc.coalesce(reason, flat(score_terms[of_source]))
    if role.any():
        of_row = [name for why in sums for name in groups[why] if name not in FILE_TERMS]
        preferred = role > np.max([contributions[name] for name in of_row], axis=0, initial=0.0)
        words = pc.coalesce(pc.if_else(pa.array(preferred), flat(score_terms["role_signal"]), None), words)
    if anchored.any():
        words = pc.coalesce(pc.if_else(pa.array(anchored), flat(score_terms["anchor_signal"]), None), words)
    return words
