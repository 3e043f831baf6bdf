"""The path of a row: the gates `path_allow` and `path_deny`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...scope.selectors import allows_pathless, denies_pathless, glob_mask, matching_paths
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
    Row,
    Rule,
    by_mode,
    literal,
)

NO_PATH = "no path"
"""The reason for canaries without a path where the request denies a folder: they may belong to it."""


def _on(segment: SegmentColumns, globs: Sequence[str], *, pathless: bool) -> Mask:
    """Rows whose path matches one of the globs; `pathless` is the result for rows without a path."""
    distinct, codes = segment.paths
    return np.append(matching_paths(distinct, globs), pathless)[codes]


def _not_allowed(segment: SegmentColumns, contract: Contract) -> Mask | None:
    lists = [contract[name] for name in ("allowed_paths", "search_paths") if contract[name] is not None]
    if not lists:
        return None
    return ~np.logical_and.reduce([_on(segment, globs, pathless=allows_pathless(globs)) for globs in lists])


def _not_granted(segment: SegmentColumns, bound: Mapping[str, Any]) -> Mask | None:
    globs = bound["paths"]
    return None if globs is None else ~_on(segment, globs, pathless=allows_pathless(globs))


PATH_ALLOW = Gate(
    "path_allow",
    "access",
    "out_of_scope_path",
    "grants, mode and request all allow its path",
    columns=("path",),
    contract_columns=("allowed_paths", "search_paths"),
    stops=_not_allowed,
    bound_stops=_not_granted,
    explain=allowed("paths", "allowed_paths", "paths"),
    remedy=allowance("paths", "allowed_paths", "path"),
    canaries=(
        Canary(
            "unsearched path",
            lambda ground: {"path": f"{ground.folder}leak-test-unsearched/{{token}}"},
            angles=(GUIDED,),
        ),
    ),
)


def _denied(segment: SegmentColumns, contract: Contract) -> Mask | None:
    globs = [*contract["denied_paths"], *contract["excluded_paths"]]
    return _on(segment, globs, pathless=denies_pathless(globs)) if globs else None


def _denied_by_grant(segment: SegmentColumns, bound: Mapping[str, Any]) -> Mask | None:
    globs = bound["denied_paths"]
    return _on(segment, globs, pathless=denies_pathless(globs)) if globs else None


def _path_deny(contract: Contract, bounds: Bounds) -> Rule:
    by_grant = [bound for bound in bounds if bound["denied_paths"]]
    of_grants = (glob for bound in by_grant for glob in bound["denied_paths"])
    globs = sorted({*contract["denied_paths"], *contract["excluded_paths"], *of_grants})
    rules = [*(bound["rule_id"] for bound in by_grant), *(["request.denied_paths"] if contract["denied_paths"] else []),
             *by_mode(contract, contract["excluded_paths"])]  # fmt: skip
    if not globs:
        return "", "Denies none."
    also = ", and no row without a path" if denies_pathless(globs) else ""
    return ", ".join(rules), f"No path that matches {in_words(globs)}{also}."


def _no_denial(case: Case) -> Opening:
    path = pa.array([case.row["path"]])
    asked = [("request.denied_paths", glob) for glob in case.contract["denied_paths"]]
    asked += [(f"mode {case.contract['mode']}", glob) for glob in case.contract["excluded_paths"]]
    rules = [*asked, *((bound["rule_id"], glob) for bound in case.here() for glob in bound["denied_paths"])]
    matching = {glob: rule for rule, glob in rules if glob_mask(path, [glob], pathless=denies_pathless([glob]))[0]}
    case.contract |= {"denied_paths": [], "excluded_paths": []}
    for bound in case.here():
        bound["denied_paths"] = []
    first = most_specific(matching)
    return Opening(f"{matching[first]}: {first}", f"no denial of {', '.join(sorted(matching))}")


def _denials(ground: Ground) -> Mapping[str, Any]:
    folder = literal(ground.folder)
    guarded = [f"{folder}leak-test-guarded/"] if ground.seen["path"] else []
    return {"denied_paths": [f"path:{folder}leak-test-denied/", *guarded]}


def _without_path(ground: Ground) -> Row | None:
    return {"path": None} if ground.seen["path"] else None


PATH_DENY = Gate(
    "path_deny",
    "access",
    "denied_path",
    "no denied path matches its own",
    columns=("path",),
    contract_columns=("denied_paths", "excluded_paths"),
    stops=_denied,
    bound_stops=_denied_by_grant,
    explain=_path_deny,
    remedy=_no_denial,
    canaries=(
        Canary(
            "path_deny",
            lambda ground: {"path": f"{ground.folder}leak-test-denied/{{token}}.md"},
            _denials,
            (BOUNDED,),
        ),
        Canary(NO_PATH, _without_path, _denials, (BOUNDED,)),
    ),
)
