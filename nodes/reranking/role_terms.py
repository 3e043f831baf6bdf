"""Effects of a role on a row: two score terms, its freshness, and its place in the block.

Reads stored rows with their contracts' roles, ROLE_POLICIES and ROLE_RULES. Gives `role_terms` and `reading_order`.

Note: both terms range from -1 to 1, since a role can count against a row. Nothing here grants access: rows that a role
may not see were stopped at the walls, and a row for other roles can only lose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import flat, flattened, gathered, positions, take_or
from ..columns.numbers import quantise
from ..scope.selectors import selected
from ..text.role_words import content_words, drifting, saying, spoken
from ..vocabulary import FRESHNESS

TEXT_COLUMNS = ("title", "section", "path", "text")
"""The columns that are matched with a role's words."""

_HALF_COUNT = 3.0
"""Total weight of matched words at which the vocabulary term is one half."""
_PHRASE, _TERM, _MISSION = 2.0, 1.0, 0.25
_AGING_RECENCY, _STALE_RECENCY = 0.5, 0.25
_FRESHNESS = pa.array(FRESHNESS.values[::-1])
FIRST, _NEUTRAL, LAST = range(3)
"""The place of a row in the block, by role."""

Float = NDArray[np.float64]
Int = NDArray[np.int64]


@dataclass(frozen=True)
class RoleTerms:
    """Per candidate: both terms, quantized, and the reason that the role prefers it, null where it does not."""

    vocabulary: Float
    metadata: Float
    signal: pa.Array


def role_terms(
    role: pa.Array, row: Int, evidence: pa.Table, age_days: Float, role_policies: pa.Table, role_rules: pa.Table
) -> RoleTerms:
    """The role terms of candidates; `role` is the role of each one's contract, `row` its row in `evidence`.

    Each distinct row is evaluated once per role, however many requests recalled it.
    """
    vocabulary, metadata = np.zeros(len(row)), np.zeros(len(row))
    if role.null_count == len(role):
        return RoleTerms(vocabulary, metadata, pa.nulls(len(row), pa.string()))
    signal = np.full(len(row), None, dtype=object)
    for policy, members in _by_role(role, role_policies):
        rules = role_rules.filter(pc.equal(role_rules["role"], policy["role"])).to_pylist()
        distinct, place = np.unique(row[members], return_inverse=True)
        texts = _row_texts(evidence, distinct)
        speaks = _vocabulary(texts, policy)
        vocabulary[members] = speaks[place]
        boost, reason = _boosts(evidence, distinct, rules)
        reason[(speaks > 0) & (reason == None)] = f"in the words of {policy['label']}"  # noqa: E711 - element-wise
        boost = boost - policy["role_mismatch_penalty"] * _for_others(evidence, distinct, policy)
        limit = policy["freshness_max_age_days"]
        stale = age_days[members] > limit if limit is not None else np.zeros(len(members), dtype=bool)
        metadata[members] = np.clip(boost[place] - policy["stale_penalty"] * stale, -1.0, 1.0)
        signal[members] = reason[place]
    return RoleTerms(quantise(vocabulary), quantise(metadata), pa.array(signal, pa.string()))


def freshness(
    role: pa.Array, age_days: Float, recency: Float, undated: NDArray[np.bool_], role_policies: pa.Table
) -> pa.Array:
    """fresh, aging, stale or undated: by the role's greatest age, else by half-lives of the row's kind."""
    stale, aging = recency < _STALE_RECENCY, recency < _AGING_RECENCY
    if role.null_count < len(role):
        limits = take_or(role_policies["freshness_max_age_days"], positions(role, role_policies["role"]), 0)
        limit = limits.to_numpy().astype(np.float64)
        own = limit > 0
        stale, aging = np.where(own, age_days > limit, stale), np.where(own, age_days > limit / 2, aging)
    place = np.where(undated, 0, np.where(stale, 1, np.where(aging, 2, 3)))
    return _FRESHNESS.take(pa.array(place))


