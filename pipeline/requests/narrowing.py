"""Combines two sets of request fields into one that allows no more than either.

Reads: columns of REQUESTS as dictionaries. Gives: `narrowed`, their intersection.

Bounds intersect: lists of allowances are intersected, denials add up, the lower cap and the higher floor win. So bounds
compose in any order and grouping, and the rows of the result are rows of each. The place of a request (its principal,
project, purpose, mode, work tree, clock, ...) must be the same in both or given by one only, because rows of two places
do not intersect. All other fields are not bounds: the second value replaces the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...nodes.errors import InputError
from ...nodes.vocabulary import RECALL_EFFORTS
from ..parsing.patterns import common_patterns

PLACES = ("principal", "project", "purpose", "mode", "variables", "workspace_root", "as_of", "tokenizer",
          "namespace", "branch", "test_suite", "role")  # fmt: skip
"""The fields of the place of a request."""


@dataclass(frozen=True)
class Fields:
    """Columns of REQUESTS, and the places that are fixed as none: no work tree, no mode, ..."""

    given: Mapping[str, Any] = field(default_factory=dict)
    without: frozenset[str] = frozenset()


def narrowed(one: Fields, other: Fields, at: str = "requests") -> Fields:
    """The fields that both sets allow.

    Raises:
        InputError: they name different places.
    """
    result = dict(one.given)
    for name, value in other.given.items():
        if name in PLACES:
            if name in one.without or result.get(name, value) != value:
                wanted = "no value" if name in one.without else repr(str(result[name]))
                raise InputError.expected(f"{wanted}, as in the preset or parent contract", str(value), f"{at}.{name}")
            result[name] = value
        elif name in BOUNDS and name in result:
            result[name] = BOUNDS[name](result[name], value)
        else:
            result[name] = value
    if settled := [name for name in other.without if name in one.given]:
        raise InputError.expected("no value", str(one.given[settled[0]]), f"{at}.{settled[0]}")
    return Fields(result, one.without | other.without)


BOUNDS: Mapping[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("allowed_sources", "allowed_paths"), common_patterns),
    **dict.fromkeys(("denied_sources", "denied_paths", "required_evidence"), lambda one, other: sorted({*one, *other})),
    "accepted_authority": lambda one, other: sorted({*one} & {*other}),
    **dict.fromkeys(("min_authority", "include_after"), max),
    **dict.fromkeys(
        ("exclude_after", "window_days", "max_unverified_items", "lane_k", "pool_k", "max_items", "max_items_per_source",
         "max_tokens", "max_chars", "max_chunk_tokens"), min
    ),
    "allow_stale_memory": lambda one, other: one and other,
    **dict.fromkeys(("require_citation", "require_snapshot"), lambda one, other: one or other),
    "recall_effort": lambda one, other: min(one, other, key=RECALL_EFFORTS.values.index),
}  # fmt: skip
"""The fields that bound a request, and how two values of one meet; an absent bound does not limit."""
