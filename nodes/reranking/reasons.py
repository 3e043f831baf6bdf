"""Why a row was selected, in a few words (S0.60): the strongest of its contributions, or the kind of its source.

The words are those that the score terms declare (`ScoreTerm.reason`, `ScoreTerm.signal`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import constants, flat
from ..score_terms import TERMS, ScoreTerm, terms_of_plugins
from ..vocabulary import FILE_TERMS

RECENT, AUTHORITATIVE = 0.5, 0.6
"""Least values of the recency and the authority term."""

Float = NDArray[np.float64]
Flags = NDArray[np.bool_]


def source_signal(kind: str, origin: str, state: str | None, authoritative: bool, recent: bool) -> str:
    """The kind of source, in the words of S0.60."""
    match kind:
        case "code":
            return "current workspace file" if origin == "workspace" else "code"
        case "rule" if origin == "user-preference":
            return "preference of the user"
        case "rule":
            return "verified project rule" if state == "verified" else "rule"
        case "decision-record":
            return "high authority decision record" if authoritative else "decision record"
        case "test-log":
            return "recent test log" if recent else "earlier test log"
        case "session-event":
            return "recent session observation" if recent else "earlier session observation"
        case "memory":
            return f"{state if state in ('verified', 'deprecated', 'expired') else 'unverified'} memory"
        case "structured-fact":
            return "recorded fact"
        case "tool-output":
            return "tool output"
    return "project document"


def reasons(
    score_terms: pa.Table, names: tuple[str, ...], weighed: Float, of_plugins: tuple[ScoreTerm, ...] = ()
) -> pa.Array:
    """The strongest anchor that it hits; else the role's reason, where the role counts more than any other term of the
    row; else the reason whose terms contribute most: among equals the kind of source first, then in the order of the
    terms.

    `weighed` has the contribution of each term by name, one column each.
    """
    words, groups, of_row = _reasons_of(names, of_plugins)
    sums = weighed @ groups
    role, anchored = sums[:, 0], sums[:, 1] > 0
    reason = constants(words).take(pa.array(sums[:, 2:].argmax(axis=1)))
    found = pc.coalesce(reason, flat(score_terms["source_signal"]))
    if role.any():
        preferred = role > np.max(weighed[:, of_row], axis=1, initial=0.0)
        found = pc.coalesce(pc.if_else(pa.array(preferred), flat(score_terms["role_signal"]), None), found)
    if anchored.any():
        found = pc.coalesce(pc.if_else(pa.array(anchored), flat(score_terms["anchor_signal"]), None), found)
    return found


@lru_cache(maxsize=64)
def _reasons_of(
    names: tuple[str, ...], of_plugins: tuple[ScoreTerm, ...]
) -> tuple[tuple[str | None, ...], Float, Flags]:
    """The reasons of some terms but the role's and the anchors', None for the kind of source; the terms of every
    reason, role and anchors first, one column each; and the terms that a role is compared with.
    """
    declared = {term.name: term for term in (*TERMS, *of_plugins)}
    groups: dict[str, list[str]] = {"role_signal": [], "anchor_signal": [], "source_signal": []}
    for name in names:
        term = declared.get(name) or ScoreTerm(name, "")
        of_plugin = f"strong in {name}" if terms_of_plugins((name,)) else ""
        if why := term.signal or term.reason or of_plugin:
            groups.setdefault(why, []).append(name)
    counted = np.array([[name in group for group in groups.values()] for name in names], dtype=np.float64)
    of_row = counted[:, 2:].any(axis=1) & np.array([name not in FILE_TERMS for name in names])
    return (None, *list(groups)[3:]), counted, of_row