def reading_order(role: pa.Array, row: Int, evidence: pa.Table, role_policies: pa.Table) -> Int:
    """The role's position for each row: `FIRST`, in its place, or `LAST`. Rows to avoid go last, even if preferred."""
    order = np.full(len(row), _NEUTRAL, dtype=np.int64)
    for policy, members in _by_role(role, role_policies):
        if not policy["prioritize"] and not policy["avoid"]:
            continue
        distinct, place = np.unique(row[members], return_inverse=True)
        texts = _row_texts(evidence, distinct)
        first, last = (
            np.logical_or.reduce(
                [_is_of(evidence, distinct, texts, word) for word in policy[name]], initial=np.False_, axis=0
            )
            for name in ("prioritize", "avoid")
        )
        order[members] = np.broadcast_to(np.where(last, LAST, np.where(first, FIRST, _NEUTRAL)), len(distinct))[place]
    return order


def _by_role(role: pa.Array, role_policies: pa.Table) -> Iterator[tuple[dict[str, Any], Int]]:
    """Each overlay that applies to some candidate, with the positions of those candidates."""
    if role.null_count == len(role):
        return
    asked = np.array(role.to_pylist(), dtype=object)
    for policy in role_policies.filter(pc.is_in(role_policies["role"], pc.unique(role))).to_pylist():
        yield policy, (asked == policy["role"]).nonzero()[0]


def _row_texts(evidence: pa.Table, rows: Int) -> pa.Array:
    columns = [pc.fill_null(gathered(evidence[name], rows).cast(pa.large_string()), "") for name in TEXT_COLUMNS]
    return spoken(pc.binary_join_element_wise(*columns, pa.scalar(" ", pa.large_string())))


def _vocabulary(texts: pa.Array, policy: Mapping[str, Any]) -> Float:
    """Matches of the role's words, x / (x + 3), minus the same for the words that the role avoids."""
    wanted, unwanted = np.zeros(len(texts)), np.zeros(len(texts))
    for weight, phrases in (
        (_TERM, policy["preferred_terms"]),
        (_PHRASE, policy["boost_phrases"]),
        (_MISSION, content_words(policy["mission"])),
    ):
        for phrase in phrases:
            wanted += weight * saying(texts, phrase)
    for phrase in policy["suppress_phrases"]:
        unwanted += _PHRASE * saying(texts, phrase)
    for anti_goal in policy["anti_goals"]:
        unwanted += _PHRASE * drifting(texts, anti_goal)
    return wanted / (wanted + _HALF_COUNT) - unwanted / (unwanted + _HALF_COUNT)


def _boosts(evidence: pa.Table, rows: Int, rules: list[dict[str, Any]]) -> tuple[Float, NDArray[np.object_]]:
    """The sum of the boosts of matching rules, but only the greatest of preferred sources; and the reason of that."""
    total, best = np.zeros(len(rows)), np.full(len(rows), -np.inf)
    reason = np.full(len(rows), None, dtype=object)
    column = {name: gathered(evidence[name], rows) for name in ("source_id", "origin_class", "document_type", "domain")}
    authority = pc.fill_null(gathered(evidence["authority"], rows), 0).cast(pa.string())
    for rule in rules:
        match rule["rule"]:
            case "preferred_source":
                hit = selected([rule["pattern"]], column["origin_class"], column["source_id"])
                better = hit & (rule["boost"] > best)
                best[better], reason[better] = rule["boost"], rule["reason"]
            case "trust_tier":
                total += rule["boost"] * _equal(authority, rule["pattern"])
            case "document_type" | "domain" as name:
                total += rule["boost"] * _equal(column[name], rule["pattern"])
    return total + np.where(np.isinf(best), 0.0, best), reason


def _for_others(evidence: pa.Table, rows: Int, policy: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Rows that name roles, but not this one or one that it bridges to."""
    roles = gathered(evidence["applicable_roles"], rows)
    own, named = flattened(roles)
    welcome = pc.is_in(named, pa.array([policy["role"], *policy["bridge_roles"]], pa.string()))
    met = np.bincount(own[np.asarray(welcome)], minlength=len(rows)) > 0
    return np.asarray(roles.is_valid()) & ~met


def _is_of(evidence: pa.Table, rows: Int, texts: pa.Array, word: str) -> NDArray[np.bool_]:
    """Rows of this kind, document type, domain or tag, or that contain it."""
    found = saying(texts, word)
    for name in ("evidence_kind", "document_type", "domain"):
        found |= _equal(gathered(evidence[name], rows), word)
    own, tags = flattened(gathered(evidence["tags"], rows))
    found[own[_equal(tags, word)]] = True
    return found


def _equal(column: pa.Array, value: str) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(pc.equal(flat(column), value), False))
