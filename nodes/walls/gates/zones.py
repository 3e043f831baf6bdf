"""Sensitivity and level of a row: the gates `zone` and `level`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...columns.keys import truth
from ...vocabulary import ZONES
from ..segment_columns import SegmentColumns
from .gate import (
    GUIDED,
    Bounds,
    Canary,
    Case,
    Contract,
    Gate,
    Ground,
    Mask,
    Opening,
    Row,
    Rule,
    by_mode,
    grants,
    listed,
    outside,
    row_of,
)

LEFT_OUT = "left-out zone"
"""The reason for canaries in a zone that the mode excludes."""


def _left_out(segment: SegmentColumns, contract: Contract) -> Mask | None:
    excluded = contract["excluded_zones"]
    return ~outside(segment.zone, ZONES.values, excluded) if excluded else None


def _above(segment: SegmentColumns, bound: Mapping[str, Any]) -> Mask:
    return segment.zone > (ZONES.values.index(bound["zone"]) if bound["zone"] in ZONES else -1)


def _zone(contract: Contract, bounds: Bounds) -> Rule:
    zones = ", ".join(sorted({f"{bound['zone']} in {bound['project']}" for bound in bounds}))
    excluded = contract["excluded_zones"]
    rules = [grants(bounds), *by_mode(contract, excluded)]
    return ", ".join(rules), f"Rows up to zone {zones}{f', but none of {listed(excluded)}' if excluded else ''}."


def _a_zone(case: Case) -> Opening:
    zone = case.row["zone"] if case.row["zone"] in ZONES else ZONES.values[-1]
    granted = sorted({bound["zone"] for bound in case.here()}, key=ZONES.values.index)
    rules, needed = [], []
    if zone in case.contract["excluded_zones"]:
        rules.append(case.mode(zone))
        needed.append(f"a mode that leaves zone {zone} in")
    if ZONES.values.index(granted[-1]) < ZONES.values.index(zone):
        rules.append(case.rules())
        needed.append(f"a grant up to zone {zone}, in place of {', '.join(granted)}")
    case.contract["excluded_zones"] = []
    for bound in case.here():
        bound["zone"] = zone
    return Opening(", ".join(rules), " and ".join(needed))


def _restricted(ground: Ground) -> Row | None:
    return None if ground.zone == "restricted" else {"zone": "restricted"}


def _public(ground: Ground) -> Row | None:
    return None if ground.zone == "public" else {"zone": "public"}


ZONE = Gate(
    "zone",
    "access",
    "denied_zone",
    "its zone is at most the one granted in its project, and none the mode leaves out",
    columns=("zone",),
    contract_columns=("excluded_zones",),
    stops=_left_out,
    bound_stops=_above,
    explain=_zone,
    remedy=_a_zone,
    canaries=(Canary("zone", _restricted), Canary(LEFT_OUT, _public, angles=(GUIDED,))),
)


def _excluded(segment: SegmentColumns, contract: Contract) -> Mask | None:
    if not contract["excluded_levels"]:
        return None
    return truth(pc.is_in(pc.utf8_lower(segment.column("level")), pa.array(contract["excluded_levels"])))


def _level(contract: Contract, bounds: Bounds) -> Rule:
    levels = contract["excluded_levels"]
    return (f"mode {contract['mode']}", f"No row of level {listed(levels)}.") if levels else ("", "Every level.")


def _a_level(case: Case) -> Opening:
    level = case.row["level"].lower()
    case.contract["excluded_levels"] = []
    return Opening(case.mode(level), f"a mode that leaves level {level} in")


LEVEL = Gate(
    "level",
    "access",
    "level_excluded",
    "its level is none that the mode leaves out",
    columns=("level",),
    contract_columns=("excluded_levels",),
    stops=_excluded,
    explain=_level,
    remedy=_a_level,
    canaries=(Canary("level", row_of(level="task"), angles=(GUIDED,)),),
)
