"""The source of a row: the gates `source_allow`, `source_deny` and `role_source`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...scope.selectors import selected, selected_pairs
from ..segment_columns import SegmentColumns
from .allowances import allowance, allowed, in_words, most_specific
from .gate import (
    BOUNDED,
    GUIDED,
    Bounds,
    Canary,
    Case,
    Contract,
    Gate,
    Ground,
    Mask,
    Opening,
    Rule,
    asks,
    literal,
    row_of,
)

DENIED = "leak-test:denied"
_SOURCES = 50
"""Sources of a tenant that a bounded request of the leak test names."""


def _picked(segment: SegmentColumns, selectors: Sequence[str] | None) -> Mask:
    return selected_pairs(selectors, segment.pairs)[segment.pairs.codes]


def _not_allowed(segment: SegmentColumns, contract: Contract) -> Mask | None:
    if contract["allowed_sources"] is None and contract["role_sources"] is None:
        return None
    return ~(_picked(segment, contract["allowed_sources"]) & _picked(segment, contract["role_sources"]))


def _not_granted(segment: SegmentColumns, bound: Mapping[str, Any]) -> Mask | None:
    return None if bound["sources"] is None else ~_picked(segment, bound["sources"])


def _own_sources(ground: Ground) -> Mapping[str, Any]:
    own = sorted({ground.seen["source_id"], *sorted(ground.sources)[:_SOURCES]})
    return {"allowed_sources": [*map(literal, own), DENIED]}


SOURCE_ALLOW = Gate(
    "source_allow",
    "access",
    "out_of_scope_source",
    "grants and request both allow its source",
    columns=("source_id", "origin_class"),
    contract_columns=("allowed_sources", "role_sources"),
    stops=_not_allowed,
    bound_stops=_not_granted,
    explain=allowed("sources", "allowed_sources", "sources"),
    remedy=allowance("sources", "allowed_sources", "source_id"),
    canaries=(Canary("source_allow", row_of(source_id="leak-test:unlisted"), _own_sources, (BOUNDED,)),),
)


def _denied(segment: SegmentColumns, contract: Contract) -> Mask | None:
    return _picked(segment, contract["denied_sources"]) if contract["denied_sources"] else None


def _source_deny(contract: Contract, bounds: Bounds) -> Rule:
    denied = contract["denied_sources"]
    return ("request.denied_sources", f"No source that matches {in_words(denied)}.") if denied else ("", "Denies none.")


def _no_denial(case: Case) -> Opening:
    matching = [s for s in case.contract["denied_sources"] if _picks(s, case.row)]
    case.contract["denied_sources"] = []
    return Opening(f"request.denied_sources: {most_specific(matching)}", f"no denial of {', '.join(sorted(matching))}")


SOURCE_DENY = Gate(
    "source_deny",
    "access",
    "denied_source",
    "no denied source matches it",
    columns=("source_id", "origin_class"),
    contract_columns=("denied_sources",),
    stops=_denied,
    explain=_source_deny,
    remedy=_no_denial,
    canaries=(Canary("source_deny", row_of(source_id=DENIED), asks(denied_sources=[DENIED]), (BOUNDED,)),),
)


def _forbidden(segment: SegmentColumns, contract: Contract) -> Mask | None:
    return _picked(segment, contract["forbidden_sources"]) if contract["forbidden_sources"] else None


def _role_source(contract: Contract, bounds: Bounds) -> Rule:
    forbidden = contract["forbidden_sources"]
    if not forbidden:
        return "", "Forbids none."
    return f"role {contract['role']}", f"No source that matches {in_words(forbidden)}."


def _another_role(case: Case) -> Opening:
    matching = [s for s in case.contract["forbidden_sources"] if _picks(s, case.row)]
    case.contract["forbidden_sources"] = []
    rule = f"role {case.contract['role']}: {most_specific(matching)}"
    return Opening(rule, "a role that does not forbid its source")


ROLE_SOURCE = Gate(
    "role_source",
    "visibility",
    "forbidden_source",
    "the role forbids no source that matches it",
    columns=("source_id", "origin_class"),
    contract_columns=("role", "forbidden_sources"),
    stops=_forbidden,
    explain=_role_source,
    remedy=_another_role,
    canaries=(Canary("role_source", row_of(source_id="leak-test:forbidden"), angles=(GUIDED,)),),
)


def _picks(selector: str, row: Mapping[str, Any]) -> bool:
    return bool(selected([selector], pa.array([row["origin_class"]]), pa.array([row["source_id"]]))[0])
